"""The tool that ends a run."""

from __future__ import annotations

from typing import Final

from lcursor.agent.records import Observation
from lcursor.agent.tools.tool import Arguments, Tool, ToolContext


def run(given: Arguments, context: ToolContext) -> Observation:
    """Run the user's linter and tests."""
    return context.gate.finish(
        given["summary"], context.cancel, is_unconfined=context.is_unconfined
    )


TOOL: Final = Tool(
    "finish",
    "End the task; the user's tests are run.",
    {"summary": "what was done, in short"},
    kind="finish",
    examples={
        "finish": "End the task with a summary:\n\n```finish\nparse_date returns numbers now.\n```"
    },
    run=run,
)
