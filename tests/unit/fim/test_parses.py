"""Which texts can be the start of valid code."""

from __future__ import annotations

import re

import pytest

from lcursor.code import languages
from lcursor.fim.trim import cursor_context, finish, parses, shown
from lcursor.fim.trim.parses import CodeBefore

BLOCK = {
    "a.go": "package a\n\nfunc f(a []int) error {\n\tfor _, x := range a {\n\t\tif x > 0 {\n",
    "a.java": "class A {\n  int f(int a) {\n    try {\n      if (a > 0) {\n",
    "a.js": "class A {\n  f(a) {\n    return a.map((x) => {\n",
    "a.lua": "local function f(a)\n  for _, x in ipairs(a) do\n    if x then\n",
    "a.py": "class A:\n    def f(self, a):\n        try:\n            with a as b:\n",
    "a.rb": "class A\n  def f(a)\n    a.each do |x|\n",
    "a.rs": "impl A {\n    fn f(&self) -> u8 {\n        match self.a {\n            1 => {\n",
    "a.tsx": "function F(p: P) {\n  return p.xs.map((x) => {\n",
    "a.ts": "class A {\n  f(a: number[]): void {\n    if (a.length > 0) {\n",
}
"""The start of a file of each language, with open blocks."""

STATEMENTS = {
    "a.go": ("x, err := f(a", "if err != nil {", "if err := err {", "s := a[1:]", 'g("é")'),
    "a.java": ("int x = f(a", "} else if (a < 0) {", "List<String> xs = new ArrayList<>();"),
    "a.js": (
        "const {x} = f(a",
        "if (x) {",
        "const f = async (a",
        "return `a ${x}`;",
        "x.default()",
    ),
    "a.lua": ("local x = f(a", "for i, b in pairs(x) do", "x.a[#x + 1] = function(b)", "a:f{b"),
    "a.py": (
        "x = f(a",
        "if x:\n                    return 1",
        "for a, b in x:",
        "a = [b for b in x",
    ),
    "a.rb": ("x = f(a", "if x\n", "xs.map { |y| y", "return unless x", 'y = "#{x} a"'),
    "a.rs": ("let x = f(a", "if let Some(x) = y {", "let s: &'static str = a;", "x?.f::<u8>()"),
    "a.tsx": ("const x = f(a", "return <A b={x", "const f = <T,>(a: T) => {", "return <></>;"),
    "a.ts": ("const x: Map<string, A> = f(a", "for (const [a, b] of x) {", "x!.f(a as any"),
}
MISTAKES = {
    "a.go": ("x, := f(a)", "for _, x := range {{", "if err != nil return", "x := func := 1"),
    "a.java": ("int = f(a);", "if a > 0) {", "for (int i; i < 3 { f();", "int if = 1;"),
    "a.js": ("const = f(a);", "if x) {", "return x => => y;", "const in = 1;"),
    "a.lua": ("for i, a in do", "local = f(a)", "x.( or 0)", "return x x + y"),
    "a.py": ("x = a b", "for a, in in x:", "def f(a b):", "if x = = y:"),
    "a.rb": ("x = = f(a)", "if x) y", "x = [1, 2}\n  y = 3"),
    "a.rs": ("let = f(a);", "match x { 1 = 2 }", "fn f(a b) {", "let x = in;"),
    "a.tsx": ("const = f(a);", "return <A b={x}></B c>;", "if x) {"),
    "a.ts": ("const x: = f(a);", "for (const of of of x) {", "let x = while;"),
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in STATEMENTS.items() for text in texts]
)
def test_code_that_stops_in_the_middle_may_be_valid(name: str, text: str) -> None:
    for end in range(len(text) + 1):
        if not text[end : end + 1].isalnum() and not re.search(r"[^\w\s]$", text[:end]):
            assert CodeBefore(name, BLOCK[name]).may_continue(text[:end]), text[:end]
    assert CodeBefore(name, BLOCK[name]).may_continue(text)
    for end in range(len(text)):
        assert CodeBefore(name, BLOCK[name] + text[:end]).may_continue(text[end:]), text[end:]


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in MISTAKES.items() for text in texts]
)
def test_code_that_no_further_text_makes_valid_is_found(name: str, text: str) -> None:
    assert not CodeBefore(name, BLOCK[name]).may_continue(text)
    assert not CodeBefore(name, BLOCK[name] + text[:1]).may_continue(text[1:])


def test_each_language_has_samples() -> None:
    known = {languages.detect(name) for name in BLOCK}
    assert known == {*parses.KEYWORDS}
    assert {*BLOCK} == {*STATEMENTS} == {*MISTAKES}


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("a.py", 'def f():\n    """Return a b'),
        ("a.py", "x = 1\n# some words "),
        ("a.ts", "/**\nA type of `a"),
        ("a.rs", '    f("a\n  b '),
        ("a.lua", "local x = [[\n  a b "),
        ("a.go", "x := `a b "),
        ("a.go", "func ) {\n\tx := "),  # what the user wrote is not valid
        ("a.c", "int f("),
        ("a.md", "A b "),
        ("", ""),
    ],
)
def test_texts_that_are_no_code_are_not_judged(name: str, before: str) -> None:
    text = "c d) e"
    assert finish(text, cursor_context(before, "", False, 12, name))[0].startswith("c d")


def test_the_code_is_read_from_its_outermost_definition_on() -> None:
    broken = "def f(:\n    pass\n\n\n"
    assert CodeBefore("a.py", broken + "x = ").may_continue("a b")
    assert not CodeBefore("a.py", broken + "def g():\n    x = ").may_continue("a b")
    far = "def g():\n" + "    y = 1\n" * (parses.MAX_LINES + 1) + "    x = "
    assert CodeBefore("a.py", far).may_continue("a + b")


@pytest.mark.parametrize(
    ("code", "name", "text", "end"),
    [
        ("¦", "a.lua", "for i, a in do\n  f(a)\nend\n", ""),
        ("¦", "a.lua", "local x = f(a)\nfor i, a in do\n  f(a)\nend\n", "local x = f(a)"),
        ("x = ¦", "a.py", "first(a) b\ny = 2\n", "first(a)"),
    ],
)
def test_a_text_ends_where_it_is_valid(code: str, name: str, text: str, end: str) -> None:
    before, _, after = code.partition("¦")
    cursor = cursor_context(before, after, single_line=False, max_lines=12, path=name)
    assert finish(text, cursor) == (end, 0)
    assert all(end.startswith(shown(text[:size], cursor)) for size in range(len(text) + 1))
