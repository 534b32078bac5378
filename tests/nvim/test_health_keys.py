"""What `:checkhealth lcursor` lists of keys: overridden mappings, and keys that stay the user's."""

from __future__ import annotations

from collections.abc import Callable

from tests.nvim.pilot import Pilot
from tests.nvim.test_health import report

Start = Callable[..., Pilot]

FILES = {"b.py": "b = 1\n"}


def test_mappings_that_are_overridden(editor: Start) -> None:
    nvim = editor(FILES, config={"next_edit": {"mode": "hint"}})
    keys = report(nvim).section("Keys")
    nothing = "OK No mapping of yours is overridden while a {} is visible"
    assert nothing.format("suggestion") in keys  # Neovim's own <Tab> does not count
    assert nothing.format("next edit") in keys
    nvim.command("tabclose")
    nvim.lua("vim.keymap.set('i', '<Tab>', function() end, { desc = 'leap ahead' })")
    nvim.lua("vim.keymap.set('i', '<C-Right>', '<Plug>(lcursor-accept-word)')")
    nvim.command("nnoremap <Esc> <Cmd>nohlsearch<CR>")
    nvim.command("inoremap <C-]> x")
    nvim.command("inoremap <buffer> <Tab> <C-n>")
    found = report(nvim)
    line = found.finding("<Tab> is overridden while a suggestion is visible")
    assert "leap ahead" in line
    assert "b.py: <C-N>" in line
    assert "`completion.keymap.accept = false` disables that" in line
    assert "<C-Right>" not in found.section("Keys")
    line = found.finding("<C-]> is overridden while a next edit is visible (in Insert mode it is")
    assert "`next_edit.keymap.dismiss_insert = false` disables that" in line
    assert "<Esc>" not in found.section("Keys")  # which does both


def test_default_keys_that_stay_the_users(editor: Start) -> None:
    init = "vim.keymap.set({ 'n', 'o' }, ']h', function() end, { desc = 'leap ahead' })\n"
    init += "vim.keymap.set('n', 'g.', 'x') vim.keymap.set('n', '<Tab>', 'x')\n"
    init += "vim.keymap.set('n', 'X', '<Plug>(lcursor-hunk-diff)')\n"
    init += "vim.keymap.set('n', 'ghd', 'x')\n"
    nvim = editor(FILES, init=init, config={"edit": {"keymap": {"again": "g."}}})
    nvim.command("xnoremap <buffer> gH <C-n>")
    found = report(nvim)
    assert "in Normal mode it is leap ahead (" in found.finding("]h is not mapped for edit.key")
    assert "in Visual mode it is b.py: <C-N>" in found.finding("edit.keymap.reject_operator (")
    keys = found.section("Keys")
    assert keys.count("is not mapped for") == 3  # not for those that are set, or mapped otherwise
    assert "<Tab> is not mapped for next_edit.keymap.accept (" in keys
    assert "Set such a key in its option" in keys
    assert "WARNING" not in keys
