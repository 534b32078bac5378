"""The tool that finds code by its meaning."""

from __future__ import annotations

from typing import Final

from lcursor.agent.records import Observation
from lcursor.agent.tools.tool import Arguments, Tool, ToolContext


def run(given: Arguments, context: ToolContext) -> Observation:
    """Find code."""
    return context.lookup.search(given["query"], given.get("path", ""), context.cancel)


TOOL: Final = Tool(
    "search",
    "Find code by its meaning.",
    {"query": "a question or some words"},
    {"path": "only below this folder"},
    kind="search",
    examples={"search": "Find code by its meaning:\n\n```search\nwhere dates are parsed\n```"},
    run=run,
)
