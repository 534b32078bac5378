"""The calls of a function whose parameters changed: forms of calls, other files, and servers."""

from __future__ import annotations

from typing import cast

import pytest

from lcursor.host.next_edits import references
from lcursor.next_edit import predict
from lcursor.next_edit.callers import References
from lcursor.next_edit.records import Edit, Proposal
from lcursor.protocol.next_edit import NextEditReferences


def proposed(
    files: dict[str, str], row: int, new: str, known: list[References] | None = None
) -> list[Proposal]:
    """Return what is proposed after a changed line of the first file."""
    path = next(iter(files))
    texts = {name: text.split("\n") for name, text in files.items()}
    edit = Edit(path, row, (texts[path][row],), tuple(new.split("\n")))
    texts[path][row : row + 1] = edit.new
    lines = {name: tuple(own) for name, own in texts.items()}
    return predict.predict(lines, [edit], known or [])


def where(found: list[Proposal]) -> list[tuple[str, int, int]]:
    """Return files, rows and columns of proposals."""
    return sorted((one.path, one.row, one.column) for one in found)


FORMS = {
    "a constructor": (
        {
            "a.py": "class Field:\n    def __init__(self, name):\n        name()\nA = Field(1)",
            "b.py": "from a import Field\nprint(Field(2))",
            "c.py": "print(Field(3))",
        },
        (1, "    def __init__(self, name, strict):"),
        [("a.py", 3, 11), ("b.py", 1, 13)],
    ),
    "a constructor of TypeScript": (
        {"a.ts": "class A {\n  constructor(a: number) {}\n}\nconst c = new A(1);"},
        (1, "  constructor(a: number, b: number) {}"),
        [("a.ts", 3, 17)],
    ),
    "a module in the root of the project": (
        {
            "index.ts": "export function area(wide) {}",
            "b.ts": "import {area} from './index.js';\narea(1);",
        },
        (0, "export function area(wide, high) {}"),
        [("b.ts", 1, 6)],
    ),
    "an arrow function": (
        {
            "is.ts": "export const isA = (x: unknown): boolean => !!x;\nisA(1);",
            "b.ts": "import {isA} from './is.js';\nif (isA(2)) {}",
            "c.ts": "import {isA} from './other.js';\nif (isA(3)) {}",
        },
        (0, "export const isA = (x: unknown, strict: boolean): boolean => !!x;"),
        [("b.ts", 1, 9), ("is.ts", 1, 5)],
    ),
    "a private method": (
        {"a.ts": "class A {\n  #b(x: number) {}\n  c() {\n    this.#b(1);\n  }\n}"},
        (1, "  #b(x: number, y: number) {}"),
        [("a.ts", 3, 13)],
    ),
    "calls in macros": (
        {
            "a.rs": "fn is_a(x: &str) -> bool { true }\n"
            'fn b() { assert!(!is_a(P::new("b", 1))); }\n'
            "fn c() { assert!(x.is_a(1)); assert!(m::is_a(1)); assert!(is_a(a < b, c > d)); }"
        },
        (0, "fn is_a(x: &str, y: u8) -> bool { true }"),
        [("a.rs", 1, 37)],
    ),
    "a function of a module": (
        {
            "src/path.rs": "pub fn is_a(x: &str) -> bool { true }",
            "src/b.rs": "use crate::path;\nfn b() { path::is_a(1); assert!(path::is_a(2)); }",
            "src/c.rs": "use crate::path::{self, is_a};\nfn c() { is_a(3); }",
            "src/d.rs": "fn is_a(x: u8) {}\nfn d() { is_a(4); other::is_a(5); }",
        },
        (0, "pub fn is_a(x: &str, y: u8) -> bool { true }"),
        [("src/b.rs", 1, 21), ("src/c.rs", 1, 15)],
    ),
    "a function of a type": (
        {
            "a.rs": "impl A {\n    fn new(x: u8) -> Self { A }\n    fn b() { Self::new(1); }\n}\n"
            "fn c() { A::new(2); B::new(3); }"
        },
        (1, "    fn new(x: u8, y: u8) -> Self { A }"),
        [("a.rs", 2, 24), ("a.rs", 4, 17)],
    ),
    "a function of a package": (
        {
            "p/a.go": "package p\nfunc has(a string) bool { return true }",
            "p/b.go": 'package p\nvar b = has("b")',
            "q/c.go": 'package q\nvar c = has("c")',
        },
        (1, "func has(a string, fold bool) bool { return true }"),
        [("p/b.go", 1, 15)],
    ),
    "a method of Python is not followed to other files": (
        {
            "a.py": "class A:\n    def get(self, x): pass\n    def b(self): self.get(1)",
            "b.py": "from a import A\nA().get(2)\n{}.get(3)",
        },
        (1, "    def get(self, x, y): pass"),
        [("a.py", 2, 27)],
    ),
    "two new parameters": (
        {"a.py": "def f(a): pass\nf(1)\nf(2, 3)\nf(\n    1,\n)"},
        (0, "def f(a, b, c): pass"),
        [("a.py", 1, 3), ("a.py", 4, 6)],
    ),
    "one of two needs an argument": (
        {"a.py": "def f(a): pass\nf(1)"},
        (0, "def f(a, b, c=3): pass"),
        [("a.py", 1, 3)],
    ),
    "one is removed and another added": (
        {"a.py": "def f(a, b): pass\nf(1, 2)"},
        (0, "def f(a, c, d): pass"),
        [],
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_calls_of_a_function_with_a_new_parameter(name: str) -> None:
    files, (row, new), wanted = FORMS[name]
    found = proposed(files, row, new)
    assert where(found) == wanted
    others = {one.cause.rpartition(" of ")[2] for one in found if one.path != next(iter(files))}
    assert others <= {next(iter(files)).rpartition("/")[2]}


def test_a_removed_parameter_takes_the_arguments_of_other_files_with_it() -> None:
    files = {"a.py": "def f(a, b):\n    pass", "b.py": "import a\na.f(1, 2)\na.f(1, b=2)"}
    found = proposed(files, 0, "def f(a):")
    assert [(one.path, one.new) for one in found] == [("b.py", ("a.f(1)",)), ("b.py", ("a.f(1)",))]


def test_the_nearest_calls_of_many_are_proposed() -> None:
    calls = "\n".join("f(1)" for _ in range(80))
    found = proposed({"a.py": f"{calls}\ndef f(a): pass\n{calls}"}, 80, "def f(a, b): pass")
    assert {one.row for one in found} == {*range(55, 80), *range(81, 106)}


@pytest.mark.parametrize("value", ["True", "strict_mode"])
def test_an_argument_with_a_name_is_not_written_in_another_file(value: str) -> None:
    texts = {"a.py": "def f(a, b):\n    pass\nf(1)", "b.py": "from a import f\nf(2)"}
    edits = [Edit("a.py", 0, ("def f(a):",), ("def f(a, b):",))]
    edits.append(Edit("a.py", 2, ("f(1)",), (f"f(1, {value})",)))
    lines = {name: tuple(text.split("\n")) for name, text in texts.items()}
    lines["a.py"] = (*lines["a.py"][:2], f"f(1, {value})")
    found = predict.predict(lines, edits)
    assert [(one.path, one.new[0]) for one in found] == [
        ("b.py", "f(2, True)" if value == "True" else "b")
    ]


def test_two_arguments_follow_those_of_a_call() -> None:
    lines = ("def f(a, b, c):", "    pass", "f(1, 2, c=3)", "f(", "    4,", ")", "f(5)")
    edits = [
        Edit("a.py", 0, ("def f(a):",), ("def f(a, b, c):",)),
        Edit("a.py", 2, ("f(1)",), ("f(1, 2, c=3)",)),
    ]
    found = predict.predict({"a.py": lines}, edits)
    assert sorted((one.row, one.old, one.new) for one in found) == [
        (5, (), ("    b=2, c=3,",)),
        (6, ("f(5)",), ("f(5, b=2, c=3)",)),
    ]


METHODS = {
    "a.py": "class A:\n    def get(self, x): pass\n    def b(self): self.get(1)",
    "b.py": "from a import A\nA().get(2)\n{}.get(3)\né = '😀'; A().get(4)",
}
GET = (1, "    def get(self, x, y): pass")


def test_a_language_server_decides_which_calls_are_meant() -> None:
    known = References("a.py", "get", frozenset({("b.py", 1, 4), ("b.py", 3, 17)}))
    assert where(proposed(METHODS, *GET, [known])) == [("b.py", 1, 9), ("b.py", 3, 22)]
    other = References("a.py", "set", frozenset({("b.py", 1, 4)}))
    assert where(proposed(METHODS, *GET, [other])) == [("a.py", 2, 27)]
    nothing = References("a.py", "get", frozenset())
    assert where(proposed(METHODS, *GET, [nothing])) == [("a.py", 2, 27)]


def test_a_language_server_separates_functions_with_one_name() -> None:
    text = "if x:\n    def f(a): pass\nelse:\n    def f(a): return 1\nf(2)"
    assert proposed({"a.py": text}, 1, "    def f(a, b): pass") == []
    known = References("a.py", "f", frozenset({("a.py", 4, 0)}))
    assert where(proposed({"a.py": text}, 1, "    def f(a, b): pass", [known])) == [("a.py", 4, 3)]


@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 17), ("utf-16", 14), ("utf-32", 13)])
def test_positions_of_a_server_are_moved_by_later_edits(encoding: str, character: int) -> None:
    lines = ("import c", *METHODS["b.py"].split("\n"))
    before = Edit("b.py", 0, ("import b", "import c"), ("import c",))
    after = Edit("b.py", 0, (), ("import c",))
    found = [
        {"path": "b.py", "row": 3, "character": character},
        {"path": "gone.py", "row": 3, "character": 1},
    ]
    one = {"path": "a.py", "name": "get", "encoding": encoding, "edits": 1, "found": found}
    known = references(cast(NextEditReferences, one), {"b.py": lines}, [before, after])
    assert known == References("a.py", "get", frozenset({("b.py", 4, 17)}))


def test_two_calls_in_a_row_are_changed_together() -> None:
    files = {"a.py": "def put(a, b): pass\nput(1, 2); x = [put(3, 4), put(put(5, 6), 7)]\n"}
    [found] = proposed(files, 0, "def put(a): pass")
    assert found.new == ("put(1); x = [put(3), put(put(5))]",)


def test_a_method_of_another_class_that_is_wrapped_keeps_its_name() -> None:
    files = {
        "a.py": "class Cookies:\n    def extract_cookies(self, response):\n"
        "        self.jar.extract_cookies(response)\n        self.extract_cookies(1)\n",
        "b.py": "def send(client):\n    client.cookies.extract_cookies(1)\n",
    }
    texts = {name: tuple(text.split("\n")) for name, text in files.items()}
    new = "    def take_cookies(self, response):"
    edit = Edit("a.py", 1, (texts["a.py"][1],), (new,))
    lines = texts["a.py"]
    now = texts | {"a.py": (lines[0], new, *lines[2:])}
    found = predict.predict(now, [edit], [])
    assert sorted((one.path, one.row) for one in found) == [("a.py", 3), ("b.py", 1)]


def test_a_parameter_of_a_function_without_an_end_is_not_visible_in_the_next_one() -> None:
    old = ("local function put(a)", "  show(a)", "end", "local function all()", "  put(1)", "end")
    head, broken = "local function put(a, b)", "  show(a, {"
    edits = [Edit("a.lua", 0, old[:1], (head,)), Edit("a.lua", 1, old[1:2], (broken,))]
    assert predict.predict({"a.lua": (head, broken, *old[2:])}, edits, []) == []


def test_after_one_of_two_calls_in_a_row_the_other_one_is_proposed() -> None:
    old = ("def put(a): pass", "x = [put(1), put(2)]")
    head, row = "def put(a, b): pass", "x = [put(1, 5), put(2)]"
    edits = [Edit("a.py", 0, old[:1], (head,)), Edit("a.py", 1, old[1:], (row,))]
    [found] = predict.predict({"a.py": (head, row)}, edits, [])
    assert found.new == ("x = [put(1, 5), put(2, 5)]",)
