"""Where lines are: each tier of the ladder, and what no tier takes for sure."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.edit.apply import match
from lcursor.edit.apply.match import Match, Several, find

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
""".splitlines()
TABS = [line.replace("    ", "\t") for line in BASE]


def made(lines: Sequence[str], old: str, new: str) -> tuple[str, str]:
    """Return the tier, and the text then."""
    found = find(lines, old.splitlines(), new.splitlines())
    assert isinstance(found, Match), found
    text = [*lines[: found.first_row], *found.new, *lines[found.last_row :]]
    return found.tier, "\n".join(text)


def swapped(lines: Sequence[str], old: str, new: str) -> str:
    text = "\n".join(lines)
    assert text.count(old) == 1
    return text.replace(old, new)


READ = "def read(path):\n    with open(path) as file:\n        text = file.read()"
OPEN = "with open(path) as file:\n    text = file.read()"
MORE = READ + "\n    return text.strip()\n\n\nclass Job:"


@pytest.mark.parametrize(
    ("tier", "old"),
    [
        ("exact", "        text = file.read()"),
        ("trailing", "        text = file.read()  "),
        ("indent", "text = file.read()"),
        ("indent", OPEN),
        ("relative", OPEN.replace("    text", "  text")),
        ("relative", OPEN.replace("    text", "\ttext")),
        ("blank", READ.replace("path):", "path):\n")),
        ("quotes", READ.replace("with open", "with  open")),
        ("like", MORE.replace("open(path)", "open(path, 'rb')")),
    ],
)
def test_every_tier_changes_just_that(tier: str, old: str) -> None:
    new = old.replace("file.read()", "file.read(99)")
    assert made(BASE, old, new) == (tier, swapped(BASE, "file.read()", "file.read(99)"))


def test_new_lines_are_indented_as_the_file_is() -> None:
    old = "for step in steps:\n  step.start()\n"
    new = "for step in steps:\n  if step:\n    step.start()\n"
    wanted = swapped(
        BASE, "            step.start()", "            if step:\n                step.start()"
    )
    assert made(BASE, old, new)[1] == wanted
    wanted = swapped(TABS, "\t\t\tstep.start()", "\t\t\tif step:\n\t\t\t\tstep.start()")
    assert made(TABS, old, new)[1] == wanted
    old, new = "    return text.strip()", "    if text:\n        return text.strip()"
    wanted = swapped(TABS, "\treturn text.strip()", "\tif text:\n\t\treturn text.strip()")
    assert made(TABS, old, new)[1] == wanted


def test_what_was_only_quoted_stays_as_the_user_has_it() -> None:
    mine = [line.replace('"it failed"', '"step failed", step') for line in BASE]
    old = "\n".join(BASE[10:18])
    new = old.replace("step.start()", "step.begin()")
    assert made(mine, old, new)[1] == swapped(mine, "step.start()", "step.begin()")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    return text.lower()", "    return text.upper()"),
        ("", "import re"),
        ("\n  \n", "import re"),
        ("text", "words"),
        ("def write(path):\n    return 1", "def write(path):\n    return 2"),
        (READ.replace("read()", "readlines()"), READ.replace("file.read()", "list(file)")),
    ],
)
def test_what_is_not_there_is_not_found(old: str, new: str) -> None:
    assert find(BASE, old.splitlines(), new.splitlines()) is None


@pytest.mark.parametrize(
    "lines",
    [
        ["a = f(1)", "b = a", "a = f(1)", "b = a"],
        ["if x:", "    a = f(1)", "    b = a", "a = f(1)", "b = a"],
        ["a = f(1) ", "b = a", "", "a = f(1)", "b = a "],
        ["if x:", "    a = f(1)", "    b = a", "if y:", "    a = f(1)", "    b = a"],
    ],
)
def test_the_first_of_several_is_never_taken(lines: list[str]) -> None:
    found = find(lines, ["a = f(1)", "b = a"], ["a = f(2)", "b = a"])
    assert isinstance(found, Several)
    assert len(found.places) == 2


def test_the_indented_one_of_two_is_meant_by_its_indentation() -> None:
    lines = ["if x:", "    a = f(1)", "a = f(1)"]
    found = find(lines, ["    a = f(1)"], ["    a = f(2)"])
    assert isinstance(found, Match)
    assert found.first_row == 1


@pytest.mark.parametrize("line", ["}", ")", "end", "pass", "else:"])
def test_a_line_that_stands_anywhere_says_nothing(line: str) -> None:
    found = find(["f(", line], [line], [line, "x"])
    assert isinstance(found, Several)


def test_places_that_are_alike_are_asked_about() -> None:
    one = [
        "def one(a):",
        "    check(a)",
        "    total = a + 1",
        "    log(total)",
        "    return total",
        "",
    ]
    two = [line.replace("one", "two") for line in one]
    old = [line.replace("check(a)", "check_all(a)").replace("one", "any") for line in one[:5]]
    new = [*old[:4], "    return total + 1"]
    assert not isinstance(find([*one, *two], old, new), Match)


def test_a_line_that_came_and_looks_like_the_one_that_changes() -> None:
    base = ["def one(a):", "    first_step(a)", "    check(a)", "    check(a)", "    last_step(a)"]
    old = ["def one(a):", "    first_step(a)", "    check(a)", "    last_step(a)"]
    new = ["def one(a):", "    first_step(a)", "    test(a)", "    last_step(a)"]
    assert find(base, old, new) is None


def test_a_change_that_was_made_elsewhere_is_asked_about() -> None:
    body = ["    with open(path) as file:", "        text = file.read()", "    return text"]
    done = [body[0], "        text = file.read(99)", body[2]]
    found = find(["def a(path):", *done, "def b(path):", *body], body, done)
    assert isinstance(found, Several)


def test_marks_that_a_browser_made() -> None:
    lines = ["if a < b && c:", "    return x", "y()"]
    old, new = ["if a &lt; b &amp;&amp; c:", "    return x"], ["if a &lt; c:", "    return x"]
    found = find(lines, old, new)
    assert isinstance(found, Match)
    assert found.new[0] == "if a < c:"


words = st.sampled_from(["", "a = 1", "b(a)", "    b(a)", "    c(a)", "return a", "        d(a)"])
texts = st.lists(words, min_size=4, max_size=20)


def test_nothing_but_the_quoted_lines_changes() -> None:
    count = Counter[str]()

    @given(texts, st.data())
    def check(lines: list[str], data: st.DataObject) -> None:
        first = data.draw(st.integers(0, len(lines) - 1))
        last = data.draw(st.integers(first + 1, len(lines)))
        new = data.draw(st.lists(words, max_size=4))
        quoted = lines[first:last]
        found = find(lines, quoted, new)
        count[type(found).__name__] += 1
        rows = [row for row in range(len(lines)) if lines[row : row + len(quoted)] == quoted]
        if isinstance(found, Match):
            right = [*lines[:first], *new, *lines[last:]]
            result = [*lines[: found.first_row], *found.new, *lines[found.last_row :]]
            assert [one for one in result if one] == [one for one in right if one]
        elif any(quoted):
            assert found is not None or len(rows) > 1  # what is quoted right is always found

    check()
    assert count["Match"] >= 20
    assert count["Several"] >= 5


@given(texts, texts, st.data())
def test_moved_code_is_found_where_it_is(
    lines: list[str], others: list[str], data: st.DataObject
) -> None:
    block = ["def only_here(x):", "    first_of_all(x)", "    return last_of_all(x)"]
    at = data.draw(st.integers(0, len(lines)))
    base = [*others, *lines[:at], *block, *lines[at:]]
    found = find(base, block, [*block[:2], "    return 0"])
    assert isinstance(found, Match)
    assert found.first_row == len(others) + at


def test_long_texts_are_searched_soon() -> None:
    lines = [f"    value_{row % 900} = job_{row % 70}.step({row % 13})" for row in range(20_000)]
    lines[15_000:15_000] = ["def here(x):", "    prepare(x)", "    return finish(x)"]
    quoted = [*lines[14_998:15_006]]
    quoted[5] = quoted[5].replace("step", "stop_it_all_now_and_here")
    new = [line.replace("finish(x)", "finish(x, 1)") for line in quoted]
    began_s = time.thread_time()
    found = find(lines, quoted, new)
    assert time.thread_time() - began_s < 1.5
    assert isinstance(found, Match)
    assert found.tier == "like"
    assert match.find(lines, ["nothing like it"], []) is None
