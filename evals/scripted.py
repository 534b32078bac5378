"""A model of a script in place of a server, for measurements of an agent's loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lcursor.agent.records import Answer, OnText
from lcursor.errors import Cancelled
from lcursor.llm.records import Usage

Rows = list[list[str]]
"""The conversation: pairs of role and text."""


class ScriptedModel:
    """A model whose answers are a function of the conversation; one token is four characters.

    Args:
        answer: returns the next answer, given the conversation and whether it is forced.
    """

    context_tokens = 65_536

    def __init__(self, answer: Callable[[Rows, bool], str]) -> None:
        self._answer = answer
        self._rows: Rows = []
        self._is_closed = False
        self.usage = Usage()

    def begin(self, system: str, task: str) -> None:
        """Start, or start again after a summary."""
        self._rows = [["system", system], ["user", task]]

    def append(self, text: str) -> None:
        """Add a message."""
        self._rows.append(["user", text])

    def ask(
        self,
        on_text: OnText,
        *,
        max_tokens: int,
        temperature: float = 0.0,
        grammar: str = "",
        is_forced: bool = False,
    ) -> Answer:
        """Answer at once."""
        if self._is_closed:
            raise Cancelled("the model is closed")
        text = self._answer(self._rows, is_forced)
        on_text(text)
        used = self.used_tokens
        self._rows.append(["assistant", text])
        return Answer(text, "stop", used, used, len(text) // 4)

    def drop_answer(self) -> None:
        """Remove the last answer."""
        self._rows.pop()

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""
        return len(text) // 4

    @property
    def used_tokens(self) -> int:
        """The length of the conversation."""
        return sum(len(text) // 4 for _, text in self._rows)

    def state(self) -> Mapping[str, Any]:
        """Return the conversation as JSON."""
        return {"rows": [list(row) for row in self._rows]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue a conversation."""
        self._rows = [list(row) for row in state["rows"]]

    def close(self) -> None:
        """Stop all later answers."""
        self._is_closed = True
