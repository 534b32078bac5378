"""Hunks and pairs whose place is not certain: line numbers, headings, answers, attached rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcursor.changes.apply import match
from lcursor.changes.apply.parse import blocks
from lcursor.changes.apply.resolve import Ask, Resolved, resolve
from lcursor.changes.records import Lines
from lcursor.context.items import Seen
from tests.unit.changes.replies import Given, applied, pair, text_of

CLASSES = """\
class A:
    def run(self):
        check(self)

    def stop(self):
        halt(self)


class B:
    def run(self):
        check(self)


def one(a):
    go_on(a)


def two(a):
    go_on(a)
"""


@pytest.mark.parametrize(
    ("heads", "line", "row"),
    [
        ("@@ def two(a):", "    go_on(a)", 18),
        ("@@ def one(a):", "    go_on(a)", 14),
        ("@@ def run(self):", "        check(self)", None),  # there are two
        ("@@ def gone(self):", "        check(self)", None),
        ("@@ class B:\n@@ def run(self):", "        check(self)", 10),
        ("@@ class A:\n@@ def run(self):", "        check(self)", 2),
        ("@@ class B:", "        check(self)", 10),
    ],
)
def test_the_heading_of_a_hunk_decides(heads: str, line: str, row: int | None) -> None:
    reply = f"*** Begin Patch\n*** Update File: a.py\n{heads}\n-{line}\n+{line} or 1\n*** End Patch"
    found = applied(CLASSES, reply)
    if row is None:
        assert isinstance(found, Ask)
        return
    lines = CLASSES.splitlines()
    lines[row] += " or 1"
    assert found == "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("order", "number", "is_certain"),
    [("one two", 8, True), ("one two", 9, False), ("two one", 3, True), ("two one", 2, False)],
)
def test_a_number_may_be_wrong_by_a_few_lines(order: str, number: int, is_certain: bool) -> None:
    one = "def one(a):\n    check(a)\n    total = a + 1\n    log(total)\n    return total\n"
    texts = {"one": one, "two": one.replace("a + 1", "a + 2")}
    text = "a = 1\nb = 2\nc = 3\nd = 4\n".join(texts[name] for name in order.split())
    old = "".join(f" {line}\n" for line in one.splitlines())
    changed = "-    total = a + 1\n+    total = a\n"
    hunk = old.replace("     total = a + 1\n", changed)
    reply = f"--- a/a.py\n+++ b/a.py\n@@ -{number},5 +{number},5 @@\n{hunk}"
    found = applied(text, reply)
    assert found == text.replace("a + 1", "a") if is_certain else isinstance(found, Ask)


ORDERED = "open_it(1)\nshared(x)\nmiddle_one()\nshared(x)\nclose_it(9)\n"
DEPENDENT = (
    "--- a/a.py\n+++ b/a.py\n@@ @@\n open_it(1)\n+brand_new(2)\n"
    "@@ @@\n-shared(x)\n+shared(y)\n@@ @@\n brand_new(2)\n+another(3)\n"
)


@pytest.mark.parametrize("choice", [0, 1])
def test_a_place_is_asked_for_once_though_other_hunks_change_the_text(choice: int) -> None:
    files = Given({"a.py": ORDERED})
    found = resolve(blocks(f"```diff\n{DEPENDENT}```\n"), files)
    assert isinstance(found, Ask)
    assert [one.first_row for one in found.choices] == [1, 3]
    chosen = resolve(blocks(f"```diff\n{DEPENDENT}```\n"), files, found.chosen(choice))
    assert isinstance(chosen, Resolved), chosen
    shared = ["shared(x)", "shared(x)"]
    shared[choice] = "shared(y)"
    made = ["open_it(1)", "brand_new(2)", "another(3)", shared[0], "middle_one()", shared[1]]
    assert text_of(chosen, files, "a.py") == "\n".join([*made, "close_it(9)"]) + "\n"


def test_a_hunk_whose_lines_another_changed_is_asked_about_in_the_new_text() -> None:
    """Both questions are about one hunk: the answer to the second leaves the first answered."""
    text = "go_on(1)\nshared(x)\nshared(x)\nlast_one()\n"
    reply = (
        "```diff\n--- a/a.py\n+++ b/a.py\n@@ @@\n go_on(1)\n-shared(x)\n+shared(x)\n"
        "+shared(x)\n@@ @@\n-shared(x)\n+shared(y)\n```\n"
    )
    files, asked = Given({"a.py": text}), list[Ask]()
    found = resolve(blocks(reply), files)
    while isinstance(found, Ask) and len(asked) < 5:
        asked.append(found)
        found = resolve(blocks(reply), files, found.chosen(0))
    assert isinstance(found, Resolved), [one.text for one in asked]


calls = st.sampled_from(["one()", "two()", "three()", "four()"])
steps = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 2), st.sampled_from("kkra"), calls),
    min_size=1,
    max_size=4,
)


def test_no_question_is_asked_twice() -> None:
    """Hunks of any diff over few different lines, each written for the text after the last."""
    count = Counter[str]()

    @settings(max_examples=300, deadline=None)
    @given(st.lists(calls, min_size=2, max_size=6), steps, st.integers(0, 2))
    def check(base: list[str], hunks: list[tuple[int, int, str, str]], answer: int) -> None:
        text, body = [*base], ""
        for at, size, kind, word in hunks:
            first = at % len(text)
            old = text[first : first + size]
            new = [word, *old[1:]] if kind == "r" else [*old, word] if kind == "a" else old
            marks = {"k": " ", "r": "-", "a": " "}
            body += f"@@ @@\n{marks[kind]}{old[0]}\n"
            body += f"+{word}\n" if kind == "r" else ""
            body += "".join(f" {line}\n" for line in old[1:])
            body += f"+{word}\n" if kind == "a" else ""
            text[first : first + size] = new
        reply = f"```diff\n--- a/a.py\n+++ b/a.py\n{body}```\n"
        files = Given({"a.py": "\n".join(base) + "\n"})
        asked = list[tuple[str, object]]()
        found = resolve(blocks(reply), files)
        while isinstance(found, Ask):
            assert (found.key, found.choices) not in asked
            asked.append((found.key, found.choices))
            found = resolve(blocks(reply), files, found.chosen(answer % len(found.choices)))
        count[type(found).__name__] += 1
        count["several"] += len(asked) > 1

    check()
    assert count["Resolved"] >= 150
    assert count["several"] >= 20


def test_each_hunk_is_located_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a later one needs what an earlier one adds."""
    located: list[tuple[Lines, Lines]] = []

    def find(lines: Sequence[str], wanted: Sequence[str], *more: Any) -> Any:
        located.append((tuple(lines), tuple(wanted)))
        return original(lines, wanted, *more)

    original = match.find
    monkeypatch.setattr(match, "find", find)
    text = "".join(f"line_number({row})\n" for row in range(20))
    hunks = [f"@@ @@\n-line_number({row})\n+other({row})\n" for row in range(2, 12)]
    hunks.append("@@ @@\n other(2)\n+add_usage(2)\n")
    reply = f"```diff\n--- a/a.py\n+++ b/a.py\n{''.join(hunks)}```\n"
    files = Given({"a.py": text})
    found = resolve(blocks(reply), files)
    assert isinstance(found, Resolved), found
    # The last one is looked for in the first text, with and without marks, and in the last.
    assert len({*located}) == len(located) == 13


@pytest.mark.parametrize(
    ("hunks", "row"),
    [
        ("@@\n-middle_one()\n+middle_two()\n@@\n-shared(x)\n+shared(y)\n", 3),
        ("@@\n-shared(x)\n+shared(y)\n@@\n-middle_one()\n+middle_two()\n", 1),
        ("@@\n-open_it(1)\n+open_it(2)\n@@\n-shared(x)\n+shared(y)\n", None),
    ],
)
def test_the_order_of_hunks_decides(hunks: str, row: int | None) -> None:
    reply = f"*** Begin Patch\n*** Update File: a.py\n{hunks}*** End Patch"
    found = applied(ORDERED, reply)
    if row is None:
        assert isinstance(found, Ask)
    else:
        assert isinstance(found, str)
        assert found.split("\n").index("shared(y)") == row


def test_the_attached_one_of_equal_places_is_changed() -> None:
    files = Given({"a.py": ORDERED})
    reply = pair("shared(x)", "shared(y)", "a.py")
    rows = tuple(ORDERED.splitlines()[2:])
    found = resolve(blocks(reply), files, None, lambda _: [Seen("/p/a.py", 2, rows, 1)])
    assert isinstance(found, Resolved), found
    assert [change.first_row for change in found.files[0].changes] == [3]
    stale = Seen("/p/a.py", 2, (*rows, "more"), 1)
    assert isinstance(resolve(blocks(reply), files, None, lambda _: [stale]), Ask)


def test_lines_that_only_look_like_those_that_were_read_are_asked_about() -> None:
    read = Seen("/p/a.py", 0, ("def one(x):", "    go(x, 1)"), 1)
    lines = "def one(x):\n    stay(x)\n\n\ndef two(x):\n    go(x, 1)\n    return x\n"
    reply = blocks(pair("    go(x, 1)", "    go(x)", "a.py"))
    found = resolve(reply, Given({"a.py": lines}), None, lambda _: [read])
    assert isinstance(found, Ask)
    assert "may be the wrong place" in found.text
    ended = reply, Given({"a.py": lines.removesuffix("    return x\n")})
    assert isinstance(resolve(*ended, None, lambda _: [read]), Ask)
    moved = lines.replace("    stay(x)\n", "").replace("def two", "def one")  # it only moved
    assert isinstance(resolve(reply, Given({"a.py": moved}), None, lambda _: [read]), Resolved)
    other = Seen("/p/a.py", 0, ("def three(x):", "    pass"), 1)
    assert isinstance(resolve(reply, Given({"a.py": lines}), None, lambda _: [other]), Resolved)
