"""Each tool under each condition: faults of the server, malformed answers, stops, policies.

Every run must end well, with the files and the log of an undisturbed one, and with prompts that
only grow.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.fakes.script_server import Entry, Fault, Long
from tests.unit.agent.runs_over_http import (
    FILES,
    Make,
    bash,
    call,
    check_log,
    check_prompts,
    finish,
    replace,
    view,
)
from tests.waiting import wait_for

pytestmark = pytest.mark.sandbox


@dataclass(frozen=True)
class Tool:
    """An answer that calls a tool."""

    answer: str
    made: dict[str, str]
    """Files that it changes."""
    before: tuple[str, ...] = ()
    """Answers that it needs before it."""


INSERT = {"command": "insert", "path": "b.py", "insert_line": 2, "new_str": "\n\ng = f"}
CREATE = {"command": "create", "path": "c.py", "file_text": "c = 3\n"}
TOOLS = {
    "view": Tool(view(), {}),
    "replace": Tool(replace(), {"a.py": "x = 2\n"}, (view(),)),
    "insert": Tool(
        call("str_replace_editor", **INSERT),
        {"b.py": "def f():\n    return 2\n\n\ng = f\n"},
        (view("b.py"),),
    ),
    "create": Tool(call("str_replace_editor", **CREATE), {"c.py": "c = 3\n"}),
    "bash": Tool(bash("echo 4 > d"), {"d": "4\n"}),
    "grep": Tool(call("grep", pattern="return"), {}),
    "glob": Tool(call("glob", pattern="*.py"), {}),
    "search": Tool(call("search", query="f"), {}),
}
DISTURBED: dict[str, list[Entry]] = {
    "killed": [Fault.ABORT],
    "cut": [Fault.CUT],
    "not JSON": [Fault.GARBAGE],
    "busy": [Fault.BUSY],
    "no such tool": ["<tool_call>\n<function=fly>"],
    "cut off": [Long("<tool_call>\n<function=bash>\n<parameter=command>\nrm a.py")],
    "full": [Fault.FULL, "Known:\n- x"],
    "stopped": [Fault.SILENCE],
}


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("condition", DISTURBED)
def test_each_tool_works_after_each_fault(condition: str, name: str, session: Make) -> None:
    tool = TOOLS[name]
    it = session([*tool.before, *DISTURBED[condition], tool.answer, finish("all done")])
    it.start(number := 1)
    if condition == "stopped":
        wait_for(lambda: len(it.server.prompts) > len(tool.before) and it.server.running)
        it.send("agent.stop", id=1)
        assert it.wait("agent.done")["state"] == "stopped"
        it.resume(number := 2)
    done = it.wait("agent.done", number)
    assert (done["state"], done["message"]) == ("done", "all done")
    assert it.files() == {**FILES, **tool.made}
    assert [*map(str, done["paths"])] == [f"{it.root}/{path}" for path in tool.made]
    check_log(it.run_folder)
    assert len(it.log.state.steps) == len(tool.before) + 2
    check_prompts(it.server, rewrites=condition == "full")


CHOICES = [*((name, "once") for name in TOOLS), ("bash", "run"), ("bash", "reject")]


@pytest.mark.parametrize(("name", "choice"), CHOICES)
def test_the_policy_ask_asks_about_commands_alone(name: str, choice: str, session: Make) -> None:
    tool = TOOLS[name]
    it = session([*tool.before, tool.answer, finish("all done")])
    it.choice = choice
    assert it.finish(policy="ask")["message"] == "all done"
    is_asked = name == "bash"
    assert len(it.all("agent.asks")) == is_asked
    made = {} if is_asked and choice == "reject" else tool.made
    assert it.files() == {**FILES, **made}
    check_log(it.run_folder)
    check_prompts(it.server)


@pytest.mark.parametrize("name", TOOLS)
def test_the_policy_plan_changes_nothing_before_approval(name: str, session: Make) -> None:
    tool = TOOLS[name]
    work = [*tool.before, tool.answer]
    it = session([*work, finish("the plan"), *work, finish("all done")])
    it.start(policy="plan")
    it.wait("agent.planned")
    assert it.files() == FILES
    it.send("agent.approve_plan", id=1, text="the plan")
    assert it.wait("agent.done")["message"] == "all done"
    assert it.files() == {**FILES, **tool.made}
    check_log(it.run_folder)
    check_prompts(it.server)
