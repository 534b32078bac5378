"""The tools of agents, by name. A new tool gets a row here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lcursor.agent.guided import rewrite
from lcursor.agent.records import FOREIGN, ToolCall
from lcursor.agent.tools import bash, edit, finish, glob, grep, mcp, search
from lcursor.agent.tools.tool import Tool
from lcursor.protocol.agent import StepKind

TOOLS: Final = (edit.TOOL, bash.TOOL, grep.TOOL, glob.TOOL, search.TOOL, finish.TOOL)
"""Those of models that write calls; the order is that of the prompt."""
ALL: Final[Mapping[str, Tool]] = {tool.name: tool for tool in (*TOOLS, *mcp.TOOLS, rewrite.TOOL)}


def kind_of(call: ToolCall) -> StepKind:
    """Return the kind of a call, for the user; that of an unknown tool is "command"."""
    if call.tool == FOREIGN:
        kind: StepKind = call.arguments["kind"]
        return kind
    tool = ALL.get(call.tool)
    return tool.kind_of(call.arguments) if tool else "command"


def question_of(call: ToolCall) -> str:
    """Return the text of a call for the user who has to approve it."""
    if call.tool == mcp.CALL.name:
        return mcp.question_of(call)
    return str(call.arguments.get("command") or "")


def changed_arguments(call: ToolCall, text: str) -> Mapping[str, Any] | None:
    """Return the arguments of a call whose text the user has changed; None if it is unusable."""
    if call.tool == mcp.CALL.name:
        return mcp.changed_arguments(call, text)
    return {**call.arguments, "command": text}


def has_effect(call: ToolCall) -> bool:
    """Return whether a call may change files."""
    return kind_of(call) in ("edit", "command")
