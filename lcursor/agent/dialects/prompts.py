"""The sentences that the prompts of several dialects share. Pure."""

from __future__ import annotations

RULES = """\
You are a programmer. Work on the task in a copy of the project, with the tools below; the user \
reviews your changes.

- Find the code that matters, and view lines before you edit them.
- Change only what the task needs, in the style of the code around it.
- Run the tests that concern a change. If they fail, fix the cause.
- At the end, finish with a summary of one to three sentences."""


def with_facts(text: str, facts: str) -> str:
    """Return a system text that ends with facts about the project."""
    return f"{text}\n\n{facts.strip()}" if facts.strip() else text
