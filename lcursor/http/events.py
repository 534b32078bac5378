"""What servers of models send while they write: lines of JSON, or server-sent events with JSON in.

Pure. Knows nothing of what the objects mean, but for errors, which all servers send alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from lcursor.errors import ServerFailed, ServerGarbled

MOST_LINE_BYTES = 4 << 20
HINT = "Look at the server's own log"


class Lines:
    """Cuts a stream of bytes into lines.

    By hand: the library's own splitter also cuts at U+2028 and its like, which JSON may contain.
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete now.

        Raises:
            ServerGarbled: a line does not end.
        """
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MOST_LINE_BYTES:
            raise ServerGarbled("the server sends a line without an end", HINT)
        return [line.removesuffix(b"\r") for line in whole]

    def finish(self) -> list[bytes]:
        """Return what stands behind the last newline."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []


def objects(lines: Iterable[bytes], who: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a stream, up to its end or `[DONE]`.

    Args:
        lines: of server-sent events, or one object each.
        who: the server, for messages.

    Raises:
        ServerFailed: one of them is an error.
        ServerGarbled: a line is neither.
    """
    data: list[bytes] = []
    for line in lines:
        field, _, value = line.partition(b":")
        if line.lstrip().startswith(b"{"):
            yield parse(line, who)
        elif field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"error":  # older llama-servers
            raise ServerFailed(f"{who} failed: {complaint(value)}", HINT)
        elif not line.strip():
            if data == [b"[DONE]"]:
                return
            if data:
                yield parse(b"\n".join(data), who)
            data = []
        elif field not in (b"", b"event", b"id", b"retry"):
            raise _garbled(line, who)
    if data and data != [b"[DONE]"]:
        yield parse(b"\n".join(data), who)


def parse(data: bytes, who: str) -> dict[str, Any]:
    """Return an object that a server sent.

    Raises:
        ServerFailed: it is an error.
        ServerGarbled: it is none.
    """
    try:
        found = json.loads(data)
    except ValueError:
        raise _garbled(data, who) from None
    if not isinstance(found, dict):
        raise _garbled(data, who)
    if found.get("error"):
        words = _words(found) or _short(json.dumps(found["error"]))
        raise ServerFailed(f"{who} failed: {words}", HINT)
    return found


def complaint(body: bytes) -> str:
    """Return in one short line what a server says is wrong; "" when it says nothing."""
    try:
        found = json.loads(body)
    except ValueError:
        return _short(body.decode("utf-8", "replace").strip().partition("\n")[0])
    return _words(found)


def _words(found: object) -> str:
    """Find the sentence in an error: each kind of server has another place for it."""
    while isinstance(found, dict):
        places = ("error", "message", "detail")
        found = next((found[place] for place in places if found.get(place)), "")
    return _short(found if isinstance(found, str) else json.dumps(found))


def _short(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= 200 else line[:200] + "…"


def _garbled(data: bytes, who: str) -> ServerGarbled:
    sample = _short(data.decode("utf-8", "replace"))[:60]
    return ServerGarbled(
        f"{who} sends something that is no JSON: {sample!r}",
        "Check that the address is that of the server's API",
    )
