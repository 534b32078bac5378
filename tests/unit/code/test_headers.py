"""The lines of a file that say what it offers."""

from __future__ import annotations

import pytest

from lcursor.code.headers import MAX_LINES, header_lines, signature_end

PYTHON = '''"""Doc."""
import os
LIMIT = 3
small = 1

class Tool(Base):
    """It does."""
    name: str
    _hidden: int
    def __init__(self, a: int) -> None:
        self.a = a
        def inner(): pass
    def use(
        self,
        *others: str,
    ) -> None:
        if a:
            pass
    def _own(self): ...

def make(a, b=(1, 2)):
    return Tool(a)

def _private():
    pass
async def wait(): ...
'''
TOOL = """class Tool(Base):
    name: str
    def __init__(self, a: int) -> None:
    def use(self, *others: str) -> None:"""


@pytest.mark.parametrize(
    ("symbols", "lines"),
    [
        ((), f"LIMIT = 3\n{TOOL}\ndef make(a, b=(1, 2)):\nasync def wait(): ..."),
        (("Tool",), TOOL),
        (("_private", "make"), "def make(a, b=(1, 2)):\ndef _private():"),
        (("nothing",), ""),
    ],
)
def test_python(symbols: tuple[str, ...], lines: str) -> None:
    assert header_lines("a/b.py", PYTHON, symbols) == lines


LANGUAGES = {
    "a.lua": (
        "local M = {}\nfunction M.read(a, b)\n  local x\nend\nlocal function own() end\nM.x = 1\n",
        "function M.read(a, b)\nM.x = 1",
    ),
    "a.ts": (
        "import x from 'y';\nexport class A extends B {\n  name: string;\n"
        "  async run(a: string,\n    b: number) {\n    if (a) {\n    }\n  }\n}\n"
        "export const z = (a) => 3;\nconst own = 1;\nexport interface P {\n  a: string;\n}\n",
        "export class A extends B {\n  name: string;\n  async run(a: string, b: number) {\n"
        "export const z = (a) => 3;\nexport interface P {\n  a: string;",
    ),
    "a.go": (
        "package a\ntype S struct {\n\tName string\n\town int\n}\n"
        "func (s *S) Do(x int) error {\n\tX := 1\n}\nfunc own() {}\n",
        "type S struct {\n\tName string\nfunc (s *S) Do(x int) error {",
    ),
    "a.rs": (
        "pub struct A {\n    pub x: i32,\n    y: i32,\n}\nimpl Foo for A {\n"
        "    fn go(&self) -> i32 {\n        1\n    }\n}\nfn own() {}\n"
        "pub fn shown<T>(a: T,\n   b: i32) -> T {\n",
        "pub struct A {\n    pub x: i32,\nimpl Foo for A {\n    fn go(&self) -> i32 {\n"
        "pub fn shown<T>(a: T, b: i32) -> T {",
    ),
    "a.cob": ("DEFINE x\n", ""),
}


@pytest.mark.parametrize("path", sorted(LANGUAGES))
def test_other_languages(path: str) -> None:
    text, lines = LANGUAGES[path]
    assert header_lines(path, text) == lines


def test_a_long_file_has_its_first_lines() -> None:
    text = "".join(f"def f{n}(): ...\n" for n in range(500))
    assert header_lines("a.py", text).count("\n") + 1 == MAX_LINES


def test_an_open_bracket_takes_in_a_few_lines_only() -> None:
    assert len(header_lines("a.py", "def f(" + "a,\n" * 5000)) < 100


@pytest.mark.parametrize(
    ("lines", "first", "end"),
    [
        (["def f(a):", "    return a"], 0, 1),
        (["", "@cached(", "    1,", ")", "def f(", "    a", "):", "    return a"], 1, 7),
        (["def f("] + ["    a,"] * 50, 0, 8),
        (["@x"], 0, 1),
        ([], 0, 0),
    ],
)
def test_where_a_signature_ends(lines: list[str], first: int, end: int) -> None:
    assert signature_end(lines, first, 8) == end
