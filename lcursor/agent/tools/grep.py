"""The tool that finds lines."""

from __future__ import annotations

from typing import Final

from lcursor.agent.records import Observation
from lcursor.agent.tools.tool import Arguments, Tool, ToolContext


def run(given: Arguments, context: ToolContext) -> Observation:
    """Find lines."""
    path, glob = given.get("path", ""), given.get("glob", "")
    return context.lookup.grep(given["pattern"], path, glob, context.cancel)


TOOL: Final = Tool(
    "grep",
    "Find lines by a regular expression.",
    {"pattern": "a Perl-like expression"},
    {"path": "a file or folder", "glob": "only in paths like *.py"},
    kind="search",
    run=run,
)
