"""Compare texts in meaning, by the vectors of the project's index. Blocks; any thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lcursor.errors import LcursorError
from lcursor.index.client import Client

MAX_S: Final = 4.0


def similarities(client: Client | None, text: str, texts: Sequence[str]) -> Sequence[float]:
    """Return how similar a text is to each of others; nothing if no index answers."""
    if client is None:
        return ()
    try:
        found = client.call("similar", timeout_s=MAX_S, text=text, texts=[*texts])["scores"]
    except LcursorError:
        return ()
    return [float(each) for each in found] if len(found) == len(texts) else ()
