"""The rules behind the model: a table of cases, and what holds for any text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.fim.trim import CursorContext, Suggestion, cursor_context, ended, finish, shown


def at(code: str, name: str = "a.py", **more: object) -> CursorContext:
    """Read the facts of a text whose cursor is `¦`."""
    before, _, after = code.partition("¦")
    single, most = bool(more.get("single_line", False)), int(str(more.get("max_lines", 12)))
    return cursor_context(before, after, single, most, name)


LONG = "    result = compute_everything(first, second)\n"
HABIT = "a = 1  # one\nb = 2\nc = 3  # three\n"

CASES: dict[str, tuple[CursorContext, str, str]] = {
    "plain": (at("    x = ¦"), "foo(1)", "foo(1)"),
    "trailing blanks go": (at("x = ¦"), "1  \n", "1"),
    "only blanks are nothing": (at("    ¦"), "  \n  ", ""),
    # unreachable
    "code below a return": (at("    return¦"), " 0\n    return low", " 0"),
    "code below a raise, in a block": (
        at("def f():\n    ¦"),
        "if a:\n        raise KeyError\n        b = 1\n    return 2",
        "if a:\n        raise KeyError",
    ),
    "an else below a return": (
        at("    ¦"),
        "if a:\n        return 1\n    else:\n        return 2",
        "if a:\n        return 1\n    else:\n        return 2",
    ),
    "a case below a break": (
        at("switch (a) {\n¦", "a.c"),
        "case 1:\n    break;\ncase 2:\n    b();",
        "case 1:\n    break;\ncase 2:\n    b();",
    ),
    "properties named like jumps": (
        at("  ¦", "a.css"),
        "break-inside: avoid;\n  margin: 1em;",
        "break-inside: avoid;\n  margin: 1em;",
    ),
    "a function below a return": (
        at("  ¦", "a.js"),
        "return g();\n  function g() {\n    h();",
        "return g();\n  function g() {\n    h();",
    ),
    "a conditional return": (
        at("    ¦", "a.rb"),
        "return 1 if a\n    b",
        "return 1 if a\n    b",
    ),
    # on_next_line
    "a block is below its head": (at("def f(x):¦"), "    return x", "\n    return x"),
    "in a method": (
        at("class A:\n    def f(self, x):¦"),
        "        return x\n\n    def g",
        "\n        return x",
    ),
    "indented as if the line were not": (
        at("class A:\n    def f(self, x):¦"),
        "    return x",
        "\n        return x",
    ),
    "behind a blank": (at("def f(x): ¦"), "    return x", "\n    return x"),
    "with the file's line ends": (
        at("class A:\r\n    def f(self, x):¦"),
        "        return x\r\n",
        "\r\n        return x",
    ),
    "before the line's end": (at("def f(x):¦\r\n"), "    return x", "\r\n    return x"),
    "a block in braces": (
        at("int f(int x) {¦", "a.c"),
        "    return x;\n}",
        "\n    return x;\n}",
    ),
    "a block of two spaces": (
        at("if (x) {¦", "a.c"),
        "  return x;\n}",
        "\n  return x;\n}",
    ),
    "a block of tabs": (
        at("func add(a int) int {¦", "a.go"),
        "\treturn a\n}",
        "\n\treturn a\n}",
    ),
    "a block of tabs in another": (
        at("int f(int x)\n{\n\tif (x) {¦", "a.c"),
        "\treturn x;\n\t}\n",
        "\n\t\treturn x;\n\t}",
    ),
    "a case": (at("switch (x) {\ncase 1:¦", "a.c"), "    f();", "\n    f();"),
    "a dictionary": (at("config = {¦"), "    'a': 1,\n}", "\n    'a': 1,\n}"),
    "one line is one line": (at("if x:¦"), " return 1", " return 1"),
    "a value is no block": (at("d = {'a':¦"), "   1}", "   1}"),
    "nor in a line of its own": (at("d = {\n    'a':¦\n}"), "     1,", "     1,"),
    "nor in data": (at('"a":¦', "a.json"), "    1", "    1"),
    "nor in a comment": (at("# such as:¦"), "   f(x)", "   f(x)"),
    "nor a part of an expression": (at("x = c ? a :¦", "a.c"), "   b;", "   b;"),
    "a newline that is there is enough": (
        at("def f(x):¦"),
        "  \n    return x",
        "  \n    return x",
    ),
    # too_many
    "one line when asked": (at("x = f(¦", single_line=True), "a,\n b", "a,"),
    "most lines": (at("¦", max_lines=2), "a\nb\nc\nd", "a\nb"),
    # next_line_again
    "the next line ends it": (at("    ¦\n    return x"), "y = 1\n    return x\n", "y = 1"),
    "the next line at once": (at("    ¦\n    return x"), "return x", ""),
    "the next line behind typed text": (at("    ret¦\n    return x"), "urn x\n", ""),
    "the next line in other quotes": (at("    ¦\n    f('a', 'b'),"), 'f("a","b")', ""),
    "a later line that is almost the next one": (
        at("    mid¦\n    if items[mid] < value:"),
        " = 1\n    if items[mid] == value:\n        return mid",
        " = 1",
    ),
    "a later line that is another one": (
        at("    mid¦\n    if items[mid] < value:"),
        " = 1\n    value = items[mid]",
        " = 1\n    value = items[mid]",
    ),
    "a line that only looks like it": (at("    ¦\n    A = 1"), "B = 1", "B = 1"),
    "brackets below say nothing": (at("f(¦\n}"), "{\n  a\n}", "{\n  a\n}"),
    "the next bracket and what is behind it": (
        at("if (x) {\n  ¦\n}\nint g();", "a.c"),
        "y();\n}\nint g();\n",
        "y();",
    ),
    "a deeper bracket and what is behind it": (
        at("  if (x) {\n¦\n  }\ng();", "a.c"),
        "a();\n  }\n\ng();\n",
        "a();",
    ),
    "a bracket at the left margin and what is behind it": (
        at("{\n¦\n}\ng();", "a.c"),
        "a();\n}\ng();\n",
        "a();",
    ),
    "the bracket of the cursor's line and what is behind it": (
        at("f(\n    a\n¦\n)\nx = 1"),
        ")\nx = 1\n",
        "",
    ),
    # out_of_scope
    "out of the indented scope": (at("    x = ¦"), "1\n    y = 2\nz = 3", "1\n    y = 2"),
    "end of a block begun here": (
        at("def f(x):¦"),
        "\n    return x\n\ndef g():\n    pass",
        "\n    return x",
    ),
    "else belongs to the block": (
        at("if x:¦"),
        "\n    a()\nelse:\n    b()",
        "\n    a()\nelse:\n    b()",
    ),
    "} else { as well": (
        at("if (x) {¦", "a.c"),
        "\n  a();\n} else {\n  b();\n}\nc();",
        "\n  a();\n} else {\n  b();\n}",
    ),
    "a closing brace belongs to it": (
        at("int f() {¦", "a.c"),
        "\n  return 1;\n}\nint g() {",
        "\n  return 1;\n}",
    ),
    "blank line at the cursor": (
        at("    ¦"),
        "a\n    if b:\n        c\n    d\ne",
        "a\n    if b:\n        c\n    d",
    ),
    "one line closes the block around": (
        at("int f() {\n  ¦\n\nint g();", "a.c"),
        "return 1;\n}\n\nint h() {",
        "return 1;\n}",
    ),
    "not where it is closed below": (
        at("int f() {\n  ¦\n}\nint g();", "a.c"),
        "return 1;\n}\n",
        "return 1;",
    ),
    "nor where a deeper line follows": (
        at("int f() {\n  ¦\n  y();\n}", "a.c"),
        "x();\n}\n",
        "x();",
    ),
    # third_time, block_again, line_in_circles, second_blank, line_above_again
    "same line three times": (at("¦"), "a()\na()\na()\na()", "a()\na()"),
    "same line three times below another": (at("¦"), "b()\na()\na()\na()", "b()\na()\na()"),
    "same two letters three times": (at("¦"), "ab\nab\nab", "ab\nab"),
    "a letter may come three times": (at("¦"), "a\na\na", "a\na\na"),
    "the lines above count": (at("a()\na()\n¦"), "a()\nb()", ""),
    "but not for a line begun by hand": (at("a()\na()\na¦"), "()\nb()", "()\nb()"),
    "not in a row is no repetition": (
        at("¦", "a.c"),
        "A:\n  break;\nB:\n  break;\nC:\n  break;",
        "A:\n  break;\nB:\n  break;\nC:\n  break;",
    ),
    "the same block again": (at("¦"), "a()\nb()\n\na()\nb()\n\nc()", "a()\nb()"),
    "a block that only begins alike": (at("¦"), "a()\nb()\na()\nc()", "a()\nb()\na()\nc()"),
    "a later line in circles": (at("¦"), "x = 1\ny = " + "foo " * 9, "x = 1"),
    "rules and zeros are no circles": (at("# ¦"), "-" * 40, "-" * 40),
    "two blank lines": (at("¦"), "a\n\n\nb", "a"),
    "the long line above": (at(LONG + "    ¦"), LONG.strip(), ""),
    "a short line above may come again": (at("    x += 1\n    ¦"), "x += 1", "x += 1"),
    "nor what was begun by hand": (at(LONG + "    re¦"), LONG.strip()[2:], LONG.strip()[2:]),
    # marker
    "an explanation is no code": (at("    ¦"), "```\n\nThis code", ""),
    "code, then an explanation": (at("¦"), "a = 1\n```\nThis", "a = 1"),
    "the end of the file": (at("¦"), "a = 1\n# End of file.\n", "a = 1"),
    "a fence that was typed": (at("```¦", "a.txt"), "python\nx", "python\nx"),
    # spare_closer
    "a bracket that nobody opened": (at("x = ¦"), "1)", "1"),
    "a bracket that the line wants": (at("print(f(¦"), "1))", "1))"),
    "one more than it wants": (at("print(f(¦"), "1)))", "1))"),
    "one that is closed below": (at("print(¦\n)"), "\n    1)", "\n    1"),
    "an outer one is closed below": (at("x = {\n  'a': f(¦\n}"), "1),", "1),"),
    "in a string it is text": (at('print("¦'), ':)")', ':)")'),
    "behind an apostrophe in a word": (at("f(x) # don't\ny = g(¦"), "1)", "1)"),
    "behind a lifetime": (at("fn f<'a>(x: &'a str¦", "a.rs"), ") -> &'a str {", ") -> &'a str {"),
    "one that makes room for another": (
        at("API(Object¦\n    int x);", "a.h"),
        " *) make(\n",
        " *) make(",
    ),
    "a shell's case has lone ones": (at("case $x in\n  ¦", "a.sh"), "a) b;;", "a) b;;"),
    # drop_closed_below
    "what closes the next line's block": (
        at("int f() {¦\n}", "a.c"),
        "\n  return 1;\n}",
        "\n  return 1;",
    ),
    "an end below": (
        at("function f()¦\nend", "a.lua"),
        "\n  return 1\nend",
        "\n  return 1",
    ),
    "an own end": (
        at("function f()\n  ¦\nend", "a.lua"),
        "if x then\n    y()\n  end",
        "if x then\n    y()\n  end",
    ),
    "a lone bracket that is below": (at("f(\n    a\n¦\n)"), ")", ""),
    # cut_or_replace: text right of the cursor
    "repeats the rest": (at("print(¦)"), "'hi')", "'hi'"),
    "own bracket stays": (at("print(¦)"), "f(1)", "f(1)"),
    "repeats a longer rest": (at("x = ¦ + 1;"), "y + 1;", "y"),
    "repeats the beginning of the rest": (at("print(¦):", single_line=True), "x)", "x"),
    "repeats a bracket of the rest": (at("print(¦):", single_line=True), "x), y", "x"),
    "letters that begin the rest": (at("f(¦x) + 1"), "g(x)", "g(x)"),
    "repeats the operator": (at("x = ¦- 1", single_line=True), "y -", "y"),
    "brackets that agree are put before": (at("f(¦)", single_line=True), "a) + (b", "a) + (b"),
    "quotes that agree are put before": (
        at("x = ['¦'", single_line=True),
        "a', 'b",
        "a', 'b",
    ),
    "more than one line repeats it": (at("f(¦)"), "\n    a,\n)", "\n    a,"),
    # without_seam
    "a second blank": (at("x = ¦"), " 1", "1"),
    "blanks that align": (at("x   ¦", "a.h"), "   1", "   1"),
    "the only blank": (at("x =¦"), " 1", " 1"),
    "an odd depth": (at("    ¦"), " return", "return"),
    "a deeper line": (at("    ¦"), "    return", "    return"),
    # without_echo
    "what was just typed": (at("while i <= ¦", "a.lua"), "i <= #list do", "#list do"),
    "what was just typed, and a blank": (at("while i <=¦", "a.lua"), " i <= #list do", " #list do"),
    "in braces": (at("  {{.UseLine}}{{end}}¦", "a.txt"), "{{end}}{{if .A}}", "{{if .A}}"),
    "twice": (at("f(a, b), f(a, b), ¦"), "f(a, b), f(a, b), c", "c"),
    "a name is no echo": (at("x = total ¦", "a.txt"), "total", "total"),
    "the end of a name is no echo": (at("first = a.first = ¦"), "st = 1", "st = 1"),
    "too short for an echo": (at("x[1][2¦"), "][2] = 3", "][2] = 3"),
    # indented
    "spaces in a file of tabs": (
        at("func f() {\n\tx()\n\tif y {¦", "a.go"),
        "\n        z()\n    }",
        "\n\t\tz()\n\t}",
    ),
    "tabs in a file of spaces": (
        at("int f() {\n  x();\n  if (y) {¦", "a.c"),
        "\n\t\tz();\n\t}",
        "\n    z();\n  }",
    ),
    # without_comments
    "a comment behind code": (at("x = ¦"), "1  # the first", "1"),
    "behind typed code": (at("x = 1¦"), "  # the first\ny = 2", "\ny = 2"),
    "in each line": (at("¦"), "a = 1  # a\nb = 2  # b", "a = 1\nb = 2"),
    "a line of its own": (at("¦"), "# why\nx = 1", "# why\nx = 1"),
    "a line of its own behind typed code": (at("x = 1¦"), "\n# why\ny = 2", "\n# why\ny = 2"),
    "begun before the cursor": (at("x = 1  # the ¦"), "first # one", "first # one"),
    "in a string": (at("color = ¦"), '"#fff"  # white', '"#fff"'),
    "in a string that is open": (at("x = '¦"), "a # b'", "a # b'"),
    "in a docstring": (at('def f():\n    """Use ¦'), "x # y", "x # y"),
    "an address": (at("x = ¦", "a.js"), "'http://a.b/' + c; // d", "'http://a.b/' + c;"),
    "a division": (at("x = ¦", "a.js"), "a / b", "a / b"),
    "of Lua": (at("local x = ¦", "a.lua"), "1 -- one", "1"),
    "of Lua within a line": (at("f(¦", "a.lua"), "a --[[b]], c)", "a --[[b]], c)"),
    "minus minus": (at("x = ¦", "a.c"), "y--;", "y--;"),
    "a number sign without a blank": (at("n=¦", "a.sh"), "$#", "$#"),
    "a file with the habit": (at(HABIT + "d = ¦"), "4  # four", "4  # four"),
    "a file without it": (at("a = 1  # one\n" + "b = 2\n" * 5 + "d = ¦"), "4  # four", "4"),
    "nobody knows the language": (at("x = ¦", "a.foo"), "1  # one", "1  # one"),
}

REPLACED: dict[str, tuple[str, str, int]] = {
    # before¦after, what the model says, bytes replaced
    "a bracket": ("def f(¦)", "a, b) -> int:", 1),
    "behind an own one": ("print(¦)", "f(1), 2) + 3", 1),
    "a quote and a bracket": ('print("¦")', 'é") if x else None', 2),
    "a quote": ("x = '¦'", "a' + b", 1),
    "letters": ("x = ¦foo(y)", "bar(foo(y))", 6),
    "nothing before it": ("def f(¦)", ") -> int:", 1),
    "three quotes": ("x = '¦'", "a' + 'b' + c", 1),
    "two-byte letters": ("x = ¦été", "f(été)", 5),
}


@pytest.mark.parametrize(("cursor", "text", "wanted"), CASES.values(), ids=CASES.keys())
def test_the_text_that_is_kept_and_that_nothing_shown_is_withdrawn(
    cursor: CursorContext, text: str, wanted: str
) -> None:
    assert finish(text, cursor) == (wanted, 0)
    for end in range(len(text) + 1):
        part = text[:end]
        if ended(part, cursor):
            break
        assert wanted.startswith(shown(part, cursor)), part


@pytest.mark.parametrize(("code", "text", "size"), REPLACED.values(), ids=REPLACED.keys())
def test_text_that_says_the_rest_and_more_replaces_it(code: str, text: str, size: int) -> None:
    cursor = at(code, single_line=True)
    assert finish(text, cursor) == (text, size)
    before = text[: text.rindex(cursor.rest)]
    suggestion = Suggestion(cursor)
    for end in range(1, len(text) + 1):
        suggestion.grow(text[:end])
        assert before.startswith(suggestion.text)
    assert suggestion.replace_bytes == 0
    assert suggestion.finish(text) == text
    assert suggestion.replace_bytes == size


@pytest.mark.parametrize("code", ["f(¦) ", "f(¦ )"])
def test_blanks_around_the_rest_make_it_an_insertion(code: str) -> None:
    """The screen shows the rest as it is, so a text without its blanks is another one."""
    assert finish("a) -> int:", at(code, single_line=True)) == ("a", 0)


def test_a_text_of_many_lines_replaces_nothing() -> None:
    assert finish("a, b) -> int:\n    pass", at("def f(¦)")) == ("a, b) -> int:\n    pass", 0)


@pytest.mark.parametrize(
    ("code", "name", "text", "longer"),
    [
        ("    ¦\n    return x", "a.py", "return", "return f()"),
        (LONG + "    ¦", "a.py", "result = compute_everything", "result = compare()"),
        ("a()\na()\n¦", "a.py", "a(", "ab(a, b)"),
        ("a\na\n¦", "a.c", "``", "``x, y()"),
    ],
)
def test_a_text_that_may_be_removed_is_not_shown_yet(
    code: str, name: str, text: str, longer: str
) -> None:
    cursor = at(code, name)
    assert shown(text, cursor) == ""
    assert shown(longer, cursor) == longer


def test_a_line_that_repeats_itself_ends() -> None:
    assert ended("foo " * 9, at("x = ¦"))
    assert not ended("foo(a), foo(b), foo(c)", at("x = ¦"))
    for unit, count in (("foo", 6), ("foo bar b", 6), ("foo bar ba", 4)):
        assert not ended(unit * (count - 1), at("x = ¦"))
        assert ended(unit * count, at("x = ¦"))


def test_a_closing_bracket_too_many_ends_a_complete_line() -> None:
    cursor = at("x = ¦")
    assert not ended("1)", cursor)
    assert not ended("1) + (2", cursor)
    assert ended("1)\n", cursor)


def test_a_comment_ends_a_single_line() -> None:
    assert ended("1  # a", at("x = ¦", single_line=True))
    assert not ended("1  # a", at("x = ¦"))


def test_the_lines_around_the_cursor_are_read() -> None:
    cursor = cursor_context("w\n\na\n  b", "c\n\n  d\ne\nf", single_line=True, max_lines=3)
    assert (cursor.line, cursor.rest) == ("  b", "c")
    assert (cursor.above, cursor.below, cursor.next_line) == (("w", "a"), ("  d", "e"), "  d")
    assert (cursor.single_line, cursor.max_lines, cursor.comment) == (True, 3, "")


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("f(g(¦", "))"),
        ("f(g(¦\n)", ")"),
        ("if x {\n  f(¦\n}", ")"),
        ("{ f([¦\n])}", ""),
        ("f('(¦", ")"),
        ("# (\nf()¦", ""),
    ],
)
def test_brackets_that_are_open_and_not_closed_below(code: str, wanted: str) -> None:
    assert at(code).wanted == wanted


@pytest.mark.parametrize(
    ("lines", "indent"),
    [("\ta\n", "\t"), ("  a\n    b\n", "  "), ("\ta\n  b\n", ""), ("a\n b\n", "")],
)
def test_indentation_of_a_file(lines: str, indent: str) -> None:
    assert at(lines + "¦").indent == indent


code = st.text(alphabet="ab(){}=\n  `é#/'\"\t", max_size=60)
lines = st.text(alphabet='ab()  #"', max_size=8)
names = st.sampled_from(["a.py", "a.c", "a.lua", ""])


@given(code, lines, lines, lines, lines, st.booleans(), names, st.integers(0, 5))
def test_a_suggestion_only_grows(
    text: str,
    above: str,
    line: str,
    rest: str,
    below: str,
    single_line: bool,
    name: str,
    unsure: int,
) -> None:
    cursor = cursor_context(f"{above}\n{line}", f"{rest}\n{below}", single_line, 12, name)
    suggestion = Suggestion(cursor)
    seen = [""]
    for end in range(1, len(text) + 1):
        sure = max(end - unsure, 0)
        if suggestion.grow(text[:sure], text[sure:end]):
            seen.append(suggestion.text)
        if ended(text[:end], cursor):
            text = text[:end]
            break
    final, replace_bytes = finish(text, cursor)
    seen.append(suggestion.finish(text))
    for earlier, later in pairwise(seen):
        assert later.startswith(earlier)
    assert seen[-1] == final  # no rule came too late
    assert suggestion.replace_bytes == replace_bytes
    assert replace_bytes in {0, len(rest.encode())}
    if replace_bytes:
        assert rest in final
    if single_line:
        assert "\n" not in seen[-1]


@pytest.mark.parametrize(
    ("name", "before", "after", "begins"),
    [
        ("a.py", "def f():", "", True),
        ("a.py", "def f():\n    ", "\n\nx = 1", True),
        ("a.py", "def f():\n    ", "\n    return 1", False),  # the block has a line
        ("a.py", "def f():\n", "\nx = 1", False),  # outside
        ("a.py", "x = 1\n", "", False),
        ("a.py", "def f():", " # why", False),
        ("a.go", "func f() {\n\t", "\n}\n", True),
        ("a.lua", "local function f(a)\n  ", "\nend", True),
        ("a.lua", "if a then", "\nend", True),
        ("a.md", "Note:", "", False),
    ],
)
def test_whether_an_empty_block_begins_at_the_cursor(
    name: str, before: str, after: str, begins: bool
) -> None:
    assert cursor_context(before, after, False, 12, name).begins_block == begins
