"""What edits promise beside a region written anew: files that come and go, checks, models."""

from __future__ import annotations

import pytest

from lcursor.drive.editor import Editor
from tests.nvim.home import COUNT, A, Home, accept_all, proposed, told

PATCH = """\
*** Begin Patch
*** Add File: lib/new.py
+new = 1
*** Delete File: c.py
-c = 1
*** Update File: b.py
*** Move to: lib/b.py
@@
-b = 1
+b = 2
*** Update File: a.py
@@
-    return x
+    return x + 1
*** End Patch
"""
NEW = "```python\ndef alpha(x):\n    return {}\n```\n"


def files(home: Home) -> dict[str, str]:
    """Return the files of the project and what is in them."""
    return {
        str(path.relative_to(home.project)): path.read_text() for path in home.project.rglob("*.py")
    }


def drawn(editor: Editor) -> str:
    """Return the lines of the screen."""
    return "\n".join(editor.screen.rows())


def allow(editor: Editor) -> None:
    """Answer the question whether commands may run in the project: yes, from now on."""
    editor.wait_lua("return vim.fn.getline(2) == 'Yes, in this project from now on'")
    assert editor.screen.wait(lambda screen: "all your rights" in "\n".join(screen.rows()), 20)
    editor.keys("j<CR>")


def test_files_come_go_and_move_as_one_turn_that_outlives_neovim(home: Home) -> None:
    (home.project / "c.py").write_text("c = 1\n")
    before = files(home)
    editor = home.open()
    editor.lua("vim.fn.setreg('\"', ...)", PATCH)
    editor.command("LCursor edit apply")
    proposed(editor)
    assert files(home) == before
    editor.keys("2GghA")
    told(editor, "b.py → ")
    told(editor, "c.py (deleted)")
    told(editor, "lib/new.py (new)")
    told(editor, "ghA again accepts all")
    assert (files(home), editor.lines()) == (before, A.splitlines())
    editor.keys("ghA")
    editor.wait_lua(f"{COUNT} == 0")
    editor.wait_lua("return vim.fn.getline(2) == '    return x + 1'")
    editor.command("write")
    after = {
        "a.py": A.replace("return x\n", "return x + 1\n"),
        "lib/b.py": "b = 2\n",
        "lib/new.py": "new = 1\n",
    }
    assert files(home) == after
    editor = home.open()  # another Neovim knows of it
    editor.command("LCursor edit undo")
    told(editor, "undid")
    editor.wait_lua("return vim.fn.getline(2) == '    return x'")
    editor.command("write")
    assert files(home) == before
    editor = home.open()
    editor.command("LCursor edit redo")
    told(editor, "redid")
    editor.wait_lua("return vim.fn.getline(2) == '    return x + 1'")
    editor.command("write")
    assert files(home) == after


@pytest.mark.parametrize("typed", [[], ["typed"]], ids=["saved", "changed"])
def test_the_buffer_of_a_file_that_moved_moves_back(home: Home, typed: list[str]) -> None:
    editor = home.open()
    editor.lua("vim.fn.setreg('\"', ...)", PATCH.replace("*** Delete File: c.py\n-c = 1\n", ""))
    editor.command("LCursor edit apply")
    proposed(editor)
    editor.command("badd b.py | call bufload('b.py')")
    editor.keys("2GghAghA")
    at = "return vim.deep_equal({ ... }, vim.fn.getbufline(vim.fn.bufnr('b.py$'), 1, '$'))"
    at += " and vim.fn.expand('#' .. vim.fn.bufnr('b.py$') .. ':.') == "
    editor.wait_lua(at + "'lib/b.py'", "b = 2")
    editor.lua("vim.fn.appendbufline('lib/b.py', 1, ...)", typed)
    for command, name, value in [
        ("undo", "b.py", 1),
        ("redo", "lib/b.py", 2),
        ("undo", "b.py", 1),
    ]:
        editor.command(f"LCursor edit {command}")
        editor.wait_lua(f"{at}'{name}'", f"b = {value}", *typed)
        assert files(home)[name] == f"b = {value}\n"
        modified = "return vim.bo[vim.fn.bufnr('b.py$')].modified"
        assert editor.lua(modified) == bool(typed)


@pytest.mark.parametrize(
    ("step", "verbs"),
    [("*** Add File: c.py\n+c = 1", ("undo", "redo")), ("*** Delete File: c.py", ("redo", "undo"))],
    ids=["created", "deleted"],
)
def test_the_buffer_of_a_file_goes_with_it_when_an_edit_is_reverted(
    home: Home, step: str, verbs: tuple[str, str]
) -> None:
    path = home.project / "c.py"
    if "Delete" in step:
        path.write_text("c = 1\n")
    editor = home.open()
    editor.lua("vim.fn.setreg('\"', ...)", f"*** Begin Patch\n{step}\n*** End Patch\n")
    editor.command("LCursor edit apply")
    proposed(editor)
    accept_all(editor)
    told(editor, "1 file written")
    if "Delete" in step:
        editor.command("LCursor edit undo")
        told(editor, "undid")
    editor.command("edit c.py")
    assert editor.lines() == ["c = 1"]
    editor.command(f"LCursor edit {verbs[0]}")
    editor.wait_lua("return vim.fn.bufloaded('c.py') == 0")
    editor.command("wall")
    assert not path.exists()
    editor.command(f"LCursor edit {verbs[1]}")
    editor.wait_lua("return vim.fn.filereadable('c.py') == 1")
    editor.command("edit c.py")
    assert editor.lines() == ["c = 1"]


@pytest.mark.parametrize("is_confined", [True, False])
def test_the_users_test_is_run_in_a_copy_and_its_words_go_back(
    home: Home, *, is_confined: bool
) -> None:
    """Without a question where a sandbox works."""
    check = "import a; assert a.alpha(1) == 2, 'alpha of one is wrong'"
    if not is_confined:
        home.disable_sandbox()
    editor = home.open(test=f'python3 -c "{check}"')
    home.replies += [NEW.format("x + 5"), NEW.format("x + 1")]
    editor.command("1,2LCEdit add one")
    if not is_confined:
        allow(editor)
    proposed(editor)
    assert "alpha of one is wrong" in str(home.asked[1]["messages"])
    assert "after 2 attempts" in told(editor, "proposed")
    assert files(home)["a.py"] == A  # it was tried elsewhere
    editor.keys("2Gghh")
    editor.wait_lua("return vim.fn.getline(2) == '    return x + 1'")


def test_a_check_that_fails_to_the_end_is_said_at_the_hunk(home: Home) -> None:
    editor = home.open(test="python3 -c \"raise SystemExit('so it is')\"")
    home.replies += [NEW.format("x + 5")] * 2
    editor.command("1,2LCEdit add one")
    proposed(editor)
    assert editor.screen.wait(lambda screen: "test" in "\n".join(screen.rows()), 20), drawn(editor)


def test_it_is_made_again_with_a_remark(home: Home) -> None:
    editor = home.open()
    home.replies += [NEW.format("x + 1"), NEW.format("1 + x")]
    editor.command("1,2LCEdit add one")
    proposed(editor)
    editor.keys("2Gg.")
    editor.wait_lua("return vim.fn.mode() == 'i'")
    editor.keys("the one comes first<CR>")
    editor.wait_lua("return #require('lcursor.edit.proposals').all() == 2")
    proposed(editor)
    assert "the one comes first" in str(home.asked[1]["messages"])
    editor.wait_lua("return vim.api.nvim_get_current_buf() == vim.fn.bufnr('a.py')")
    editor.keys("<Esc>2G[v")  # the one before is still there
    editor.keys("2Gghh")
    editor.wait_lua("return vim.fn.getline(2) == '    return x + 1'")
