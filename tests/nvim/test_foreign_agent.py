"""A foreign agent as people use one: a real Neovim, its real host and sandbox, a fake agent."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lcursor.acp.client import catalog
from lcursor.drive.editor import Editor
from lcursor.process.sandbox import open_sandbox
from tests.fakes.chat_server import say
from tests.nvim.home import A, Home, told
from tests.nvim.test_agent_real import HUNKS, TEXT, has
from tests.waiting import wait_for

SCRIPT = Path(__file__).parents[1] / "fakes/acp_agent.py"
SELECT = """
_G.offered = {}
vim.ui.select = function(items, opts, done)
  for i, item in ipairs(items) do
    _G.offered[i] = opts.format_item(item)
  end
  for _, item in ipairs(items) do
    if opts.format_item(item):find(_G.wanted, 1, true) then
      return done(item)
    end
  end
end
"""


@pytest.fixture
def agent_home(home: Home) -> Home:
    """A person with an agent that the settings name."""
    if open_sandbox().level == "none":
        pytest.skip("no sandbox works here")
    command = [sys.executable, "-I", str(SCRIPT)]
    home.settings["agents"] = {"helper": {"command": command}}
    home.answer = lambda _: say("from the model")
    return home


def start(editor: Editor, task: str, options: str = "model=helper") -> None:
    """Start a run with a task of several lines."""
    name, _, value = options.partition("=")
    editor.lua("local o = ... require('lcursor').agent(o)", {name: value, "task": task})


def test_a_task_with_an_approval_becomes_hunks(agent_home: Home) -> None:
    editor = agent_home.open()
    agent_home.settings["agent"] = {"policy": "ask"}
    editor = agent_home.open()
    task = "say I change it.\nask touch made\nplan\nwrite a.py " + A.replace("return x", "return 1")
    start(
        editor,
        task.replace("\n    ", "\\n    ").replace("\n\n\ndef", "\\n\\n\\ndef") + "\nsay Done.",
    )
    has(editor, "? command · waits for approval\n```bash\ntouch made\n```\n")
    editor.keys("]wga")
    has(editor, "## Done")
    text = editor.lua(TEXT)
    assert "I change it." in text
    assert "✓ command touch made" in text
    assert "✓ note plan, 1 of 2 done" in text
    assert "✓ edit Edit a.py" in text
    assert text.count("Done.") == 2, "in the task, and at the end"
    assert not (agent_home.project / "made").exists()
    assert (agent_home.project / "a.py").read_text() == A
    editor.keys("<C-w>p")
    editor.wait_lua(f"{HUNKS} == 1")
    editor.keys("]hghh")
    editor.wait_lua("return vim.fn.getline(2) == '    return 1'")


def test_an_agent_is_chosen_like_a_model(agent_home: Home) -> None:
    agent_home.settings["agents"]["codex"] = {"command": ["/nowhere/codex-acp"]}
    editor = agent_home.open()
    names = {*editor.lua("return require('lcursor.agent').models()")}
    assert names == {*catalog.KNOWN, "helper", "fake", "big"}
    editor.lua(SELECT)
    editor.lua("_G.wanted = ...", "codex")
    editor.command("LCursor agent model")
    told(editor, "codex is not installed")
    offered = editor.lua("return offered")
    assert offered[0] == "fake          model"
    assert "codex         Codex        not installed: npm install -g" in "\n".join(offered)
    assert "helper        helper" in offered
    editor.lua("_G.wanted = ...", "helper")
    editor.command("LCursor agent model")
    told(editor, "the next tasks are for helper")
    editor.command("LCursor agent say Hello.")
    found = editor.lua("return vim.fn.getcompletion('LCursor agent start model=o', 'cmdline')")
    assert found == ["model=opencode"]
    found = editor.lua("return vim.fn.getcompletion('LCursor agent model q', 'cmdline')")
    assert found == ["qwen-code"]
    start(editor, "say Hello.", "policy=auto")
    has(editor, "> helper · ")
    has(editor, "## Done\n\nHello.")


def test_an_agent_that_is_not_installed_says_what_to_do(agent_home: Home) -> None:
    editor = agent_home.open()
    editor.lua("vim.env.PATH = '/usr/bin'")
    start(editor, "say Hello.", "model=opencode")
    told(editor, "opencode is not installed: there is no opencode")


def test_a_question_is_answered_in_the_buffer(agent_home: Home) -> None:
    editor = agent_home.open()
    start(editor, "form\nsay Thanks.")
    has(editor, "## Question\n\nWhich size?\n\nsize:   (Size; small, large)\ncount: 3")
    editor.keys("]w")
    editor.command("%s/^size:/size: small/")
    editor.keys("<CR>")
    has(editor, "## Done\n\nThanks.")
    assert "✓ note question: Which size?" in editor.lua(TEXT)


def test_a_run_is_continued_in_another_neovim(agent_home: Home) -> None:
    editor = agent_home.open()
    start(editor, "write b.py b = 2\\n\nsay One.")
    has(editor, "## Done\n\nOne.")
    agent_home.kill(editor)
    other = agent_home.open_beside()
    other.command("LCursor agent resume")
    has(other, "## Done")
    assert "✓ edit Edit b.py" in other.lua(TEXT)
    other.keys("Gisay Two.<Esc><CR>")
    has(other, "## Done\n\nTwo.")


def test_nothing_is_left_when_neovim_is_killed(agent_home: Home) -> None:
    editor = agent_home.open()
    start(editor, "run true\nstuck")
    has(editor, "✓ command true")
    agent_home.kill(editor)
    wait_for(lambda: not _running(agent_home.path), 15.0, "no process")


def test_a_report_is_on_the_screen_soon(agent_home: Home) -> None:
    """Measured from the agent's write to the text in the buffer."""
    editor = agent_home.open()
    start(editor, "run date +%s%N\nsilent 1\nrun date +%s%N\nsilent 1\nsay Done.")
    editor.lua(
        """
        local run = require("lcursor.agent").current()
        _G.seen = {}
        vim.api.nvim_buf_attach(run.buf, false, { on_lines = function(_, buf, _, first, _, last)
          for _, line in ipairs(vim.api.nvim_buf_get_lines(buf, first, last, false)) do
            local stamp = line:match("^(%d+)$")
            if stamp and not _G.seen[stamp] then
              local s, us = vim.uv.gettimeofday()
              _G.seen[stamp] = (s * 1e6 + us) / 1e3 - tonumber(stamp) / 1e6
            end
          end
        end })
        """
    )
    has(editor, "## Done")
    times = list(editor.lua("return seen").values())
    assert len(times) == 2
    print("ms from the report to the screen:", [round(each, 1) for each in times])  # noqa: T201
    assert min(times) < 30.0, times


def _running(path: Path) -> list[int]:
    """Return the processes that know a folder."""
    found, mark = [], os.fsencode(path)
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            known = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if mark in known and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found
