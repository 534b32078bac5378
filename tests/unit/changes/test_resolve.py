"""From blocks to changes of files: which file, all or nothing, what is asked and not done."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.changes import diff
from lcursor.changes.apply.parse import blocks
from lcursor.changes.apply.resolve import Ask, Resolved, Unresolved, resolve
from lcursor.code import grammars, languages
from tests.unit.changes.replies import Given, applied, done, pair, text_of

UTIL = "def read(path):\n    return open(path).read()\n\n\ndef write(path):\n    return 1\n"


@pytest.mark.parametrize(
    ("named", "current", "path"),
    [
        ("lib/util.py", "", "lib/util.py"),
        ("./lib/util.py", "", "lib/util.py"),
        ("/p/lib/util.py", "", "lib/util.py"),
        ("p/lib/util.py", "", "lib/util.py"),
        ("project/lib/util.py", "", "lib/util.py"),
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


ODD = ("docs/my notes.py", "my notes.py", "a/b=1,c.py", "bin/setup", "it's.py", "go.mod")


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize(
    "reply",
    [
        "{}\n```python\n{code}\n```",
        "**`{}`**:\n\n```python\n{code}\n```",
        "```python {}\n{code}\n```",
        '```python title="{}"\n{code}\n```',
        "```python\n# {}\n{code}\n```",
        "{}\n{pair}",
        "```\n{}\n{pair}```",
        "{}\n<<<<<<< SEARCH\n    return 7\n=======\n    return 8\n>>>>>>> REPLACE\n{pair}",
    ],
)
def test_a_name_with_other_characters_is_that_of_a_file_that_exists(name: str, reply: str) -> None:
    text = f"{UTIL}def more():\n    return 7\n"
    files = Given({name: text, "main.py": text}, "main.py")
    code = "def write(path):\n    return 2"
    one = "<<<<<<< SEARCH\n    return 1\n=======\n    return 2\n>>>>>>> REPLACE\n"
    found = done(reply.format(name, code=code, pair=one), files)
    assert [each.path for each in found.files] == [f"/p/{name}"]
    assert "    return 2\n" in text_of(found, files, name)


@pytest.mark.parametrize("words", ["as in util.py", "for lib/util.py and/or main.py", "a/b"])
def test_a_comment_that_is_no_file_names_none(words: str) -> None:
    files = Given({"main.py": UTIL, "util.py": "x = 1\n"}, "main.py")
    found = done(f"```python\n# {words}\ndef write(path):\n    return 2\n```", files)
    assert [each.path for each in found.files] == ["/p/main.py"]


@pytest.mark.parametrize(("named", "is_found"), [("p/main.py", True), ("x/main.py", False)])
def test_the_folder_of_a_file_at_the_top_is_that_of_the_project(named: str, is_found: bool) -> None:
    found = resolve(blocks(pair("x = 1", "x = 2", named)), Given({"main.py": "x = 1\n"}))
    assert isinstance(found, Resolved if is_found else Unresolved)


def test_a_name_of_two_files_is_asked_about() -> None:
    files = Given({"a/util.py": UTIL, "b/util.py": UTIL})
    found = blocks(pair("    return 1", "    return 2", "util.py"))
    asked = resolve(found, files)
    assert isinstance(asked, Ask)
    assert [one.path for one in asked.choices] == ["/p/a/util.py", "/p/b/util.py"]
    answer = resolve(found, files, asked.chosen(1))
    assert isinstance(answer, Resolved)
    assert [one.path for one in answer.files] == ["/p/b/util.py"]


def test_some_of_many_files_with_one_name_are_offered_with_their_first_lines() -> None:
    files = Given({f"{number}/util.py": UTIL for number in range(14)})
    asked = resolve(blocks(pair("    return 1", "    return 2", "util.py")), files)
    assert isinstance(asked, Ask)
    assert len(asked.choices) == 12
    assert {one.lines for one in asked.choices} == {tuple(UTIL.splitlines()[:3])}
    assert {(one.first_row, one.last_row) for one in asked.choices} == {(0, 0)}


def test_the_beginning_of_a_long_result_is_offered() -> None:
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


RENAMED = "```diff\ndiff --git a/a.py b/b.py\nrename from a.py\nrename to b.py\n```\n"
TO_UTIL = RENAMED.replace("a.py", "main.py").replace("b.py", "util.py")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("It is right as it is.", "It contains no code"),
        (pair("x", "y", "util.py").replace(">>>>>>> REPLACE", ""), "It was cut off before its end"),
        (pair("x", "y\n=======\nz", "util.py"), "A block cannot be read: "),
        (pair("    return 1", "    return 2"), "It names no file"),
        (
            pair("    return 7", "    return 8", "util.py"),
            "util.py does not contain the quoted lines: return 7",
        ),
        (  # all or nothing
            pair("    return 1", "    return 2", "util.py") + pair("    return 7", "x", "util.py"),
            "util.py does not contain the quoted lines: return 7",
        ),
        ("util.py\n```python\ndef read(path):\n    return 2\n", "It was cut off before its end"),
        ("```bash\nmake test\n```", "Left out: 1 block that names no file (bash)"),
        ("*** Begin Patch\n*** Update File: other.py\n-x\n+y\n*** End Patch", "There is no file o"),
        (
            "Put it into `new.py`:\n```python\nx = 1\n```",
            "There is no file new.py, and it is not marked as new",
        ),
        (
            "*** Begin Patch\n*** Delete File: util.py\n*** Delete File: util.py\n*** End Patch",
            "There is no file util.py to delete",
        ),
        ("*** Begin Patch\n*** Add File: util.py\n+x = 1\n*** End Patch", "util.py already exists"),
        (
            "*** Begin Patch\n*** Add File: n.py\n+# ... existing code ...\n*** End Patch",
            "The code of the new file is incomplete",
        ),
        (TO_UTIL, "util.py already exists"),
        (
            "```diff\n--- a/util.py\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-def read(path):\n```\n",
            "util.py has other lines than the deleted ones",
        ),
        ("util.py\n```python\n\n```", "The code is empty"),
        (
            "util.py\n```python\nnothing_like_it()\n```",
            "No position for this code was found in util",
        ),
        (
            "empty.py\n```python\n# ... existing code ...\nx = 1\n```",
            "empty.py is empty, and the code is incomplete",
        ),
        (
            "util.py\n```python\ndef read(path):\n    return 2\n```\n"
            "util.py\n```python\ndef read(path):\n    return 3\n```\n",
            "Two blocks of code change the same lines of util.py differently",
        ),
    ],
)
def test_the_reason_says_what_is_wrong(reply: str, reason: str) -> None:
    files = Given({"util.py": UTIL, "main.py": "x = 1\n", "empty.py": "\n"})
    found = resolve(blocks(reply), files)
    assert isinstance(found, Unresolved), found
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


def test_code_that_names_no_file_is_left_out_and_noted() -> None:
    files = Given({"util.py": UTIL})
    shown = "Then run:\n```bash\npython util.py\n```\nand use it:\n```python\nread('x')\n```"
    found = done(pair("    return 1", "    return 2", "util.py") + shown, files)
    assert len(found.files) == 1
    assert "2 blocks" in found.note
    found = done(pair("    return 1", "    return 2", "util.py") + "```bash\nmake\n```", files)
    assert found.note == "Left out: 1 block that names no file (bash)"


def test_a_change_that_is_made_already_changes_nothing() -> None:
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
    assert found == f"x = 1\n{new}\n" if is_done else isinstance(found, Unresolved)


@pytest.mark.parametrize("path", ["b.py", "./b.py", "/p/b.py", "a.py"])
def test_a_renamed_file_is_changed_under_its_new_name(path: str) -> None:
    files = Given({"a.py": "x = 1\ny = 2\n"})
    found = done(RENAMED + pair("x = 1", "x = 3", path), files)
    (change,) = found.files
    assert (change.kind, change.path, change.to) == ("rename", "/p/a.py", "/p/b.py")
    assert text_of(found, files, "a.py") == "x = 3\ny = 2\n"


def test_a_definition_in_a_whole_file_may_be_renamed() -> None:
    text = (
        "import os\n\n\ndef one(a):\n    x = a\n    return x\n\n\n"
        "def two(b):\n    z = b\n    return z\n\n\ndef main():\n    one(1)\n"
    )
    new = text.replace("    x = a\n", "    x = a + 1\n    x += 2\n").replace("two", "second")
    assert applied(text, f"a.py\n```python\n{new}```") == new


ONE = "def one(a):\n    go_on(a)\n"
TWO = "def two(b):\n    go_on(b)\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        # A new definition comes behind the one above it.
        (f"{ONE.replace('(a)', '(c)')}\n\n{TWO}", f"x = 0\n\n\n{{}}\n\n{TWO}\n\ny = 1\n"),
        ("def one(a):\n    pass\n", None),  # what it does would be lost
        (f"import os\n\n\n{ONE.replace('go_on', 'os.go')}", None),  # so it may have others
    ],
)
def test_a_definition_replaces_the_one_of_its_name(code: str, expected: str | None) -> None:
    text = f"x = 0\n\n\n{ONE}\n\ny = 1\n"
    found = applied(text, f"a.py\n```python\n{code}```")
    if expected is None:
        assert isinstance(found, Ask)
    else:
        assert found == expected.format(code.split("\n\n\n")[0] + "\n")


@pytest.mark.parametrize(
    ("rows", "left", "is_certain"), [(8, 4, True), (8, 3, False), (7, 2, True)]
)
def test_a_long_definition_that_loses_most_of_its_lines_is_asked_about(
    rows: int, left: int, is_certain: bool
) -> None:
    """The last line stays, so that the end is not missing; the head counts as a line."""
    body = [f"    step_number_{row}(a)" for row in range(rows - 2)]
    old = "\n".join(["def one(a):", *body, "    return a"]) + "\n"
    new = "\n".join(["def one(a):", *body[: left - 2], "    return a"]) + "\n"
    found = applied(f"x = 0\n\n\n{old}\n\ny = 1\n", f"a.py\n```python\n{new}```")
    assert found == f"x = 0\n\n\n{new}\n\ny = 1\n" if is_certain else isinstance(found, Ask)


def test_new_code_is_offered_at_the_end() -> None:
    text = f"x = 0\n\n\n{ONE}\n\ny = 1\n"
    files = Given({"a.py": text})
    for code, count in ((f"\n{TWO}", 1), ("def one(a):\n    pass\n", 1)):
        reply = blocks(f"a.py\n```python\n{code}```")
        asked = resolve(reply, files)
        assert isinstance(asked, Ask)
        assert len(asked.choices) == count
        found = resolve(reply, files, asked.chosen(0))
        assert isinstance(found, Resolved)
        expected = f"{text}\n\n{TWO}" if TWO in code else text.replace(ONE, code)
        assert text_of(found, files, "a.py") == expected


@pytest.mark.parametrize("imports", ["", "import re\nfrom sys import path\n"])
def test_a_new_import_comes_behind_those_that_are_there(imports: str) -> None:
    files = Given({"a.py": f"{imports}x = 0\n\n\n{ONE}"})
    new = ONE.replace("go_on", "os.go")
    reply = blocks(f"a.py\n```python\nimport os\n\n\n{new}```")
    asked = resolve(reply, files)
    assert isinstance(asked, Ask)
    found = resolve(reply, files, asked.chosen(0))
    assert isinstance(found, Resolved)
    assert text_of(found, files, "a.py") == f"{imports}import os\nx = 0\n\n\n{new}"


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


lines = st.lists(
    st.sampled_from(["a = 1", "    b(a)", "", "}", "return a", "    return b"]), max_size=12
)


def test_unquoted_lines_stay_whatever_is_quoted() -> None:
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
