"""Grammars and their queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.code import grammars

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("language", sorted(grammars.LANGUAGES))
def test_a_query_fits_its_grammar(language: str) -> None:
    query = grammars._query(language)
    assert query is not None
    names = {query.capture_name(number) for number in range(query.capture_count)}
    assert "name" in names
    kinds = {name for name in names if name.startswith("definition.")}
    assert kinds
    assert all(name.startswith("_") for name in names - kinds - {"name"})


def test_a_query_may_inherit_another_ones_patterns() -> None:
    root = grammars.parse("cpp", b"struct a { int b; };\nclass c { void d(); };\n")
    assert root is not None
    data = b"struct a { int b; };\nclass c { void d(); };\n"
    found = [(item.name, item.kind) for item in grammars.definitions("cpp", root, data)]
    assert found == [("a", "struct"), ("c", "class"), ("d", "function")]


def test_queries_are_packaged() -> None:
    assert '"code/queries/*.scm"' in (ROOT / "pyproject.toml").read_text()
    assert len(list(grammars.QUERIES.glob("*.scm"))) == len(grammars.LANGUAGES) + 1


def test_without_a_grammar_there_is_no_tree() -> None:
    assert grammars.parse("text", b"x") is None
    assert grammars.parser("no such language") is None
