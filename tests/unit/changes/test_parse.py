"""What a model wrote, read as one piece of code, or as blocks in any of the forms there are."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.changes.apply.blocks import Block
from lcursor.changes.apply.parse import RegionReader, blocks
from lcursor.errors import ReplyUnusable

CODE = "def f():\n    return 1\n"
LINES = ("def f():", "    return 1")


def read(text: str, language: str = "python", *, is_cut: bool = False, base: str = "") -> Any:
    """Return all lines of a reply."""
    reading = RegionReader(language, base.splitlines())
    reading.feed(text)
    return reading.finish(is_cut)


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{CODE}```\n",
        f"```\n{CODE}```",
        f"Sure, here it is:\n\n```py\n{CODE}```\n\nIt returns 1.",
        f"<think>\nMaybe\n```python\nprint()\n```\n</think>\n\n```python\n{CODE}```",
        f"Hm.\n<think>\n```python\nprint()\n```\n</think>\n```python\n{CODE}```",
        f"~~~python\n{CODE}~~~",
        f"````python\n{CODE}````",
        "1. So:\n   ```python\n   def f():\n       return 1\n   ```",
        f"```python\r\n{CODE}```\r\n".replace("\n", "\r\n").replace("\r\r", "\r"),
        f"```python\n{CODE}```\n\nAgain:\n\n```python\n{CODE}```",
        "```python\ndef f():\n    return 1```",
        CODE,
    ],
)
def test_the_code_is_found(text: str) -> None:
    assert read(text) == LINES


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30))
def test_a_reply_may_be_cut_anywhere(sizes: list[int]) -> None:
    text = f"<think>\nno\n</think>\nSo:\n```python\n{CODE}```\nThere."
    reading, at = RegionReader("python"), 0
    came: list[str] = []
    for size in cycle(sizes):
        if at >= len(text):
            break
        came += reading.feed(text[at : at + size])
        at += size
    assert tuple(came) == LINES
    assert reading.is_closed
    assert reading.finish() == LINES
    assert reading.note == "So:\nThere."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        ("The function is right as it is.", "prose"),
        ("Done", "prose"),
        ("<think>Should I write\n```python\nx = 1\n```\n", "empty"),
        (f"```python\n{CODE}", "cut"),
        (f"```python\n{CODE}```\n```python\nprint(2)\n```", "fences"),
        ("```javascript\nfunction f() {}\n```", "language"),
        ("```diff\n-x\n+y\n```", "form"),
        ("```\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```", "form"),
        ("```python\ndef f():\n    # ... existing code ...\n```", "lazy"),
        ("```python\ndef f():\n    # rest of the function remains unchanged\n```", "lazy"),
    ],
)
def test_an_unusable_answer_says_why(text: str, reason: str) -> None:
    with pytest.raises(ReplyUnusable) as caught:
        read(text)
    assert caught.value.reason == reason


def test_an_answer_that_a_limit_ended_is_cut() -> None:
    with pytest.raises(ReplyUnusable) as caught:
        read(CODE, is_cut=True)
    assert caught.value.reason == "cut"


@pytest.mark.parametrize("base", [CODE, "a = 1\n\nb = 2\n"])
@pytest.mark.parametrize("code", ["", "\n", "\n  \n"])
def test_an_answer_without_code_is_unusable(base: str, code: str) -> None:
    with pytest.raises(ReplyUnusable) as caught:
        read(f"```python\n{code}```", base=base)
    assert caught.value.reason == "empty"
    assert read(f"```python\n{base}```", base=base) == tuple(base.splitlines())


def test_code_without_a_fence_is_no_note() -> None:
    reading = RegionReader("python")
    reading.feed(CODE)
    assert (reading.finish(), reading.note) == (LINES, "")


def test_omitted_lines_are_taken_from_the_region() -> None:
    base = "def f(a):\n    one(a)\n    two(a)\n    three(a)\n    return a\n"
    text = "```python\ndef f(a, b):\n    # ... existing code ...\n    return a\n```"
    assert read(text, base=base)[:2] == ("def f(a, b):", "    one(a)")
    stub = "class P:\n    def f(self): ...\n    def g(self):\n        ...\n"
    assert read(f"```python\n{stub}```", base=stub) == tuple(stub.splitlines())


def test_a_fence_in_a_docstring_is_no_end() -> None:
    text = 'def f():\n    """Do.\n\n    ```\n    f()\n    ```\n    """\n'
    assert read(f"```python\n{text}```") == tuple(text.splitlines())
    notes = "# Notes\n\n```python\nf()\n```\n"
    assert read(f"```markdown\n{notes}```", "markdown") == tuple(notes.splitlines())


PAIR = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    "text",
    [
        f"a/b.py\n```python\n{PAIR}```",
        f"**a/b.py**\n\n```\n{PAIR}```",
        f"### `a/b.py`:\n```\n{PAIR}```",
        f"```python\na/b.py\n{PAIR}```",
        f"```python a/b.py\n{PAIR}```",
        f"```python:a/b.py\n{PAIR}```",
        f"File: a/b.py\n{PAIR}",
        f"Change `a/b.py` so:\n\n{PAIR}",
        "a/b.py\n" + PAIR.replace("<<<<<<<", "<<<<<").replace(">>>>>>>", ">>>>>>>>>"),
        "a/b.py\n------- SEARCH\nold\n=======\nnew\n+++++++ REPLACE\n",
        "--- a/a/b.py\n+++ b/a/b.py\n@@ -1 +1 @@\n-old\n+new\n",
        "```diff\n--- a/b.py\n+++ a/b.py\n@@ ... @@\n-old\n+new\n```",
        "diff --git a/a/b.py b/a/b.py\nindex 1..2 100644\n--- a/a/b.py\n+++ b/a/b.py\n"
        "@@ -1,1 +1,1 @@ def f():\n-old\n+new\n\nThat is all.",
        "a/b.py\n```diff\n-old\n+new\n```",
        "*** Begin Patch\n*** Update File: a/b.py\n@@\n-old\n+new\n*** End Patch",
        "```\n*** Begin Patch\n*** Update File: a/b.py\n-old\n+new\n*** End Patch\n```",
        "--- a/a/b.py\n+++ b/a/b.py\n@@ -1 +1 @@\n-old\n\\ No newline at end of file\n+new\n"
        "\\ No newline at end of file\n",
    ],
)
def test_a_pair_is_read_in_every_form(text: str) -> None:
    (block,) = blocks(text)
    assert block.path == "a/b.py"
    assert block.is_closed
    assert [(one.old, one.new) for one in block.pairs] == [(("old",), ("new",))]
    assert not block.pairs[0].is_last


def test_several_pairs_keep_the_file_above_them() -> None:
    found = blocks(f"a.py\n```\n{PAIR}{PAIR}```\n\n```\n{PAIR}```\nb.py\n```\n{PAIR}```")
    assert [one.path for one in found] == ["a.py", "a.py", "a.py", "b.py"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("```python\n# a/b.py\nx = 1\n```", "a/b.py"),
        ("```lua\n-- file: a/b.lua\n\nx = 1\n```", "a/b.lua"),
        ("a/b.py\n```python\nx = 1\n```", "a/b.py"),
        ('```python title="a/b.py"\nx = 1\n```', "a/b.py"),
        ("```a/b.py\nx = 1\n```", "a/b.py"),
        ("```12:15:a/b.py\nx = 1\n```", "a/b.py"),
        ("Dockerfile\n```\nx = 1\n```", "Dockerfile"),
        ("e.g. this:\n```python\nx = 1\n```", ""),
        ("```python\n# see the docs\nx = 1\n```", ""),
    ],
)
def test_the_path_of_code(text: str, path: str) -> None:
    (block,) = blocks(text)
    assert block.path == path
    assert block.lines[-1] == "x = 1"


@pytest.mark.parametrize(
    ("name", "is_path"),
    [
        ("a.py", True),
        ("a/b.y", True),
        ("a/.hidden", True),
        (".hidden", False),
        (".gitignore", True),
        ("a/Makefile", True),
        ("a/b", False),
        ("a//b.py", False),
        ("notes.log", True),
        ("a.zzz", False),  # nothing else says that it is one
        ("a/b.zzz", True),
        ("a\\b.zzz", True),
        ("a/b.2", False),
        ("a/b.tenletters", True),
        ("a/b.elevenlette", False),
        ("__init__.py", True),
        ("_a/b.py", True),
        ("a/b.$c.py", True),
    ],
)
@pytest.mark.parametrize(
    "heading", ["{}", "**`{}`**:", "### {} (new)", "2. {}", "Updated file: {}"]
)
def test_names_that_are_paths(name: str, is_path: bool, heading: str) -> None:
    (block,) = blocks(f"{heading.format(name)}\n```\nx = 1\n```")
    assert block.path == (name if is_path else "")


def test_a_path_may_be_emphasized() -> None:
    for heading in ("_a/b.py_", "__a/b.py__:", "See _a/b.py_."):
        assert blocks(f"{heading}\n```\nx = 1\n```")[0].path == "a/b.py"


@pytest.mark.parametrize(
    ("info", "language", "path"),
    [
        ("python:src/a.py", "python", "src/a.py"),
        ("python:src/a.py#L3-L9", "python", "src/a.py"),
        ("python:src/a.py:12-15", "python", "src/a.py"),
        ('{.python file="src/a.py"}', "python", "src/a.py"),
        ("rs, src/a.rs", "rust", "src/a.rs"),
        ("src/a.rs", "rust", "src/a.rs"),
        ("c++", "cpp", ""),
        ("text", "text", ""),
        ("klingon", "", ""),
        ("python path=nothing", "python", ""),
    ],
)
def test_the_info_string_of_a_fence(info: str, language: str, path: str) -> None:
    (block,) = blocks(f"```{info}\nx = 1\n```")
    assert (block.language, block.path) == (language, path)


def test_a_comment_with_the_path_is_no_code() -> None:
    (block,) = blocks("```python a.py\n# a.py\n\nx = 1\n```")
    assert block.code_for(()) == ("x = 1",)
    assert block.code_for(("# a.py",)) == ("# a.py", "", "x = 1")
    (block,) = blocks("```python a.py\n# b.py\nx = 1\n```")
    assert (block.path, block.code_for(())) == ("a.py", ("# b.py", "x = 1"))


def test_code_without_a_path_is_of_the_given_file() -> None:
    (block,) = blocks("```python\nx = 1\n```", "a.py")
    assert block.path == "a.py"


def test_a_sentence_names_a_file_less_surely() -> None:
    (block,) = blocks("Put this into `a.py`, if you like.\n```python\nx = 1\n```")
    assert (block.path, block.is_path_sure) == ("a.py", False)
    (block,) = blocks("Put this into lib/a.py, or (b.py).\n```python\nx = 1\n```")
    assert (block.path, block.is_path_sure) == ("lib/a.py", False)
    (block,) = blocks("Put this into `a.py` or `b.py`.\n```python\nx = 1\n```")
    assert block.path == ""


@pytest.mark.parametrize(
    "text",
    [
        "```python\nx = 1\n",
        "a.py\n<<<<<<< SEARCH\nx\n=======\ny\n",
        "a.py\n```\n<<<<<<< SEARCH\nx\n>>>>>>> REPLACE\n```",
        "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n",
    ],
)
def test_a_block_that_was_cut_off_is_reported(text: str) -> None:
    assert not blocks(text)[-1].is_closed


def test_a_fence_may_end_behind_the_last_line() -> None:
    (block,) = blocks("```python\nx = 1\ny = 2```")
    assert (block.lines, block.is_closed) == (("x = 1", "y = 2"), True)


def test_blank_lines_where_a_reply_was_cut_are_no_code() -> None:
    (block,) = blocks("```python\nx = 1\n\ny = 2\n\n \n")
    assert block.lines == ("x = 1", "", "y = 2")


@pytest.mark.parametrize("rest", ["", "\n\nThat is all."])
def test_a_blank_line_may_be_one_of_a_bare_diff(rest: str) -> None:
    (block,) = blocks(f"--- a/a.py\n+++ b/a.py\n@@ @@\n-a\n+b\n\n c{rest}")
    assert [(pair.old, pair.new) for pair in block.pairs] == [(("a", "", "c"), ("b", "", "c"))]


def test_a_hunk_may_have_a_heading_and_one_line() -> None:
    (block,) = blocks("a.py\n```\n@@ def f():\n+x\n```")
    assert (block.form, block.pairs[0].scope, block.pairs[0].new) == ("udiff", "def f():", ("x",))
    assert blocks("a.py\n```\n@@ -1 +1 @@\n```") == ()


def test_a_path_above_a_block_is_not_that_of_the_next() -> None:
    found = blocks(f"a.py\n{PAIR}```python\nx = 1\n```")
    assert [(block.form, block.path) for block in found] == [
        ("search_replace", "a.py"),
        ("fence", ""),
    ]


def test_commands_are_not_of_the_file_above_them() -> None:
    assert blocks("setup.py\n```bash\npython setup.py\n```")[0].path == ""
    assert blocks("```javascript\nf()\n```", "a.py")[0].path == ""


def test_a_mark_at_the_beginning_of_a_text_is_no_part_of_it() -> None:
    assert blocks("\ufeffa.py\r\n```python\r\nx = 1\r\n```\r\n")[0].path == "a.py"


def test_two_dividers_are_a_problem() -> None:
    (block,) = blocks("<<<<<<< SEARCH\nTitle\n=======\n=======\nName\n=======\n>>>>>>> REPLACE\n")
    assert block.problem


def test_files_that_come_go_and_move() -> None:
    text = (
        "```diff\ndiff --git a/n.py b/n.py\nnew file mode 100644\n--- /dev/null\n+++ b/n.py\n"
        "@@ -0,0 +1,2 @@\n+a\n+b\ndiff --git a/o.py b/o.py\ndeleted file mode 100644\n--- a/o.py\n"
        "+++ /dev/null\n@@ -1 +0,0 @@\n-x\ndiff --git a/p.py b/q.py\nsimilarity index 100%\n"
        "rename from p.py\nrename to q.py\n```"
    )
    found = blocks(text)
    assert [(one.kind, one.path, one.to) for one in found] == [
        ("create", "n.py", ""),
        ("delete", "o.py", ""),
        ("rename", "p.py", "q.py"),
    ]
    assert found[0].lines == ("a", "b")


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("a.py.orig", "a.py", "a.py"),
        ("b.py", "src/b.py", "src/b.py"),
        ("src/b.py", "b.py", "b.py"),
        ("a.py", "b.py", None),
    ],
)
def test_the_names_in_a_header_are_of_one_file(old: str, new: str, path: str | None) -> None:
    (block,) = blocks(f"```diff\n--- {old}\n+++ {new}\n@@ -1 +1 @@\n-x\n+y\n```")
    assert (block.path, bool(block.problem)) == (path or new, path is None)


def test_a_removed_comment_of_lua_is_no_header() -> None:
    text = (
        "```diff\n--- a/m.lua\n+++ b/m.lua\n@@ -1,2 +1,2 @@\n"
        "--- old words\n+-- new words\n x = 1\n```"
    )
    (block,) = blocks(text)
    assert block.pairs[0].old == ("-- old words", "x = 1")


SQL = "--- drop the old rows\n+++ keep the old rows\n"


@pytest.mark.parametrize(
    ("body", "old"),
    [
        (f"@@ -1 +1 @@\n{SQL}@@ -9 +9 @@\n-b\n+c\n", ["-- drop the old rows", "b"]),
        (f"@@ -1,3 +1,3 @@\n{SQL}@@ -9 +9 @@\n-b\n+c\n", ["-- drop the old rows", "b"]),
        ("@@ -1 +1 @@\n--- x\n+++ y\n@@ -9 +9 @@\n-b\n+c\n", ["-- x", "b"]),
        ("@@ -1 +1 @@\n--- x.sql\n+++ y.sql\n\\ No newline at end of file\n", ["-- x.sql"]),
    ],
)
@pytest.mark.parametrize("head", ["```diff\n", ""])
def test_changed_comments_of_sql_are_no_file_names(head: str, body: str, old: list[str]) -> None:
    diff = f"{head}--- a/a.sql\n+++ b/a.sql\n{body}"
    (block,) = blocks(f"{diff}```\n" if head else f"{diff}\nThat is all.\n")
    assert (block.path, block.problem) == ("a.sql", "")
    assert [pair.old for pair in block.pairs] == [(line,) for line in old]


@pytest.mark.parametrize("counts", ["-1 +1", "-1,2 +1,2", "-1,9 +1,9", "-1,0 +1,0"])
@pytest.mark.parametrize(
    ("first", "second"), [("a/x.py +b/x.py", "a/y.py +b/y.py"), ("x.py +x.py", "y.py +y.py")]
)
def test_files_are_distinguished_whatever_the_counts_say(
    counts: str, first: str, second: str
) -> None:
    def of(name: str, line: str) -> str:
        old, new = name.split(" +")
        return f"--- {old}\n+++ {new}\n@@ {counts} @@\n-{line}\n+new\n"

    found = blocks(f"```diff\n{of(first, 'one')}{of(second, 'two')}```\n")
    assert [(one.path, one.pairs[0].old) for one in found] == [
        ("x.py", ("one",)),
        ("y.py", ("two",)),
    ]


def test_a_patch_in_the_format_of_openai() -> None:
    text = (
        "*** Begin Patch\n*** Add File: n.py\n+a\n*** Delete File: o.py\n*** Update File: p.py\n"
        "*** Move to: q.py\n@@ class A\n@@ def f\n x\n-y\n+z\n@@\n-last\n*** End of File\n"
        "*** End Patch\n"
    )
    add, delete, move = blocks(text)
    assert (add.kind, add.lines, delete.kind) == ("create", ("a",), "delete")
    assert (move.kind, move.to) == ("rename", "q.py")
    first = move.pairs[0]
    assert (first.old, first.new, first.scope) == (("x", "y"), ("x", "z"), "class A\ndef f")
    assert [pair.is_last for pair in move.pairs] == [False, True]


def test_thoughts_and_prose_are_no_blocks() -> None:
    assert blocks(f"<think>{PAIR}</think>\nIt is right.") == ()
    assert blocks("") == ()


def test_a_document_with_fences_of_its_own_is_not_guessed() -> None:
    text = "n.md\n```markdown\n# N\n\n```\nx\n```\n\nEnd\n```\n"
    first: Block = blocks(text)[0]
    assert first.problem
    text = "n.md\n```markdown\n# N\n```\nThen\n```python\nf()\n```\nand\n```\nEnd\n```\n"
    assert blocks(text)[0].problem
    assert not blocks(text.removesuffix("and\n```\nEnd\n```\n"))[0].problem
