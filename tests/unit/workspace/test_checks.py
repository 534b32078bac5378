"""What is found out about a change by comparing two texts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcursor.changes.records import Check, Lines, Region
from lcursor.project.redaction import PLACEHOLDER
from lcursor.workspace import checks

ROOT = Path(__file__).resolve().parents[3]
PYTHON = """\
import os


class Parser:
    def first(self, text):
        if text:
            return text[0]
        return None

    def last(self, text):
        for each in reversed(text):
            if each:
                return each
        return None


def outside(a, b):
    return a + b
""".splitlines()
FIRST = Region(4, 8, "method first")


def found(
    new_region: str, *, old: list[str] = PYTHON, region: Region = FIRST, language: str = "python"
) -> dict[str, Check]:
    lines = new_region.split("\n") if new_region else []
    new = [*old[: region.first_row], *lines, *old[region.last_row :]]
    made = checks.check(old, new, region, language)
    assert len({each.name for each in made}) == len(made)
    return {each.name: each for each in made}


def failing(made: dict[str, Check]) -> list[str]:
    return [each.name for each in checks.failed(made.values())]


GOOD = "    def first(self, text):\n        return text[0] if text else None"


def test_a_good_change_passes_all_four() -> None:
    made = found(GOOD)
    assert set(made) == {"parses", "symbols", "indent", "size"}
    assert not failing(made)
    assert all(not each.text for each in made.values())


@pytest.mark.parametrize(
    ("new", "name", "words"),
    [
        ("    def first(self, text:\n        return text[0]", "parses", "line 5"),
        ("    def first(self, text):\n    return text[0]", "parses", "line"),
        ("    def first(self, text):\n        return = text", "parses", "return = text"),
        ("    def first(self, text):\n        x = 1\n      return x", "parses", "line 7"),
        ("def first(self, text):\n    return text", "indent", "not 4 blanks"),
        ("    def first(self, text):\n\t\treturn text", "indent", "tabs"),
    ],
)
def test_what_is_wrong_is_named(new: str, name: str, words: str) -> None:
    made = found(new)
    assert name in failing(made)
    assert words in made[name].text


@pytest.mark.parametrize(
    "new", ["    def first_one(self, text):\n        return text", "    pass", ""]
)
def test_a_definition_that_is_gone_is_a_remark(new: str) -> None:
    """Only the user knows whether that was asked for, in whatever language."""
    made = found(new)
    assert "symbols" not in failing(made)
    assert made["symbols"].text == "removes Parser > first"


def test_a_change_that_takes_the_rest_along_is_found() -> None:
    """The method below the region would become one of another class."""
    old = ["class A:", "    x = 1", "", "    def f(self):", "        pass"]
    made = found("    x = 1\n\nclass B:\n    y = 2", old=old, region=Region(1, 2, "x"))
    assert failing(made) == ["symbols"]
    assert "A > f" in made["symbols"].text


def test_lines_outside_of_the_region_have_to_stay() -> None:
    new = [*PYTHON[:-1], "    return a - b"]
    made = {each.name: each for each in checks.check(PYTHON, new, FIRST, "python")}
    assert failing(made) == ["symbols"]
    assert "outside" in made["symbols"].text


def test_a_broken_file_may_stay_as_broken_as_it_is() -> None:
    old = ["def f(:", "    pass", "", *PYTHON]
    region = Region(FIRST.first_row + 3, FIRST.last_row + 3, "")
    assert not found(GOOD, old=old, region=region)["parses"].text
    worse = "    def first(self, text:\n        return ]"
    assert "parses" in failing(found(worse, old=old, region=region))


def test_code_that_the_installed_python_does_not_know_is_the_users_business() -> None:
    old = ["print 'hello'", "", *PYTHON]
    region = Region(FIRST.first_row + 2, FIRST.last_row + 2, "")
    assert "parses" not in failing(found(GOOD, old=old, region=region))


def test_nothing_is_parsed_without_a_grammar() -> None:
    old = ["one", "  two", "  three"]
    made = found("one\n  2", old=old, region=Region(0, 2, ""), language="nothing")
    assert set(made) == {"indent", "size"}


LUA = """\
local M = {}

function M.a()
\tif x then
\t\treturn 1
\tend
end

return M
""".splitlines()
TWO = """\
function a() {
  if (x) {
    return 1;
  }
}
function b() {
  return 2;
}
""".splitlines()


@pytest.mark.parametrize(
    ("old", "region", "language", "new", "is_ok"),
    [
        (LUA, Region(2, 7, ""), "lua", "function M.a()\n\treturn 2\nend", True),
        (LUA, Region(2, 7, ""), "lua", "function M.a()\n  return 2\nend", False),
        (LUA, Region(2, 7, ""), "lua", "function M.a()\n  if x then\n    y()\n  end\nend", False),
        (TWO, Region(5, 8, ""), "javascript", "function b() {\n  return 3;\n}", True),
        (
            TWO,
            Region(5, 8, ""),
            "javascript",
            "function b() {\n    if (x) {\n        y();\n    }\n}",
            False,
        ),
        (["a", "b"], Region(0, 2, ""), "text", "a\n  b\n  c\n    d", True),
        ([], Region(0, 0, ""), "python", "def f():\n  if a:\n    b()", True),
    ],
)
def test_indentation_stays_as_it_is_in_the_file(
    old: list[str], region: Region, language: str, new: str, is_ok: bool
) -> None:
    made = found(new, old=old, region=region, language=language)
    assert made["indent"].is_ok is is_ok


LONG = ["def f():", *(f"    step_{number}()" for number in range(20)), "", "", "x = 1"]
WHOLE = Region(0, 21, "function f")


@pytest.mark.parametrize(
    ("rows", "is_ok", "text"),
    [
        (LONG[:21], True, ""),
        (LONG[:16], True, ""),
        (LONG[:8], True, "13 of 21 lines are gone"),
        ([], True, "21 of 21 lines are gone"),
        ([*LONG[:21], *(f"    more_{number}()" for number in range(150))], True, ""),
        ([*LONG[:21], *(f"    more_{number}()" for number in range(500))], False, "became 521"),
        ([*LONG[:21], *["    go(1)", "    go(2)"] * 6], False, "repeat themselves"),
        ([*LONG[:21], *["    go()"] * 4], True, ""),
        ([*LONG[:21], *["    go()"] * 30], False, "repeat themselves"),
    ],
)
def test_the_size_stays_sane(rows: list[str], is_ok: bool, text: str) -> None:
    made = found("\n".join(rows), old=LONG, region=WHOLE)
    assert made["size"].is_ok is is_ok
    assert made["size"].text.endswith(text)
    assert bool(made["size"].text) is bool(text)


def test_a_line_that_becomes_many_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "GROWTH_ROWS", 2)
    made = found(
        "\n".join(f"x{i} = {i}" for i in range(30)), old=["x = 1"], region=Region(0, 1, "")
    )
    assert made["size"].text == "1 line became 30"


def steps_of_a_check(functions: int) -> int:
    """Return how many calls a check of a file with so many functions makes."""
    rows = [(f"def f_{number}(a):", "    return a", "") for number in range(functions)]
    old = [line for each in rows for line in each]
    new = [*old[:300], "def f_100(a):", "    return a + 1", *old[302:]]
    steps = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        made = checks.check(old, new, Region(300, 302, ""), "python")
    finally:
        sys.setprofile(before)
    assert not checks.failed(made)
    return steps


def test_the_work_grows_no_faster_than_the_file() -> None:
    steps_of_a_check(200)  # imports and caches
    few, many = steps_of_a_check(500), steps_of_a_check(4000)
    assert few > 500, "the calls are counted"
    assert many < 8 * few * 1.1


@pytest.mark.parametrize("name", ["lcursor/workspace/commands.py", "lua/lcursor/chat/turn.lua"])
def test_what_stays_as_it_is_passes(name: str) -> None:
    lines = (ROOT / name).read_text().splitlines()
    language = "lua" if name.endswith(".lua") else "python"
    for first in range(0, len(lines) - 20, 37):
        region = Region(first, first + 17, "")
        assert not checks.failed(checks.check(lines, lines, region, language)), region


ROWS = st.lists(
    st.sampled_from(["def f():", "  x", "\tx", "", "if a: (", ")", '"""', "class A:", "    é = 1"])
    | st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(ROWS, ROWS, st.integers(0, 12), st.integers(0, 12), st.sampled_from(["python", "lua", ""]))
def test_any_texts_can_be_compared(
    old: list[str], new: list[str], one: int, other: int, language: str
) -> None:
    first, last = sorted((min(one, len(old)), min(other, len(old))))
    whole = [*old[:first], *new, *old[last:]]
    made = checks.check(old, whole, Region(first, last, ""), language)
    assert {"indent", "size"} <= {each.name for each in made}
    assert all(each.text for each in checks.failed(made))
    assert not checks.failed(checks.check(old, old, Region(first, last, ""), language))


UNQUOTE: Lines = ("def unquote(value):", "    # of a URL", "    return parse(value)")
DOCUMENTED: Lines = (UNQUOTE[0], '    """Decode it."""', *UNQUOTE[1:])
EMPTY: Lines = (UNQUOTE[0], "    if not value:", "        return value", *UNQUOTE[1:])
ONLY, NONE = "only comments have changed", "no comment or docstring has changed"


@pytest.mark.parametrize(
    ("new", "instruction", "remark"),
    [
        (DOCUMENTED, "add a docstring and return an empty string unchanged", ONLY),
        (DOCUMENTED, "return an empty string unchanged", ONLY),
        (DOCUMENTED, "Document it; then handle None", ONLY),
        (DOCUMENTED, "add a docstring", ""),
        (DOCUMENTED, "Add a docstring that says what it takes, and the result.", ""),
        (DOCUMENTED, "Explain it in a comment and correct the typo", ""),
        (EMPTY, "add a docstring and return an empty string unchanged", NONE),
        (EMPTY, "return an empty string unchanged", ""),
        (EMPTY, "do what the comment says", ""),
        ((*DOCUMENTED[:2], *EMPTY[1:]), "add a docstring and return an empty string", ""),
        ((UNQUOTE[0], "  # of a URL", "  return parse( value )"), "indent by two", ""),
    ],
)
def test_a_part_of_an_instruction_that_had_no_effect_is_a_remark(
    new: Lines, instruction: str, remark: str
) -> None:
    found = checks.effect(UNQUOTE, new, "python", instruction)
    assert (found.text if found else "") == remark
    assert found is None or found.is_ok
    assert checks.effect(UNQUOTE, new, "text", instruction) is None


def test_a_placeholder_of_a_removed_secret_fails_the_check() -> None:
    old, new = ["a = 'x'", "b = 2"], [f"a = '{PLACEHOLDER}'", "b = 2"]
    for before, after, is_ok in ((old, new, False), (new, new, True), (old, old, True)):
        (found,) = checks.failed(checks.check(before, after, Region(0, 1, ""), "text")) or (None,)
        assert (found is None) is is_ok
        assert found is None or PLACEHOLDER in found.text
