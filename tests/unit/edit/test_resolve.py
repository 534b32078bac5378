"""From blocks to changes of files: which file, all or nothing, what is asked and not done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcursor.code import grammars, languages
from lcursor.context.items import Seen
from lcursor.edit import diff
from lcursor.edit.apply import match
from lcursor.edit.apply.parse import blocks
from lcursor.edit.apply.resolve import Ask, Resolved, Unresolved, resolve
from lcursor.edit.records import Lines
from tests.unit.edit.replies import Given, applied, done, pair, text_of

UTIL = "def read(path):\n    return open(path).read()\n\n\ndef write(path):\n    return 1\n"


@pytest.mark.parametrize(
    ("named", "current", "path"),
    [
        ("lib/util.py", "", "lib/util.py"),
        ("./lib/util.py", "", "lib/util.py"),
        ("/p/lib/util.py", "", "lib/util.py"),
        ("p/lib/util.py", "", "lib/util.py"),
        ("lib\\util.py", "", "lib/util.py"),
        ("util.py", "", "lib/util.py"),
        ("util.py", "lib/util.py", "lib/util.py"),
        ("", "lib/util.py", "lib/util.py"),
    ],
)
def test_a_file_is_found_by_its_name(named: str, current: str, path: str) -> None:
    files = Given({"lib/util.py": UTIL, "main.py": "x = 1\n"}, current)
    found = done(pair("    return 1", "    return 2", named), files)
    assert text_of(found, files, path) == UTIL.replace("return 1", "return 2")


def test_a_name_of_two_files_is_asked_about() -> None:
    files = Given({"a/util.py": UTIL, "b/util.py": UTIL})
    found = blocks(pair("    return 1", "    return 2", "util.py"))
    asked = resolve(found, files)
    assert isinstance(asked, Ask)
    assert [one.path for one in asked.choices] == ["/p/a/util.py", "/p/b/util.py"]
    answer = resolve(found, files, asked.chosen(1))
    assert isinstance(answer, Resolved)
    assert [one.path for one in answer.files] == ["/p/b/util.py"]


def test_of_many_files_of_a_name_some_are_offered_with_their_first_lines() -> None:
    files = Given({f"{number}/util.py": UTIL for number in range(14)})
    asked = resolve(blocks(pair("    return 1", "    return 2", "util.py")), files)
    assert isinstance(asked, Ask)
    assert len(asked.choices) == 12
    assert {one.lines for one in asked.choices} == {tuple(UTIL.splitlines()[:3])}


def test_of_a_long_result_the_beginning_is_offered() -> None:
    new = "\n".join(f"line_{row} = {row}" for row in range(50))
    asked = applied("a = f(1)\nb = 2\na = f(1)\n", pair("a = f(1)", new))
    assert isinstance(asked, Ask)
    assert [len(one.lines) for one in asked.choices] == [40, 40]
    assert [len(one.new or ()) for one in asked.choices] == [50, 50]


def test_a_place_is_asked_for_and_then_taken() -> None:
    text = "a = f(1)\nb = 2\na = f(1)\nc = 3\n"
    files = Given({"a.py": text})
    reply = pair("a = f(1)", "a = f(9)", "a.py") + pair("c = 3", "c = 4", "a.py")
    found = resolve(blocks(reply), files)
    assert isinstance(found, Ask)
    assert [one.first_row for one in found.choices] == [0, 2]
    answer = resolve(blocks(reply), files, found.chosen(1))
    assert isinstance(answer, Resolved)
    assert text_of(answer, files, "a.py") == "a = f(1)\nb = 2\na = f(9)\nc = 4\n"


def test_two_places_are_asked_for_one_after_the_other() -> None:
    files = Given({"a.py": "a = f(1)\na = f(1)\nb = g(1)\nb = g(1)\n"})
    found = blocks(pair("a = f(1)", "a = 9", "a.py") + pair("b = g(1)", "b = 9", "a.py"))
    first = resolve(found, files)
    assert isinstance(first, Ask)
    second = resolve(found, files, first.chosen(0))
    assert isinstance(second, Ask)
    assert second.key != first.key
    answer = resolve(found, files, second.chosen(1))
    assert isinstance(answer, Resolved)
    assert text_of(answer, files, "a.py") == "a = 9\na = f(1)\nb = g(1)\nb = 9\n"


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "It is right as it is.",
        "```bash\nmake test\n```",
        pair("    return 7", "    return 8", "util.py"),
        pair("    return 1", "    return 2", "other.py"),
        pair("    return 1", "    return 2", "util.py") + pair("    return 7", "x", "util.py"),
        pair("    return 1", "    return 2", "util.py").replace(">>>>>>> REPLACE", ""),
        pair("    return 1", "    # ... existing code ...", "util.py"),
        "util.py\n```python\n# ... existing code ...\n    nothing_like_it()\n# ...\n```",
        "util.py\n```python\ndef read(path):\n    return 2\n",
        "--- /dev/null\n+++ b/util.py\n@@ -0,0 +1 @@\n+x\n",
        "*** Begin Patch\n*** Delete File: other.py\n*** End Patch",
        "util.py\n```python\ndef read(path):\n    return 2\n```\n"
        "util.py\n```python\ndef read(path):\n    return 3\n```\n",
    ],
)
def test_what_cannot_be_done_is_refused_as_a_whole(reply: str) -> None:
    found = resolve(blocks(reply), Given({"util.py": UTIL}, "util.py"))
    assert isinstance(found, Unresolved), found
    assert found.reason


RENAMED = "```diff\ndiff --git a/a.py b/b.py\nrename from a.py\nrename to b.py\n```\n"
TO_UTIL = RENAMED.replace("a.py", "main.py").replace("b.py", "util.py")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("It is right as it is.", "There is no code in it"),
        (pair("x", "y", "util.py").replace(">>>>>>> REPLACE", ""), "It was cut off before its end"),
        (pair("x", "y\n=======\nz", "util.py"), "A block cannot be read: it has several lines"),
        (pair("    return 1", "    return 2"), "Nothing says which file it is about"),
        (pair("    return 7", "    return 8", "util.py"), "or not as it is quoted: return 7"),
        ("*** Begin Patch\n*** Update File: other.py\n-x\n+y\n*** End Patch", "There is no file o"),
        ("Put it into `new.py`:\n```python\nx = 1\n```", "and nothing says that it is new"),
        (
            "*** Begin Patch\n*** Delete File: util.py\n*** Delete File: util.py\n*** End Patch",
            "There is no file util.py to delete",
        ),
        ("*** Begin Patch\n*** Add File: util.py\n+x = 1\n*** End Patch", "is there already"),
        (
            "*** Begin Patch\n*** Add File: n.py\n+# ... existing code ...\n*** End Patch",
            "The new file leaves something out",
        ),
        (TO_UTIL, "util.py is there already"),
        (
            "```diff\n--- a/util.py\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-def read(path):\n```\n",
            "util.py has more in it than what is deleted",
        ),
        ("util.py\n```python\n\n```", "The code is empty"),
        ("util.py\n```python\nnothing_like_it()\n```", "No place for this code is found in util"),
        ("empty.py\n```python\n# ... existing code ...\nx = 1\n```", "empty.py is empty, and"),
        (
            "util.py\n```python\ndef read(path):\n    return 2\n```\n"
            "util.py\n```python\ndef read(path):\n    return 3\n```\n",
            "Two pieces of code differ about the same lines of util.py",
        ),
    ],
)
def test_the_reason_says_what_is_wrong(reply: str, reason: str) -> None:
    files = Given({"util.py": UTIL, "main.py": "x = 1\n", "empty.py": "\n"})
    found = resolve(blocks(reply), files)
    assert isinstance(found, Refused), found
    assert reason in found.reason


def test_one_reply_may_change_many_files() -> None:
    files = Given({"a.py": UTIL, "b.py": "x = 1\n", "c.py": "y = 1\nz = 2\n"})
    reply = (
        pair("    return 1", "    return 2", "a.py")
        + "d.py\n```python\nnew = 1\n```\n"
        + "*** Begin Patch\n*** Delete File: b.py\n*** Update File: c.py\n*** Move to: e/c.py\n"
        "@@\n-y = 1\n+y = 3\n z = 2\n*** End Patch\n"
    )
    found = done(reply, files)
    assert [(one.kind, one.path, one.to) for one in found.files] == [
        ("edit", "/p/a.py", ""),
        ("create", "/p/d.py", ""),
        ("delete", "/p/b.py", ""),
        ("rename", "/p/c.py", "/p/e/c.py"),
    ]
    assert found.files[2].changes[0].old == ("x = 1",)
    assert text_of(found, files, "c.py") == "y = 3\nz = 2\n"


def test_what_is_only_shown_is_left_out_and_said() -> None:
    files = Given({"util.py": UTIL})
    shown = "Then run:\n```bash\npython util.py\n```\nand use it:\n```python\nread('x')\n```"
    found = done(pair("    return 1", "    return 2", "util.py") + shown, files)
    assert len(found.files) == 1
    assert "2 blocks" in found.note
    found = done(pair("    return 1", "    return 2", "util.py") + "```bash\nmake\n```", files)
    assert found.note == "Left out: 1 block that names no file (bash)"


def test_what_is_done_already_changes_nothing() -> None:
    files = Given({"util.py": UTIL})
    found = done("util.py\n```python\n" + UTIL + "```", files)
    assert all(not one.changes for one in found.files)
    now = UTIL.replace("    return 1", "    log(path)\n    return 2")
    reply = pair("    return 1", "    log(path)\n    return 2", "util.py")
    found = done(reply, Given({"util.py": now}))
    assert all(not one.changes for one in found.files)


@pytest.mark.parametrize(("new", "is_done"), [("value = compute", True), ("value = comput", False)])
def test_a_short_line_may_have_been_there_before(new: str, is_done: bool) -> None:
    found = applied(f"x = 1\n{new}\n", pair("value = some_other", new))
    assert found == f"x = 1\n{new}\n" if is_done else isinstance(found, Refused)


def test_a_number_that_points_at_something_alike_is_doubted() -> None:
    one = ["def one(a):", "    check(a)", "    total = a + 1", "    log(total)", "    return total"]
    two = [line.replace("total = a + 1", "total = a + 2") for line in one]
    text = "\n".join([*one, *["x = 1"] * 9, *two]) + "\n"
    hunk = "@@ -15,5 +15,5 @@\n def one(a):\n     check(a)\n-    total = a + 1\n+    total = a\n"
    reply = f"--- a/a.py\n+++ b/a.py\n{hunk}     log(total)\n     return total\n"
    assert isinstance(resolve(blocks(reply), Given({"a.py": text})), Ask)


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


@pytest.mark.parametrize("path", ["b.py", "./b.py", "/p/b.py", "a.py"])
def test_a_renamed_file_is_changed_under_its_new_name(path: str) -> None:
    files = Given({"a.py": "x = 1\ny = 2\n"})
    found = done(RENAMED + pair("x = 1", "x = 3", path), files)
    (change,) = found.files
    assert (change.kind, change.path, change.to) == ("rename", "/p/a.py", "/p/b.py")
    assert text_of(found, files, "a.py") == "x = 3\ny = 2\n"


def test_a_file_is_renamed_twice_in_a_row() -> None:
    files = Given({"a.py": "x = 1\n"})
    again = RENAMED.replace("b.py", "c.py").replace("a.py", "b.py")
    (change,) = done(RENAMED + again, files).files
    assert (change.path, change.to) == ("/p/a.py", "/p/c.py")


TERRAFORM = """\
resource "a" "x" {
  name = "one"
  size = 1
}

resource "b" "y" {
  name = "two"
  size = 2
}

resource "c" "z" {
  name = "three"
  size = 3
}
"""
PERL = """\
sub a {
  my $x = 1;
  return $x
}
sub b {
  my $y = 2;
  return $y
}
sub c {
  my $z = 3;
  return $z
}
"""
DART = """\
class A {
  int one() => 1;
}

class B {
  int two() => 2;
}

class C {
  int three() => 3;
}
"""
PROTO = """\
message A {
  string one = 1;
}

message B {
  string two = 1;
}

message C {
  string three = 1;
}
"""


@pytest.mark.parametrize(
    ("path", "text", "old", "new"),
    [
        ("main.tf", TERRAFORM, "size = 2\n", "size = 22\n"),
        (
            "main.tf",
            TERRAFORM,
            "size = 2\n",
            "a = 2\n  b = 2\n  c = 2\n  d = 2\n  e = 2\n  f = 2\n",
        ),
        ("m.pl", PERL, "$y = 2", "$y = 22"),
        ("m.dart", DART, "=> 2", "=> 22"),
        ("m.proto", PROTO, "two = 1", "two = 2"),
    ],
)
def test_a_whole_file_without_a_grammar_that_lost_its_end_is_asked_about(
    path: str, text: str, old: str, new: str
) -> None:
    files = Given({path: text})
    assert grammars.parse(languages.detect(path), b"") is None
    lines = text.replace(old, new).splitlines()
    last = max(row for row, line in enumerate(lines) if line and not line.startswith((" ", "}")))
    kept = "\n".join(lines[:last]).rstrip()
    found = resolve(blocks(f"{path}\n```\n{kept}\n```\n"), files)
    assert isinstance(found, Ask), found
    whole = text.replace(old, new)
    assert text_of(done(f"{path}\n```\n{whole}```\n", files), files, path) == whole


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


def test_of_equal_places_the_attached_one_is_meant() -> None:
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


lines = st.lists(
    st.sampled_from(["a = 1", "    b(a)", "", "}", "return a", "    return b"]), max_size=12
)


def test_no_reply_breaks_it() -> None:
    """Whatever is quoted: rows that nothing quoted stay."""
    count = Counter[str]()

    @given(lines, lines, st.integers(0, 12), st.integers(1, 4))
    def check(old: list[str], new: list[str], first: int, size: int) -> None:
        base = ["first()", *old, "last()"]
        files = Given({"a.py": "\n".join(base) + "\n"})
        for quoted in (old, new, old[first : first + size]):
            reply = pair("\n".join(quoted), "\n".join(new), "a.py")
            found = resolve(blocks(reply), files)
            count[type(found).__name__] += 1
            if isinstance(found, Resolved) and found.files:
                made = diff.apply(base, found.files[0].changes)
                count["changed"] += made != tuple(base)
                assert made[0] == "first()"
                assert "last()" in made[-1:] or made[-1] in new

    check()
    assert count["changed"] >= 30
    assert count["Ask"] >= 10
