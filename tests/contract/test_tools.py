"""Each tool of an agent says what it may do, and is in the table.

A tool that is missing would be unknown to the approvals; one with a wrong kind would run without a
checkpoint, and after a crash a second time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.agent import approvals, tools
from lcursor.agent.records import Policy, ToolCall
from lcursor.agent.shell_rules import ShellRules
from lcursor.agent.tools import edit
from lcursor.agent.tools.table import ALL, has_effect, kind_of
from lcursor.agent.tools.tool import Tool

EFFECTS = {
    "str_replace_editor create": "edit",
    "str_replace_editor insert": "edit",
    "str_replace_editor str_replace": "edit",
    "str_replace_editor view": "read",
    "bash": "command",
    "finish": "finish",
    "glob": "search",
    "grep": "search",
    "mcp_call": "command",
    "mcp_find": "search",
    "rewrite": "edit",
    "search": "search",
}
"""What each call is; a new tool needs a row."""


def calls(tool: Tool) -> dict[str, ToolCall]:
    if tool is not edit.TOOL:
        return {tool.name: ToolCall(tool.name, dict.fromkeys(tool.required, "x"))}
    return {
        f"{tool.name} {command}": ToolCall(tool.name, {"command": command, "path": "x"})
        for command in ("view", *edit.TOOL.needs)
    }


CALLS = {name: call for tool in ALL.values() for name, call in calls(tool).items()}


def test_each_call_has_its_kind() -> None:
    assert {name: kind_of(call) for name, call in CALLS.items()} == EFFECTS


def test_only_what_is_checkpointed_may_be_forbidden_in_plan_mode() -> None:
    for name, call in CALLS.items():
        found = approvals.decide(call, "plan", "bubblewrap", ShellRules(), Path("/"))
        assert (found.verdict == "forbid") == has_effect(call), name


@pytest.mark.parametrize("policy", ["ask", "auto"])
def test_no_tool_is_unknown_to_the_approvals(policy: Policy) -> None:
    for name, call in CALLS.items():
        found = approvals.decide(call, policy, "bubblewrap", ShellRules(), Path("/"))
        assert "is unknown" not in found.why, name


def test_each_module_of_a_tool_is_in_the_table() -> None:
    folder = Path(tools.__file__ or "").parent
    modules = {path.stem for path in folder.glob("*.py") if "\nTOOL: Final" in path.read_text()}
    assert modules == {"bash", "edit", "finish", "glob", "grep", "search"}
    assert len(ALL) == len(modules) + 3, "and that of small models, and two for servers"
