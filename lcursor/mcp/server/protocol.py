"""Offer the tools of a project over the protocol, on standard input and output.

Source: the specification of 2026-07-28; the SDK also speaks the revisions with a handshake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from lcursor import __version__
from lcursor.mcp.server.tools import ProjectTools, ToolProblem

INSTRUCTIONS = "Code search and the open editor of this project. Search before you list files."
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
PROPOSES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


def make(tools: ProjectTools, *, may_propose: bool = False) -> MCPServer:
    """Return a server with the tools of a project.

    Args:
        may_propose: also offer `propose`, which shows hunks in the editor.
    """
    server = MCPServer("lcursor", version=__version__, instructions=INSTRUCTIONS, log_level="ERROR")

    @server.tool(annotations=READS, structured_output=False)
    def search(
        query: Annotated[str, Field(description="Words or a question; path: and lang: narrow it")],
    ) -> str:
        """Find code of this project by meaning and words."""
        return _answer(lambda: tools.search(query))

    @server.tool(annotations=READS, structured_output=False)
    def symbol(name: Annotated[str, Field(description="A name, or Class.name")]) -> str:
        """Find where a function, class or other name is defined."""
        return _answer(lambda: tools.symbol(name))

    @server.tool(annotations=READS, structured_output=False)
    def read(
        path: Annotated[str, Field(description="Relative to the project")],
        first_line: int = 1,
        last_line: Annotated[int, Field(description="0 is the end")] = 0,
    ) -> str:
        """Read lines of a file, with unsaved text of the editor."""
        return _answer(lambda: tools.read(path, first_line, last_line))

    @server.tool(annotations=READS, structured_output=False)
    def diagnostics(
        path: Annotated[str, Field(description='A file; "" for all open files')] = "",
    ) -> str:
        """List the errors and warnings that the editor shows."""
        return _answer(lambda: tools.diagnostics(path))

    if may_propose:

        @server.tool(annotations=PROPOSES, structured_output=False)
        def propose(
            path: Annotated[str, Field(description="Relative to the project")],
            old: Annotated[str, Field(description='Text that is there once; "" in a new file')],
            new: Annotated[str, Field(description="Text that replaces it")],
        ) -> str:
            """Propose a change, which the user accepts or rejects in the editor."""
            return _answer(lambda: tools.propose(path, old, new))

    return server


def _answer(call: Callable[[], str]) -> str:
    try:
        return call()
    except ToolProblem as problem:
        raise ToolError(str(problem)) from problem
