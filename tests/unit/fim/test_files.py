"""Other files in a prompt, with a tokenizer that makes each character a token."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.fim.families import FAMILIES, Resolved
from lcursor.fim.prompt import (
    File,
    Source,
    build,
    cut,
    imports_of,
    other_files_budget,
    tokens_of_files,
)
from tests.unit.fim.test_prompt import by_character, family, spell

ONE, TWO = File("one.py", "a = 1\nb = 2"), File("two.py", "c = 3")


def lay_out(
    files: tuple[File, ...],
    most: int = 999,
    name: str = "qwen2.5-coder",
    source: Source | None = None,
) -> str:
    built = build(
        source or Source("P", "S", 0, "x.py", "R"),
        family(name),
        by_character,
        prefix_tokens=99,
        suffix_tokens=99,
        files=files,
        files_tokens=most,
    )
    return spell(built.tokens)


LAYOUTS = {
    "qwen2.5-coder": "<repo>R\n<file>two.py\nc = 3\n<file>x.py\n<pre>P<suf>S<mid>",
    "qwen3-coder": "<repo>R\n<file>two.py\nc = 3\n<file>x.py\n<pre>P<suf>S<mid>",
    "starcoder2": "<repo>R<file>two.py\nc = 3<file><pre>x.py\nP<suf>S<mid>",
    "granite": "<pre>P<suf>S<mid>",
    "codegemma": "two.py\nc = 3<file><pre>P<suf>S<mid>",
    "deepseek-coder-v2": "#two.py\nc = 3\n#x.py\n<pre>P<suf>S<mid>",
    "codellama": "<pre>P<suf>S<mid>",
    "codestral": "<suf>S<pre>+++++ two.py\nc = 3\n\n+++++ x.py\nP",
    "mellum": "<file>two.py\nc = 3<file>x.py\n<suf>S<pre>P<mid>",
    "seed-coder": "<suf>S<pre>P<mid>",
}


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_prompt_of_each_family_with_another_file(name: str) -> None:
    assert lay_out((TWO,), name=name) == LAYOUTS[name]


def test_without_its_markers_a_family_has_no_files() -> None:
    full = family("codegemma")
    bare = Resolved(full.family, {key: full.ids[key] for key in ("pre", "suf", "mid")}, frozenset())
    built = build(
        Source("P", "S"),
        bare,
        by_character,
        prefix_tokens=9,
        suffix_tokens=9,
        files=(ONE,),
        files_tokens=99,
    )
    assert spell(built.tokens) == "<pre>P<suf>S<mid>"


def test_a_file_that_does_not_fit_is_cut_at_a_line_and_ends_it() -> None:
    name = len("<one.py\n\n") - 0
    most = next(n for n in range(99) if other_files_budget(n) == name + 7)
    assert "<file>one.py\na = 1\n<file>x.py" in lay_out((ONE, TWO), most)
    assert "one.py" not in lay_out((ONE, TWO), 12)


@given(
    st.lists(st.text(alphabet="ab \n", min_size=1, max_size=60), max_size=5), st.integers(0, 200)
)
def test_the_budget_holds_and_only_whole_lines_are_shown(texts: list[str], most: int) -> None:
    files = tuple(File(f"{number}.x", text) for number, text in enumerate(texts))
    shown = tokens_of_files(files, family(), by_character, most)
    assert len(shown) <= most
    pieces = spell(tuple(shown)).split("<file>")[1:]
    for piece, text in zip(pieces, texts, strict=False):
        code = piece.partition("\n")[2][:-1]
        assert text == code or text.startswith(code + "\n")
    assert all(
        piece.partition("\n")[2][:-1] == text
        for piece, text in zip(pieces[:-1], texts, strict=False)
    )


def shown_top(source: Source) -> str:
    return lay_out((), source=source, most=999).partition("<pre>")[0]


LONG = '"""Doc."""\nimport a\nfrom b import c\n' + "x = 1\n" * 100


def test_the_top_is_the_last_slot_where_the_window_begins_below_it() -> None:
    built = lay_out((ONE,), source=Source("P", "", 64, "x.py", "R", "import a\nimport b"))
    assert "b = 2\n<file>x.py\nimport a\nimport b\n<file>x.py\n<pre>P" in built


def test_no_top_where_the_window_has_it() -> None:
    assert shown_top(Source("import a\nP", "", 0, "x.py", "R")) == "<repo>R\n<file>x.py\n"


def test_no_line_is_both_in_the_top_and_in_the_window() -> None:
    source = Source("P", "", 2, "x.py", "R", "import a\nimport b\nimport c\n")
    assert "import c" not in shown_top(source)
    assert "import b" in shown_top(source)


@pytest.mark.parametrize(
    ("top", "shown"),
    [
        ("# licence\nimport a\nx = 1\n", "import a\nx = 1"),
        ("#include <a>\nint x;", "#include <a>\nint x;"),
        ('local M = {}\nlocal a = require("b")', 'local a = require("b")'),
        ("package main\n", "package main"),
        ("# importance of things\n", ""),
        ("", ""),
    ],
)
def test_the_top_begins_with_the_first_import(top: str, shown: str) -> None:
    assert imports_of(top.split("\n")) == shown


def test_imports_are_looked_for_in_the_first_lines() -> None:
    assert imports_of([*["# a"] * 39, "import a", "import b"]) == "import a"
    assert imports_of([*["# a"] * 40, "import a"]) == ""
    assert imports_of(["import a", *["x = 1"] * 60]).count("\n") == 39


def test_a_third_of_the_budget_is_for_the_imports() -> None:
    assert [other_files_budget(tokens) for tokens in (0, 2, 3, 100, 300)] == [0, 2, 2, 67, 200]


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        (0, ""),
        (1, ""),
        (3, "cc"),
        (8, "bb\ncc"),
        (13, "aa\nbb\ncc\ndd"),
        (14, "aa\nbb\ncc\ndd\nee"),
    ],
)
def test_a_cut_around_the_middle(limit: int, kept: str) -> None:
    assert cut("aa\nbb\ncc\ndd\nee", limit, len, from_middle=True) == kept
