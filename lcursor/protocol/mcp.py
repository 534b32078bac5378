"""The messages of servers with tools (the Model Context Protocol)."""

from __future__ import annotations

from typing import Literal, TypedDict

McpState = Literal["broken", "new", "changed", "denied", "allowed", "starting", "ready", "failed"]
"""`broken` if the settings are wrong; `new` and `changed` wait for the user's answer; `allowed` if
it has not started yet."""


class McpList(TypedDict):
    """List the servers of the settings, for a project."""

    id: int
    path: str  # absolute: of a file or folder of the project


class McpShow(TypedDict):
    """Show a server with its tools, which starts it if it is allowed."""

    id: int
    path: str
    server: str


class McpDecide(TypedDict):
    """Allow or deny a server and its tools, as they were shown."""

    id: int
    path: str
    server: str
    is_allowed: bool
    shown: str  # of `McpServer`


class McpRestart(TypedDict):
    """End a server, and start it again."""

    id: int
    path: str
    server: str


class McpImport(TypedDict):
    """Read the servers in the settings of other programs, without any effect."""

    id: int
    path: str


class McpTool(TypedDict):
    """A tool of a server."""

    name: str
    state: Literal["allowed", "new", "changed", "unusable"]
    lines: list[str]  # its arguments, and all of its description
    changes: list[str]  # since it was allowed, with + and -


class McpServer(TypedDict):
    """A server of the settings."""

    name: str
    state: McpState
    policy: list[str]  # what it runs and may do
    changes: list[str]  # since it was allowed, with + and -
    warning: str
    problem: str
    revision: str  # of the protocol; empty if it does not run
    tools: list[McpTool]  # empty if it does not run
    shown: str  # identifies all of this, for the answer


class McpListed(TypedDict):
    """The servers of a project; the answer to `mcp.list`."""

    id: int
    servers: list[McpServer]


class McpShown(TypedDict):
    """A server; the answer to the other messages."""

    id: int
    server: McpServer


class McpImported(TypedDict):
    """The answer to `mcp.import`."""

    id: int
    lines: list[str]  # a part of the settings, in Lua


TO_PYTHON: dict[str, type] = {
    "mcp.list": McpList,
    "mcp.show": McpShow,
    "mcp.decide": McpDecide,
    "mcp.restart": McpRestart,
    "mcp.import": McpImport,
}
TO_LUA: dict[str, type] = {
    "mcp.listed": McpListed,
    "mcp.shown": McpShown,
    "mcp.imported": McpImported,
}
