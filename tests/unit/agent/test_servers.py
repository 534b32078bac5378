"""Calls of servers' tools by agents: what is offered, asked, written and read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lcursor.agent.approvals import PLAN_ONLY, TOOL_CHANGED, Approvals
from lcursor.agent.dialects.api import Api
from lcursor.agent.dialects.arguments import Malformed, call_of
from lcursor.agent.dialects.dialect import Dialect
from lcursor.agent.dialects.fenced import Fenced
from lcursor.agent.dialects.native import Native
from lcursor.agent.guided import guidance
from lcursor.agent.guided.choice import Choice
from lcursor.agent.records import Answer, Known, Observation, Policy, ToolCall
from lcursor.agent.run_log import AgentStep, RunState
from lcursor.agent.shell_rules import ShellRules
from lcursor.agent.tools import mcp, table
from lcursor.agent.tools.toolbox import make_toolbox
from lcursor.config import AgentConfig, EditConfig
from lcursor.context.codebase import GrepSearch
from lcursor.context.servers import AskUser
from lcursor.errors import McpFailed
from lcursor.process.run import Cancel
from lcursor.process.sandbox import open_sandbox
from tests.unit.agent.toolboxes import TOKENS, count, never
from tests.unit.workspace.projects import Project, project

__all__ = ["project"]
TOOLS = (*Native().tools, *mcp.TOOLS)
CALL = ToolCall("mcp_call", {"name": "it__echo", "arguments": {"text": "hello"}})


class FakeServers:
    """Servers with any number of tools; `echo` repeats its text."""

    def __init__(self, number: int = 1, risk: str = "") -> None:
        self.number, self.reason = number, risk
        self.digest = "1"

    def find(self, words: str, cancel: Cancel) -> tuple[str, Mapping[str, Any]]:
        return f"{self.number} tools for {words}", {"it__echo": {"type": "object"}}

    def call(
        self, key: str, arguments: Mapping[str, Any], cancel: Cancel, ask: AskUser | None = None
    ) -> tuple[str, bool]:
        if key != "it__echo":
            raise McpFailed(f"there is no tool {key}")
        return arguments["text"], False

    def risk(self, key: str) -> str:
        return self.reason

    def content(self, key: str) -> str:
        return self.digest

    def notes(self) -> list[str]:
        return []

    def names(self) -> list[str]:
        return ["it"]


def toolbox(project: Project, dialect: Dialect, servers: FakeServers | None) -> Any:
    tree = project.tree(f"run-{servers.number if servers else 0}")
    return make_toolbox(
        tree,
        open_sandbox(),
        GrepSearch(tree.path),
        AgentConfig(),
        EditConfig(),
        dialect=dialect,
        count=count,
        budget_tokens=TOKENS,
        servers=servers,
    )


@pytest.fixture
def agent(project: Project) -> Any:
    project.repository({"a.py": "a = 1\n"})
    return toolbox(project, Native(), FakeServers())


def test_tools_are_found_and_called(agent: Any) -> None:
    assert agent.run(ToolCall("mcp_find", {"words": "echo"}), never).text == "1 tools for echo"
    assert agent.known().schemas == {"it__echo": {"type": "object"}}
    found = agent.run(CALL, never)
    assert (found.text, found.is_error, found.target) == ("hello", False, "it__echo")
    failed = agent.run(ToolCall("mcp_call", {"name": "bash", "arguments": {}}), never)
    assert (failed.text, failed.is_error) == ("there is no tool bash", True)


def test_a_long_result_is_cut_and_control_characters_are_replaced(agent: Any) -> None:
    text = "a\x1b[31m" + "line of a result\n" * 1000
    found = agent.run(
        ToolCall("mcp_call", {"name": "it__echo", "arguments": {"text": text}}), never
    )
    assert count(found.text) <= TOKENS
    assert "more characters" in found.text
    assert "\x1b" not in found.text


@pytest.mark.parametrize("dialect", [Native(), Native("json"), Fenced()])
def test_the_prompt_begins_the_same_with_any_number_of_tools(
    project: Project, dialect: Dialect
) -> None:
    project.repository({"a.py": "a = 1\n"})
    systems = {
        dialect.system(toolbox(project, dialect, FakeServers(number)).tools, "facts")
        for number in (1, 30, 300)
    }
    assert len(systems) == 1
    without = dialect.system(toolbox(project, dialect, None).tools, "facts")
    assert "mcp_find" in systems.pop()
    assert "mcp" not in without


@pytest.mark.parametrize("form", ["tags", "json"])
def test_a_call_is_read_as_it_was_written(form: Any) -> None:
    dialect = Native(form)
    reply = dialect.parse(Answer(dialect.render(CALL)), TOOLS, Known())
    assert (reply.problem, reply.calls) == ("", (CALL,))


def test_a_call_in_a_block_is_read() -> None:
    text = 'I call it.\n\n```mcp_call it__echo\n{"text": "hello"}\n```'
    assert Fenced().parse(Answer(text), TOOLS, Known()).calls == (CALL,)
    text = "I look.\n\n```mcp_find\nrepeat a text\n```"
    [found] = Fenced().parse(Answer(text), TOOLS, Known()).calls
    assert found == ToolCall("mcp_find", {"words": "repeat a text"})
    assert Api().parse(Answer(text), TOOLS, Known()).problem == ""


ECHO: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "description": "it__echo(text: string) — Repeat a text.",
}


class ManyTools(FakeServers):
    """Servers with tools of which a small model can call some."""

    def find(self, words: str, cancel: Cancel) -> tuple[str, Mapping[str, Any]]:
        nested = {"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"]}
        free = {"type": "object", "properties": {}}
        schemas = {"it__nested": nested, "it__echo": ECHO, "it__a": free, "it__b": free}
        lines = [f"{name}() — One." for name in schemas]
        lines[1] = ECHO["description"]
        return "\n".join([*lines, "Also: it__other"]), {**schemas, "it__c": free, "it__other": free}


def test_a_small_model_is_offered_three_tools_that_it_can_call(project: Project) -> None:
    project.repository({"a.py": "a = 1\n"})
    dialect = Choice()
    box = toolbox(project, dialect, ManyTools())
    known = box.known()
    assert [*known.schemas] == ["it__echo", "it__a", "it__b"]
    system = dialect.system(box.tools, dialect.facts(known, str))
    assert "it__echo(text: string) — Repeat a text." in system
    grammar = dialect.grammar(box.tools, known)
    assert '"call " tool' in grammar
    assert '"it__echo : "' in grammar
    reply = dialect.parse(Answer(f"# repeat it\n{dialect.render(CALL, known)}\n"), TOOLS, known)
    assert reply.calls == (CALL,)
    assert box.run(CALL, never).text == "hello"
    for action in ('call it__none : {"a": 1}', "call it__echo : {", "call it__echo : 3"):
        assert dialect.parse(Answer(f"# try\n{action}\n"), TOOLS, known).problem


def test_without_servers_a_small_model_reads_nothing_of_them(project: Project) -> None:
    project.repository({"a.py": "a = 1\n"})
    box = toolbox(project, Choice(), None)
    assert box.tools == Choice().tools
    known = box.known()
    assert "call " not in Choice().grammar(box.tools, known)
    assert "further tools" not in Choice().facts(known, str)


def steps(*tools: str) -> RunState:
    """Return the state of a run with finished calls."""
    found = Observation("hello")
    calls = [CALL if tool == "mcp_call" else ToolCall(tool, {"pattern": "x"}) for tool in tools]
    steps = [AgentStep(n, call, before="now", observation=found) for n, call in enumerate(calls)]
    return RunState(steps=steps)


def test_a_small_model_may_end_after_a_call_and_calls_few_in_a_row() -> None:
    known = Known(("a.py",), {}, {}, {}, {"it__echo": ECHO})
    assert not guidance.offered(known, steps("grep"), "").may_end
    after = guidance.offered(known, steps("mcp_call"), "")
    assert after.may_end
    assert after.schemas
    many = ["mcp_call"] * guidance.MAX_CALLS
    assert not guidance.offered(known, steps(*many), "").schemas
    assert guidance.offered(known, steps(*many, "grep"), "").schemas


@pytest.mark.parametrize("value", ["{", "[1]", "text", 3, ["x"], True])
def test_arguments_are_an_object(value: Any) -> None:
    with pytest.raises(Malformed, match="arguments must be a JSON object"):
        call_of("mcp_call", {"name": "it__echo", "arguments": value}, TOOLS)


@pytest.mark.parametrize(
    ("policy", "risk", "verdict", "why"),
    [
        ("plan", "", "forbid", PLAN_ONLY),
        ("plan", "it has a network", "forbid", PLAN_ONLY),
        ("ask", "", "ask", "it calls a tool of a server"),
        ("ask", "it has a network", "ask", "it has a network"),
        ("auto", "", "allow", ""),
        ("auto", "it has a network", "ask", "it has a network"),
        ("full", "it has a network", "allow", ""),
    ],
)
def test_decisions_about_calls(policy: Policy, risk: str, verdict: str, why: str) -> None:
    found = approvals(policy, FakeServers(risk=risk)).decide(CALL)
    assert (found.verdict, found.why) == (verdict, why)


def approvals(policy: Policy, servers: FakeServers) -> Approvals:
    return Approvals(policy, "bubblewrap", ShellRules(), Path("/"), servers=servers)


def test_an_approval_of_the_run_is_for_a_tool_as_it_is() -> None:
    servers = FakeServers(risk="it has a network")
    made = approvals("auto", servers)
    other = ToolCall("mcp_call", {"name": "it__echo", "arguments": {"text": "bye"}})
    made.remember(CALL, "once")
    assert made.decide(CALL).verdict == "ask"
    made.remember(CALL, "run")
    assert made.decide(CALL).verdict == made.decide(other).verdict == "allow"
    elsewhere = ToolCall("mcp_call", {"name": "it__send", "arguments": {"text": "hello"}})
    assert made.decide(elsewhere).verdict == "ask"
    servers.digest = "2"
    found = made.decide(CALL)
    assert (found.verdict, found.why) == ("ask", f"it has a network; {TOOL_CHANGED}")


def test_a_rejection_is_for_equal_arguments() -> None:
    made = approvals("ask", FakeServers())
    made.remember(CALL, "reject", "not now")
    assert made.decide(CALL).verdict == "forbid"
    assert "not now" in made.decide(CALL).why
    other = ToolCall("mcp_call", {"name": "it__echo", "arguments": {"text": "bye"}})
    assert made.decide(other).verdict == "ask"


def test_the_question_has_the_whole_call_which_the_user_may_change() -> None:
    text = table.question_of(CALL)
    assert text == 'it__echo\n{\n  "text": "hello"\n}'
    changed = table.changed_arguments(CALL, text.replace("hello", "bye"))
    assert changed == {"name": "it__echo", "arguments": {"text": "bye"}}
    renamed = table.changed_arguments(CALL, text.replace("it__echo", "it__send"))
    assert renamed == CALL.arguments, "the tool stays"
    assert table.changed_arguments(CALL, "it__echo\nno object") is None
    assert json.loads(json.dumps(changed)) == changed
