"""What a person types into a search, taken apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.index.query import Kind, parse
from lcursor.index.records import Filters


@pytest.mark.parametrize(
    ("typed", "text", "filters"),
    [
        ("open a file", "open a file", Filters()),
        ("path:src open", "open", Filters(paths=("src",))),
        ("open path:src/*.py file:b", "open", Filters(paths=("src/*.py", "b"))),
        ('path:"a b" open', "open", Filters(paths=("a b",))),
        ("path:'a b' open", "open", Filters(paths=("a b",))),
        ("lang:Python x", "x", Filters(languages=("python",))),
        ("lang:py,rs x", "x", Filters(languages=("python", "rust"))),
        ("lang:.lua x", "x", Filters(languages=("lua",))),
        ("language:c++ x", "x", Filters(languages=("cpp",))),
        ("lang:ts x", "x", Filters(languages=("typescript", "tsx"))),
        ("lang:klingon x", "x", Filters(languages=("klingon",))),
        ("kind:Class x", "x", Filters(kinds=("class",))),
        ("kind:def x", "x", Filters(kinds=("function", "method"))),
        ("path:a lang:c kind:enum", "", Filters(("a",), ("c",), ("enum",))),
        ("std::vector", "std::vector", Filters()),
        ("path::join", "path::join", Filters()),
        ("file://tmp", "file://tmp", Filters()),
        ("path: x", "path: x", Filters()),
        ("x.path:3 mypath:y", "x.path:3 mypath:y", Filters()),
        ('path:"" x', "x", Filters()),
        ("PATH:src x", "x", Filters(paths=("src",))),
    ],
)
def test_filters_are_taken_out(typed: str, text: str, filters: Filters) -> None:
    found = parse(typed)
    assert (found.text, found.filters) == (text, filters)


@pytest.mark.parametrize(
    ("typed", "kind", "name"),
    [
        ("parse_url", "symbol", "parse_url"),
        ("parse_url()", "symbol", "parse_url"),
        ("kind:class lang:py Foo", "symbol", "Foo"),
        ("os.path.join", "symbol", "os.path.join"),
        ("timeout", "word", "timeout"),
        ("who calls parse_url", "mixed", ""),
        ("who calls whom", "text", ""),
        ("", "text", ""),
        ("+", "text", ""),
    ],
)
def test_the_kind_of_a_question_is_known(typed: str, kind: Kind, name: str) -> None:
    found = parse(typed)
    assert (found.kind, found.name) == (kind, name)


def test_code_has_no_filters() -> None:
    found = parse("open(path:str, kind:int) lang:py", has_filters=False)
    assert found.filters == Filters()
    assert "lang:py" in found.text


def test_names_in_a_sentence_are_kept() -> None:
    assert parse("who calls parse_url or Foo.bar").names == ("parse_url", "Foo.bar")


@given(typed=st.text())
def test_anything_can_be_typed(typed: str) -> None:
    found = parse(typed)
    assert len(found.text) <= len(typed)
    assert found.kind == "text" or found.name or found.names
