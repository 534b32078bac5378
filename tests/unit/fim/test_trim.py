"""The rules behind the model: a table of cases, and what holds for any text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.fim.trim import Around, Suggestion, around, ended, finish, shown

CASES = {
    "plain": (Around("    x = ", "", ""), "foo(1)", "foo(1)"),
    "trailing blanks go": (Around("x = ", "", ""), "1  \n", "1"),
    "only blanks are nothing": (Around("    ", "", ""), "  \n  ", ""),
    "one line when asked": (Around("x = ", ")", "", single_line=True), "a,\n b", "a,"),
    "most lines": (Around("", "", "", max_lines=2), "a\nb\nc\nd", "a\nb"),
    "the next line ends it": (Around("    ", "", "    return x"), "y = 1\n    return x\n", "y = 1"),
    "the next line at once": (Around("    ", "", "    return x"), "return x", ""),
    "the next line behind typed text": (Around("    ret", "", "    return x"), "urn x\n", ""),
    "brackets below say nothing": (Around("f(", "", "}"), "{\n  a\n}", "{\n  a\n}"),
    "out of the indented scope": (
        Around("    x = ", "", ""),
        "1\n    y = 2\nz = 3",
        "1\n    y = 2",
    ),
    "end of a block begun here": (
        Around("def f(x):", "", ""),
        "\n    return x\n\ndef g():\n    pass",
        "\n    return x",
    ),
    "else belongs to the block": (
        Around("if x:", "", ""),
        "\n    a()\nelse:\n    b()",
        "\n    a()\nelse:\n    b()",
    ),
    "a closing brace belongs to it": (
        Around("int f() {", "", ""),
        "\n  return 1;\n}\nint g() {",
        "\n  return 1;\n}",
    ),
    "blank line at the cursor": (Around("    ", "", ""), "a\n    if b:\n        c\n    d\ne", None),
    "same line three times": (Around("", "", ""), "a()\na()\na()\na()", "a()\na()"),
    "two blank lines": (Around("", "", ""), "a\n\n\nb", "a"),
    "repeats the rest": (Around("print(", ")", ""), "'hi')", "'hi'"),
    "own bracket stays": (Around("print(", ")", ""), "f(1)", "f(1)"),
    "repeats a longer rest": (Around("x = ", " + 1;", ""), "y + 1;", "y"),
    "an explanation is no code": (Around("    ", "", ""), "```\n\nThis code", ""),
    "code, then an explanation": (Around("", "", ""), "a = 1\n```\nThis", "a = 1"),
}


@pytest.mark.parametrize(("facts", "text", "wanted"), CASES.values(), ids=CASES.keys())
def test_finish(facts: Around, text: str, wanted: str | None) -> None:
    if wanted is None:
        wanted = "a\n    if b:\n        c\n    d"
    assert finish(text, facts) == wanted


@pytest.mark.parametrize(("facts", "text", "wanted"), CASES.values(), ids=CASES.keys())
def test_what_is_shown_is_never_taken_back_in_these_cases(
    facts: Around, text: str, wanted: str | None
) -> None:
    final = finish(text, facts)
    for end in range(len(text) + 1):
        part = text[:end]
        if ended(part, facts):
            break
        assert final.startswith(shown(part, facts)), part


def test_first_line_streams_and_later_lines_come_whole() -> None:
    facts = Around("    x = ", "", "")
    assert shown("compute(", facts) == "compute("
    assert shown("compute(a)\n    y = ", facts) == "compute(a)"
    assert shown("compute(a)\n    y = 2\n", facts) == "compute(a)\n    y = 2"


def test_a_line_that_may_become_the_next_one_waits() -> None:
    facts = Around("    ", "", "    return x")
    assert shown("ret", facts) == ""
    assert shown("retry", facts) == "retry"


def test_around_reads_the_lines() -> None:
    facts = around("a\n  b", "c\n\n  d\ne", single_line=True, max_lines=3)
    assert facts == Around("  b", "c", "  d", single_line=True, max_lines=3)


code = st.text(alphabet="ab(){}=\n  `é", max_size=60)
lines = st.text(alphabet="ab()  ", max_size=8)


@given(code, lines, lines, lines, st.booleans())
def test_a_suggestion_only_grows(
    text: str, line: str, rest: str, below: str, single_line: bool
) -> None:
    suggestion = Suggestion(Around(line, rest, below, single_line))
    seen = [""]
    for end in range(1, len(text) + 1):
        if suggestion.grow(text[:end]):
            seen.append(suggestion.text)
        if ended(text[:end], Around(line, rest, below, single_line)):
            text = text[:end]
            break
    seen.append(suggestion.finish(text))
    for earlier, later in pairwise(seen):
        assert later.startswith(earlier)
    assert seen[-1] == "" or text.startswith(seen[-1])
    if single_line:
        assert "\n" not in seen[-1]
