"""A hundred tools as servers describe them, and sixty questions for which one of them is right.

The questions were written before the ranking was measured, with the words of a person or a model
that has a task, not with those of the descriptions.
"""

from __future__ import annotations

from pathlib import Path

from lcursor.mcp.client.records import ServerTool

FOLDER = Path(__file__).parents[2] / "recorded"


def tools() -> list[ServerTool]:
    """Return the tools."""
    found = []
    for line in (FOLDER / "mcp-tools.txt").read_text().splitlines():
        names, _, description = line.partition(" | ")
        server, name, *arguments = names.split()
        schema = {"type": "object", "properties": {each: {"type": "string"} for each in arguments}}
        found.append(ServerTool(server, name, description, schema))
    return found


def questions() -> list[tuple[str, list[str]]]:
    """Return questions with the keys of the tools that are right."""
    found = []
    for line in (FOLDER / "mcp-questions.txt").read_text().splitlines():
        question, _, right = line.partition(" | ")
        server, *names = right.split()
        found.append((question, [f"{server}__{name}" for name in names]))
    return found
