"""A run of an agent in its buffer: what is sent, steps, text, messages, the end."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim import edits, reach
from tests.nvim.agents import Agent
from tests.nvim.pilot import Pilot
from tests.nvim.talk import Talk

Start = Callable[..., Pilot]

FILES = {"a.py": "def alpha(x):\n    return x\n", "test_a.py": "assert alpha(1) == 2\n"}
FOLDS = """
local run = require("lcursor.agent").current()
local found = {}
vim.api.nvim_win_call(vim.fn.bufwinid(run.buf), function()
  local row = 1
  while row <= vim.fn.line("$") do
    if vim.fn.foldclosed(row) == row then
      table.insert(found, { vim.fn.getline(row), vim.fn.foldclosedend(row) - row })
      row = vim.fn.foldclosedend(row)
    end
    row = row + 1
  end
end)
return found
"""


GROUPS = """
local found = {}
for _, text in ipairs({ ... }) do
  vim.fn.search(text, "cw")
  local position = vim.api.nvim_win_get_cursor(0)
  table.insert(found, vim.fn.synIDattr(vim.fn.synID(position[1], position[2] + 1, true), "name"))
end
return found
"""


@pytest.fixture
def agent(editor: Start, host: FakeHost) -> Agent:
    nvim = editor(FILES, init=reach.NOTES, columns=120, lines=40)
    return Agent(nvim, host)


def test_what_a_start_sends(agent: Agent) -> None:
    nvim = agent.nvim
    nvim.press("Anew <Esc>")
    asked = agent.start("LCursor agent make alpha faster")
    path = str(nvim.home / "project/a.py")
    (buffer,) = asked.pop("buffers")
    assert buffer["path"] == path
    assert buffer["text"].startswith("def alpha(x):new ")
    wanted = {"task": "make alpha faster", "path": path, "policy": "", "model": "", "context": ""}
    assert asked == {
        "id": agent.id,
        "group": "",
        "attempt": 0,
        "test": "",
        "when_idle": False,
        **wanted,
    }
    assert agent.lines()[:5] == [
        "## Task", "", "make alpha faster", "", "> qwen · bubblewrap",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "task", "policy"),
    [
        ("LCursor agent stop the flicker", "stop the flicker", ""),
        ("LCursor agent list all users", "list all users", ""),
        ("LCursor agent start over", "over", ""),
        ("LCursor agent plan the work", "the work", "plan"),
        ("LCursor agent policy=full do it", "do it", "full"),
        ("LCursor agent fix all of it", "fix all of it", ""),
        ("lua require('lcursor').agent({ task = 'do it', policy = 'ask' })", "do it", "ask"),
    ],
)
def test_ways_to_name_a_task(agent: Agent, command: str, task: str, policy: str) -> None:
    asked = agent.start(command)
    assert (asked["task"], asked["policy"]) == (task, policy)


def test_a_wrong_policy_or_option_starts_nothing(agent: Agent) -> None:
    agent.nvim.command("LCursor agent policy=none do it")
    agent.nvim.lua("require('lcursor').agent({ task = 'x', colour = 1 })")
    assert reach.told(agent.nvim) == [
        "lcursor: there is no policy none. Use one of plan, ask, auto, full",
        "lcursor: agent(): unknown option colour; see :help lcursor.agent()",
    ]
    assert agent.host.messages("agent.start") == []


def test_a_task_is_asked_for(agent: Agent) -> None:
    agent.nvim.command("LCursor agent")
    agent.nvim.press("do it<CR>")
    assert agent.heard("agent.start")["task"] == "do it"


def test_a_range_goes_along(agent: Agent) -> None:
    asked = agent.start("1,2LCursor agent do it")
    assert asked["context"] == "a.py:1-2\ndef alpha(x):\n    return x"
    assert agent.nvim.lua(FOLDS) == [["> context: a.py:1-2", 2]]


def test_the_selection_goes_along(agent: Agent) -> None:
    agent.nvim.press("jV")
    agent.nvim.lua("require('lcursor').agent()")
    agent.nvim.press("do it<CR>")
    asked = agent.heard("agent.start")
    assert asked["context"] == "a.py:2-2\n    return x"


DIAGNOSE = """
vim.diagnostic.set(vim.api.nvim_create_namespace("x"), 0, {
  { lnum = 1, col = 4, message = "x is wrong", severity = 1, source = "lint" },
})
"""


def test_a_diagnostic_goes_along(agent: Agent) -> None:
    agent.nvim.lua(DIAGNOSE)
    agent.nvim.press("j")
    asked = agent.start("LCursor agent fix")
    assert asked["task"] == "Fix the problem at a.py:2"
    assert "error: x is wrong [lint], in the line `return x`" in asked["context"]


def test_the_current_entry_of_the_quickfix_list_goes_along(agent: Agent) -> None:
    agent.nvim.lua(
        """
        vim.fn.setqflist({
          { text = "def test_alpha():" },
          { filename = "test_a.py", lnum = 1, text = "AssertionError" },
          { text = "E  assert 1 == 2" },
          { filename = "a.py", lnum = 1, text = "other" },
        })
        """
    )
    asked = agent.start("LCursor agent fix")
    assert asked["task"] == "Fix the problem at test_a.py:1"
    lines = ["test_a.py:1", "def test_alpha():", "AssertionError", "E  assert 1 == 2"]
    assert asked["context"].split("\n") == lines


def test_there_is_nothing_to_fix(agent: Agent) -> None:
    agent.nvim.command("LCursor agent fix")
    text = "lcursor: this line has no diagnostics, and the quickfix list has no entry"
    assert reach.told(agent.nvim) == [text]


def test_steps_are_folded_lines(agent: Agent) -> None:
    agent.start()
    agent.step(
        1, "read", "a.py:1-2", "1 def alpha(x):\n2   return x", result="2 lines", seconds=0.2
    )
    agent.step(2, "command", "pytest -x", state="running")
    agent.step(3, "search", "alpha")
    assert agent.lines()[6:13] == [
        "## Agent", "", "✓ read a.py:1-2 · 2 lines · 0.2 s",
        "```text", "1 def alpha(x):", "2   return x", "```",
    ]  # fmt: skip
    assert agent.lines()[13:15] == ["• command pytest -x", "✓ search alpha"]
    assert agent.nvim.lua(FOLDS) == [["✓ read a.py:1-2 · 2 lines · 0.2 s", 4]]
    text = "a ```b```\nE assert"
    agent.step(2, "command", "pytest -x", text, state="failed", result="exit 1", seconds=12.3)
    line = "✗ command pytest -x · exit 1 · 12 s"
    assert agent.lines()[13:19] == [line, "````text", *text.split("\n"), "````", "✓ search alpha"]
    assert agent.nvim.lua(FOLDS)[1] == [line, 4]
    assert line in "\n".join(agent.nvim.screen.rows())
    agent.step(2, "command", "pytest -x", state="rejected")
    assert agent.lines()[13:15] == ["✗ command pytest -x · rejected", "✓ search alpha"]
    assert len(agent.nvim.lua(FOLDS)) == 1


def test_a_fold_that_was_opened_shows_what_the_model_read(agent: Agent) -> None:
    agent.start()
    agent.step(1, "read", "a.py", "1 def alpha(x):")
    agent.nvim.press("gg/read a.py<CR>zo")
    assert "1 def alpha(x):" in "\n".join(agent.nvim.screen.rows())
    agent.step(2, "read", "b.py", "2 beta")
    assert [line for line, _ in agent.nvim.lua(FOLDS)] == ["✓ read b.py"]
    agent.nvim.press("q")
    agent.nvim.command("LCursor agent open")
    assert len(agent.nvim.lua(FOLDS)) == 2


def test_what_was_read_is_not_highlighted_as_markdown(agent: Agent) -> None:
    agent.start()
    for number in range(3):
        agent.delta(f"I read **file {number}** and `g{number}()`.", is_new=True)
        text = "\n".join(f"{row} # `c{number}_{row}`" for row in range(200))
        agent.step(number, "read", f"f{number}.py", text)
    agent.nvim.press("zR")
    assert agent.nvim.lua(GROUPS, "c2_190", "file 2", "g2", "c1_4\\D", "## Agent") == [
        "lcursorAgentBlock",
        "lcursorAgentStrong",
        "lcursorAgentCode",
        "lcursorAgentBlock",
        "lcursorAgentHeading",
    ]


def test_text_is_streamed_between_steps(agent: Agent) -> None:
    agent.start()
    agent.delta("I will", is_new=True)
    for piece in (" read\r", "\nthe *file*", ".\n"):
        agent.delta(piece)
    agent.wait_text("the *file*.")
    agent.step(1, "read", "a.py")
    agent.delta("\n".join(f"line {number}" for number in range(9)), is_new=True)
    agent.step(2, "edit", "a.py")
    assert agent.lines()[8:12] == ["I will read", "the *file*.", "", "✓ read a.py"]
    assert agent.lines()[12:14] == ["", "line 0"]
    assert agent.nvim.lua(FOLDS) == [["line 0", 8]]


@pytest.mark.parametrize(
    ("dialect", "text", "shown"),
    [
        ("native", 'I run it.\n<tool_call>\n{"name": "bash"}\n</tool_call>', ["I run it.", ""]),
        ("native", "<tool_call>\n{}", []),
        ("fenced", "I run it.\n\n```python\nx\n```\n```bash\npytest\n```", [
            "I run it.", "", "```python", "x", "```", "",
        ]),
        ("choice", "# it may be here\nread a.py\n", ["it may be here", ""]),
    ],
)  # fmt: skip
def test_a_call_is_shown_as_its_step_only(
    agent: Agent, dialect: str, text: str, shown: list[str]
) -> None:
    agent.start(dialect=dialect)
    agent.delta(text, is_new=True)
    agent.step(1, "command", "pytest")
    assert agent.lines()[8:-4] == [*shown, "✓ command pytest"]


def test_a_thought_is_not_repeated(agent: Agent) -> None:
    agent.start(dialect="choice")
    for number, thought in enumerate(("I look", "I look", "I know", "I look")):
        agent.delta(f"# {thought}\nread a.py\n", is_new=True)
        agent.step(number, "read", f"{number}.py")
    assert agent.lines()[8:-4] == [
        "I look", "", "✓ read 0.py", "✓ read 1.py", "",
        "I know", "", "✓ read 2.py", "", "I look", "", "✓ read 3.py",
    ]  # fmt: skip


def test_a_message_of_the_user_between_steps(agent: Agent) -> None:
    agent.start()
    agent.step(1, "read", "a.py")
    agent.nvim.press("GAuse *httpx*<CR>please<Esc><CR>")
    assert agent.heard("agent.say") == {"id": agent.id, "text": "use *httpx*\nplease"}
    agent.delta("Yes.", is_new=True)
    agent.step(2, "read", "b.py")
    assert agent.lines()[8:] == [
        "✓ read a.py", "", "## You", "", "use *httpx*", "please", "", "## Agent", "",
        "Yes.", "", "✓ read b.py", "", "## You", "", "",
    ]  # fmt: skip
    agent.nvim.command("LCursor agent say and be quick")
    assert agent.heard("agent.say", 2)["text"] == "and be quick"
    agent.nvim.press("<CR>")
    assert "nothing to send" in reach.told(agent.nvim)[-1]


def test_typing_goes_on_while_steps_come(agent: Agent) -> None:
    """In the draft, and with an undo that takes nothing of the run."""
    agent.start()
    agent.nvim.press("GA")
    for number in range(1, 11):
        agent.delta("thinking\n", is_new=True)
        agent.nvim.keys("z")
        agent.step(number, "read", f"{number}.py", "text\ntext")
    assert agent.lines()[-1] == "z" * 10
    agent.nvim.press("<Esc>u")
    assert [line for line in agent.lines() if ".py" in line] == [
        f"✓ read {number}.py" for number in range(1, 11)
    ]


def test_ghost_text_stays_while_steps_come(agent: Agent) -> None:
    nvim, host = agent.nvim, agent.host
    agent.start()
    nvim.press("<C-w>p")
    request = nvim.insert("A")
    host.done(request, "  # a comment")
    nvim.wait_ghost()
    ids = itertools.count(1)
    for _ in range(5):
        agent.delta("thinking ", is_new=True)
        agent.step(next(ids), "read", "a.py", "text")
    assert nvim.ghost() == "  # a comment"
    nvim.press("<Tab>")
    assert nvim.lines()[0] == "def alpha(x):  # a comment"


def test_a_completion_menu_is_not_closed(agent: Agent) -> None:
    agent.start()
    agent.step(1, "read", "alphabet alphanumeric")
    agent.nvim.press("GAalph<C-n>")
    agent.nvim.wait_lua("return vim.fn.pumvisible() == 1")
    agent.step(2, "read", "b.py")
    agent.step(3, "read", "c.py")
    assert agent.nvim.lua("return vim.fn.pumvisible()") == 1
    agent.nvim.press("<C-y>")
    agent.wait_text("✓ read b.py\n✓ read c.py\n")


def test_the_winbar(agent: Agent) -> None:
    agent.start()
    agent.nvim.command("wincmd |")
    agent.status(steps=7, added=10, removed=2, seconds=200.0)
    assert agent.winbar().split(maxsplit=3)[:3] == ["fix", "the", "bug"]
    wanted = "bubblewrap · step 7/40 · 12k of 32k · +10 −2 · 3 min"
    assert wanted in agent.winbar()
    assert agent.winbar().endswith(" running ")
    agent.status("waiting")
    assert agent.winbar().endswith(" waiting for the model ")
    agent.status("checking")
    assert agent.winbar().endswith(" looking for unneeded changes ")


@pytest.mark.parametrize(
    ("other", "text", "group"),
    [
        ({"sandbox": "none"}, "no sandbox", "LCursorAgentUnsafe"),
        ({"policy": "full", "sandbox": "none"}, "full access", "LCursorAgentFull"),
    ],
)
def test_the_winbar_of_a_run_without_a_sandbox(
    agent: Agent, other: dict[str, Any], text: str, group: str
) -> None:
    agent.start(**other)
    assert text in agent.winbar()
    assert f"%#{group}#{text}" in agent.nvim.lua("return vim.wo.winbar")


def test_a_stop_and_the_end(agent: Agent) -> None:
    agent.start()
    agent.asks(1, "pip install x")
    agent.step(2, "read", "a.py", state="running")
    agent.nvim.press("<C-c>")
    assert agent.heard("agent.stop") == {"id": agent.id}
    assert agent.nvim.lua("return require('lcursor').status()") == "lc agent waiting"
    agent.done("stopped", "")
    assert agent.lines()[8:] == [
        "✗ command pip install x · rejected", "✗ read a.py · stopped", "", "## Stopped", "",
        "tests not run · no changes · 1 step · 12 s", "", "## You", "", "",
    ]  # fmt: skip
    assert agent.winbar().endswith(" stopped ")
    assert agent.nvim.lua("return require('lcursor').status()") == "lc"
    agent.nvim.press("<C-c>")
    assert len(agent.host.messages("agent.stop")) == 1


def test_the_end_says_whether_tests_passed(agent: Agent) -> None:
    agent.start()
    agent.status(added=3, removed=1)
    agent.done(is_checked=True, paths=["/a"], turn="")
    assert "tests passed · 1 file · +3 −1 lines · 2 steps · 12 s" in agent.lines()
    agent.start()
    agent.step(1, "finish", "", state="failed", result="tests failed")
    agent.done("stuck", "The tests fail.")
    assert "tests failed · no changes" in agent.lines()
    assert "## Stuck" in agent.lines()


def test_the_end_mentions_tests_that_ran_as_a_step(agent: Agent) -> None:
    agent.nvim.lua("require('lcursor').setup({ edit = { test = 'make test' } })")
    steps: list[tuple[str, str, str]] = [
        ("make", "done", "tests not run"),
        ("make test", "done", "tests passed earlier"),
        ("make test", "failed", "tests failed"),
    ]
    for target, state, words in steps:
        agent.start()
        agent.step(1, "command", target, state=state)
        agent.done("stopped", "")
        assert agent.lines()[-5].startswith(f"{words} · no changes")
    agent.start()
    agent.step(1, "command", "make test", state="failed")
    agent.step(2, "edit", "a.py")
    agent.done("stopped", "")
    assert agent.lines()[-5].startswith("tests failed earlier · no changes")


def test_the_changes_become_hunks_and_the_focus_stays(agent: Agent) -> None:
    nvim = agent.nvim
    path = nvim.home / "project/a.py"
    agent.start()
    nvim.press("<C-w>p")
    agent.done(turn="t1", paths=[str(path)])
    old = FILES["a.py"].splitlines()
    change = edits.file(path, old, [old[0], "    return x + 1"])
    guarded = edits.file(path.with_name(".envrc"), [], ["x"], kind="create", is_guarded=True)
    asked = agent.changed(change, guarded)
    assert (asked["turn"], asked["path"]) == ("t1", str(nvim.home / "project"))
    assert [each["path"] for each in asked["buffers"]] == [str(path)]
    line = "- .envrc (new; runs code by itself: accept it on its own)"
    agent.wait_text(f"- a.py\n{line}")
    assert nvim.lua("return vim.fn.bufname()").endswith("a.py")
    assert nvim.lua("return #require('lcursor.edit.proposals').hunks(0)") == 1
    nvim.command("bdelete! a.py | LCursor agent open")
    nvim.press("gg/^- a.py<CR>gf")
    assert nvim.lua("return vim.fn.bufname()").endswith("a.py")
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 2


def test_events(agent: Agent) -> None:
    agent.nvim.lua(
        """
        _G.events = {}
        vim.api.nvim_create_autocmd("User", {
          pattern = "LCursorAgent*",
          callback = function(event)
            event.data.buf = nil
            table.insert(_G.events, { event.match, event.data })
          end,
        })
        """
    )
    agent.start()
    agent.asks(1, "curl x", "opens the network: x")
    agent.done("failed")
    assert agent.nvim.lua("return _G.events") == [
        ["LCursorAgentAsks", {"run": "r1", "command": "curl x", "why": "opens the network: x"}],
        ["LCursorAgentDone", {"run": "r1", "state": "failed", "turn": ""}],
    ]


def test_the_host_dies(agent: Agent) -> None:
    agent.start()
    agent.host.kill()
    agent.wait_text("## Failed\n\nthe Python host ended")
    assert agent.nvim.lua("return #require('lcursor.agent.winbar').running()") == 0


def test_a_closed_window_and_a_deleted_buffer_do_not_stop_a_run(agent: Agent) -> None:
    nvim = agent.nvim
    agent.start()
    agent.step(1, "read", "a.py", "text")
    nvim.press("q")
    agent.step(2, "read", "b.py", "text")
    nvim.command("LCursor agent open")
    assert [line for line, _ in nvim.lua(FOLDS)] == ["✓ read a.py", "✓ read b.py"]
    nvim.command("bwipeout!")
    nvim.settle()
    agent.delta("hidden", is_new=True)
    agent.step(3, "read", "c.py", "text")
    assert agent.host.messages("agent.stop") == []
    nvim.command("LCursor agent open")
    lines = "\n".join(agent.lines())
    assert "✓ read b.py" in lines
    assert "hidden\n\n✓ read c.py" in lines
    nvim.command("edit")
    nvim.settle()
    assert "\n".join(agent.lines()) == lines
    assert len(nvim.lua(FOLDS)) == 3
    agent.step(4, "read", "d.py")
    agent.done()
    assert "✓ read d.py" in agent.lines()
    assert nvim.lua("return vim.fn.execute('messages')").strip() == ""


def test_an_agent_from_a_chat(agent: Agent) -> None:
    talk = Talk(agent.nvim, agent.host).open()
    agent.nvim.press("GA/agent fix it all<Esc><CR>")
    asked = agent.heard("agent.start")
    assert asked["task"] == "fix it all"
    assert agent.host.messages("chat.send") == []
    agent.started(asked)
    assert agent.lines()[2] == "fix it all"
    assert talk.lines()[-1] == ""


def test_a_step_leaves_the_cursor_where_one_writes(agent: Agent) -> None:
    agent.started(agent.start())
    for number in range(1, 60):
        agent.step(number, "read", f"a{number}.py:1-2", "x\n" * 3)
    agent.nvim.press("GAhello wor")
    agent.step(60, "read", "b.py:1-2")
    agent.nvim.settle()
    agent.nvim.press("ld again")
    assert agent.lines()[-1].endswith("hello world again")
