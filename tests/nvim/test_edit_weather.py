"""Bad weather end to end: a real Neovim, its real host, and replies and files as they may be."""

from __future__ import annotations

import os

import pytest

from lcursor.drive.editor import Editor
from tests.fakes.chat_server import Answer, say
from tests.fakes.disk import small_disk
from tests.nvim.home import COUNT, A, Home, accept_all, proposed, told

NEW = "def alpha(x):\n    return x + 1\n"
GOOD = f"```python\n{NEW}```\n"
CHANGED = A.replace("return x\n", "return x + 1\n")
IDLE = "return #require('lcursor.edit').running() == 0"
ARE = "return vim.deep_equal(vim.api.nvim_buf_get_lines(0, 0, -1, false), ...)"


def are(editor: Editor, text: str) -> None:
    """Wait until the buffer has these lines."""
    editor.wait_lua(ARE, text.splitlines())


def swap(path: str, old: str, new: str) -> str:
    """Return a block that changes a line of a file."""
    return f"{path}\n```\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n```\n\n"


BOTH = swap("a.py", "    return x", "    return x + 1") + swap("b.py", "b = 1", "b = 2")


def paste(editor: Editor, text: str, count: int = 2) -> None:
    """Have what was yanked applied, and wait until it is proposed."""
    editor.lua("vim.fn.setreg('\"', ...)", text)
    editor.command("LCursor edit apply")
    proposed(editor, count)


USELESS: list[tuple[str | Answer, str]] = [
    (f"```python\n{NEW}", "cut off"),
    (say("```python\n", "def alpha(x):\n", finish="length"), "cut off"),
    ("\n", "is empty"),
    ("I would leave it as it is.", "no code in a fence"),
    ("```java\nint alpha(int x) {\n    return x + 1;\n}\n```\n", "java"),
    ("```python\ndef alpha(x):\n    return x\n```\n", "made no change"),
    ("<think>\nI think of\n```python\nwrong = 1\n```\n", "is empty"),
]


def start_over(editor: Editor) -> None:
    """Reject what is proposed, and forget what the user was told."""
    editor.command("LCursor hunk reject all")
    editor.wait_lua(f"{COUNT} == 0")
    editor.lua("_G.notes = {}")


def test_a_reply_of_no_use_changes_nothing_and_says_why(home: Home) -> None:
    editor = home.open()
    for reply, words in USELESS:
        start_over(editor)
        home.replies += [reply, reply, GOOD]  # it tries twice
        editor.command("1,2LCEdit add one")
        told(editor, words)
        editor.wait_lua(IDLE)
        assert editor.lines() == A.splitlines()
        assert editor.lua(COUNT) == 0
        editor.command("1,2LCEdit add one")  # and it can be asked for again
        proposed(editor)
    editor.keys("2Gghh")
    are(editor, CHANGED)


@pytest.mark.parametrize(
    "reply",
    [
        f"<think>\n```python\nwrong = 1\n```\n</think>\n\n{GOOD}",
        f"{GOOD}\nAnd to try it:\n\n```python\nprint(alpha(2))\n```\n",
    ],
    ids=["thoughts", "two"],
)
def test_of_a_reply_only_the_block_that_was_asked_for_counts(home: Home, reply: str) -> None:
    editor = home.open()
    home.replies.append(reply)
    editor.command("1,2LCEdit add one")
    proposed(editor)
    editor.command("LCursor hunk accept all")
    are(editor, CHANGED)


FORMS = {
    "crlf": (b"def alpha(x):\r\n    return x\r\n", b"    return x + 1\r\n"),
    "bom": (b"\xef\xbb\xbfdef alpha(x):\n    return x\n", b"    return x + 1\n"),
    "bom_crlf": (b"\xef\xbb\xbfdef alpha(x):\r\n    return x\r\n", b"    return x + 1\r\n"),
    "tabs": (b"def alpha(x):\n\treturn x\n", b"\treturn x + 1\n"),
    "no_end": (b"def alpha(x):\n    return x", b"    return x + 1"),
    "crlf_no_end": (b"def alpha(x):\r\n    return x", b"    return x + 1"),
    "latin": (b"# caf\xe9\n\n\ndef alpha(x):\n    return x\n", b"    return x + 1\n"),
}


def test_a_file_keeps_its_form(home: Home) -> None:
    editor = home.open()
    editor.command("set nofixendofline")
    for form, (data, line) in FORMS.items():
        start_over(editor)
        path = home.project / f"{form}.py"
        path.write_bytes(data)
        editor.command(f"edit {path}")
        before = editor.lines()
        tab = "\t" if form == "tabs" else "    "
        home.replies.append(f"```python\ndef alpha(x):\n{tab}return x + 1\n```\n")
        editor.command("$LCEdit add one")
        proposed(editor)
        editor.command("LCursor hunk accept all")
        editor.wait_lua(f"{COUNT} == 0")
        editor.command("write")
        assert path.read_bytes() == b"".join(data.splitlines(keepends=True)[:-1]) + line, form
        editor.command("LCursor edit undo")
        editor.wait_lua(ARE, before)
        editor.command("write")
        assert path.read_bytes() == data, form


def test_a_file_that_is_not_open_keeps_its_form(home: Home) -> None:
    editor = home.open()
    for form, (data, line) in FORMS.items():
        if form == "latin":
            continue
        start_over(editor)
        path = home.project / f"{form}.py"
        path.write_bytes(data)
        tab = "\t" if form == "tabs" else "    "
        paste(editor, swap(f"{form}.py", f"{tab}return x", f"{tab}return x + 1"), 1)
        accept_all(editor)
        editor.wait_lua(f"{COUNT} == 0")
        assert path.read_bytes() == b"".join(data.splitlines(keepends=True)[:-1]) + line, form
        editor.command("LCursor edit undo")
        told(editor, "undid")
        assert path.read_bytes() == data, form


def test_an_empty_buffer_gets_all_lines_of_the_reply(home: Home) -> None:
    editor = home.open(home.project / "new.md")
    home.replies.append("```markdown\n# Title\n\nText.\n```\n")
    editor.command("LCEdit describe it")
    proposed(editor)
    assert editor.lua(COUNT) == 1
    editor.command("LCursor hunk accept all")
    are(editor, "# Title\n\nText.\n")
    editor.command("LCursor edit undo")
    editor.wait_lua(ARE, [""])


def test_a_buffer_that_changed_while_it_was_written(home: Home) -> None:
    editor = home.open()
    home.replies.append(GOOD)
    editor.command("1,2LCEdit add one")
    editor.lua("vim.api.nvim_buf_set_lines(0, 1, 2, false, { '    return 7 * x', '    # mine' })")
    editor.wait_lua(IDLE)
    mine = A.replace("return x\n", "return 7 * x\n    # mine\n")
    assert editor.lines() == mine.splitlines()
    editor.command("LCursor hunk accept all")  # what was proposed has no place any more
    told(editor, "conflict")
    assert editor.lines() == mine.splitlines()
    editor.keys("u")  # and has it again where it is as it was
    are(editor, A)
    editor.wait_lua("return require('lcursor.edit.proposals').hunks(0)[1].state == 'open'")
    editor.keys("2Gghh")
    are(editor, CHANGED)


def test_a_file_that_changed_on_disk_below_its_buffer(home: Home) -> None:
    path = home.project / "a.py"
    editor = home.open()
    editor.command("set autoread")
    home.replies.append(GOOD)
    editor.command("1,2LCEdit add one")
    proposed(editor)
    other = f"import os\n\n{A}"
    path.write_text(other)
    os.utime(path, (1, 1))
    editor.command("checktime")
    are(editor, other)
    editor.command("LCursor hunk accept all")
    editor.wait_lua(IDLE)
    lines = editor.lines()  # all of it stays, and the change goes where it belongs or nowhere
    assert lines in (other.splitlines(), f"import os\n\n{CHANGED}".splitlines())
    if lines == other.splitlines():
        told(editor, "conflict")


def refused(editor: Editor, words: str) -> None:
    """Take all, and see that nothing of what no buffer has was done, and that it still waits."""
    accept_all(editor)
    told(editor, words)
    editor.wait_lua(f"{COUNT} == 1")


def test_a_file_that_changed_on_disk_before_it_was_written(home: Home) -> None:
    editor = home.open()
    paste(editor, BOTH)
    (home.project / "b.py").write_text("b = 1\nmine = 2\n")
    refused(editor, "b.py")
    assert (home.project / "b.py").read_text() == "b = 1\nmine = 2\n"
    assert (home.project / "a.py").read_text() == A


def test_a_file_that_must_not_be_written(home: Home) -> None:
    editor = home.open()
    paste(editor, BOTH)
    path = home.project / "b.py"
    path.chmod(0o444)
    refused(editor, "read-only")
    assert path.read_text() == "b = 1\n"
    path.chmod(0o644)
    accept_all(editor)
    editor.wait_lua(f"{COUNT} == 0")
    assert path.read_text() == "b = 2\n"


def test_a_file_that_was_deleted(home: Home) -> None:
    editor = home.open()
    paste(editor, BOTH)
    (home.project / "b.py").unlink()
    refused(editor, "b.py")
    assert not (home.project / "b.py").exists()
    editor.command("LCursor hunk reject all")
    editor.wait_lua(f"{COUNT} == 0")


def test_the_file_of_a_buffer_that_was_deleted(home: Home) -> None:
    path = home.project / "a.py"
    editor = home.open()
    home.replies.append(GOOD)
    editor.command("1,2LCEdit add one")
    proposed(editor)
    path.unlink()
    editor.keys("2Gghh")
    are(editor, CHANGED)
    assert not path.exists()
    editor.command("LCursor edit undo")
    are(editor, A)
    editor.command("write")
    assert path.read_text() == A


def test_a_hunk_that_is_typed_by_hand_is_undone_with_its_edit(home: Home) -> None:
    editor = home.open()
    home.replies.append(GOOD)
    editor.command("1,2LCEdit add one")
    proposed(editor)
    editor.keys("2GA + 1<Esc>")
    editor.wait_lua(f"{COUNT} == 0")
    editor.keys("Goy = 1<Esc>")
    editor.command("LCursor edit undo")
    are(editor, f"{A}y = 1\n")
    editor.command("LCursor edit redo")
    are(editor, f"{CHANGED}y = 1\n")


@pytest.mark.parametrize("order", ["accept name", "name accept", "accept undo name redo"])
@pytest.mark.parametrize("command", ["saveas c.py", "file c.py"])
def test_undo_and_redo_follow_a_buffer_to_its_new_name(
    home: Home, command: str, order: str
) -> None:
    path = home.project / "a.py"
    editor = home.open()
    home.replies.append(GOOD)
    editor.command("1,2LCEdit add one")
    proposed(editor)
    steps = {"accept": "normal 2Gghh", "name": command}
    for step in order.split():
        editor.command(steps.get(step, f"LCursor edit {step}"))
        if step != "name":
            are(editor, A if step == "undo" else CHANGED)
    for verb, text in (("undo", A), ("redo", CHANGED), ("undo", A)):
        editor.command(f"LCursor edit {verb}")
        are(editor, text)
        assert editor.lua("return vim.fn.expand('%:t')") == "c.py"
    editor.command("write! | enew | bwipeout c.py")
    editor.command("LCursor edit redo")  # on the disk
    told(editor, "in 1 file")
    assert (home.project / "c.py").read_text() == CHANGED
    assert path.read_text() == A


def test_a_buffer_that_takes_the_name_of_another_file_of_the_edit(home: Home) -> None:
    editor = home.open()
    paste(editor, BOTH)
    editor.keys("2Gghh")
    are(editor, CHANGED)
    editor.command("saveas! b.py")
    editor.command("LCursor edit undo")
    told(editor, "only partly undone")
    editor.command("LCursor edit redo")
    told(editor, "nothing to redo")
    assert editor.lines() == CHANGED.splitlines()
    assert (home.project / "a.py").read_text() == A
    assert (home.project / "b.py").read_text() == CHANGED


def test_outside_of_the_project_only_named_files_are_written(home: Home) -> None:
    path = home.project.parent / "outside.py"
    path.write_text("b = 1\n")
    text = swap(str(path), "b = 1", "b = 2")
    editor = home.open()
    editor.lua("vim.fn.setreg('\"', ...)", text)
    editor.command("LCursor edit apply")
    told(editor, "is outside of the project")  # what only a reply names is not even read
    editor.command(f"split {path} | wincmd p")
    editor.command("LCursor edit apply")
    proposed(editor)
    editor.command("bwipeout outside.py")  # it is in no buffer any more: it would be written
    for keys in ("", "j", "k", ":enew<CR>"):
        editor.lua("_G.notes = {}")
        editor.keys(keys)
        editor.command("LCursor hunk accept all")
        told(editor, "outside.py (outside the project). :LCursor hunk accept all again")
    assert editor.lua(COUNT) == 1
    editor.command("LCursor hunk accept all")
    editor.wait_lua(f"{COUNT} == 0")
    assert path.read_text() == "b = 2\n"
    editor.command("LCursor edit undo")
    told(editor, "undid")
    assert path.read_text() == "b = 1\n"


def test_a_link_stays_one(home: Home) -> None:
    real = home.project / "lib/real.py"
    real.parent.mkdir()
    real.write_text(A)
    link = home.project / "link.py"
    link.symlink_to("lib/real.py")
    (home.project / "other.py").symlink_to("b.py")
    editor = home.open(link)
    home.replies.append(GOOD)
    editor.command("1,2LCEdit add one")
    proposed(editor)
    editor.keys("2Gghh")
    are(editor, CHANGED)
    editor.command("write")
    paste(editor, swap("other.py", "b = 1", "b = 2"), 1)
    accept_all(editor)
    editor.wait_lua(f"{COUNT} == 0")
    assert (real.read_text(), (home.project / "b.py").read_text()) == (CHANGED, "b = 2\n")
    editor.command("LCursor edit undo")
    told(editor, "undid")
    editor.command("LCursor edit undo")
    are(editor, A)
    editor.command("write")
    assert (real.read_text(), (home.project / "b.py").read_text()) == (A, "b = 1\n")
    assert link.is_symlink()
    assert (home.project / "other.py").is_symlink()


def test_a_change_of_a_file_that_is_open_through_a_link_is_undone(home: Home) -> None:
    (home.project / "link.py").symlink_to("a.py")
    editor = home.open(home.project / "link.py")
    paste(editor, swap("a.py", "    return x", "    return x + 1"), 1)
    accept_all(editor)
    are(editor, CHANGED)
    editor.command("LCursor edit undo")
    are(editor, A)
    assert (home.project / "a.py").read_text() == A


def test_a_disk_that_is_full_half_way(home: Home) -> None:
    folder = home.project / "small"
    folder.mkdir()
    with small_disk(folder):
        (folder / "c.py").write_text("c = 1\n")
        big = "\n".join(f"value_{number} = {number}" for number in range(6000))
        text = BOTH + swap("small/c.py", "c = 1", "c = 2") + f"small/big.py\n```\n{big}\n```\n"
        editor = home.open()
        paste(editor, text, 4)
        accept_all(editor)
        told(editor, "No space left")
        assert (home.project / "b.py").read_text() == "b = 1\n"
        assert {path.name for path in folder.iterdir()} == {"c.py"}
        assert (folder / "c.py").read_text() == "c = 1\n"
        assert editor.lua(COUNT) == 3  # what is in no buffer still waits
        editor.close()


def test_a_file_of_20000_lines(home: Home) -> None:
    parts = [f"def f{n}(x):\n    y = x + {n}\n    return y\n\n\n" for n in range(4000)]
    text = "".join(parts)
    path = home.project / "a.py"
    path.write_text(text)
    editor = home.open()
    home.replies.append("```python\ndef f3000(x):\n    y = x * 3000\n    return y\n```\n")
    editor.command("15001,15003LCEdit multiply")
    proposed(editor)
    assert "f3000" in str(home.asked[0]["messages"])
    assert len(str(home.asked[0]["messages"])) < 60_000
    editor.command("LCursor hunk accept all")
    wanted = text.replace("y = x + 3000\n", "y = x * 3000\n")
    are(editor, wanted)
    paste(editor, swap("a.py", "    y = x + 17", "    y = x - 17"), 1)
    editor.command("LCursor hunk accept all")
    are(editor, wanted.replace("y = x + 17\n", "y = x - 17\n"))
    editor.command("LCursor edit undo")
    are(editor, wanted)
    editor.command("LCursor edit undo")
    are(editor, text)


def test_neovim_is_killed_with_hunks_open(home: Home) -> None:
    editor = home.open()
    paste(editor, BOTH)
    editor.keys("2Gghh")
    are(editor, CHANGED)
    editor.command("write")
    editor.wait_lua("return not vim.bo.modified")
    home.kill(editor)
    assert (home.project / "b.py").read_text() == "b = 1\n"
    editor = home.open()
    editor.command("LCursor edit list")
    editor.wait_lua("return vim.fn.getline(1):find('1 open') ~= nil")
    editor.keys("<CR>")
    editor.wait_lua(f"{COUNT} == 1")
    accept_all(editor)
    editor.wait_lua(f"{COUNT} == 0")
    assert (home.project / "b.py").read_text() == "b = 2\n"
    editor.command("LCursor edit undo")
    told(editor, "undid")
    assert (home.project / "b.py").read_text() == "b = 1\n"
    editor.lua("vim.fn.win_gotoid(vim.fn.bufwinid('a.py'))")
    are(editor, A)
