from __future__ import annotations

import pytest

from lcursor.code.line_definitions import definitions
from lcursor.index.chunk import read


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("perl", "sub add {\n  1;\n}\n\nsub run { 2 }\n", "function add 0-3, function run 4-5"),
        ("julia", "function f(x)\n  x\nend\n", "function f 0-3"),
        ("vim", "function! s:Open(path) abort\n  echo\nendfunction\n", "function s:Open 0-3"),
        ("r", "area <- function(x) {\n  x\n}\n", "function area 0-3"),
        ("proto", "message User {\n  string a = 1;\n}\n", "struct User 0-3"),
        (
            "clojure",
            "(defn add\n  [a b]\n  (+ a b))\n(def x 1)\n",
            "function add 0-3, function x 3-4",
        ),
        ("cmake", "function(build name)\n  x()\nendfunction()\n", "function build 0-3"),
        ("dart", "abstract class Shape\n{\n  int x;\n}\n", "class Shape 0-4"),
        ("make", "CC := gcc\n.PHONY: all\nall: a b\n\tcc\n", "target all 2-4"),
        ("tex", "\\section{On names}\ntext\n", "section On names 0-1"),
        ("hcl", 'resource "aws" "db" {\n  a = 1\n}\n', "resource aws.db 0-3"),
        ("text", "class of things\n", ""),
        ("perl", "a function of x\n", ""),
        ("perl", "", ""),
    ],
)
def test_rows_that_begin_like_a_definition_are_one(language: str, text: str, expected: str) -> None:
    lines = text.split("\n")[:-1]
    found = definitions(language, lines)
    assert ", ".join(f"{kind} {name} {a}-{b}" for name, kind, a, b in found) == expected


def test_chunks_of_lines_have_scopes_and_symbols_too() -> None:
    body = "".join(f"    $x{at} = call({at});\n\n" for at in range(80))
    parsed = read("lib/a.pl", f"package A;\n\nsub long {{\n{body}}}\n\nsub short {{\n    1;\n}}\n")
    assert [symbol.name for symbol in parsed.symbols] == ["A", "long", "short"]
    assert parsed.language == "perl"
    assert {item.kind for item in parsed.chunks} == {"lines"}
    assert parsed.chunks[0].scope == "long"
