"""The keys are lcursor's while a ghost is visible; then the user's maps come back as they were."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

DEF = {"a.py": "def f(x):\n"}

PUT = "function() vim.api.nvim_put({{ '{}' }}, 'c', false, true) end"
USER_MAPS = {
    "global": "vim.keymap.set('i', '<Tab>', 'GLOBAL')",
    "global lua": f"vim.keymap.set('i', '<Tab>', {PUT.format('LUA')})",
    "global expr": "vim.keymap.set('i', '<Tab>', function() return 'EXPR' end, { expr = true })",
    "buffer": "vim.keymap.set('i', '<Tab>', 'BUFFER', { buffer = 0 })",
    "buffer lua": f"vim.keymap.set('i', '<Tab>', {PUT.format('BLUA')}, {{ buffer = 0 }})",
    "buffer expr": "vim.keymap.set('i', '<Tab>', function() return 'BEXPR' end,"
    " { buffer = 0, expr = true })",
    "buffer vim expr": "vim.cmd([[inoremap <buffer> <expr> <silent> <nowait> <Tab> 'V' .. 'IM']])",
    "buffer both modes": "vim.cmd([[noremap! <buffer> <Tab> BOTH]])",
    "buffer plug": "vim.cmd([[inoremap <Plug>(mine) MINE\nimap <buffer> <Tab> <Plug>(mine)]])",
}
RESULT = {
    "global": "GLOBAL",
    "global lua": "LUA",
    "global expr": "EXPR",
    "buffer": "BUFFER",
    "buffer lua": "BLUA",
    "buffer expr": "BEXPR",
    "buffer vim expr": "VIM",
    "buffer both modes": "BOTH",
    "buffer plug": "MINE",
}

MAPARG = """
local map = vim.fn.maparg("<Tab>", ..., false, true)
map.callback = map.callback and tostring(map.callback)
return map
"""


@pytest.mark.parametrize("kind", USER_MAPS)
def test_the_users_map_comes_back(editor: Start, host: FakeHost, kind: str) -> None:
    nvim = editor(DEF)
    nvim.lua(USER_MAPS[kind])
    before = [nvim.lua(MAPARG, mode) for mode in ("i", "c")]
    nvim.offer("return x", "o")
    assert "lcursor" in nvim.lua(MAPARG, "i")["desc"]
    nvim.press("<Tab>")
    assert nvim.lines()[1] == "    return x"
    after = [nvim.lua(MAPARG, mode) for mode in ("i", "c")]
    for old, new in zip(before, after, strict=True):
        for part in {*old, *new} - {"lnum", "sid", "mode", "mode_bits", "scriptversion"}:
            assert old.get(part) == new.get(part), part
    nvim.press("<Tab>")
    assert nvim.lines()[1] == "    return x" + RESULT[kind]


def test_without_a_ghost_tab_is_a_tab(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.insert("o")
    nvim.press("<Tab>x")
    assert nvim.lines()[1] == "        x"


def test_only_in_the_buffer_of_the_ghost_and_gone_on_leaving(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.offer("return x", "o")
    assert nvim.lua("return #vim.api.nvim_buf_get_keymap(0, 'i')") == 6
    assert nvim.lua("return vim.fn.maparg('<Tab>', 'n')") == ""
    nvim.press("<Esc>")
    assert nvim.lua("return vim.api.nvim_buf_get_keymap(0, 'i')") == []


def test_the_buffer_is_left_while_a_ghost_is_visible(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.lua(USER_MAPS["buffer"])
    nvim.offer("return x", "o")
    nvim.lua("vim.cmd('enew!')")
    nvim.settle()
    assert nvim.lua("return #vim.api.nvim_buf_get_keymap(1, 'i')") == 1
    assert nvim.lua("return vim.api.nvim_buf_get_keymap(1, 'i')[1].rhs") == "BUFFER"


def test_a_map_made_meanwhile_is_left_alone(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.lua(USER_MAPS["buffer"])
    nvim.offer("return x", "o")
    nvim.lua("vim.keymap.set('i', '<Tab>', 'NEWER', { buffer = 0 })")
    nvim.press("<Esc>")
    assert nvim.lua(MAPARG, "i")["rhs"] == "NEWER"


def test_a_plug_map_of_the_users_replaces_the_key(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init="vim.keymap.set('i', '<C-y>', '<Plug>(lcursor-accept)')\n")
    nvim.offer("return x", "o")
    assert nvim.lua(MAPARG, "i").get("buffer") != 1
    nvim.press("<C-y>")
    assert nvim.lines()[1] == "    return x"


def test_plug_maps_for_line_and_word_and_dismiss(editor: Start, host: FakeHost) -> None:
    nvim = editor(
        DEF,
        init="""
        vim.keymap.set("i", "<C-j>", "<Plug>(lcursor-accept-line)")
        vim.keymap.set("i", "<C-l>", "<Plug>(lcursor-accept-word)")
        vim.keymap.set("i", "<C-e>", "<Plug>(lcursor-dismiss)")
        """,
    )
    nvim.offer("return x + y\n    pass", "o")
    nvim.press("<C-l>")
    assert nvim.lines()[1] == "    return"
    nvim.press("<C-j>")
    assert nvim.lines()[1] == "    return x + y"
    nvim.press("<C-e>")
    assert nvim.ghost() == ""
    nvim.press("<C-j><C-l><C-e>")
    assert nvim.lines() == ["def f(x):", "    return x + y"]


@pytest.mark.parametrize("name", ["hunk-next", "hunk-accept", "edit-stop", "edit"])
def test_plug_maps_of_edits_leave_select_mode_alone(editor: Start, name: str) -> None:
    """What is typed there replaces the selection, as in a snippet."""
    nvim = editor(DEF)
    code = "return vim.fn.maparg(('<Plug>(lcursor-%s)'):format(...), 's') == ''"
    assert nvim.lua(code, name)
    assert not nvim.lua(code.replace("'s'", "'n'"), name)
    assert not nvim.lua(code.replace("'s'", "'x'"), name)


def test_no_keys_when_they_are_switched_off(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, config={"completion": {"keymap": False}})
    nvim.offer("return x", "o")
    assert nvim.lua("return vim.api.nvim_buf_get_keymap(0, 'i')") == []


def test_other_keys(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, config={"completion": {"keymap": {"accept": "<C-y>", "accept_word": ""}}})
    nvim.offer("return x", "o")
    assert nvim.lua("return #vim.api.nvim_buf_get_keymap(0, 'i')") == 5
    nvim.press("<C-y>")
    assert nvim.lines()[1] == "    return x"


def test_a_snippet_jump_when_no_ghost_is_visible(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.txt": "\n"}, config={"completion": {"filetypes": {"text": True}}})
    request = nvim.insert("i")
    host.done(request, "")
    nvim.lua("vim.snippet.expand('for ${1:name} in ${2:list} do')")
    nvim.settle()
    nvim.press("k")
    nvim.press("<Tab>")
    assert nvim.lua("return vim.api.nvim_get_mode().mode") == "s"
    nvim.press("v")
    assert nvim.lines()[0] == "for k in v do"


def ghost_in_a_snippet(editor: Start, host: FakeHost, snippet: str) -> Pilot:
    """Type a letter in the first field of a snippet, and show a suggestion there."""
    nvim = editor({"a.py": "\n"})
    nvim.insert("i")
    nvim.lua("vim.snippet.expand(...)", snippet)
    nvim.settle()
    host.skip()
    nvim.keys("g")
    host.done(nvim.request("(g"), "host text")
    nvim.wait_ghost()
    return nvim


def test_tab_jumps_in_a_snippet_and_other_keys_accept(editor: Start, host: FakeHost) -> None:
    nvim = ghost_in_a_snippet(editor, host, "foo(${1:a})\nbar(${2:b})$0")
    nvim.press("<C-Right>")
    assert nvim.lines() == ["foo(ghost)", "bar(b)"]
    assert nvim.ghost() == " text"
    nvim.press("<Tab>")
    assert nvim.lua("return vim.api.nvim_get_mode().mode") == "s"
    assert nvim.lines() == ["foo(ghost)", "bar(b)"]
    nvim.press("y")
    nvim.press("<Tab>")
    nvim.press("end")
    assert nvim.lines() == ["foo(ghost)", "bar(y)end"]


def test_tab_accepts_where_a_snippet_has_no_further_field(editor: Start, host: FakeHost) -> None:
    nvim = ghost_in_a_snippet(editor, host, "foo(${1:a}$0")
    nvim.press("<S-Tab>")  # there is no earlier field
    assert nvim.lines()[0] == "foo(ghost text"


ENGINES = {
    "luasnip": "package.loaded.luasnip = { in_snippet = function() return true end,"
    " locally_jumpable = function(by) return by == 1 end }",
    "mini": "package.loaded['mini.snippets'] = { session = { get = function() return {} end } }",
    "vsnip": "vim.g.loaded_vsnip = 1; vim.opt.rtp:append('.')",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("has_map", [True, False])
def test_tab_belongs_to_a_snippet_plugin_if_it_is_mapped(
    editor: Start, host: FakeHost, engine: str, has_map: bool
) -> None:
    """Without a mapping the plugin has another key, and <Tab> accepts."""
    vsnip = "func vsnip#jumpable(by)\n  return 1\nendfunc\n"
    nvim = editor({**DEF, "autoload/vsnip.vim": vsnip})
    nvim.lua(ENGINES[engine])
    if has_map:
        nvim.lua("vim.keymap.set('i', '<Tab>', function() vim.g.jumped = true end)")
    nvim.offer("return x", "o")
    nvim.press("<Tab>")
    assert (nvim.lua("return vim.g.jumped") is True) == has_map
    assert nvim.lines()[1:] == (["    "] if has_map else ["    return x"])


def test_the_native_menu_hides_it_and_has_the_keys(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "alpha\nalpine\nal\n"}, init=USER_MAPS["global"] + "\n")
    nvim.command("set completeopt=menuone,noinsert")
    nvim.command("call cursor(3, 1)")
    nvim.offer("ways", "A")
    nvim.press("<C-n>")
    assert nvim.lua("return vim.fn.pumvisible()") == 1
    assert nvim.ghost() == ""
    assert nvim.lua(MAPARG, "i")["rhs"] == "GLOBAL"
    assert nvim.why() == "menu"
    nvim.press("<C-e>")
    nvim.wait_ghost(lambda text: text == "ways")
    assert nvim.count() == 1
    nvim.press("<Tab>")
    assert nvim.lines()[2] == "always"


# Neovim 0.12 opens a menu without a selected item at each key.
AUTOCOMPLETE = """
vim.o.completeopt = "menuone,noselect"
local get = vim.api.nvim_get_option_value
vim.api.nvim_get_option_value = function(name, opts)
  return name == "autocomplete" or get(name, opts)
end
vim.api.nvim_create_autocmd({ "TextChangedI", "TextChangedP" }, { callback = function()
  vim.schedule(function()
    if vim.api.nvim_get_current_line():sub(-2) == "al" then
      vim.fn.complete(1, { "alpha", "alpine" })
    end
  end)
end })
"""


def test_the_menu_of_autocomplete_does_not_hide_it(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "\n"}, init=AUTOCOMPLETE)
    host.reply = lambda request: "ways" if request["prefix"].endswith("al") else ""
    nvim.keys("ial")
    nvim.wait_ghost()
    assert nvim.lua("return vim.fn.pumvisible()") == 1
    nvim.press("<C-n>")
    assert nvim.ghost() == ""
    nvim.press("<C-p>")
    nvim.wait_ghost(lambda text: text == "ways")
    nvim.press("<Tab>")
    assert nvim.lines() == ["always"]


def test_taking_an_item_of_the_menu_asks_again(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "alpha\nalpine\nal\n"})
    nvim.command("call cursor(3, 1)")
    nvim.offer("ways", "A")
    nvim.press("<C-n>")
    assert (nvim.lines()[2], nvim.ghost(), nvim.count()) == ("alpha", "", 1)
    nvim.press("<C-y>")
    assert nvim.count() == 2
    assert host.requests[1]["prefix"].endswith("\nalpha")


def test_an_answer_that_comes_while_the_menu_is_open_waits(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "alpha\nalpine\nal\n"})
    nvim.command("call cursor(3, 1)")
    request = nvim.insert("A")
    nvim.press("<C-n><C-p>")
    host.done(request, "ways")
    assert nvim.shows() == ""
    nvim.press("<C-e>")
    assert nvim.wait_ghost() == "ways"


@pytest.mark.parametrize(
    ("module", "field"),
    [("cmp", "visible"), ("blink.cmp", "is_menu_visible"), ("blink.cmp", "is_visible")],
)
def test_other_menus_have_the_keys_too(
    editor: Start, host: FakeHost, module: str, field: str
) -> None:
    nvim = editor(DEF, init=USER_MAPS["global"] + "\n")
    nvim.lua(
        "local m, f = ... package.loaded[m] = { [f] = function() return vim.g.menu end }",
        module,
        field,
    )
    nvim.offer("return x", "o")
    nvim.lua("vim.g.menu = true")
    nvim.press("<Tab>")
    assert nvim.lines()[1] == "    GLOBAL"
    assert nvim.ghost() == ""
    nvim.lua("vim.g.menu = false")


def test_a_menu_of_blink_hides_it_at_once(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.lua("package.loaded['blink.cmp'] = { is_menu_visible = function() return vim.g.menu end }")
    nvim.offer("return x", "o")
    event = "vim.g.menu = ...; vim.api.nvim_exec_autocmds('User', { pattern = %r })"
    nvim.lua(event % "BlinkCmpMenuOpen", True)
    assert nvim.shows() == ""
    nvim.lua(event % "BlinkCmpMenuClose", False)
    assert nvim.wait_ghost() == "return x"
    assert nvim.count() == 1


def test_a_menu_of_nvim_cmp_hides_it_at_once(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.lua(
        """
        local listeners = {}
        package.loaded.cmp = {
          visible = function() return vim.g.menu == true end,
          event = { on = function(_, name, fn) listeners[name] = fn end },
        }
        function _G.set_menu(is_open)
          vim.g.menu = is_open
          listeners[is_open and "menu_opened" or "menu_closed"]({})
        end
        """
    )
    nvim.offer("return x", "o")
    nvim.lua("set_menu(true)")
    assert nvim.shows() == ""
    nvim.lua("set_menu(false)")
    assert nvim.wait_ghost() == "return x"
    assert nvim.count() == 1


def test_a_broken_menu_plugin_does_no_harm(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.lua("package.loaded.cmp = { visible = function() error('broken') end }")
    nvim.offer("return x", "o")
    nvim.press("<Tab>")
    assert nvim.lines()[1] == "    return x"


def test_typing_through_leaves_the_maps_as_they_are(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.offer("return x", "o")
    count = "vim.g.maps = 0; local set = vim.api.nvim_buf_set_keymap; vim.api.nvim_buf_set_keymap ="
    nvim.lua(count + " function(...) vim.g.maps = vim.g.maps + 1; return set(...) end")
    nvim.press("ret")
    assert nvim.lua("return vim.g.maps") == 0
    assert nvim.lua("return #vim.api.nvim_buf_get_keymap(0, 'i')") == 6
