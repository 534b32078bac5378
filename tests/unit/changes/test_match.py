"""Quoted lines: what is forgiven when they are looked for, and what is asked about."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.changes.apply.resolve import Ask, Unresolved
from tests.unit.changes.replies import applied, pair

BASE = """\
import os


def read(path):
    with open(path) as file:
        text = file.read()
    return text.strip()


class Job:
    def run(self, steps):
        for step in steps:
            step.start()
            if step.failed:
                log("it failed")
                return False

        return True
"""
TABS = BASE.replace("    ", "\t")
READ = "def read(path):\n    with open(path) as file:\n        text = file.read()"
OPEN = "with open(path) as file:\n    text = file.read()"
MORE = READ + "\n    return text.strip()\n\n\nclass Job:"


def swapped(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.mark.parametrize(
    "old",
    [
        "        text = file.read()",
        "        text = file.read()  ",
        "text = file.read()",
        OPEN,
        OPEN.replace("    text", "  text"),
        OPEN.replace("    text", "\ttext"),
        READ.replace("path):", "path):\n"),
        READ.replace("with open", "with  open"),
        MORE.replace("open(path)", "open(path, 'rb')"),
        MORE.replace("\n\n\nclass", "\nclass"),
    ],
)
def test_lines_are_found_though_they_are_misquoted(old: str) -> None:
    new = old.replace("file.read()", "file.read(99)")
    assert applied(BASE, pair(old, new)) == swapped(BASE, "file.read()", "file.read(99)")


STEPS = "for step in steps:\n  step.start()"
DEEPER = "for step in steps:\n  if step:\n    step.start()"


@pytest.mark.parametrize(
    ("text", "old", "new", "there", "made"),
    [
        (
            BASE, STEPS, DEEPER, "            step.start()",
            "            if step:\n                step.start()",
        ),
        (TABS, STEPS, DEEPER, "\t\t\tstep.start()", "\t\t\tif step:\n\t\t\t\tstep.start()"),
        (
            "size = 1\nb = 2\n", "size = 1 ", "if b:\n\tsize = 1", "size = 1", "if b:\n\tsize = 1",
        ),
        (
            TABS, "    return text.strip()", "    if text:\n        return text.strip()",
            "\treturn text.strip()", "\tif text:\n\t\treturn text.strip()",
        ),
        (
            BASE, "    def run(self, steps):", "    def stop(self):\n        pass\n\n"
            "    def run(self, steps):",
            "    def run", "    def stop(self):\n        pass\n\n    def run",
        ),
        # A blank line of the reply comes above, as many as it has.
        (
            BASE, "text = file.read()", "\ntext = file.read(9)", "        text = file.read()",
            "\n        text = file.read(9)",
        ),
        # Blank lines that were not quoted stay.
        ("a = 1\nb = 2\n\n\nc = 3\n", "a = 1\nb = 2\nc = 3", "a = 1\nc = 3", "b = 2\n", ""),
        # A blank line that was not quoted stays between the lines that change.
        (
            "from os import sep\n\nNAMES = ['a', 'b']\nh(three)\n",
            "from os import sep\nNAMES = ['a', 'b']\nh(three)",
            "from os import path\nNAMES = ['a', 'c']\nDEPTH = 3\nh(three)",
            "sep\n\nNAMES = ['a', 'b']\n", "path\n\nNAMES = ['a', 'c']\nDEPTH = 3\n",
        ),
        # A browser's marks.
        (BASE, "log(&quot;it failed&quot;)", "log(&quot;a &amp; b&quot;)", "it failed", "a & b"),
        # What the reply only quotes stays as it is.
        (
            BASE.replace('"it failed"', '"step failed", step'),
            "\n".join(BASE.splitlines()[10:18]),
            "\n".join(BASE.splitlines()[10:18]).replace("step.start()", "step.begin()"),
            "step.start()", "step.begin()",
        ),
    ],
)  # fmt: skip
def test_new_lines_are_written_as_the_file_is(
    text: str, old: str, new: str, there: str, made: str
) -> None:
    assert applied(text, pair(old, new)) == swapped(text, there, made)


@pytest.mark.parametrize(
    ("text", "old", "new", "kind"),
    [
        (BASE, "    return text.lower()", "    return text.upper()", Unresolved),
        (BASE, "text", "words", Unresolved),
        (BASE, "def write(path):\n    return 1", "def write(path):\n    return 2", Unresolved),
        (
            BASE,
            READ.replace("read()", "lines()"),
            READ.replace("file.read()", "list(f)"),
            Unresolved,
        ),
        (BASE, "", "import re", Ask),
        # Nobody knows how deep a line between two levels belongs.
        (TABS, STEPS, "for step in steps:\n   if step:\n     step.start()", Unresolved),
        (BASE, "\n  \n", "import re", Ask),
        # The first of several is never chosen.
        ("a = f(1)\nb = a\na = f(1)\nb = a\n", "a = f(1)\nb = a", "a = f(2)\nb = a", Ask),
        (
            "if x:\n    a = f(1)\n    b = a\na = f(1)\n", "a = f(1)", "a = f(2)", Ask,
        ),
        ("a = f(1) \nb = a\n\na = f(1)\nb = a \n", "a = f(1)\nb = a", "a = f(2)\nb = a", Ask),
        # A blank line was not quoted, and nothing says where it belongs between the new lines.
        ("f(one)\n\ng(two)\nh(three)\n", "f(one)\ng(two)\nh(three)", "new()\nh(three)", Ask),
        ("f(one)\n\ng(two)\nh(three)\n", "f(one)\ng(two)\nh(three)", "u\nv\nw\nh(three)", Ask),
        # Such lines identify no place.
        *((f"f(\n{line}\n", line, f"{line}\nx", Ask) for line in ("}", ")", "end", "pass")),
        # A line that was added looks like the one that changes.
        (
            "def one(a):\n    first_step(a)\n    check(a)\n    check(a)\n    last_step(a)\n",
            "def one(a):\n    first_step(a)\n    check(a)\n    last_step(a)",
            "def one(a):\n    first_step(a)\n    test(a)\n    last_step(a)",
            Unresolved,
        ),
        # The same change seems to be made elsewhere.
        (
            f"def a(path):\n    {OPEN.replace('read()', 'read(9)')}\n    return text\n"
            f"def b(path):\n    {OPEN}\n    return text\n",
            f"    {OPEN}\n    return text",
            f"    {OPEN.replace('read()', 'read(9)')}\n    return text",
            Ask,
        ),
    ],
)  # fmt: skip
def test_an_uncertain_change_is_not_made(
    text: str, old: str, new: str, kind: type[Ask | Unresolved]
) -> None:
    assert isinstance(applied(text, pair(old, new)), kind)


@pytest.mark.parametrize(
    ("order", "old", "new"),
    [("c m s", "last", "final"), ("s c m", "last", "final"), ("m c s", "one", "any")],
)
def test_an_added_line_may_be_like_one_that_is_not_next_to_the_change(
    order: str, old: str, new: str
) -> None:
    """The added lines are those behind the first `check_it`."""
    parts = {
        "c": ["    check_it(a)"],
        "m": ["    middle_step(a)"],
        "s": [f"    step_number_{row}(a)" for row in range(7)],
    }
    rows = [row for name in order.split() for row in parts[name]]
    quoted = "\n".join(["def one(a):", *rows, "    last_step(a)"])
    text = quoted.replace("check_it(a)\n", "check_it(a)\n    log_it(a)\n    check_it(a)\n") + "\n"
    found = applied(text, pair(quoted, quoted.replace(old, new)))
    assert found == text.replace(old, new)


@pytest.mark.parametrize(
    ("line", "old", "is_enough"),
    [
        ("ab", "ab", True),
        ("a", "a", False),
        ("end:", "end:", False),
        ("  abcd", "abcd ", True),  # with other spaces, it takes more
        ("  abc", "abc ", False),
    ],
)
def test_the_shortest_quote_that_identifies_a_place(line: str, old: str, is_enough: bool) -> None:
    found = applied(f"x = 1\n{line}\n", pair(old, "other(1)"))
    assert isinstance(found, str if is_enough else Ask)


THREE = "one(1)\ntwo(2)\nthree(3)"


@pytest.mark.parametrize(
    ("text", "old", "new", "is_certain"),
    [
        (f"{THREE}\nhere(4)\n", "here(4)", THREE, False),
        (f"here(4)\n{THREE}\n", "here(4)", THREE, False),
        ("here(4)\none(1)\nother(5)\ntwo(2)\nthree(3)\n", "here(4)", THREE, True),
        ("one(1)\ntwo(2)\nhere(4)\n", "here(4)", "one(1)\ntwo(2)", True),  # too little to tell
        *(
            (f"{THREE}\n{many}\n", many, THREE, is_long)  # mostly deleted
            for size, is_long in ((7, False), (8, True))
            for many in ["\n".join(f"step_{row}()" for row in range(size))]
        ),
    ],
)
def test_a_change_that_seems_to_be_made_already_is_asked_about(
    text: str, old: str, new: str, is_certain: bool
) -> None:
    found = applied(text, pair(old, new))
    assert found == swapped(text, old, new) if is_certain else isinstance(found, Ask)


def test_places_that_are_alike_are_asked_about() -> None:
    one = "def one(a):\n    check(a)\n    total = a + 1\n    log(total)\n    return total\n"
    old = one.replace("check(a)", "check_all(a)").replace("one", "any").rstrip()
    reply = pair(old, old + " + 1")
    assert isinstance(applied(one + "\n" + one.replace("one", "two"), reply), Ask)


def test_the_indented_one_of_two_is_meant_by_its_indentation() -> None:
    text = "if x:\n    a = f(1)\na = f(1)\n"
    found = applied(text, pair("    a = f(1)", "    a = f(2)"))
    assert found == "if x:\n    a = f(2)\na = f(1)\n"


words = st.sampled_from(["", "a = 1", "b(a)", "    b(a)", "    c(a)", "return a", "        d(a)"])
texts = st.lists(words, min_size=4, max_size=20)


def test_nothing_but_the_quoted_lines_changes() -> None:
    count = Counter[str]()

    @given(texts, st.data())
    def check(lines: list[str], data: st.DataObject) -> None:
        first = data.draw(st.integers(0, len(lines) - 1))
        last = data.draw(st.integers(first + 1, len(lines)))
        new = data.draw(st.lists(words, max_size=4))
        reply = pair("\n".join(lines[first:last]), "\n".join(new))
        found = applied("\n".join(lines) + "\n", reply)
        count[type(found).__name__] += 1
        if isinstance(found, str):
            right = [*lines[:first], *new, *lines[last:]]
            assert [one for one in found.split("\n") if one] == [one for one in right if one]

    check()
    assert count["str"] >= 20
    assert count["Ask"] >= 5


@given(texts, texts, st.data())
def test_moved_code_is_found_where_it_is(
    lines: list[str], others: list[str], data: st.DataObject
) -> None:
    block = "def only_here(x):\n    first_of_all(x)\n    return last_of_all(x)"
    at = data.draw(st.integers(0, len(lines)))
    text = "\n".join([*others, *lines[:at], block, *lines[at:]]) + "\n"
    new = block.replace("last_of_all(x)", "0")
    assert applied(text, pair(block, new)) == swapped(text, "last_of_all(x)", "0")


def test_long_texts_are_searched_soon() -> None:
    lines = [f"    value_{row % 900} = job_{row % 70}.step({row % 13})" for row in range(20_000)]
    lines[15_000:15_000] = ["def here(x):", "    prepare(x)", "    return finish(x)"]
    quoted = lines[14_998:15_006]
    quoted[5] = quoted[5].replace("step", "stop_it_all_now_and_here")
    old, text = "\n".join(quoted), "\n".join(lines) + "\n"
    began_s = time.thread_time()
    found = applied(text, pair(old, old.replace("finish(x)", "finish(x, 1)")))
    assert time.thread_time() - began_s < 1.5
    assert found == swapped(text, "finish(x)", "finish(x, 1)")
