"""The tools of servers (the Model Context Protocol): one finds them by words, one calls them.

Their names, and with them the beginning of the prompt, are the same for any number of servers.
Small models do not search: they are offered the few tools that fit the task.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from lcursor.agent.records import Observation, ToolCall
from lcursor.agent.tools.tool import Arguments, Tool, ToolContext
from lcursor.context.servers import ServerTools
from lcursor.errors import McpFailed
from lcursor.process.run import Cancel
from lcursor.storage import json_text
from lcursor.workspace.outputs import cut_line, printable

MAX_OFFERED: Final = 3
MAX_ARGUMENTS: Final = 4
"""Required ones that a small model can fill in."""
SIMPLE: Final = ("string", "integer", "number", "boolean")


def suited(servers: ServerTools, task: str, cancel: Cancel) -> dict[str, Arguments]:
    """Return the schemas of a few tools that fit a task and that a small model can call, by name.

    The description in a schema is the line of the tool in a search.

    Raises:
        Cancelled: `cancel` returned true.
    """
    text, schemas = servers.find(task, cancel)
    lines = {line.partition("(")[0]: line for line in text.splitlines()}
    found = {
        name: {**schema, "description": printable(cut_line(lines[name]))}
        for name, schema in schemas.items()
        if name in lines and is_simple(schema)
    }
    return dict([*found.items()][:MAX_OFFERED])


def is_simple(schema: Arguments) -> bool:
    """Return whether the arguments that a tool needs are few, and texts, numbers or choices."""
    properties, required = schema.get("properties") or {}, schema.get("required") or ()
    return len(required) <= MAX_ARGUMENTS and all(
        isinstance(properties.get(name), dict)
        and (properties[name].get("type") in SIMPLE or "enum" in properties[name])
        for name in required
    )


def find(given: Arguments, context: ToolContext) -> Observation:
    """Find tools."""
    assert context.servers is not None
    found, schemas = context.servers.find(given["words"], context.cancel)
    context.schemas.update(schemas)
    text = context.limit.cut(printable(found))
    return Observation(text, target=cut_line(given["words"]))


def call(given: Arguments, context: ToolContext) -> Observation:
    """Call a tool."""
    assert context.servers is not None
    name = given["name"].strip()
    try:
        text, is_error = context.servers.call(name, given["arguments"], context.cancel, context.ask)
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
