"""The argument of a new parameter: known from a call, or to be written by the user."""

from __future__ import annotations

import pytest

from lcursor.next_edit import predict
from lcursor.next_edit.records import Edit, Proposal


def proposed(path: str, text: str, *edits: tuple[int, str]) -> list[Proposal]:
    """Return what is proposed after edits of single lines."""
    lines, made = text.strip("\n").split("\n"), []
    for row, new in edits:
        made.append(Edit(path, row, (lines[row],), tuple(new.split("\n"))))
        lines[row : row + 1] = new.split("\n")
    return predict.predict({path: tuple(lines)}, made)


QUOTE = """
def quote(text, safe):
    return text
a = quote("a", safe="/")
b = quote(clean("b"), safe="")
c = [quote(one, "+") for one in "cd"]
def f(strict_mode):
    return quote("d", "")
"""
NEW = (0, "def quote(text, safe, strict: bool):")
TRUE = (2, 'a = quote("a", safe="/", strict=True)')
LED = [(3, "strict", 29), (4, "strict", 19), (6, "strict", 24)]
ARGUMENTS = {
    "no call has it": ([NEW], [(2, "strict", 23), *LED]),
    "one call has it": (
        [NEW, TRUE],
        [
            (3, 'b = quote(clean("b"), safe="", strict=True)', -1),
            (4, 'c = [quote(one, "+", strict=True) for one in "cd"]', -1),
            (6, '    return quote("d", "", strict=True)', -1),
        ],
    ),
    "a call had it before the definition": (
        [TRUE, NEW],
        [
            (3, 'b = quote(clean("b"), safe="", strict=True)', -1),
            (4, 'c = [quote(one, "+", strict=True) for one in "cd"]', -1),
            (6, '    return quote("d", "", strict=True)', -1),
        ],
    ),
    "two calls have different ones": (
        [NEW, TRUE, (6, '    return quote("d", "", False)')],
        LED[:2],
    ),
    "it has a name that others do not see": (
        [NEW, (6, '    return quote("d", "", strict_mode)')],
        [(2, "strict", 23), *LED[:2]],
    ),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_new_parameter_leads_to_the_calls_until_one_has_the_argument(name: str) -> None:
    edits, wanted = ARGUMENTS[name]
    found = proposed("a.py", QUOTE, *edits)
    assert sorted((one.row, one.new[0], one.column) for one in found) == wanted


def test_the_call_after_a_changed_one_is_proposed_if_the_parameters_got_a_line() -> None:
    edits = [(0, "def quote(text, safe,\n          strict: bool):"), (3, TRUE[1])]
    (call, *_) = sorted(proposed("a.py", QUOTE, *edits), key=lambda one: one.row)
    assert (call.row, call.new) == (4, ('b = quote(clean("b"), safe="", strict=True)',))


@pytest.mark.parametrize(("path", "needed"), [("a.js", 2), ("a.go", 1)])
def test_an_argument_that_may_be_left_out_needs_two_examples(path: str, needed: int) -> None:
    text = "function area(w, h) {}\na(area(1, 2))\nb(area(3, 4))\nc(area(5, 6))"
    edits = [(0, "function area(w, h, unit) {}"), (1, "a(area(1, 2, 7))"), (2, "b(area(3, 4, 7))")]
    if path == "a.go":
        text = "func area(w, h int) {}\nvar a = area(1, 2)\nvar b = area(3, 4)\nvar c = area(5, 6)"
        edits = [(0, "func area(w, h, unit int) {}"), (1, "var a = area(1, 2, 7)")]
    for count in range(len(edits)):
        found = proposed(path, text, *edits[: count + 1])
        last = [one.new[0] for one in found if one.row == 3]
        assert (", 7)" in "".join(last)) == (count >= needed)
        assert path == "a.go" or count >= needed or not found
