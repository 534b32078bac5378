"""The sentences that the prompts of several dialects share. Pure."""

from __future__ import annotations

from lcursor.agent.records import Tool

RULES = """\
You are a programmer who works on a task in a copy of a project, with the tools below. The user \
reviews your changes at the end.

- Find the code that matters, and view lines before you edit them.
- Change only what the task needs, in the style of the code around it.
- Run the tests that concern a change. If they fail, read why, and fix the cause.
- Commands start in the project's root, without network or input, and end with the call. git is \
read-only.
- Paths are relative to the root.
- If something fails twice, try another way.
- At the end call finish with a summary of at most three sentences."""


def signature(tool: Tool) -> str:
    """Return a tool on one line: `bash(command, timeout_s?)`."""
    return f"{tool.name}({', '.join([*tool.required, *(f'{one}?' for one in tool.optional)])})"


def with_facts(text: str, facts: str) -> str:
    """Return a system text that ends with facts about the project."""
    return f"{text}\n\n{facts.strip()}" if facts.strip() else text
