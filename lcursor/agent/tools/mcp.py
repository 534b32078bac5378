"""The tools of servers (the Model Context Protocol): one finds them by words, one calls them.

Their names, and with them the beginning of the prompt, are the same for any number of servers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from lcursor.agent.records import Observation, ToolCall
from lcursor.agent.tools.tool import Arguments, Tool, ToolContext
from lcursor.errors import McpFailed
from lcursor.storage import json_text
from lcursor.workspace.outputs import cut_line, printable


def find(given: Arguments, context: ToolContext) -> Observation:
    """Find tools."""
    assert context.servers is not None
    text = context.limit.cut(printable(context.servers.find(given["words"], context.cancel)))
    return Observation(text, target=cut_line(given["words"]))


def call(given: Arguments, context: ToolContext) -> Observation:
    """Call a tool."""
    assert context.servers is not None
    name = given["name"].strip()
    try:
        text, is_error = context.servers.call(name, given["arguments"], context.cancel)
    except McpFailed as error:
        text, is_error = str(error), True
    text = context.limit.cut(printable(text)) or "The result is empty."
    return Observation(text, is_error, cut_line(name), "failed" if is_error else "")


def question_of(call: ToolCall) -> str:
    """Return a call in full, for the user: the name, then the arguments."""
    text = json.dumps(call.arguments["arguments"], indent=2, ensure_ascii=False)
    return printable(f"{call.arguments['name']}\n{text}")


def changed_arguments(call: ToolCall, text: str) -> Mapping[str, Any] | None:
    """Return the arguments of a call as the user has changed them; None if they are unusable."""
    try:
        changed = json_text.parse(text.partition("\n")[2])
    except ValueError:
        return None
    return {**call.arguments, "arguments": changed} if isinstance(changed, dict) else None


FIND: Final = Tool(
    "mcp_find",
    "Find tools of the user's servers (issues, databases, web, …) by words; returns their names "
    "and arguments.",
    {"words": "what the tool should do"},
    kind="search",
    examples={
        "mcp_find": "Find tools of the user's servers (issues, databases, web, …):\n\n"
        "```mcp_find\ncreate an issue\n```"
    },
    run=find,
)
CALL: Final = Tool(
    "mcp_call",
    "Call a tool that mcp_find found.",
    {"name": "as found: server__tool", "arguments": "a JSON object"},
    objects=frozenset({"arguments"}),
    kind="command",
    examples={
        "mcp_call": "Call one that was found, with its arguments as JSON:\n\n"
        '```mcp_call tracker__create_issue\n{"title": "Dates are wrong"}\n```'
    },
    run=call,
)
TOOLS: Final = (FIND, CALL)
