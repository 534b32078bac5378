"""Code that leaves something out: what it stands for, and when nobody can tell."""

from __future__ import annotations

import pytest

from lcursor.edit.apply import elision, splice

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
LINES = BASE.splitlines()


def merge(sketch: str) -> str | None:
    """Return the text then."""
    merged = elision.merge(LINES, sketch.splitlines(), "python")
    return None if merged is None else "\n".join(merged) + "\n"


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
def test_omissions(line: str) -> None:
    assert elision.is_marker(line)


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
def test_what_is_no_omission(line: str) -> None:
    assert not elision.is_marker(line)


def test_a_stub_is_no_omission() -> None:
    stub = ["class P:", "    def f(self):", "        ...", "", "    def g(self): ..."]
    assert not elision.markers(stub, "python")
    assert elision.markers(["def f():", "    a()", "    ..."], "python")


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
def test_what_is_left_out_is_taken_from_the_text(sketch: str, old: str, new: str) -> None:
    assert BASE.count(old) == 1
    merged = splice.merge_elided(LINES, sketch.splitlines(), "python")
    assert merged is not None
    assert "\n".join(merged) + "\n" == BASE.replace(old, new)


def test_all_left_out_is_no_change() -> None:
    assert merge(GAP) == BASE


@pytest.mark.parametrize(
    "sketch",
    [
        f"{GAP}    store.other()\n    {GAP}",
        f"{GAP}\ndef main(args):\n    store = Store(args[0])\n    # ...\n    report(store)\n",
        f"def main(args):\n    return 1\n\n{GAP}\nclass Store:\n    pass\n",
        f"{GAP}\ndef go(args):\n    store = Store(args[0])\n    store.load()\n"
        "    report(store)\n    store.save()\n    return 0\n",
        f"{GAP}\ndef new(a):\n    return a\n\n{GAP}",
        f"{GAP}\ndef load(self):\n    return 1\n",
        "import os\n# ...\n    def load(self):\n        with open(path) as file:\n# ...\n"
        "    return 0\n",
    ],
)
def test_what_is_not_sure_is_refused(sketch: str) -> None:
    assert merge(sketch) is None


def test_a_new_line_beside_a_marker_is_refused() -> None:
    assert merge("import json\n# ... existing code ...\n") is None
    sketch = "# ... existing code ...\n    return 0\n\n\nif __name__:\n    main(sys.argv)\n"
    assert merge(sketch) is None
    lines = ["def main(args):", "    check(args)", "    # ... existing code ..."]
    assert splice.merge_elided(LINES, lines, "python") is None


def test_the_rest_of_a_function_that_is_cut_stays() -> None:
    sketch = (
        "# ... existing code ...\n\ndef main(args):\n    store = Store(args[1])\n    store.load()\n"
        "\n# ... existing code ...\n"
    )
    merged = splice.merge_elided(LINES, sketch.splitlines(), "python")
    assert merged is not None
    assert "\n".join(merged) + "\n" == BASE.replace("Store(args[0])", "Store(args[1])")


def test_nothing_is_lost_without_a_word() -> None:
    sketch = (
        "import os\nimport sys\n\n# ...\n\ndef main(args):\n    store = Store(args[0])\n    # ...\n"
    )
    assert merge(sketch) == BASE


def test_a_text_without_omissions_is_itself() -> None:
    assert elision.merge(["a", "b"], ["a", "c"], "") == ("a", "c")
