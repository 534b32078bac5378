"""Which part of an unfinished line is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.fim.trim import CursorContext, Suggestion, cursor_context, cut, finish
from lcursor.fim.trim.partial import find_end


def at(code: str, name: str = "a.py") -> CursorContext:
    """Read the facts of a text whose cursor is `¦`."""
    before, _, after = code.partition("¦")
    return cursor_context(before, after, single_line=False, max_lines=12, path=name)


# Where the cursor is, the file, the whole line, and every part of it that may be shown.
LINES: dict[str, tuple[str, str, str, list[str]]] = {
    "an assignment": (
        "    ¦",
        "a.py",
        "pattern = nargs_pattern.replace('-*', '') + tail",
        ["pattern = nargs_pattern.replace('-*', '')"],
    ),
    "a short name": ("    ¦", "a.py", "ix = text.find(a", []),
    "a condition": (
        "    ¦",
        "a.py",
        "if count > limit and not done:",
        ["if count", "if count > limit", "if count > limit and not done:"],
    ),
    "a loop": ("    ¦", "a.py", "for key, value in items:", ["for key, value in items:"]),
    "a comprehension": (
        "x = ¦",
        "a.py",
        "[f(y) for y in ys if y is not None]",
        ["[f(y) for y in ys if y is not None]"],
    ),
    "a signature": (
        "def ¦",
        "a.py",
        "get(self, name: str = None) -> int:",
        ["get(self, name: str = None)", "get(self, name: str = None) -> int:"],
    ),
    "a named argument": ("f(¦", "a.py", "key=None, x", ["key=None"]),
    "a key": ("x = ¦", "a.py", "{'key': 12}, ", ["{'key': 12}"]),
    "a number": ("x = ¦", "a.py", "1000.25 - y", ["1000.25"]),
    "a short part": ("x = ¦", "a.py", "f(a, b) - y", ["f(a, b)"]),
    "a part that is too short": ("x = ¦", "a.py", "f(a,b) - y", []),
    "a keyword": ("¦", "a.py", "return not x", []),
    "an import": ("¦", "a.py", "from os import path", []),
    "a string": (
        "x = ¦",
        "a.py",
        "f'no such file: {name}'",
        ["f'no such file: {name}'"],
    ),
    "a string of the user": ("x = 'no ¦", "a.py", "such file' + y", ["such file'"]),
    "a word of such a string": (
        "x = 'no direc¦",
        "a.py",
        "tory there' + y",
        ["tory", "tory there'"],
    ),
    "a docstring": (
        'def f():\n    """¦',
        "a.py",
        "Return the sum.",
        ["Return the", "..sum"],
    ),
    "a comment": ("# ¦", "a.py", "the first: don't", ["the first"]),
    "a name in a comment": ("# see ¦", "a.py", "os.path.join or", ["os.path.join"]),
    "a word begun by hand": ("nar¦", "a.py", "guments = f(x)", ["guments", "guments = f(x)"]),
    "a word begun by hand and its attribute": ("x = nar¦", "a.py", "guments.count(", ["guments"]),
    "the last letters of a word": ("x = nargume¦", "a.py", "nts.count(", []),
    "a word begun by hand and its call": ("x = nar¦", "a.py", "gs_of(x", ["gs_of"]),
    "a keyword begun by hand": ("retu¦", "a.py", "rn x.y", []),
    "Lua": (
        "  ¦",
        "a.lua",
        "local x = self:get(a) .. tail .. 'b'",
        [
            "local x = self:get(a)",
            "local x = self:get(a) .. tail",
            "local x = self:get(a) .. tail .. 'b'",
        ],
    ),
    "a condition in Lua": ("  ¦", "a.lua", "if x == nil then", ["if x == nil"]),
    "TypeScript": (
        "  ¦",
        "a.ts",
        "const items: Map<string, number> = new Map();",
        [
            "const items: Map<string, number> = new Map()",
            "const items: Map<string, number> = new Map();",
        ],
    ),
    "an arrow function": (
        "  ¦",
        "a.ts",
        "return items.filter((x) => x.id !== id);",
        [
            "return items.filter((x) => x.id !== id)",
            "return items.filter((x) => x.id !== id);",
        ],
    ),
    "Go": (
        "\t¦",
        "a.go",
        "if err := f.Close(); err != nil {",
        ["if err := f.Close()", "if err := f.Close();", "if err := f.Close(); err"],
    ),
    "a receiver": (
        "¦",
        "a.go",
        "func (s *Server) Run() error {",
        ["func (s *Server)", "..()"],
    ),
    "Rust": (
        "    ¦",
        "a.rs",
        "let v: Vec<u8> = xs.iter().map(|x| x + 1).collect()?;",
        ["let v: Vec<u8> = xs.iter()", "...map(|x| x + 1)", "...()", "..;"],
    ),
    "a macro": (
        "    ¦",
        "a.rs",
        'println!("a", x);',
        ['println!("a", x)', "..;"],
    ),
    "C": (
        "    ¦",
        "a.c",
        "const char *name = strdup(argv[i]);",
        ["const char *name = strdup(argv[i])", "...;"],
    ),
    "a loop in C": (
        "    ¦",
        "a.c",
        "for (int i = 0; i < n; i++) {",
        ["for (int i = 0; i < n; i++)"],
    ),
    "a pointer": ("    ¦", "a.c", "if (p->next == 0) x", ["if (p->next == 0)"]),
    "a shell": ("¦", "a.sh", "if [ -z $x ]; the", ["if [ -z", "..x", "..]", "..;"]),
    "prose": ("¦", "a.md", "The brown (fox) j", ["The brown", "The brown (fox", "..)"]),
}
"""In a list, dots stand for what lies between the part before and the end that is given."""


def parts(line: str, ends: list[str]) -> list[str]:
    found: list[str] = []
    for end in ends:
        at, tail = len(found[-1]) if found else 0, end.lstrip(".")
        is_short = end.startswith("..")
        found.append(line[: line.index(tail, at) + len(tail)] if is_short else end)
    return found


@pytest.mark.parametrize(("code", "name", "line", "ends"), LINES.values(), ids=LINES.keys())
def test_a_part_that_is_shown_makes_sense(code: str, name: str, line: str, ends: list[str]) -> None:
    cursor = at(code, name)
    shown = [find_end(line[:size], cursor, line[size:]) for size in range(len(line) + 1)]
    wanted = [len(part) for part in parts(line, ends)]
    assert list(dict.fromkeys(size for size in shown if size)) == wanted


@pytest.mark.parametrize(
    ("text", "behind", "size"),
    [
        ("return count", "", 0),  # it may be `counter`
        ("return count", "er", 0),
        ("return count", "(", 0),
        ("return count", ".", 0),
        ("return count", " ", 0),  # nobody knows of what
        ("return count", "\n", len("return count")),
        ("return count", " + 1", len("return count")),
        ("return count)", "", len("return count)")),
        ("return f(x", ")", 0),
    ],
)
def test_a_name_is_complete_when_what_follows_is_known(text: str, behind: str, size: int) -> None:
    assert find_end(text, at("    ¦"), behind) == size


def test_the_colon_of_a_block_is_an_end() -> None:
    assert find_end("if done:", at("¦")) == len("if done:")
    assert find_end("case 1:", at("¦", "a.c")) == len("case 1:")
    assert find_end("if done :", at("¦", "a.go")) == 0
    assert find_end("if done[1:", at("¦")) == 0


def test_unsure_tokens_may_show_that_a_name_is_complete() -> None:
    suggestion = Suggestion(at("    return ¦"))
    assert not suggestion.grow("counter")
    assert suggestion.grow("counter", " + 1")
    assert suggestion.text == "counter"


@pytest.mark.parametrize(
    ("text", "behind", "kept"),
    [
        ("a = f()\nb = ", "g", "a = f()"),
        ("a = f()\n", "", "a = f()"),
        ("\n    return f(x) + ", "y", "\n    return f(x)"),
        ("f(x, y) + ", "y", "f(x, y)"),
        ("f(x) + ", "y", ""),  # a few characters are not worth it
        ("a", "\n", ""),  # a character is not worth it
        ("", "", ""),
    ],
)
def test_the_part_of_a_cut_text_that_is_kept(text: str, behind: str, kept: str) -> None:
    assert cut(text, at("x = ¦"), behind) == kept


@pytest.mark.parametrize(
    ("code", "name", "text", "end"),
    [
        ("¦", "a.py", "x = f(a)\ny = f(\n", "x = f(a)"),
        ("¦", "a.py", "x = f(a)\ny = f(\n    a,\n    b", "x = f(a)"),
        ("¦", "a.py", "x = f(a)\ny = [\n    a", "x = f(a)\ny = [\n    a"),
        ("¦", "a.py", 'x = f(a)\ns = """An\nx', "x = f(a)"),
        ("x = ¦", "a.py", "first(a).last(", "first(a)"),
        ("x = ¦", "a.py", "f(", ""),
        ("x = ¦\n    a, b)", "a.py", "f(", "f("),  # it is closed below
        ("x = f(\n    ¦\n)", "a.py", "g(", ""),  # what is closed below is another one
        ("x = f(¦)", "a.py", "a) + g(b", "a) + g(b"),
        ("¦", "a.ts", "f(a, () => {\n  g(b);", "f(a, () => {\n  g(b);"),
        ("¦", "a.lua", "f(a, function(x)\n  g(b)", "f(a, function(x)\n  g(b)"),
        ("¦", "a.sh", "case x in\n  x) f (", "case x in\n  x) f ("),
    ],
)
def test_complete_lines_end_outside_of_calls_and_strings(
    code: str, name: str, text: str, end: str
) -> None:
    assert finish(text, at(code, name)) == (end, 0)
    suggestion = Suggestion(at(code, name))
    for size in range(len(text) + 1):
        suggestion.grow(text[:size])
        assert end.startswith(suggestion.text)


@given(st.text(alphabet="ab(){}=.,: \n'\"+", max_size=30), st.text(alphabet="ab(= \n", max_size=3))
def test_no_part_ends_with_a_sign_that_needs_more(text: str, behind: str) -> None:
    cursor = at("    ¦")
    end = find_end(text, cursor, behind)
    assert 0 <= end <= len(text)
    shown = text[:end].removesuffix("++")  # which may be complete
    assert shown[-1:] not in {"=", ".", ",", "(", "{", "+", " ", "\n"} or not end
