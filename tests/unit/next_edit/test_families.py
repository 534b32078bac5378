"""Prompts of next-edit models byte by byte, and what becomes of their answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.next_edit import window
from lcursor.next_edit.families import FAMILIES, family_of
from lcursor.next_edit.predict import checked
from lcursor.next_edit.records import Edit, Lines

AREA: Lines = ("import os", "", "def area(width):", "    return w * w", "", "print(area(1))")
HEAD = Edit("a.py", 2, ("def area(w):",), AREA[2:3])
OTHER = Edit("b.py", 0, ("x = 1",), ("x = 2",), is_accepted=True)
B: Lines = ("x = 2", "y = x")
UNICODE: Lines = ("größe = 1", "\tпривет(größe)\t", "🎉 = größe")

Case = tuple[dict[str, Lines], list[Edit], int, int]
"""Texts, edits, and the cursor's row and column in a.py."""
CASES: dict[str, Case] = {
    "no history": ({"a.py": AREA}, [], 2, 4),
    "history": ({"a.py": AREA, "b.py": B}, [OTHER, HEAD], 2, 14),
    "another file": ({"a.py": AREA, "b.py": B}, [HEAD, OTHER], 0, 0),
    "inserted and deleted lines": (
        {"a.py": ("a", "new", "d")},
        [Edit("a.py", 1, ("b", "c"), ()), Edit("a.py", 1, (), ("new",))],
        1,
        3,
    ),
    "carriage returns": (
        {"a.py": ("a = 1\r", "b = 2\r")},
        [Edit("a.py", 0, ("a = 0\r",), ("a = 1\r",))],
        1,
        0,
    ),
    "unicode and tabs": ({"a.py": UNICODE}, [], 1, 8),
    "empty file": ({"a.py": ("",)}, [], 0, 0),
}
_FILE = Path(__file__).with_name("prompts.txt").read_bytes().decode().removesuffix("\n")
_TEXT = _FILE.replace("␣", " ").replace("⇥", "\t")
PROMPTS = dict(part.split("\n", 1) for part in _TEXT.removeprefix("==== ").split("\n==== "))
"""By `family: case`; a blank or a tab at the end of a line is ␣ or ⇥ in the file."""


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("family", ["sweep", "zeta2.1"])
def test_a_prompt_byte_by_byte(family: str, name: str) -> None:
    texts, edits, row, column = CASES[name]
    prompt = FAMILIES[family].prompt(texts, edits, "a.py", row, column)
    assert prompt is not None
    assert prompt.text.encode() == PROMPTS[f"{family}: {name}"].encode()
    assert (prompt.first_row, prompt.end_row) == (0, len(texts["a.py"]))


LONG: Lines = tuple(f"line_{row} = {row}" for row in range(100))


@pytest.mark.parametrize(
    ("row", "first", "end"), [(0, 0, 11), (4, 0, 15), (50, 40, 61), (97, 87, 100)]
)
def test_sweep_has_ten_rows_on_each_side(row: int, first: int, end: int) -> None:
    prompt = FAMILIES["sweep"].prompt({"a.py": LONG}, [], "a.py", row, 0)
    assert prompt is not None
    assert prompt[1:3] == (first, end)
    body = "\n".join(LONG[first:end])
    head = f"<|file_sep|>original/a.py\n{body}\n<|file_sep|>current/a.py\n{body}\n"
    assert prompt.text == head + "<|file_sep|>updated/a.py"


def test_the_window_before_the_last_edit_has_the_same_lines_around_it() -> None:
    lines = (*LONG[:50], "new", "new too", *LONG[50:])
    edit = Edit("a.py", 50, (), ("new", "new too"))
    prompt = FAMILIES["sweep"].prompt({"a.py": lines}, [edit], "a.py", 45, 0)
    assert prompt is not None
    original = prompt.text.split("<|file_sep|>")[1]
    assert original == "original/a.py\n" + "\n".join(LONG[35:54]) + "\n"


def test_zeta_divides_a_window_behind_blank_lines() -> None:
    lines = tuple(
        line for at in range(8) for line in (f"def f_{at}():", f"    a = {at}", "    b = 1", "", "")
    )
    prompt = FAMILIES["zeta2.1"].prompt({"a.py": lines}, [], "a.py", 20, 0)
    assert prompt is not None
    assert prompt[1:3] == (0, 40)
    assert prompt.text == (
        "<[fim-suffix]>\n<[fim-prefix]><filename>a.py\n<|marker_1|>"
        + "\n".join(lines[:10])
        + "\n<|marker_2|>"
        + "\n".join(lines[10:20])
        + "\n<|user_cursor|><|marker_3|>"
        + "\n".join(lines[20:30])
        + "\n<|marker_4|>"
        + "\n".join(lines[30:])
        + "\n<|marker_5|>\n<[fim-middle]>"
    )


def test_zeta_has_lines_around_a_window_and_divides_at_sixteen_lines() -> None:
    prompt = FAMILIES["zeta2.1"].prompt({"a.py": LONG}, [], "a.py", 50, 0)
    assert prompt is not None
    assert prompt[1:3] == (10, 90)
    blocks = [LONG[row : row + 16] for row in range(10, 90, 16)]
    marked = "".join(
        f"<|marker_{at}|>{chr(10).join(block)}\n" for at, block in enumerate(blocks, 1)
    )
    assert prompt.text == (
        "<[fim-suffix]>"
        + "\n".join(LONG[90:])
        + "\n<[fim-prefix]><filename>a.py\n"
        + "\n".join(LONG[:10])
        + "\n"
        + marked.replace("line_50", "<|user_cursor|>line_50")
        + "<|marker_6|>\n<[fim-middle]>"
    )


@pytest.mark.parametrize(
    ("family", "line"),
    [
        ("sweep", "<|file_sep|>"),
        ("sweep", "s = '<|endoftext|>'"),
        ("zeta2.1", "<|marker_2|>"),
        ("zeta2.1", "x <[fim-middle]> y"),
        ("zeta2.1", "usage: a <filename>"),
        ("sweep", "not UTF-8: \udce9"),
        ("zeta2.1", "not UTF-8: \udce9"),
    ],
)
def test_a_text_with_markers_is_not_sent(family: str, line: str) -> None:
    for texts, edits in (
        ({"a.py": ("x", line)}, []),
        ({"a.py": ("x",), "b.py": ("y",)}, [Edit("b.py", 0, (line,), ("y",))]),
    ):
        assert FAMILIES[family].prompt(texts, edits, "a.py", 0, 0) is None


def test_edits_that_do_not_fit_or_are_long_are_left_out() -> None:
    edits = [
        Edit("gone.py", 0, ("a",), ("b",)),
        Edit("b.py", 0, ("other",), ("text",)),
        Edit("a.py", 0, tuple("abcdefghijklmnopqrstuvwxyz"), ("import os",)),
    ]
    prompt = FAMILIES["zeta2.1"].prompt({"a.py": AREA, "b.py": B}, edits, "a.py", 2, 4)
    assert prompt is not None
    assert prompt.text == PROMPTS["zeta2.1: no history"]


OLD: Lines = ("def area(width):", "    return w * w", "", "", "def rim(a):", "    return 4 * a")
GOOD: Lines = (OLD[0], "    return width * width", *OLD[2:])


def answer(*lines: str) -> str:
    return "\n" + "\n".join(lines) + "\n"


SWEEP_ANSWERS: dict[str, tuple[str, list[tuple[int, Lines, Lines]]]] = {
    "an edit": (answer(*GOOD), [(1, OLD[1:2], GOOD[1:2])]),
    "no line end": ("\n" + "\n".join(GOOD), [(1, OLD[1:2], GOOD[1:2])]),
    "no edit": (answer(*OLD), []),
    "nothing": ("", []),
    "blanks": ("\n\n", []),
    "other blanks": (answer(OLD[0], "  return w  *  w  ", *OLD[2:]), []),
    "cut off": (answer(*GOOD[:2]), []),
    "cut off in a line": (answer(*GOOD[:4], "def r"), [(1, OLD[1:2], GOOD[1:2])]),
    "cut off at once": (answer(OLD[0]), []),
    "two places": (
        answer(*GOOD[:4], "def rim(side):", "    return 4 * side"),
        [(1, OLD[1:2], GOOD[1:2]), (4, OLD[4:], ("def rim(side):", "    return 4 * side"))],
    ),
    "lines in between": (
        answer(*OLD[:4], "import os", "", *OLD[4:]),
        [(4, (), ("import os", ""))],
    ),
    "lines below": (answer(*OLD, "x = 1"), [(6, (), ("x = 1",))]),
    "a syntax error": (answer(OLD[0], "    return (w * w", *OLD[2:]), []),
    "the last edit taken back": (answer("def area(w):", *OLD[1:]), []),
    "too much": (answer(*OLD[:2], *(f"x = {at}" for at in range(13)), *OLD[2:]), []),
    "markers": (answer(OLD[0], "    return <|cursor|>width", *OLD[2:]), []),
    "a sentinel": (answer("NO_EDITS", *OLD), []),
}
ZETA_ANSWERS: dict[str, tuple[str, list[tuple[int, Lines, Lines]]]] = {
    "an edit": ("<|marker_1|>" + "\n".join(GOOD) + "\n<|marker_2|>", [(1, OLD[1:2], GOOD[1:2])]),
    "line ends": (
        "<|marker_1|>\n" + "\n".join(GOOD) + "\n<|marker_2|>",
        [(1, OLD[1:2], GOOD[1:2])],
    ),
    "an end marker": (
        "<|marker_1|>" + "\n".join(GOOD) + "\n<|marker_2|><[end▁of▁sentence]>x",
        [(1, OLD[1:2], GOOD[1:2])],
    ),
    "a cursor": (
        "<|marker_1|>" + "\n".join(GOOD).replace("wid", "wid<|user_cursor|>") + "<|marker_2|>",
        [(1, OLD[1:2], GOOD[1:2])],
    ),
    "no edit": ("<|marker_1|><|marker_1|>", []),
    "no edit in words": ("NO_EDITS", []),
    "the same again": ("<|marker_1|>" + "\n".join(OLD) + "\n<|marker_2|>", []),
    "cut off": ("<|marker_1|>" + "\n".join(GOOD[:3]), []),
    "cut off at once": ("<|marker_1|>", []),
    "nothing": ("", []),
    "text before": ("I think <|marker_1|>x<|marker_2|>", []),
    "text behind": ("<|marker_1|>x<|marker_2|>y", []),
    "unknown markers": ("<|marker_1|>x<|marker_3|>", []),
    "markers in disorder": ("<|marker_2|>x<|marker_1|>", []),
    "all deleted": ("<|marker_1|><|marker_2|>", []),
    "the last edit taken back": (
        "<|marker_1|>" + "\n".join(("def area(w):", *OLD[1:])) + "\n<|marker_2|>",
        [],
    ),
}


def found(family: str, text: str, returns: str = "") -> list[tuple[int, Lines, Lines]]:
    """Return the proposals of an answer."""
    lines = tuple(line + returns for line in ("import os", *OLD, "x = 0"))
    texts, prompt = {"a.py": lines}, window.WindowPrompt("", 1, 7, ())
    edits = [Edit("a.py", 1, ("def area(w):" + returns,), (OLD[0] + returns,))]
    new = FAMILIES[family].parse(text, OLD)
    if new is None:
        return []
    proposals = window.proposals(texts, edits, "a.py", prompt, new, "a-model")
    shown = checked(texts, edits, proposals)
    assert all(one.kind == "model" and one.cause == "suggested by a-model" for one in shown)
    assert len({one.group for one in shown}) <= 1
    return [(one.row - 1, one.old, one.new) for one in shown]


@pytest.mark.parametrize(
    ("family", "name"),
    [*(("sweep", name) for name in SWEEP_ANSWERS), *(("zeta2.1", name) for name in ZETA_ANSWERS)],
)
def test_the_answer_of_a_model_becomes_proposals(family: str, name: str) -> None:
    text, expected = {"sweep": SWEEP_ANSWERS, "zeta2.1": ZETA_ANSWERS}[family][name]
    assert found(family, text) == expected


def test_zeta_replaces_the_block_between_two_markers() -> None:
    old = tuple(f"a{at}" if at % 8 < 6 else "" for at in range(24))
    new = FAMILIES["zeta2.1"].parse("<|marker_2|>b\nc\n\n<|marker_3|>", old)
    assert new == (*old[:8], "b", "c", "", *old[16:])


def test_carriage_returns_are_kept() -> None:
    (proposal,) = found("sweep", answer(*GOOD), "\r")
    assert proposal == (1, (OLD[1] + "\r",), (GOOD[1] + "\r",))


def test_mixed_line_ends_have_no_proposals() -> None:
    prompt = window.WindowPrompt("", 0, 2, ())
    assert not window.proposals({"a.py": ("a\r", "b")}, [], "a.py", prompt, ("a", "c"), "m")


@pytest.mark.parametrize(
    ("edit", "new"),
    [
        (Edit("a.py", 1, (), ("b", "c")), ("a", "d")),  # deletes what was just written
        (Edit("a.py", 1, (), ("b", "c")), ("a", "b", "d")),  # a part of it
        (Edit("a.py", 1, ("f(x)", "c"), ("b", "c")), ("a", "f(x)", "c", "d")),
    ],
)
def test_an_edit_is_not_taken_back(edit: Edit, new: Lines) -> None:
    texts, prompt = {"a.txt": (), "a.py": ("a", "b", "c", "d")}, window.WindowPrompt("", 0, 4, ())
    assert not window.proposals(texts, [edit], "a.py", prompt, new, "m")


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("sweep-next-edit-1.5b.q8_0.v2.gguf", "sweep"),
        ("sweepai/sweep-next-edit-0.5B", "sweep"),
        ("zeta-2.1.Q4_K_M.gguf", "zeta2.1"),
        ("hf.co/mradermacher/zeta-2.1-GGUF:Q4_K_M", "zeta2.1"),
        ("zed-industries/zeta-2", ""),
        ("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", ""),
    ],
)
def test_a_family_is_found_by_the_name_of_a_model(model: str, family: str) -> None:
    assert family_of(model) == family
