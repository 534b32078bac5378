"""What the user decides in the buffer of a run: questions, plans; and the list of runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.agents import Agent
from tests.nvim.pilot import Pilot
from tests.waiting import wait_for

Start = Callable[..., Pilot]

FILES = {"a.py": "def alpha(x):\n    return x\n"}
HINTS = """
local run = require("lcursor.agent").current()
local space, found = vim.api.nvim_create_namespace("lcursor.entries.notes"), {}
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(run.buf, space, 0, -1, { details = true })) do
  for _, line in ipairs(mark[4].virt_lines or {}) do
    for _, chunk in ipairs(line) do
      table.insert(found, chunk[1])
    end
  end
end
return vim.trim(table.concat(found))
"""


@pytest.fixture
def agent(editor: Start, host: FakeHost) -> Agent:
    nvim = editor(FILES, init=reach.NOTES, columns=120, lines=40)
    return Agent(nvim, host)


def cursor(nvim: Pilot) -> list[int]:
    """Return line and column of the cursor."""
    found: list[int] = nvim.lua("return vim.api.nvim_win_get_cursor(0)")
    return found


def test_a_question_is_a_block_and_the_cursor_stays(agent: Agent) -> None:
    nvim = agent.nvim
    agent.start()
    nvim.press("GAa draft<Esc><C-w>p")
    before = cursor(nvim)
    agent.asks(1, "pip install x\nmake", "opens the network: pip.test")
    assert agent.lines()[8:14] == [
        "? command · waits for approval", "```bash", "pip install x", "make", "```",
        "opens the network: pip.test",
    ]  # fmt: skip
    assert nvim.lua("return vim.fn.bufname()").endswith("a.py")
    assert cursor(nvim) == before
    assert agent.lines()[-1] == "a draft"
    assert nvim.lua(HINTS) == "ga once  gA for this run  gx reject  gE change"
    assert agent.winbar().endswith(" 1 waiting ")
    assert reach.told(nvim) == []  # it is on the screen
    nvim.press("<C-w>p")
    assert nvim.lua("return vim.fn.mode()") == "n"


def test_the_hint_of_a_question_says_until_when_an_approval_holds(agent: Agent) -> None:
    agent.start()
    agent.asks(1, "make", is_bound=True)
    assert agent.nvim.lua(HINTS) == "ga once  gA until a file changes  gx reject  gE change"


def test_a_question_in_a_hidden_run_is_notified_once(agent: Agent) -> None:
    agent.start()
    agent.nvim.press("q")
    agent.asks(1, "pip install x")
    agent.step(1, "command", "pip install x", state="waiting")
    hint = "lcursor: the agent asks: pip install x. :LCursor agent open shows it"
    assert reach.told(agent.nvim) == [hint]


@pytest.mark.parametrize(("key", "choice"), [("ga", "once"), ("gA", "run")])
def test_a_key_on_the_block_approves(agent: Agent, key: str, choice: str) -> None:
    agent.start()
    agent.asks(1, "pip install x")
    agent.nvim.press("]w")
    assert agent.nvim.lua("return vim.fn.getline('.')") == "? command · waits for approval"
    agent.nvim.press(key)
    wanted = {"id": agent.id, "ask": 1, "choice": choice, "text": ""}
    assert agent.heard("agent.decide") == wanted
    assert agent.lines()[8] == "• command pip install x"
    assert "waits" not in "\n".join(agent.lines())
    assert agent.nvim.lua(HINTS) == ""
    agent.nvim.press(key)
    assert len(agent.host.messages("agent.decide")) == 1


@pytest.mark.parametrize("key", ["ga", "gA", "gx", "gE"])
@pytest.mark.parametrize("where", ["gg", "G", "gg/read a.py<CR>"])
def test_the_keys_do_nothing_off_the_block(agent: Agent, key: str, where: str) -> None:
    agent.start()
    agent.step(1, "read", "a.py")
    agent.asks(2, "pip install x")
    agent.nvim.press(where + key)
    text = "lcursor: nothing at the cursor waits for a decision; ]w goes to the next one"
    assert reach.told(agent.nvim) == [text]
    assert agent.nvim.lua("return vim.fn.mode()") == "n"
    assert agent.host.messages("agent.decide") == []


@pytest.mark.parametrize("line", ["pip install x", "```", "opens"])
def test_each_line_of_the_block_counts(agent: Agent, line: str) -> None:
    agent.start()
    agent.asks(1, "pip install x")
    agent.nvim.press(f"G?^{line}<CR>ga")
    assert agent.heard("agent.decide")["choice"] == "once"


def test_a_question_after_a_call_without_words(agent: Agent) -> None:
    agent.start()
    for number in (1, 2):
        agent.delta("<tool_call>\n{}\n</tool_call>", is_new=True)
        agent.wait_text("<tool_call>")
        agent.asks(number, "make")
        agent.nvim.press("]wga")
        assert agent.heard("agent.decide", number)["ask"] == number
        agent.step(number, "command", "make")
    assert agent.lines()[8:10] == ["✓ command make", "✓ command make"]


def test_a_command_is_changed_before_it_runs(agent: Agent) -> None:
    agent.start()
    agent.asks(1, "pip install x\nmake")
    agent.nvim.press("]wgE --no-deps<Esc>ga")
    assert agent.heard("agent.decide")["text"] == "pip install x --no-deps\nmake"
    agent.asks(2, "rm -r a")
    agent.nvim.press("]wjjcc<Esc>ga")
    assert "damaged" in reach.told(agent.nvim)[-1]
    agent.nvim.press("uga")
    assert agent.heard("agent.decide", 2)["text"] == ""


def test_a_command_with_fences_is_shown_and_approved_as_it_is(agent: Agent) -> None:
    agent.start()
    command = "cat <<'X'\n```bash\nx\n```\nX"
    agent.asks(1, command)
    agent.nvim.press("]wgE <Esc>ga")
    assert agent.heard("agent.decide")["text"] == command.replace("'X'", "'X' ", 1)


def test_a_rejection_has_a_reason(agent: Agent) -> None:
    agent.start()
    agent.asks(1, "pip install x")
    agent.nvim.press("]wgxnot needed<CR>")
    said = agent.heard("agent.decide")
    assert (said["choice"], said["text"]) == ("reject", "not needed")
    assert agent.lines()[8] == "✗ command pip install x · rejected"
    agent.asks(2, "pip install y")
    agent.nvim.press("GAuse the standard library<Esc>]wgx")
    said = agent.heard("agent.decide", 2)
    assert (said["choice"], said["text"]) == ("reject", "use the standard library")
    assert agent.lines()[-1] == ""
    assert agent.host.messages("agent.say") == []


def test_a_reason_that_is_cancelled_decides_nothing(agent: Agent) -> None:
    agent.start()
    agent.asks(1, "pip install x")
    agent.nvim.press("]wgxno<C-c>")
    agent.nvim.press("ga")
    assert [each["choice"] for each in agent.host.messages("agent.decide")] == ["once"]


def test_the_host_decides_while_a_reason_is_typed(agent: Agent) -> None:
    agent.start()
    agent.asks(1, "pip install x")
    agent.nvim.press("]wgxno")
    agent.done("stopped")
    agent.nvim.press("<CR>")
    assert agent.host.messages("agent.decide") == []


def test_a_key_goes_to_the_next_question_of_any_run(editor: Start, agent: Agent) -> None:
    nvim = agent.nvim
    agent.start()
    agent.asks(1, "pip install x")
    other = Agent(nvim, agent.host, "r2")
    other.start("LCursor agent do more")
    nvim.press("]w")
    assert nvim.lua("return vim.fn.bufname()") == "lcursor://agent/1"
    nvim.press("ga")
    assert agent.heard("agent.decide")["id"] == agent.id != other.id
    nvim.press("]w")
    assert reach.told(nvim)[-1] == "lcursor: nothing waits for a decision"


def test_a_plan_is_edited_and_approved(agent: Agent) -> None:
    nvim = agent.nvim
    agent.start("LCursor agent plan the work")
    agent.step(1, "finish", "1. Read", state="waiting")
    agent.planned("1. Read `a.py`\n2. Change it")
    assert agent.lines()[6:10] == ["## Plan", "", "1. Read `a.py`", "2. Change it"]
    assert nvim.lua(HINTS) == "<CR> approve, as edited  gx reject"
    nvim.press("<CR>")
    assert agent.host.messages("agent.approve_plan") == []  # the cursor is in the draft
    nvim.press("]wjj3x")
    nvim.press("o3. Test it<Esc><CR>")
    agent.step(1, "finish", "1. Read", state="done", result="approved")
    wanted = "Read `a.py`\n3. Test it\n2. Change it"
    assert agent.heard("agent.approve_plan") == {"id": agent.id, "text": wanted}
    assert nvim.lua(HINTS) == ""
    agent.step(2, "read", "a.py")
    assert agent.lines()[6:14] == [
        "## Plan", "", *wanted.split("\n"), "", "## Agent", "",
    ]  # fmt: skip


def test_a_plan_is_rejected(agent: Agent) -> None:
    agent.start("LCursor agent plan the work")
    agent.planned("1. Read it")
    agent.nvim.press("ggdd")  # outside of the plan
    agent.nvim.press("]wgx")
    assert agent.heard("agent.approve_plan") == {"id": agent.id, "text": ""}
    agent.nvim.press("<CR>")
    assert len(agent.host.messages("agent.approve_plan")) == 1


def test_other_keys_can_be_chosen(editor: Start, host: FakeHost) -> None:
    keymap = {"approve": "<leader>y", "approve_run": False}
    config = {"agent": {"keymap": keymap}}
    agent = Agent(editor(FILES, config=config, columns=120, lines=40), host)
    agent.start()
    agent.asks(1, "make")
    assert agent.nvim.lua(HINTS) == "<leader>y once  gx reject  gE change"
    agent.nvim.press("]w\\y")
    assert agent.heard("agent.decide")["choice"] == "once"


def test_the_keys_are_listed(agent: Agent) -> None:
    agent.start()
    agent.nvim.press("g?")
    assert "]w     Next waiting question" in agent.nvim.lines()


def row(run: str, task: str, **other: Any) -> dict[str, Any]:
    """Return a row of the list."""
    said = {"run": run, "task": task, "state": "done", "at_s": time.time(), "steps": 3, "turn": ""}
    return {**said, "group": "", "attempt": 0, **other}


def listed(agent: Agent, *rows: dict[str, Any], count: int = 1) -> None:
    """Answer the question for the runs."""
    asked = agent.heard("agent.list", count)
    agent.say("agent.listed", {"id": asked["id"], "runs": list(rows)})
    agent.nvim.settle()


def test_a_run_is_forked_after_the_step_at_the_cursor(agent: Agent, host: FakeHost) -> None:
    agent.start()
    agent.step(1, "read", "a.py")
    agent.step(2, "edit", "a.py")
    agent.done()
    agent.nvim.press("gg/read a.py<CR>")
    agent.nvim.command("LCursor agent fork")
    asked = agent.heard("agent.fork")
    assert (asked["run"], asked["step"]) == ("r1", 1)
    agent.say("agent.forked", {"id": asked["id"], "run": "r2"})
    agent.nvim.settle()
    shown = agent.heard("agent.resume")
    assert (shown["run"], shown["continues"]) == ("r2", False)
    agent.key = "r2"
    agent.started(shown)
    agent.step(1, "read", "a.py")
    agent.done("stopped", "it was interrupted")
    agent.nvim.press("Gi")
    agent.nvim.press("do it otherwise<Esc><CR>")
    continued = agent.heard("agent.resume", 2)
    assert (continued["run"], continued["continues"]) == ("r2", True)


def test_a_task_that_was_not_solved_is_offered_to_another_model(
    editor: Start, host: FakeHost
) -> None:
    config = {"agent": {"escalate_model": "large"}, "edit": {"test": "make test"}}
    agent = Agent(editor(FILES, config=config, columns=120, lines=40), host)
    agent.start(task="fix the bug")
    agent.nvim.command("LCursor agent escalate")
    assert len(host.messages("agent.start")) == 1  # it still runs
    agent.step(1, "finish", "done", state="failed")
    agent.done()
    assert ":LCursor agent escalate gives the task to large" in agent.lines()
    agent.nvim.command("LCursor agent escalate")
    asked = agent.heard("agent.start", 2)
    assert (asked["task"], asked["model"]) == ("fix the bug", "large")
    agent.key = "r2"
    agent.started(asked, model="large")
    agent.done("stuck", "No progress.")
    assert "escalate" not in "".join(agent.lines())  # it was asked


def test_without_a_name_nothing_is_offered(agent: Agent) -> None:
    agent.start()
    agent.done("failed", "It failed.")
    assert "escalate" not in "".join(agent.lines())
    agent.nvim.command("LCursor agent escalate")
    assert reach.told(agent.nvim)[-1] == "lcursor: no model is named in agent.escalate_model"


def test_the_list_follows_the_runs(agent: Agent) -> None:
    nvim = agent.nvim
    agent.start()
    nvim.command("LCursor agent list")
    listed(agent, row("r1", "fix the bug", state="running", steps=0), row("r0", "older"))

    def shown(*words: str) -> None:
        code = "return vim.fn.getbufline('lcursor://agents', 1)[1]"
        wait_for(lambda: all(word in nvim.lua(code) for word in words), what=str(words))

    agent.step(1, "edit", "src/a.py")
    agent.status(added=3, removed=1, steps=1)
    shown("* running", "✓ edit src/a.py", "+3 −1", "fix the bug")
    agent.step(2, "command", "make test", state="running")
    shown("• command make test")
    agent.asks(2, "make test")
    shown("1 waiting")
    agent.done(is_checked=True)
    shown("  done")
    agent.key = "r2"
    agent.nvim.command("wincmd p")
    agent.start("LCursor agent another one", task="another one")
    asked = agent.heard("agent.list", 2)  # one that the list does not have
    agent.say("agent.listed", {"id": asked["id"], "runs": [row("r2", "another one")]})
    shown("another one")


def test_a_run_of_an_earlier_neovim_is_shown_and_continued(agent: Agent) -> None:
    nvim = agent.nvim
    nvim.command("LCursor agent list")
    old = row("r7", "make it fast", state="stopped", at_s=time.time() - 7300, steps=12)
    listed(agent, row("r9", "fix it"), old)
    assert [line.split() for line in nvim.lines()] == [
        ["done", "now", "3", "fix", "it"],
        ["stopped", "2", "h", "12", "make", "it", "fast"],
    ]
    nvim.press("j<CR>")
    path = str(nvim.home / "project/a.py")
    asked = agent.heard("agent.resume")
    assert (asked["run"], asked["path"], asked["continues"]) == ("r7", path, False)
    agent.key = "r7"
    agent.started(asked, task="make it fast")
    agent.step(1, "read", "a.py", "text")
    agent.done("stopped", "It was interrupted.", turn="t1", paths=[path])
    assert agent.lines()[2] == "make it fast"
    assert "✓ read a.py" in agent.lines()
    assert agent.host.messages("edit.resume") == []  # it is only shown
    nvim.command("LCursor agent resume")
    asked = agent.heard("agent.resume", 2)
    assert (asked["run"], asked["continues"], asked["seen"]) == ("r7", True, 1)
    agent.started(asked, task="make it fast")
    agent.started(asked, task="make it fast")
    agent.step(2, "edit", "a.py")
    lines = [line for line in agent.lines() if line.startswith("✓")]
    assert lines == ["✓ read a.py", "✓ edit a.py"]
    assert [line for line in agent.lines() if line in ("## Agent", "## Stopped")] == [
        "## Agent",
        "## Stopped",
        "## Agent",
    ]


def test_a_message_continues_a_run_that_has_ended(agent: Agent) -> None:
    agent.start()
    agent.step(1, "edit", "a.py")
    agent.done()
    agent.nvim.press("GAnow the tests<Esc><CR>")
    asked = agent.heard("agent.resume")
    assert (asked["run"], asked["continues"]) == ("r1", True)
    assert (asked["text"], asked["seen"]) == ("now the tests", 1)
    agent.started(asked, task="fix the bug")
    agent.started(asked, task="fix the bug")
    agent.step(2, "edit", "b.py")
    lines = [line for line in agent.lines() if line[:1] in ("#", "✓", "n")]
    steps = ["## Agent", "✓ edit a.py", "## Done", "## You", "now the tests", "## Agent"]
    assert lines[-8:-1] == [*steps, "✓ edit b.py"]
    assert agent.host.messages("agent.say") == []


def test_a_message_to_a_run_that_cannot_be_continued_is_a_draft_again(agent: Agent) -> None:
    agent.start()
    agent.done()
    agent.nvim.press("GAnow the tests<Esc><CR>")
    asked = agent.heard("agent.resume")
    agent.started(asked, task="fix the bug")
    agent.nvim.press("GAand b.py<Esc>")
    agent.done("failed", "nothing answers")
    assert agent.lines()[-3:] == ["now the tests", "", "and b.py"]
    agent.nvim.press("G<CR>")
    assert agent.heard("agent.resume", 2)["text"] == "now the tests\n\nand b.py"


def test_messages_of_the_user_are_shown_again(agent: Agent) -> None:
    agent.nvim.command("LCursor agent resume")
    asked = agent.heard("agent.resume")
    agent.started(asked, task="make it fast")
    agent.say("agent.said", {"id": asked["id"], "text": "and short"})
    agent.nvim.settle()
    assert [line for line in agent.lines() if line[:1] in ("#", "a")][-3:-1] == [
        "## You",
        "and short",
    ]


def test_a_run_of_another_neovim(agent: Agent) -> None:
    agent.nvim.command("LCursor agent resume")
    asked = agent.heard("agent.resume")
    assert asked["run"] == "last"
    agent.id = asked["id"]
    agent.fail("the run r1 is already running", "agent_busy", "Stop it there first")
    agent.done("failed", "the run r1 is already running", run="")
    assert "the run r1 is already running" in reach.told(agent.nvim)[-1]
    assert agent.nvim.lua("return { #vim.api.nvim_list_wins(), vim.fn.bufname() }") == [1, "a.py"]
    agent.nvim.command("LCursor agent list")
    listed(agent, row("r1", "fix it", state="running"))
    agent.nvim.press("<CR>")
    asked = agent.heard("agent.resume", 2)
    agent.started(asked, task="fix it")
    agent.done("running", "")
    assert "## Runs in another Neovim" in agent.lines()


def test_a_run_that_never_began_is_not_continued(agent: Agent) -> None:
    agent.nvim.command("LCursor agent do it")
    agent.id = agent.heard("agent.start")["id"]
    agent.fail("there is no model")
    agent.done("failed", "there is no model", run="")
    agent.nvim.press("GAagain<Esc><CR>")
    text = "lcursor: this run never began; :LCursor agent {task} starts another one"
    assert reach.told(agent.nvim)[-1] == text
    assert agent.host.messages("agent.resume") == []


def test_an_error_of_a_message_does_not_end_the_run(agent: Agent) -> None:
    agent.start()
    agent.fail("the message cannot be stored", "agent_failed")
    agent.step(1, "read", "a.py")
    assert "✓ read a.py" in agent.lines()


def test_nothing_runs(agent: Agent) -> None:
    agent.nvim.command("LCursor agent stop")
    agent.nvim.command("LCursor agent say hello")
    assert reach.told(agent.nvim) == [
        "lcursor: no agent runs",
        "lcursor: no agent runs; :LCursor agent {task} starts one",
    ]


def test_neovim_is_closed_while_a_run_works(agent: Agent) -> None:
    agent.start()
    agent.asks(1, "make")
    agent.nvim.client.notify("nvim_command", "qall!")
    assert agent.nvim.client.close(timeout_s=30) >= 0
    agent.host.wait(lambda: agent.host.messages("shutdown"))
