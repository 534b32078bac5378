"""A question to a model whose answer is wanted as a whole, and what ends any question at once.

Blocks; on the thread of the edit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lcursor.errors import Cancelled
from lcursor.llm.client import Stream
from lcursor.llm.pool import Connection
from lcursor.llm.records import Finished, Message, SamplingParams, Text, Usage

LOOK_S = 0.02
"""How often it is looked whether the edit was stopped, while the server says nothing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said."""

    text: str
    usage: Usage
    is_cut: bool
    """It had no more room."""


def answer(
    reached: Connection, messages: Sequence[Message], wish: SamplingParams, cancel: threading.Event
) -> Answer:
    """Return what a model says.

    Raises:
        Cancelled: `cancel` was set.
        LcursorError: the model cannot be asked.
    """
    stream = reached.client.stream(messages, wish)
    text, usage, is_cut = list[str](), Usage(), False
    with stopping(stream, cancel):
        for event in stream:
            if isinstance(event, Text):
                text.append(event.text)
            elif isinstance(event, Finished):
                usage, is_cut = event.usage, event.reason == "length"
    if cancel.is_set():
        raise Cancelled("the edit was stopped")
    return Answer("".join(text), usage, is_cut)


@contextmanager
def stopping(stream: Stream, cancel: threading.Event) -> Iterator[None]:
    """Close a stream as soon as an edit is stopped."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(LOOK_S):
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
