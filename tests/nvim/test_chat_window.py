"""Where the chat opens, in which window, and for which project; the host is a fake one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, notes
from tests.nvim.talk import ITEM, Talk
from tests.nvim.test_chat_buffer import FILES, HISTORY

Start = Callable[..., Pilot]


@pytest.mark.parametrize(
    ("settings", "check"),
    [
        ({"position": "left", "size": 0.5}, "win_screenpos(win)[2] == 1 and winwidth(win) >= 39"),
        ({"position": "below", "size": 0.3}, "winheight(win) <= 8 and winwidth(win) == 80"),
        ({"position": "float"}, "nvim_win_get_config(win).relative == 'editor'"),
    ],
)
def test_where_it_opens(
    editor: Start, host: FakeHost, settings: dict[str, object], check: str
) -> None:
    nvim = editor(FILES, config={"chat": {"window": settings}})
    Talk(nvim, host).open()
    assert nvim.lua(
        f"""
        local win = vim.api.nvim_get_current_win()
        local nvim_win_get_config = vim.api.nvim_win_get_config
        local winwidth, winheight = vim.fn.winwidth, vim.fn.winheight
        local win_screenpos = vim.fn.win_screenpos
        return {check}
        """
    )


def test_a_window_option_stays_with_the_chat(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init="vim.o.number = true\n")
    Talk(nvim, host).open()
    assert nvim.lua("return vim.wo.number") is False
    nvim.command("edit sub/b.py")
    assert nvim.lua("return { vim.wo.number, vim.wo.winbar }") == [True, ""]


def test_a_file_of_another_project_has_its_own_chat(
    editor: Start, host: FakeHost, tmp_path: Path
) -> None:
    nvim = editor(FILES)
    Talk(nvim, host, "k1").open()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/c.py").write_text("c = 1\n")
    nvim.press("<C-w>p")
    nvim.command(f"edit {tmp_path}/other/c.py")
    Talk(nvim, host, "k2").open(root=str(tmp_path / "other"))
    assert host.messages("chat.open")[-1]["path"].endswith("other/c.py")
    nvim.press("<C-w>p")
    nvim.command("edit sub/b.py")
    nvim.command("LCChat")
    nvim.settle()
    assert len(host.messages("chat.open")) == 2
    assert nvim.lua("return require('lcursor.chat').current().key") == "k1"


def test_the_host_dies_before_it_has_opened_the_chat(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=NOTES)
    nvim.command("LCChat why?")
    host.wait(lambda: host.messages("chat.open"))
    nvim.settle()
    host.kill()
    nvim.wait_lua("return require('lcursor.chat').current().failure ~= nil")
    assert nvim.lines()[-1] == "why?"
    host.wait_count(2)
    nvim.wait_state()
    nvim.press("<CR>")
    host.wait(lambda: len(host.messages("chat.open")) == 2)
    talk = Talk(nvim, host)
    talk.opened(host.messages("chat.open")[-1]["id"])
    assert talk.heard()["text"] == "why?"


def test_from_message_to_message(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open(messages=HISTORY)
    rows = [n + 1 for n, line in enumerate(talk.lines()) if line.startswith("## ")]
    here = "return vim.fn.line('.')"
    nvim.press("gg")
    seen = []
    for key in ["]]", "]]", "]]", "]]", "]]", "[[", "[["]:
        nvim.press(key)
        seen.append(nvim.lua(here))
    assert seen == [*rows[1:], rows[-1], rows[-2], rows[-3]][: len(seen)]
    nvim.press("ge")
    assert nvim.lua("return vim.fn.getline('.')") == "second question"
    nvim.press("g?")
    assert "Stop answer" in "\n".join(nvim.screen.rows())


def test_the_plug_maps_and_other_keys(editor: Start, host: FakeHost) -> None:
    init = NOTES + "vim.keymap.set('n', '<F5>', '<Plug>(lcursor-chat-help)')\n"
    keymap = {"send": "<F6>", "model": False}
    nvim = editor(FILES, init=init, config={"chat": {"keymap": keymap}}, columns=120)
    nvim.press("<F5>")
    assert "no chat is open" in str(notes(nvim)[-1][0])
    Talk(nvim, host).open()
    mapped = "return vim.tbl_map(function(k) return vim.fn.maparg(k, 'n') ~= '' end, { ... })"
    assert nvim.lua(mapped, "g?", "<CR>", "<F6>", "gm", "gl") == [False, False, True, False, True]
    assert "Ask here; <F6> sends, <F5> lists the keys" in "\n".join(nvim.screen.rows())
    nvim.press("<Esc><F5>")
    shown = nvim.lines()
    assert any(line.split() == ["<F6>", "Send"] for line in shown), shown
    assert not any("Choose model" in line for line in shown)


def test_opening_it_leaves_the_window_one_is_in_alone(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init="vim.o.number = true\n")
    nvim.lua("require('lcursor.chat').open({ enter = false })")
    nvim.settle()
    assert nvim.lua("return { vim.wo.number, vim.wo.winbar }") == [True, ""]
    assert nvim.lines()[0] == "def alpha(x):"


def test_it_can_be_switched_off(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, config={"enabled": False}, init=NOTES)
    nvim.command("LCChat hello")
    assert "switched off by the setting enabled" in str(notes(nvim)[-1][0])
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 1


def test_who_types_elsewhere_stays_in_insert_mode(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.insert()
    talk = Talk(nvim, host)
    mode = "return vim.api.nvim_get_mode().mode"
    talk.open("lua require('lcursor.chat').ask('why?', { new = true, enter = false })", HISTORY)
    assert nvim.lua(mode) == "i"
    number = talk.begin(talk.heard(), [ITEM])
    talk.delta(number, "", "Let me think.\n")
    talk.delta(number, "Because.")
    talk.done(number)
    assert "Because." in talk.lines()
    assert nvim.lua(mode) == "i"
