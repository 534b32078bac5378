"""Layout of prompts, with a tokenizer that makes each character a token."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.fim.families import FAMILIES, Resolved, resolve
from lcursor.fim.prompt import (
    SmallWindow,
    Source,
    build,
    build_small,
    related_to,
    small_suffix,
)

MARKS = {"pre": -1, "suf": -2, "mid": -3, "repo": -4, "file": -5}


def by_character(text: str, special: bool) -> list[int]:
    assert not special
    return [ord(char) for char in text]


def family(name: str = "qwen2.5-coder") -> Resolved:
    known = FAMILIES[name]
    ids = {key: MARKS[key] for key in known.markers}
    return Resolved(known, MappingProxyType(ids), frozenset(ids.values()))


def spell(tokens: tuple[int, ...]) -> str:
    names = {number: f"<{name}>" for name, number in MARKS.items()}
    return "".join(names.get(token) or chr(token) for token in tokens)


def lay_out(source: Source, name: str = "qwen2.5-coder", before: int = 999, after: int = 99) -> str:
    prompt = build(source, family(name), by_character, prefix_tokens=before, suffix_tokens=after)
    return spell(prompt.tokens)


LAYOUTS = {
    "qwen2.5-coder": "<repo>R\n<file>a.py\n<pre>P<suf>S<mid>",
    "qwen3-coder": "<repo>R\n<file>a.py\n<pre>P<suf>S<mid>",
    "starcoder2": "<repo>R<file><pre>a.py\nP<suf>S<mid>",
    "granite": "<pre>P<suf>S<mid>",
    "codegemma": "<pre>P<suf>S<mid>",
    "deepseek-coder-v2": "#a.py\n<pre>P<suf>S<mid>",
    "codellama": "<pre>P<suf>S<mid>",
    "codestral": "<suf>S<pre>+++++ a.py\nP",
    "mellum": "<file>a.py\n<suf>S<pre>P<mid>",
    "seed-coder": "<suf>S<pre>P<mid>",
}


def test_every_family_is_in_the_table() -> None:
    assert set(LAYOUTS) == set(FAMILIES)


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_the_prompt_of_each_family_for_one_file(name: str) -> None:
    assert lay_out(Source("P", "S", 0, "a.py", "R"), name) == LAYOUTS[name]


def test_the_token_that_begins_a_text_comes_first() -> None:
    prompt = build(
        Source("P", "S"), family(), by_character, prefix_tokens=9, suffix_tokens=9, bos=7
    )
    assert prompt.tokens[0] == 7


def test_without_its_project_markers_a_model_gets_the_single_file_template() -> None:
    full = family()
    bare = Resolved(full.family, {key: MARKS[key] for key in ("pre", "suf", "mid")}, frozenset())
    prompt = build(Source("P", "S"), bare, by_character, prefix_tokens=9, suffix_tokens=9)
    assert spell(prompt.tokens) == "<pre>P<suf>S<mid>"


def test_markers_in_the_buffer_are_text() -> None:
    seen = []

    def tokenize(text: str, special: bool) -> list[int]:
        seen.append((text, special))
        return [1] * len(text)

    build(
        Source("<|fim_middle|>", "<|fim_prefix|>"),
        family(),
        tokenize,
        prefix_tokens=99,
        suffix_tokens=99,
    )
    assert not any(special for _, special in seen)


def test_a_line_longer_than_the_budget_keeps_its_end() -> None:
    assert lay_out(Source("x" * 500 + "end", "S"), before=10).endswith("xxxend<suf>S<mid>")


def test_a_window_of_short_lines_has_about_half_of_its_budget() -> None:
    source = Source("a\n" * 1000, "")
    built = build(source, family(), by_character, prefix_tokens=100, suffix_tokens=0)
    assert 36 <= len(built.prefix) <= 100


def test_suffix_is_cut_at_a_line() -> None:
    assert "<suf>\nab\ncd<mid>" in lay_out(Source("P", "\nab\ncd\nefgh"), after=9)


@given(
    st.text(alphabet="ab\n", max_size=400),
    st.text(alphabet="cd\n", max_size=400),
    st.integers(1, 120),
    st.integers(0, 60),
    st.integers(0, 100),
)
def test_budgets_hold_and_text_next_to_the_cursor_is_kept(
    prefix: str, suffix: str, before: int, after: int, first_row: int
) -> None:
    prompt = build(
        Source(prefix, suffix, first_row),
        family(),
        by_character,
        prefix_tokens=before,
        suffix_tokens=after,
    )
    text = spell(prompt.tokens).split("<pre>")[1].removesuffix("<mid>")
    read_before, read_after = text.split("<suf>")
    assert len(read_before) <= before
    assert len(read_after) <= after
    assert prefix.endswith(read_before)
    assert suffix.startswith(read_after)
    assert not prefix or not prefix[-1:].strip() or read_before


def test_a_model_without_markers_is_rejected() -> None:
    from lcursor.errors import ModelUnsuitable

    def letters(text: str, special: bool) -> list[int]:
        return [ord(char) for char in text]

    with pytest.raises(ModelUnsuitable, match="no FIM markers"):
        resolve("", letters)
    with pytest.raises(ModelUnsuitable, match=r"it has no token <\|fim_prefix\|>"):
        resolve("qwen2.5-coder", letters)


def lay_out_short(
    source: Source, name: str = "qwen2.5-coder", before: int = 40, first_row: int = -1
) -> tuple[str, int]:
    short, row = build_small(
        source,
        family(name),
        by_character,
        prefix_tokens=before,
        suffix=small_suffix(source, by_character, SmallWindow(0, 5, 2, 8, 99)),
        first_row=first_row,
    )
    return spell(short.tokens), row


CLASS = """import os


class Shop:
    rate = 3

    def other(self):
        pass

    def price(self, count):
        if count:
            a = 1
            b = 2
            c = 3
        else:
            d = 4
            return """


def test_a_short_window_has_the_lines_at_the_cursor_and_what_encloses_them() -> None:
    text, row = lay_out_short(Source(CLASS, "\n    # done\n", 0, "a.py", "R"))
    assert row == 15
    assert text == (
        "<repo>R\n<file>a.py\n<pre>class Shop:\n    def price(self, count):\n        if count:\n"
        "            d = 4\n            return <suf>\n    <mid>"
    )


def test_a_short_window_stays_where_it_began() -> None:
    _, row = lay_out_short(Source(CLASS, "", 0))
    more = Source(CLASS + "a\n            e = 5\n            f = 6\n        ", "", 0)
    text, kept = lay_out_short(more, first_row=row)
    assert kept == row
    assert text.startswith(lay_out_short(Source(CLASS, "", 0))[0].partition("<suf>")[0])
    assert lay_out_short(more)[1] > row


@pytest.mark.parametrize("first_row", [-1, 3, 400])
def test_a_row_outside_the_text_is_not_begun_at(first_row: int) -> None:
    assert lay_out_short(Source(CLASS, "", 100), first_row=first_row)[1] == 115


@pytest.mark.parametrize(
    ("text", "budget", "row"),
    [
        ("aa\nbb\ncc", 4, 2),
        ("aa\nbb\ncc", 5, 1),
        ("aa\nbb\ncc", 7, 1),
        ("aa\nbb\ncc", 8, 0),
        ("aa\n\nbb", 3, 2),  # it does not begin with a blank line
        ("aa\n\nbb", 6, 0),
        ("aa\n\n  ", 3, 2),  # unless that is the cursor's
        ("x" * 99, 4, 0),
    ],
)
def test_a_short_window_has_the_lines_that_fit(text: str, budget: int, row: int) -> None:
    assert lay_out_short(Source(text, ""), before=budget)[1] == row
    assert lay_out_short(Source(text, "", 30), before=budget)[1] == 30 + row


BLOCKS = [f"{'    ' * depth}if a{depth}:\n" for depth in range(6)]


@pytest.mark.parametrize(
    ("above", "line", "heads"),
    [
        ("".join(BLOCKS), "    " * 6, "".join(BLOCKS[2:])),  # the innermost four
        ("if a:\n\tif b:\n        c()\n", "\t\t", "if a:\n\tif b:\n"),
        ("if a:\n# if b:\n    // if c:\n", "        ", "if a:\n"),
        ("if " + "a" * 200 + ":\n", " " * 40, "if " + "a" * 97 + "\n"),
        ("if a:\n" + "    x()\n" * 397, "    ", "if a:\n"),
        ("if a:\n" + "    x()\n" * 398, "    ", ""),  # too far away
        ("if a:\n", "", ""),
    ],
)
def test_a_short_window_has_the_heads_of_the_blocks_around(
    above: str, line: str, heads: str
) -> None:
    text, _ = lay_out_short(Source(f"{above}{line}y = 1\n{line}z", ""), before=2 * len(line) + 6)
    assert text.partition("<pre>")[2] == f"{heads}{line}z<suf><mid>"


def test_a_brace_on_a_line_of_its_own_has_its_head_above() -> None:
    code = "int\nmain(void)\n{\n    int a;\n    int b;\n    return "
    text, _ = lay_out_short(Source(code, ""), before=24)
    assert "<pre>main(void)\n{\n    int b;\n    return <suf>" in text


WINDOW = SmallWindow(0, 999, 2, 8, 999)


def test_behind_a_short_window_are_the_next_lines() -> None:
    source = Source("return join_", "(1)\ny = 2\nz = 3\nlast = join_all(4)\n")
    text = "".join(map(chr, small_suffix(source, by_character, WINDOW)))
    assert text == "(1)\ny = 2\nz = 3"


def test_before_a_short_window_are_related_lines() -> None:
    above = "def join_parts(parts):\n    return parts\n\n" + "x = 1\n" * 9
    source = Source(above + "return join_", "(1)\ny = 2\nz = 3\nlast = join_all(4)\n")
    related = related_to(source, by_character, WINDOW)
    assert related == ["def join_parts(parts):", "    return parts", "last = join_all(4)"]
    small = WINDOW._replace(related_tokens=22)
    assert related_to(source, by_character, small) == [related[1]]
    built, _ = build_small(
        source, family(), by_character, prefix_tokens=20, suffix=[], related=related
    )
    assert built.prefix == "\n".join([*related, "", "x = 1", "return join_"])


def test_the_five_lines_above_the_cursor_say_what_is_related_and_are_not_repeated() -> None:
    above = ["def join_parts(parts):", "other = 2", *["x = 1"] * 3, "join_parts(b)", "y = "]
    assert related_to(Source("\n".join(above), ""), by_character, WINDOW) == [
        "def join_parts(parts):"
    ]


def test_a_short_window_of_a_family_with_the_suffix_first() -> None:
    text, _ = lay_out_short(Source("a = 1\nb = ", "\nc = 2\n", 0, "a.py"), "seed-coder")
    assert text == "<suf>\nc = <pre>a = 1\nb = <mid>"


@given(st.text(alphabet="a \n{:", max_size=200), st.integers(1, 50))
def test_a_short_window_ends_at_the_cursor_and_keeps_its_size(text: str, budget: int) -> None:
    short, row = lay_out_short(Source(text, ""), before=budget)
    window = "\n".join(text.split("\n")[row:])
    before = short.partition("<pre>")[2].partition("<suf>")[0]
    assert before.endswith(window[-4 * budget :])
    heads = before.removesuffix(window).split("\n")[:-1]
    assert all(line in text.split("\n") for line in heads[len(before) == 4 * budget :])
    assert len(before) <= 4 * budget
