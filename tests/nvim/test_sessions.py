"""The plugin's windows after `:mksession` and `nvim -S`, with a fake host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lcursor.fim import outcomes
from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.agents import Agent
from tests.nvim.pilot import Pilot
from tests.nvim.talk import Talk

Start = Callable[..., Pilot]
FILES = {"a.py": "def alpha(x):\n    return x\n"}
OWN = """
return vim.iter(vim.api.nvim_list_bufs()):map(function(buf)
  local name = vim.fn.bufname(buf)
  return name:find("^lcursor://") and { name, vim.bo[buf].buftype } or nil
end):totable()
"""


def stats(nvim: Pilot, host: FakeHost) -> None:
    count = len(host.messages("stats.request"))
    nvim.command("LCursor stats")
    host.wait(lambda: len(host.messages("stats.request")) > count)
    host.send("stats", dict(outcomes.stats([], {}, "/x", "")))
    nvim.wait_lua(f"return vim.deep_equal((function() {OWN} end)(), ...)", OURS)


def chat(nvim: Pilot, host: FakeHost) -> None:
    Talk(nvim, host).open()


def agent(nvim: Pilot, host: FakeHost) -> None:
    Agent(nvim, host).start()


OURS = [["lcursor://stats", "nofile"]]
WINDOWS = {"chat/1": chat, "agent/1": agent, "stats": stats}


@pytest.fixture
def restore(editor: Start, neovim: Path, host: FakeHost) -> Iterator[Callable[[Pilot, str], Pilot]]:
    """Write a session, with what 'sessionoptions' says, and start a Neovim with it."""
    with ExitStack() as stack:

        def run(nvim: Pilot, options: str) -> Pilot:
            session = nvim.home / "session.vim"
            nvim.command(f"set sessionoptions{options} | mksession! {session}")
            project = nvim.home / "project"
            nvim.close()
            init = reach.NOTES + "vim.o.cmdheight = 5\n"
            again = Pilot(neovim, nvim.home, host, files=("-S", session), cwd=project, init=init)
            stack.enter_context(again)
            return again

        yield run


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize(
    "options", ["&", "=blank,buffers,curdir,folds,localoptions,options,winsize"]
)
def test_windows_open_in_a_restored_session(
    editor: Start, host: FakeHost, restore: Callable[[Pilot, str], Pilot], name: str, options: str
) -> None:
    first = editor(FILES)
    WINDOWS[name](first, host)
    assert first.lua(OWN) == [[f"lcursor://{name}", "nofile"]]
    nvim = restore(first, options)
    assert nvim.lua(OWN) == []
    assert nvim.lua("return vim.fn.expand('%:t')") == "a.py"
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 1
    WINDOWS[name](nvim, host)
    assert nvim.lua(OWN) == [[f"lcursor://{name}", "nofile"]]
    nvim.command("stopinsert")
    nvim.press("<Esc>q")
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 1
    assert reach.told(nvim) == []


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("text", ["", "my words"])
def test_a_restored_buffer_loses_its_name_but_not_its_text(
    editor: Start, host: FakeHost, name: str, text: str
) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    nvim.command(f"new | file lcursor://{name} | call setline(1, '{text}')")
    theirs = nvim.lua("return vim.api.nvim_get_current_buf()")
    nvim.command("wincmd p")
    WINDOWS[name](nvim, host)
    assert nvim.lua(OWN) == [[f"lcursor://{name}", "nofile"]]
    if text:
        assert nvim.lua(
            "local b = ... return { vim.fn.bufname(b), vim.fn.getbufline(b, 1)[1] }", theirs
        ) == ["", text]
    else:
        assert nvim.lua("return vim.fn.bufexists(...)", theirs) == 0
    assert reach.told(nvim) == []


def test_a_chat_whose_buffer_cannot_be_made_is_no_chat(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    nvim.lua(
        """local transcript = require("lcursor.conversation.transcript")
        local create = transcript.create
        transcript.create = function() transcript.create = create error("no buffer") end
        assert(not pcall(vim.cmd.LCChat))"""
    )
    assert nvim.lua("return #require('lcursor.chat').all()") == 0
    chat(nvim, host)
    assert nvim.lua("return vim.bo.filetype") == "lcursor_chat"
