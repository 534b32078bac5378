"""Ask the user what a server wants to know: a form in the buffer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lcursor.context.servers import AskUser
from lcursor.mcp.client.records import cleaned
from lcursor.run import forms

MAX_FORMS: Final = 3
"""How often a form that is filled in wrongly is shown again."""
MAX_MESSAGE: Final = 2000


def ask_user(
    ask: AskUser, server: str, message: str, schema: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any] | None]:
    """Ask for what a server wants to know; return accept or decline, and the answer."""
    question = f"The server {server} asks: {cleaned(message)[:MAX_MESSAGE]}"
    text = cleaned(forms.write(question, schema))
    for _ in range(MAX_FORMS):
        answer = ask(text)
        if not answer.strip():
            break
        try:
            return "accept", forms.read(answer, schema)
        except forms.FormProblem as problem:
            text = cleaned(forms.write(f"{question}\n\n{problem}.", schema))
    return "decline", None
