"""The command, the public Lua API, the statusline, highlights and what happens at start-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lcursor.drive.client import NeovimError
from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, notes
from tests.waiting import is_running, wait_for

Start = Callable[..., Pilot]

DEF = {"a.py": "def f(x):\n"}


def test_nothing_is_loaded_before_the_first_insert(editor: Start, host: FakeHost) -> None:
    nvim = editor(
        DEF,
        init="for name in pairs(package.loaded) do "
        "if name:find('^lcursor') then package.loaded[name] = nil end end\n",
    )
    loaded = "return vim.tbl_filter(function(n) return n:find('^lcursor') end, "
    loaded += "vim.tbl_keys(package.loaded))"
    assert nvim.lua(loaded) == []
    assert nvim.lua("return vim.fn.exists(':LCursor')") == 2
    assert nvim.lua("return vim.fn.maparg('<Plug>(lcursor-accept)', 'i') ~= ''") is True
    assert not nvim.has_started_host()


def test_the_host_starts_at_the_first_insert_in_a_file(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.lua("vim.bo.buftype = 'nofile'")
    nvim.press("ix<Esc>")
    assert not nvim.has_started_host()
    nvim.lua("vim.bo.buftype = ''")
    nvim.insert("A")
    assert len(host.pids) == 1
    assert host.messages("hello")[0]["config"]["completion"]["model"] == "auto"


def test_the_host_knows_what_the_user_calls_secret(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, config={"privacy": {"exclude": ["*.vault", "private/*"]}})
    nvim.insert("A")
    told = host.messages("hello")[0]["config"]["privacy"]["exclude"]
    assert told == ["*.vault", "private/*"]


def test_toggle(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=NOTES)
    nvim.offer("return x", "o")
    nvim.keys("<Cmd>LCursor toggle<CR>")
    assert nvim.shows() == ""
    assert nvim.why() == "disabled"
    nvim.press("a")
    assert nvim.count() == 1
    nvim.keys("<Cmd>LCursor toggle<CR>")
    host.skip()
    assert nvim.count() == 2
    assert [text for text, _ in notes(nvim)] == [
        "lcursor: completion is off",
        "lcursor: completion is on",
    ]


OFF = [
    {"enabled": False},
    {"completion": {"enabled": False}},
]


@pytest.mark.parametrize("config", OFF)
@pytest.mark.parametrize("word", ["", "buffer"])
def test_toggle_switches_on_what_the_settings_switch_off(
    editor: Start, host: FakeHost, config: dict[str, Any], word: str
) -> None:
    nvim = editor(DEF, init=NOTES, config=config)
    nvim.press("o")
    assert nvim.why() == "disabled"
    nvim.keys(f"<Cmd>LCursor toggle {word}<CR>")
    nvim.request()
    nvim.keys(f"<Cmd>LCursor toggle {word}<CR>")
    nvim.settle()
    has_next_edits = "completion" in config  # which are switched off, too
    assert nvim.why() == ("disabled_buffer" if word and has_next_edits else "disabled")
    where = " in this buffer" if word else ""
    assert [text for text, _ in notes(nvim)] == [
        f"lcursor: completion is on{where}",
        f"lcursor: completion is off{where}",
    ]


def test_toggle_changes_what_vim_b_lcursor_says_in_its_buffer_only(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(DEF, init=NOTES)
    nvim.lua("vim.b.lcursor = { completion = { enabled = false } }")
    nvim.press("o")
    assert nvim.why() == "disabled_buffer"
    nvim.keys("<Cmd>LCursor toggle<CR><Cmd>LCursor toggle<CR>")
    nvim.settle()
    assert nvim.why() == "disabled_buffer"
    nvim.keys("<Cmd>LCursor toggle buffer<CR>")
    nvim.request()


def test_toggle_buffer(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=NOTES)
    nvim.insert("o")
    nvim.press("<Esc>")
    nvim.command("LCursor toggle buffer")
    assert nvim.why() == "disabled_buffer"
    nvim.command("edit! other.py")
    assert nvim.insert("i")["path"].endswith("other.py")
    nvim.press("<Esc>")
    nvim.command("buffer! 1")
    nvim.command("LCursor toggle buffer")
    assert nvim.why() != "disabled_buffer"
    assert notes(nvim)[-1][0] == "lcursor: completion is on in this buffer"


@pytest.mark.parametrize("word", ["", "buffer"])
def test_enable_and_disable(editor: Start, host: FakeHost, word: str) -> None:
    nvim = editor(DEF, init=NOTES)
    nvim.offer("return x", "o")
    for _ in range(2):
        nvim.keys(f"<Cmd>LCursor disable {word}<CR>")
        assert nvim.shows() == ""
        assert nvim.why() == ("disabled_buffer" if word else "disabled")
    for _ in range(2):
        nvim.keys(f"<Cmd>LCursor enable {word}<CR>")
        host.skip()
    where = " in this buffer" if word else ""
    off, on = f"lcursor: completion is off{where}", f"lcursor: completion is on{where}"
    assert [text for text, _ in notes(nvim)] == [off, off, on, on]
    nvim.press("a")
    nvim.request()


def test_why_says_it_in_words(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=NOTES)
    nvim.command("LCursor why")
    nvim.offer("return x", "o")
    nvim.keys("<Cmd>LCursor why<CR>")
    nvim.press("<C-]>")
    nvim.command("LCursor why")
    nvim.press("a")
    nvim.command("LCursor why")
    host.done(host.requests[-1], "", "trimmed")
    nvim.settle()
    nvim.command("LCursor why")
    nvim.press("<Esc>")
    nvim.command("LCursor why")
    *told, last = [text for text, _ in notes(nvim)]
    assert told == [
        "lcursor: Suggestions come only in Insert mode.",
        "lcursor: A suggestion is shown. Confidence 0.90, 30 ms, 10 of 100 tokens read, generated.",
        "lcursor: The suggestion was dismissed, and the text has not changed since.",
        "lcursor: Waiting for the model.",
        "lcursor: The suggestion repeated the text around it. "
        "30 ms, 10 of 100 tokens read, generated.",
    ]
    assert str(last).endswith(  # after a sentence about next edits
        "Suggestions come only in Insert mode. The last time in this line: "
        "The suggestion repeated the text around it. 30 ms, 10 of 100 tokens read, generated."
    )


def test_the_first_insert_loads_only_what_the_first_key_needs(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(DEF)
    modules = """
    return vim.tbl_filter(function(name)
      return vim.startswith(name, "lcursor")
    end, vim.tbl_keys(package.loaded))
    """
    at_once = nvim.lua(f"vim.cmd.doautocmd('InsertEnter') {modules}")
    assert len(at_once) <= 46
    large = "return { package.loaded['vim.lsp'], package.loaded['vim.diagnostic'] }"
    assert nvim.lua(large) in ([], {}), "they take longer to load than all of ours"
    nvim.insert("o")
    later = set(nvim.lua(modules)) - set(at_once)
    assert later > {"lcursor.index", "lcursor.complete.gather", "lcursor.complete.prefetch"}


def test_a_message_of_several_sentences_is_cut_after_one(editor: Start, host: FakeHost) -> None:
    """The window above shows the rest, also in Insert mode."""
    nvim = editor(DEF, columns=80)
    nvim.offer("return x", "o")
    nvim.lua("vim.keymap.set('i', '<M-w>', '<Cmd>LCursor why<CR>')")
    nvim.keys("<M-w>")
    said = "return vim.trim(vim.fn.execute('messages'))"
    nvim.wait_lua(f"{said} == ...", "lcursor: A suggestion is shown. …")
    wins = "return vim.tbl_map(function(win) local buf = vim.api.nvim_win_get_buf(win)"
    wins += " return table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, true), ' ')"
    wins += " end, vim.api.nvim_list_wins())"
    nvim.wait_lua(f"return #({wins[7:]}) == 2")
    assert nvim.lua(wins)[1].endswith("Confidence 0.90, 30 ms, 10 of 100 tokens read, generated.")
    assert nvim.ghost() == "return x"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("end", "nothing to suggest here"),
        ("line", "nothing to suggest for this line"),
        ("tokens", "token limit"),
        ("time", "time limit"),
        ("failed", "model failed"),
        ("cancelled", "cancelled"),
    ],
)
def test_why_the_model_said_nothing(editor: Start, host: FakeHost, reason: str, words: str) -> None:
    nvim = editor(DEF)
    host.done(nvim.insert("o"), "", reason)
    nvim.settle()
    assert words in nvim.lua("return require('lcursor.complete').why().text")


def test_why_names_the_state_of_the_host(editor: Start, host: FakeHost) -> None:
    host.is_polite = False
    nvim = editor(DEF)
    nvim.keys("o")
    host.wait(lambda: host.messages("hello"))
    assert nvim.why() == "host_starting"
    host.greet()
    host.state("loading_model", "qwen", 0.25)
    nvim.settle()
    assert nvim.why() == "host_loading_model"
    assert nvim.lua("return require('lcursor').status()") == "lc: loading 25%"
    host.state("failed", "no such model")
    nvim.settle()
    assert nvim.why() == "host_failed"
    assert host.requests == []
    host.state("ready")
    nvim.settle()
    assert not nvim.why().startswith("host_")
    assert nvim.request()


def test_status(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.offer("return x", "o")
    nvim.press("<Esc>")
    nvim.command("LCursor status")
    nvim.command("redraw")
    screen = "\n".join(nvim.screen.rows())
    for part in (
        "ready",
        "model       auto",
        str(host.pids[0]),
        "first text after 30 ms",
        "90 of 100",
    ):
        assert part in screen
    nvim.press("q")
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 1
    nvim.command("LCursor")
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 2


def test_status_before_anything_runs(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.command("LCursor status")
    nvim.command("redraw")
    assert "stopped" in "\n".join(nvim.screen.rows())
    assert not nvim.has_started_host()


def test_log(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.insert("o")
    nvim.press("<Esc>")
    nvim.command("LCursor log")
    nvim.wait_lua("vim.cmd.checktime() return vim.fn.search('host fake, pid', 'nw') > 0")
    assert nvim.lua("return vim.bo.readonly") is True
    assert nvim.lua("return vim.api.nvim_buf_get_name(0)").endswith("/state/nvim/lcursor.log")


def test_restart(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.insert("o")
    first = host.pids[0]
    nvim.keys("<Cmd>LCursor restart<CR>")
    host.wait(lambda: len(host.pids) == 2)
    assert nvim.request()["pid"] != first
    wait_for(lambda: not is_running(first), what="the first host has ended")


def test_described_maps_exist(editor: Start) -> None:
    nvim = editor(DEF)
    rows = nvim.lua("return require('lcursor.config.keys').describe()")
    mapped = """
        local name, modes = ...
        return vim.iter(modes:gmatch(".")):all(function(mode)
          return vim.fn.maparg(name, mode) ~= ""
        end)
    """
    assert [row for row in rows if not nvim.lua(mapped, row["name"], row["modes"])] == []
    defaults = nvim.lua("return require('lcursor.config').defaults()")
    wanted = [
        *defaults["completion"]["keymap"].values(),
        *defaults["next_edit"]["keymap"].values(),
        *defaults["edit"]["keymap"].values(),
        *defaults["chat"]["keymap"].values(),
        *defaults["agent"]["keymap"].values(),
    ]
    assert {row["default"] for row in rows if row["default"]} == {
        value for value in wanted if isinstance(value, str) and value
    }


def test_the_statusline(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init='vim.o.statusline = \'[%{get(g:, "lcursor_status", "")}]\'\n')
    nvim.insert("o")
    nvim.settle()
    assert "[lc]" in nvim.screen.rows()
    assert nvim.lua("return require('lcursor.integrations.lualine')()") == "lc"
    nvim.command("LCursor disable")
    assert nvim.lua("return vim.g.lcursor_status") == "lc: off"
    nvim.command("LCursor enable")
    assert nvim.lua("return vim.g.lcursor_status") == "lc"
    nvim.command("let g:lcursor_enabled = 0")
    assert nvim.lua("return require('lcursor').status()") == "lc: off"


def test_setup_after_the_start_reaches_the_host(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.insert("o")
    nvim.lua("require('lcursor').setup({ completion = { max_tokens = 7 } })")
    nvim.settle()
    assert host.messages("config")[-1]["config"]["completion"]["max_tokens"] == 7


def test_the_ghosts_colour_follows_the_colour_scheme_and_the_user(editor: Start) -> None:
    nvim = editor(DEF, init="vim.cmd('hi clear LCursorGhost')\n")
    link = "return vim.api.nvim_get_hl(0, { name = 'LCursorGhost' }).link"
    nvim.insert("o")
    assert nvim.lua(link) == "Comment"
    nvim.command("colorscheme habamax")
    assert nvim.lua(link) == "Comment"
    nvim.command("hi! link LCursorGhost Error")
    nvim.lua("require('lcursor.ui.highlights').apply()")
    assert nvim.lua(link) == "Error"
    assert nvim.lua("return require('lcursor.ui.highlights').describe()[1].name") == "LCursorGhost"


def without_rgb(nvim: Pilot, colours: int) -> None:
    """Make the screen that of a terminal with some colours."""
    nvim.client.request("nvim_ui_set_option", "rgb", False)
    nvim.client.request("nvim_ui_set_option", "term_colors", colours)


@pytest.mark.parametrize("colours", [-1, 8])
def test_a_ghost_is_underlined_where_colours_are_few(editor: Start, colours: int) -> None:
    """The default colour scheme has only bright ones, which such terminals do not show."""
    nvim = editor(DEF, init="vim.cmd('hi clear LCursorGhost | hi NonText ctermfg=3')\n")
    without_rgb(nvim, colours)
    nvim.insert("o")
    read = "return vim.api.nvim_get_hl(0, { name = ... })"
    assert nvim.lua(read, "LCursorGhost")["cterm"] == {"underline": True}
    assert nvim.lua(read, "LCursorEditRegion")["cterm"] == {"underline": True}
    assert nvim.lua(read, "LCursorEditAddedWord")["cterm"] == {"reverse": True}
    assert nvim.lua(read, "LCursorNextEditOld")["cterm"]["reverse"]
    assert nvim.lua(read, "LCursorNextEditNew")["cterm"] == {"underline": True}
    assert "ctermfg" not in nvim.lua(read, "LCursorEditAdded")  # black on black
    assert nvim.lua(read, "LCursorEditRemoved")["link"] == "DiffDelete"  # bold
    assert ("link" in nvim.lua(read, "LCursorGhostCount")) == (colours == 8)  # has a dark one


def test_a_ghost_has_a_colour_without_true_colours(editor: Start) -> None:
    """The default colour scheme gives comments none there: a ghost looked like text."""
    nvim = editor(DEF, init="vim.cmd('hi clear LCursorGhost')\n")
    without_rgb(nvim, 256)
    nvim.insert("o")
    read = "return vim.api.nvim_get_hl(0, { name = ... })"
    ghost = nvim.lua(read, "LCursorGhost")
    assert ghost["ctermfg"] in (8, 244)
    assert ghost["fg"] == nvim.lua(read, "Comment")["fg"]
    assert nvim.lua(read, "LCursorEditRegion").keys() & {"ctermbg", "cterm"}
    assert nvim.lua(read, "LCursorEditAdded")["link"] == "DiffAdd"  # has colours of its own
    nvim.command("colorscheme default")
    assert nvim.lua(read, "LCursorEditBadge")["ctermfg"] in (8, 244)
    nvim.command("hi LCursorGhost ctermfg=5")
    nvim.lua("require('lcursor.ui.highlights').apply()")
    assert nvim.lua(read, "LCursorGhost")["ctermfg"] == 5


def test_nothing_of_a_report_is_folded(editor: Start, host: FakeHost) -> None:
    """A new window has the folds of the one before, which may be of any method."""
    nvim = editor(DEF, init="vim.o.foldmethod, vim.o.foldexpr = 'expr', '1'\n")
    nvim.offer("return x", "o")
    nvim.press("<Esc>")
    nvim.command("LCursor status")
    nvim.command("redraw")
    assert "state       ready" in "\n".join(nvim.screen.rows())
    assert nvim.lua("return vim.fn.foldclosed(1)") == -1
    nvim.press("q")
    nvim.lua("require('lcursor.ui.window').split('x', { 'one', 'two' }, 'head')")
    assert nvim.lua("return vim.fn.foldclosed(1)") == -1


def test_words_that_a_command_does_not_know_do_nothing(editor: Start) -> None:
    nvim = editor(DEF, init=NOTES)
    nvim.command("LCursor toggle bufer")
    nvim.command("LCursor why not")
    assert [text for text, _ in notes(nvim)] == [
        "lcursor: invalid argument bufer for :LCursor toggle (expected: buffer)",
        "lcursor: invalid argument not for :LCursor why (expected: none)",
    ]
    nvim.command("LCursor toggle")
    assert notes(nvim)[-1][0] == "lcursor: completion is off"


def test_why_asked_from_normal_mode_reports_what_was_shown(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=NOTES)
    nvim.offer("return x", "o")
    nvim.press("<Esc>")
    nvim.command("LCursor why")
    assert "The last time in this line: A suggestion was shown. Con" in str(notes(nvim)[-1][0])


def test_a_long_message_of_wide_characters_needs_no_key(editor: Start) -> None:
    nvim = editor(DEF, columns=80)
    nvim.lua("require('lcursor.ui.notify').info(('日本'):rep(60))")
    nvim.press("x")
    assert nvim.lua("return vim.api.nvim_get_mode().blocking") is False
    assert "…" in nvim.lua("return vim.fn.execute('messages')")


def test_progress_that_ends_leaves_what_was_said_since(editor: Start) -> None:
    nvim = editor(DEF)
    said = "local notify = require('lcursor.ui.notify'); "
    nvim.lua(said + "notify.progress('half'); notify.info('done'); notify.progress('')")
    nvim.command("redraw")
    assert "lcursor: done" in "\n".join(nvim.screen.rows())
    nvim.lua(said + "notify.progress('half'); notify.progress('')")
    nvim.command("redraw")
    assert "lcursor: half" not in "\n".join(nvim.screen.rows())


def test_an_error_of_ours_is_reported_once_and_typing_goes_on(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(DEF, init=NOTES)
    nvim.insert("o")
    nvim.lua("require('lcursor.editor.context').read = function() error('broken') end")
    nvim.press("a")
    nvim.press("b")
    nvim.press("c")
    assert nvim.lines()[1] == "    abc"
    told = notes(nvim)
    assert len(told) == 1
    assert "an error in lcursor" in str(told[0][0])


def test_leaving_neovim_ends_the_host(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.insert("o")
    pid = host.pids[0]
    nvim.close()
    host.wait(lambda: host.messages("shutdown"))
    wait_for(lambda: not is_running(pid), what="the host has ended")
    with pytest.raises(NeovimError):
        nvim.lines()
