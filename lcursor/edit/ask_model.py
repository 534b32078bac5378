"""Request a complete answer from a model. Blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lcursor.llm.pool import Connection
from lcursor.llm.records import Finished, Message, SamplingParams, Text, Usage
from lcursor.stop import Stop


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a model."""

    text: str
    usage: Usage


def complete(
    reached: Connection, messages: Sequence[Message], wish: SamplingParams, cancel: Stop
) -> Answer:
    """Return the answer of a model."""
    stream = reached.client.stream(messages, wish)
    text, usage = list[str](), Usage()
    with cancel.closing(stream.close):
        for event in stream:
            if isinstance(event, Text):
                text.append(event.text)
            elif isinstance(event, Finished):
                usage = event.usage
    return Answer("".join(text), usage)
