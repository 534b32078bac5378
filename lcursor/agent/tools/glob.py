"""The tool that lists files."""

from __future__ import annotations

from typing import Final

from lcursor.agent.records import Observation
from lcursor.agent.tools.tool import Arguments, Tool, ToolContext


def run(given: Arguments, context: ToolContext) -> Observation:
    """List files."""
    return context.lookup.glob(given["pattern"], context.cancel)


TOOL: Final = Tool(
    "glob",
    "List files by a pattern, newest first.",
    {"pattern": "like src/**/*.py"},
    kind="search",
    run=run,
)
