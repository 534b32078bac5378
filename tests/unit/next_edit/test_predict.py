"""Proposals after edits. The traps of `eval next` are run in tests/unit/evals."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from lcursor.code import grammars
from lcursor.next_edit import history, predict, tokens, trees
from lcursor.next_edit.records import Edit, Lines, Proposal


def lines_of(text: str) -> list[str]:
    return text.strip("\n").split("\n")


def edited(path: str, text: str, *edits: tuple[int, str]) -> tuple[Lines, list[Edit]]:
    """Return the text after edits of single lines, and the edits."""
    lines, made = lines_of(text), []
    for row, new in edits:
        made.append(Edit(path, row, (lines[row],), (new,)))
        lines[row] = new
    return tuple(lines), made


def proposed(path: str, text: str, *edits: tuple[int, str]) -> list[tuple[int, str]]:
    """Return the rows and new lines that are proposed, by row."""
    lines, made = edited(path, text, *edits)
    found = predict.predict({path: lines}, made)
    return sorted((one.row, "\n".join(one.new)) for one in found)


CASES = {
    "a parameter, its keyword and its documentation": (
        "a.py",
        """
def send(timeout):
    '''Send it.

    Args:
        timeout: the timeout in seconds.
    '''
    wait(timeout)
send(timeout=3)
""",
        [(0, "def send(limit):")],
        [
            (4, "        limit: the timeout in seconds."),
            (6, "    wait(limit)"),
            (7, "send(limit=3)"),
        ],
    ),
    "a documented parameter": (
        "a.lua",
        """
--- @param size integer the size
local function f(size)
  return size
end
""",
        [(1, "local function f(length)")],
        [(0, "--- @param length integer the size"), (2, "  return length")],
    ),
    "a method": (
        "a.js",
        """
class A {
  close(now) { this.done = now }
  stop() { this.close(1); other.close(1) }
}
""",
        [(1, "  shut(now) { this.done = now }")],
        [(2, "  stop() { this.shut(1); other.close(1) }")],
    ),
    "a function of a module": (
        "a.lua",
        """
local M = {}
function M.run() end
function M.all() M.run() other.run() end
return M
""",
        [(1, "function M.start() end")],
        [(2, "function M.all() M.start() other.run() end")],
    ),
    "a variable that two uses have left": (
        "a.py",
        """
def f(left, right):
    a(left)
    b(left)
    c(left)
""",
        [(1, "    a(first)"), (2, "    b(first)")],
        [(3, "    c(first)")],
    ),
    "a member with a name of several words, of any object": (
        "a.py",
        """
class A:
    def __init__(self):
        self.is_open = True
        self.other.is_open = True
def f(a, is_open):
    return a.is_open
""",
        [(2, "        self.is_ready = True")],
        [(3, "        self.other.is_ready = True"), (5, "    return a.is_ready")],
    ),
    "a member of which one use was changed": (
        "a.go",
        """
package p
type A struct {
	isOpen bool
}
func f(a A) bool {
	return a.isOpen
}
var b = A{isOpen: true}
""",
        [(5, "	return a.isReady")],
        [(2, "	isReady bool"), (7, "var b = A{isReady: true}")],
    ),
    "two names on one line": (
        "a.py",
        """
def f(a, b):
    return a, b
""",
        [(0, "def f(x, y):")],
        [(1, "    return x, y")],
    ),
    "a variable with another value": (
        "a.py",
        """
def f(path):
    data = read(path)
    return data
""",
        [(1, "    text = read(path, 'utf-8')")],
        [],
    ),
    "a name that is written again": (
        "a.py",
        """
def f(path):
    data = read(path)

    return data
""",
        [(1, "    text = read(path)"), (2, "    data = text.strip()")],
        [],
    ),
    "the same change further on": (
        "a.py",
        """
log("a", x)
log("b", y)
other()
log("c", g(z))
log(1)
""",
        [(0, 'info("a", x, 1)'), (1, 'info("b", y, 1)')],
        [(3, 'info("c", g(z), 1)')],
    ),
    "the same change, but one was skipped": (
        "a.py",
        """
total = a.first
total = b.first
total = c.first

use(a.first)




total = d.first
""",
        [(0, "total = a.last"), (2, "total = c.last")],
        [],
    ),
    "a value as another argument of neighbouring calls": (
        "a.py",
        "paint(a, 1)\npaint(b, 2)\npaint(c, 3)",
        [(0, "paint(a, 1, 'red')")],
        [(1, "paint(b, 2, 'red')"), (2, "paint(c, 3, 'red')")],
    ),
    "the same line again, a little further": (
        "a.py",
        "\n".join(["run(a, 1)", "x", "run(a, 1)", *"x" * 9, "run(a, 1)", "run(b, 1)"]),
        [(0, "run(a.b, 1, 2)"), (2, "run(a.b, 1, 2)")],
        [(12, "run(a.b, 1, 2)")],
    ),
    "the same line again, far away, after three": (
        "a.py",
        "\n".join(["run(a, 1)", "run(a, 1)", "run(a, 1)", *"x" * 40, "run(a, 1)", "run(b, 1)"]),
        [(0, "run(a.b, 1, 2)"), (1, "run(a.b, 1, 2)"), (2, "run(a.b, 1, 2)")],
        [(43, "run(a.b, 1, 2)")],
    ),
    "a sign and a type on three consecutive lines": (
        "a.py",
        "\n".join([*(f"A{at} = {at}, 'a'" for at in range(4)), "", *("B = 1, 'b'",) * 40]),
        [(at, f"A{at}: int = {at}, 'a'") for at in range(3)],
        [(3, "A3: int = 3, 'a'"), *((at, "B: int = 1, 'b'") for at in range(5, 34))],
    ),
    "parentheses around three values": (
        "a.py",
        "a = 1, 'a'\nb = 2, 'b'\nc = 3, 'c'\nd = 4, 'd'\nend(1, 2)\ne.f = 5, 'e'",
        [(0, "a = (1, 'a')"), (1, "b = (2, 'b')"), (2, "c = (3, 'c')")],
        [(3, "d = (4, 'd')")],
    ),
    "a type on two lines only": (
        "a.py",
        "a = 1\nb = 2\nc = 3\nd = 4",
        [(0, "a: int = 1"), (1, "b: int = 2")],
        [],
    ),
    "a name that is replaced every ten lines": (
        "a.go",
        "\n".join("\tx()" if at % 10 else f'\tfmt.Errorf("{at}", x)' for at in range(70)),
        [(20, '\terrors.Errorf("20", x)'), (30, '\terrors.Errorf("30", x)')],
        [(40, '\terrors.Errorf("40", x)')],
    ),
    "changes with nothing in common": (
        "a.py",
        """
log("a", x)
log("b", y)
log("c", z)
""",
        [(0, 'info("a", 1)'), (1, "print(y)")],
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_proposals(name: str) -> None:
    path, text, edits, wanted = CASES[name]
    assert proposed(path, text, *edits) == wanted


def test_a_repeated_change_keeps_the_white_space_around_it() -> None:
    text = "draw(red)\nfill(1, red)\ndraw(2, red)\n"
    found = proposed("a.js", text, (0, "draw(blue(1))"), (1, "fill(1, blue(1))"))
    assert found == [(2, "draw(2, blue(1))")]


def test_accepted_renames_do_not_go_on_in_another_scope() -> None:
    rows = ["def f(size):", "    a(size)", "    b(size)", "", "", "def g(size):", "    a(size)"]
    made: list[Edit] = []
    for row in range(3):
        new = rows[row].replace("size", "length")
        made.append(Edit("a.py", row, (rows[row],), (new,), is_accepted=row > 0))
        rows[row] = new
    assert predict.predict({"a.py": tuple(rows)}, made) == []


ELSEWHERE = {
    "python": (
        "pkg/a.py",
        "def load(path): pass",
        "b.py",
        "from pkg.a import load\nload(1)\nx.load(1)",
    ),
    "module": ("pkg/a.py", "def load(path): pass", "b.py", "from pkg import a\na.load(1)\nload(1)"),
    "go": ("p/a.go", "package p\nfunc load(i int) {}", "p/b.go", "package p\nfunc g() { load(1) }"),
    "lua": (
        "lua/m/a.lua",
        "local M = {}\nfunction M.load() end",
        "lua/b.lua",
        'local a = require("m.a")\na.load()\nb.load()',
    ),
    "javascript": (
        "src/a.js",
        "export function load(path) {}",
        "b.js",
        "import { load } from './src/a.js';\nload(1);",
    ),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_uses_in_other_files(name: str) -> None:
    path, text, other, uses = ELSEWHERE[name]
    rows = text.split("\n")
    lines, edits = edited(path, text, (len(rows) - 1, rows[-1].replace("load", "fetch")))
    found = predict.predict({path: lines, other: tuple(uses.split("\n"))}, edits)
    made = uses.split("\n")
    for one in found:
        assert one.path == other
        made[one.row] = one.new[0]
    wanted = {
        "python": "from pkg.a import fetch\nfetch(1)\nx.load(1)",
        "module": "from pkg import a\na.fetch(1)\nload(1)",
        "go": "package p\nfunc g() { fetch(1) }",
        "lua": 'local a = require("m.a")\na.fetch()\nb.load()',
        "javascript": "import { fetch } from './src/a.js';\nfetch(1);",
    }
    assert "\n".join(made) == wanted[name]


def test_a_proposal_says_why() -> None:
    lines, edits = edited("a.py", "def f(a):\n    return a", (0, "def f(b):"))
    (one,) = predict.predict({"a.py": lines}, edits)
    assert one == Proposal(
        "rename",
        "a.py",
        1,
        ("    return a",),
        ("    return b",),
        one.confidence,
        "`a` became `b` in line 1",
        "rename a.py a b",
    )
    assert (one.end_row, 0.5 < one.confidence < 1) == (2, True)


def test_accepted_proposals_lead_to_the_next_one() -> None:
    text = "def f(a):\n    x(a)\n    y(a)\n    z(a)"
    lines, edits = edited("a.py", text, (0, "def f(b):"))
    for row in (1, 2, 3):
        found = predict.predict({"a.py": lines}, edits)
        assert len(found) == 4 - row
        first = found[0]
        assert first.row == row
        edits.append(Edit("a.py", row, first.old, first.new, is_accepted=True))
        lines = lines[:row] + first.new + lines[row + 1 :]
    assert predict.predict({"a.py": lines}, edits) == []


ERRORS = [line for at in range(8) for line in (f"    return fmt.Errorf({at})", *["x()"] * 9)]
CODES = [f"A{at} = {at}, 'a'" if at not in {4, 7} else "" for at in range(12)]


@pytest.mark.parametrize(
    ("lines", "rows", "change", "wanted"),
    [
        (ERRORS, [40, 50], ("fmt.", "errors."), [60, 70]),
        (CODES, [0, 1, 2], (" =", ": int ="), [3, 5, 6, 8, 9, 10, 11]),
    ],
    ids=["name", "type"],
)
def test_accepted_repetitions_lead_to_the_next_line(
    lines: list[str], rows: list[int], change: tuple[str, str], wanted: list[int]
) -> None:
    lines = list(lines)
    edits: list[Edit] = []
    for row in (*rows, *wanted):
        new = lines[row].replace(*change)
        if row not in rows:
            first = predict.predict({"a.py": tuple(lines)}, edits)[:1]
            assert [(one.row, one.new) for one in first] == [(row, (new,))]
        edits.append(Edit("a.py", row, (lines[row],), (new,), is_accepted=row not in rows))
        lines[row] = new
    assert predict.predict({"a.py": tuple(lines)}, edits) == []
    assert "change a second" not in predict.why_nothing({"a.py": tuple(lines)}, edits)


def test_nothing_follows_from_an_edit_of_many_lines_or_from_none() -> None:
    old = tuple(f"x{number} = name" for number in range(30))
    new = tuple(line.replace("name", "title") for line in old)
    lines = ("name = 1", *new, "use(name)")
    assert predict.predict({"a.py": lines}, [Edit("a.py", 1, old, new)]) == []
    assert predict.predict({"a.py": lines}, []) == []


def test_edits_that_do_not_fit_the_text_are_left_alone() -> None:
    edit = Edit("a.py", 0, ("def f(a):",), ("def f(b):",))
    assert predict.predict({"a.py": ("other", "    return a")}, [edit]) == []
    assert predict.predict({"b.py": ("def f(b):",)}, [edit]) == []


def test_proposals_that_add_a_syntax_error_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ("x = 2", *(f"a{row} = [1]" for row in range(1, 8)))
    texts = ["a1 = [2]", "a2 = [2", "a3 = [3]", "a4 = [4]", "a5 = 5]", "a6 = [6]"]
    found = [
        Proposal("rename", "a.py", row, (lines[row],), (text,), 1 - row / 10, "", "")
        for row, text in enumerate(texts, 1)
    ]
    monkeypatch.setattr(predict, "PREDICTORS", (lambda _texts, _edits: found,))
    edit = Edit("a.py", 0, ("x = 1",), ("x = 2",))
    assert [one.row for one in predict.predict({"a.py": lines}, [edit])] == [1, 3, 4, 6]


@pytest.mark.parametrize("path", ["a.py", "a.rs"])
def test_a_text_parsed_from_the_tree_of_a_similar_one(path: str) -> None:
    language = {"a.py": "python", "a.rs": "rust"}[path]
    lines = tuple(f"f{row}(a, 'é{row}')" for row in range(30))
    for changed in (
        lines,
        lines[:-1],
        (*lines, "x"),
        ("x", *lines),
        (*lines[:9], "y", *lines[9:]),
        (*lines[:9], *lines[20:]),
        (*lines[:29], "g((ü"),
    ):
        found = trees.tree(language, changed)
        data = "\n".join(changed).encode()
        whole = grammars.parse(language, data)
        assert found is not None
        assert whole is not None
        nodes = [(node.type, node.range) for node in _walk(whole)]
        assert [(node.type, node.range) for node in _walk(found[0])] == nodes


def _walk(node: grammars.Node) -> Iterator[grammars.Node]:
    yield node
    for child in node.children:
        yield from _walk(child)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (["a = 1"], ["b = 1"], "replace"),
        (["f(a)"], ["f(a, b)"], "insert"),
        (["f(a, b)"], ["f(a)"], "delete"),
        ([], ["x"], "insert lines"),
        (["x"], [], "delete lines"),
        (["f(a,b)"], ["f(a, b)"], "format"),
    ],
)
def test_the_class_of_an_edit(old: list[str], new: list[str], wanted: str) -> None:
    assert tokens.classify(Edit("a", 0, tuple(old), tuple(new))) == wanted


def test_rows_and_texts_before_edits() -> None:
    lines = ("a", "X", "Y", "c", "d")
    edits = [Edit("p", 1, ("b",), ("X", "Y")), Edit("p", 4, ("e",), ("d",))]
    assert history.text_before(lines, edits) == ("a", "b", "c", "e")
    assert history.text_before(("other",), edits) is None
    assert [history.current_row(row, edits) for row in range(4)] == [0, None, 3, 4]
    assert [history.original_row(row, edits) for row in range(5)] == [0, None, None, 2, 3]
    undone = [edits[0], edits[1], Edit("p", 4, ("d",), ("e",))]
    assert history.without_undone(undone) == edits[:1]


def test_an_edit_of_a_very_long_line_is_no_cause_and_takes_no_time() -> None:
    data = ", ".join(f'"key{n}": {n}' for n in range(20_000))
    edit = Edit("/p/a.json", 0, (data,), (data.replace("key77", "name"),))
    began_s = time.monotonic()
    assert not tokens.is_cause(edit)
    assert tokens.changes(edit) == ()
    assert tokens.tokenize(data) == ()
    assert time.monotonic() - began_s < 1
