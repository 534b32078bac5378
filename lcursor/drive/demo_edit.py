"""An edit in the demo: change a function by an instruction, show the diff, accept it.

Uses the server that the demo's chat started.
"""

from __future__ import annotations

from lcursor.drive.editor import Editor

INSTRUCTION = "Rename the variable `length` to `shared`"
RANGE = "/^def common/,/return length/"
WIDTH = 78
TIMEOUT_S = 180.0
SIGNS = {"DiffAdd": "+", "DiffDelete": "-"}
"""Highlight groups of added and removed lines, and the sign to print for them."""
MARK = "\0"

FOCUS = """
local win = vim.iter(vim.api.nvim_list_wins()):find(function(win)
  return vim.bo[vim.api.nvim_win_get_buf(win)].filetype == "python"
end)
vim.api.nvim_set_current_win(win)
vim.cmd.only()
vim.fn.search("^def common", "w")
"""
LISTEN = """
local requests = require("lcursor.host.requests")
local follow = requests.follow
function requests.follow(method, params, on_message)
  return follow(method, params, function(name, answer)
    if name == "edit.done" then
      _G.lcursor_demo_edit = answer
    end
    on_message(name, answer)
  end)
end
"""
DONE = "return _G.lcursor_demo_edit"
COUNT = "return require('lcursor.edit.proposals').count()"
GO = "require('lcursor.edit.hunks').next(1)"
ACCEPT = "require('lcursor.edit.hunks').accept_file()"


def play(editor: Editor) -> None:
    """Request an edit of a function, show its hunks, and accept them.

    Raises:
        TimeoutError: nothing was proposed.
    """
    print(f"\nAn edit of the same function: `:{RANGE}LCEdit {INSTRUCTION}`")
    editor.lua(FOCUS)
    editor.lua(LISTEN)
    editor.command(f"{RANGE}LCEdit {INSTRUCTION}")
    done = editor.wait_lua(DONE, timeout_s=TIMEOUT_S)
    if done["reason"] != "proposed":
        raise TimeoutError(f"nothing was proposed: {done['reason']} {done['message']}")
    before = editor.lines()
    editor.lua("vim.fn.search('^def common', 'w') vim.cmd.normal('zt')")
    editor.lua(GO)
    editor.screen.wait(lambda screen: screen.has("DiffAdd"), 5)
    _print(editor)
    count = editor.lua(COUNT)
    editor.lua(ACCEPT)
    editor.wait_lua(f"return (function() {COUNT} end)() == 0")
    if editor.lines() == before:
        raise TimeoutError("the hunks were not applied")
    editor.command("redraw")
    what = "The hunk is" if count == 1 else f"All {count} hunks are"
    print(f"{what} accepted; `u` undoes it in one step:")
    _print(editor)
    passes = f"{done['passes']:.0f} passes of the model" if done["passes"] else "passes unknown"
    print(
        f"  {done['prompt_tokens']:.0f} tokens read, {done['answer_tokens']:.0f} written in "
        f"{passes}, {done['seconds']:.1f} s, {done['attempts']:.0f} "
        f"{'try' if done['attempts'] == 1 else 'tries'}"
    )


def _print(editor: Editor) -> None:
    """Print the screen, with a sign before added and removed lines."""
    rows = editor.screen.rows()
    signs = [" "] * len(rows)
    for group, sign in SIGNS.items():
        for number, row in enumerate(editor.screen.marked(group, MARK, "")):
            if MARK in row:
                signs[number] = sign
    print("  ┌" + "─" * WIDTH)
    for sign, row in zip(signs, rows, strict=True):
        print(f" {sign}│{row}".rstrip())
    print("  └" + "─" * WIDTH + "\n")
