"""Request a complete answer from a model. Blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lcursor.llm.pool import Connection
from lcursor.llm.records import Finished, Message, SamplingParams, Text, Usage
from lcursor.stop import Stop


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The answer of a model."""

    text: str
    usage: Usage


def complete(
    connection: Connection, messages: Sequence[Message], sampling: SamplingParams, cancel: Stop
) -> ModelReply:
    """Return the answer of a model."""
    stream = connection.client.stream(messages, sampling)
    text, usage = list[str](), Usage()
    with cancel.closing(stream.close):
        for event in stream:
            if isinstance(event, Text):
                text.append(event.text)
            elif isinstance(event, Finished):
                usage = event.usage
    return ModelReply("".join(text), usage)
