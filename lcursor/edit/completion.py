"""Request a complete answer from a model. Blocks."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lcursor.errors import Cancelled
from lcursor.llm.client import Stream
from lcursor.llm.pool import Connection
from lcursor.llm.records import Finished, Message, SamplingParams, Text, Usage

POLL_S = 0.02
"""Interval of checks for cancellation while the server is silent."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a model."""

    text: str
    usage: Usage


def complete(
    reached: Connection, messages: Sequence[Message], wish: SamplingParams, cancel: threading.Event
) -> Answer:
    """Return the answer of a model."""
    stream = reached.client.stream(messages, wish)
    text, usage = list[str](), Usage()
    with close_on_cancel(stream, cancel):
        for event in stream:
            if isinstance(event, Text):
                text.append(event.text)
            elif isinstance(event, Finished):
                usage = event.usage
    return Answer("".join(text), usage)


@contextmanager
def close_on_cancel(stream: Stream, cancel: threading.Event) -> Iterator[None]:
    """Close a stream as soon as an event is set."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(POLL_S):
            if cancel.is_set():
                stream.close()
                return

    watcher = threading.Thread(target=watch, name="lcursor-edit-stop", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
    raise_if_cancelled(cancel)


def raise_if_cancelled(cancel: threading.Event) -> None:
    """Raise `Cancelled` if an event is set."""
    if cancel.is_set():
        raise Cancelled("the edit was stopped")
