"""Code that leaves something out: what it stands for, and when nobody can tell."""

from __future__ import annotations

import pytest

from lcursor.changes.apply.parse import blocks
from lcursor.changes.apply.resolve import Unresolved
from tests.unit.changes.replies import applied

BASE = '''\
import os
import sys


class Store:
    """Keeps things."""

    def __init__(self, path):
        self.path = path
        self.rows = []

    def load(self):
        with open(self.path) as file:
            for line in file:
                self.rows.append(line)
        return len(self.rows)

    def save(self):
        with open(self.path, "w") as file:
            file.writelines(self.rows)


def main(args):
    store = Store(args[0])
    store.load()
    report(store)
    store.save()
    return 0
'''


def is_elided(code: str) -> bool:
    """Return whether a reply leaves something out."""
    (block,) = blocks(f"```python\n{code}\n```")
    return block.is_elided


def merged(sketch: str) -> object:
    """Return the text after a reply, or why that is not certain."""
    return applied(BASE, f"```python\n{sketch}```")


@pytest.mark.parametrize(
    "line",
    [
        "# ... existing code ...",
        "    // ... rest of the file",
        "-- ...",
        "...",
        "…",
        "/* ... */",
        "{/* ... existing code ... */}",
        "<!-- ... unchanged ... -->",
        "# rest of the code remains unchanged",
        "# (existing code)",
        "// existing methods",
        "# unchanged",
        "# [... other functions ...]",
    ],
)
def test_lines_that_stand_for_omitted_code(line: str) -> None:
    assert is_elided(line)


@pytest.mark.parametrize(
    "line",
    [
        "return ...",
        "def f(self): ...",
        "...args",
        "local a = ...",
        "# and so on, until the end",
        "# the rest of the arguments are names",
        "print('...')",
        "# See a.py for more",
        "x = [1, ..., 9]",
        "# TODO",
        "",
    ],
)
def test_lines_that_are_no_omission(line: str) -> None:
    assert not is_elided(line)


def test_a_stub_is_no_omission() -> None:
    assert not is_elided("class P:\n    def f(self):\n        ...\n\n    def g(self): ...")
    assert is_elided("def f():\n    a()\n    ...")
    assert is_elided("def f():\n    ...\n    a()")


GAP = "# ... existing code ...\n"
LAST = "            file.writelines(self.rows)\n"


@pytest.mark.parametrize(
    ("sketch", "old", "new"),
    [
        (
            f"{GAP}\ndef main(args):\n    return 1\n",
            BASE[BASE.index("    store = Store") :],
            "    return 1\n",
        ),
        (
            "class Store:\n    # ...\n\n    def save(self):\n        check(self)\n"
            f"        raise OSError\n\n{GAP}",
            f'        with open(self.path, "w") as file:\n{LAST}',
            "        check(self)\n        raise OSError\n",
        ),
        (f"def main(args, out):\n    {GAP}", "def main(args):", "def main(args, out):"),
        (
            f"def main(args):\n    {GAP}    report(store)\n    check(store)\n    store.save()\n"
            "    # ...\n",
            "    report(store)\n",
            "    report(store)\n    check(store)\n",
        ),
        (f"import os\nimport re\nimport sys\n\n{GAP}", "import os\n", "import os\nimport re\n"),
        (
            f"{GAP}\n\ndef report(store):\n    print(store)\n",
            "    return 0\n",
            "    return 0\n\n\ndef report(store):\n    print(store)\n",
        ),
        (
            "class Store:\n    # ... existing methods ...\n\n    def clear(self):\n"
            "        self.rows = []\n",
            LAST,
            f"{LAST}\n    def clear(self):\n        self.rows = []\n",
        ),
        (f"class Store(Base):\n    {GAP}", "class Store:", "class Store(Base):"),
    ],
)
def test_omitted_lines_are_taken_from_the_text(sketch: str, old: str, new: str) -> None:
    assert BASE.count(old) == 1
    assert merged(sketch) == BASE.replace(old, new)


@pytest.mark.parametrize(
    "sketch",
    [
        f"{GAP}    store.other()\n    {GAP}",
        f"{GAP}\ndef main(args):\n    store = Store(args[0])\n    # ...\n    report(store)\n",
        f"def main(args):\n    return 1\n\n{GAP}\nclass Store:\n    pass\n",
        f"{GAP}\ndef go(args):\n    store = Store(args[0])\n    store.load()\n"
        "    report(store)\n    store.save()\n    return 0\n",
        f"{GAP}\ndef new(a):\n    return a\n\n{GAP}",
        "import os\n# ...\n    def load(self):\n        with open(path) as file:\n# ...\n"
        "    return 0\n",
        GAP,
        # New lines above a definition that has others of its own.
        f"import os\n{GAP}limit = 3\n\ndef main(args):\n    store = Store(args[0])\n"
        "    store.load()\n    check(store)\n    report(store)\n    store.save()\n    return 0\n",
        # A new line beside a marker.
        "import json\n# ... existing code ...\n",
        "# ... existing code ...\n    return 0\n\n\nif __name__:\n    main(sys.argv)\n",
        "def main(args):\n    check(args)\n    # ... existing code ...\n",
        # It changes nothing, or loses lines without a word.
        "import os\nimport sys\n\n# ...\n\ndef main(args):\n    store = Store(args[0])\n"
        "    # ...\n",
    ],
)
def test_an_uncertain_omission_becomes_a_sketch_for_the_rewriter(sketch: str) -> None:
    found = merged(sketch)
    assert isinstance(found, Unresolved)
    assert found.sketches == (("/p/a.py", tuple(sketch.splitlines())),)
