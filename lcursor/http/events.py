"""What servers of models send while they write: lines of JSON, or server-sent events with JSON in.

Pure. Knows nothing of what the objects mean, but for errors, which all servers send alike.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lcursor.errors import ServerFailed, ServerGarbled

MOST_LINE_BYTES = 4 << 20
HINT = "Look at the server's own log"
DETAILS = ("type", "code", "param", "n_prompt_tokens", "n_ctx")


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
    is_first = True
    for line in lines:
        if is_first:
            line, is_first = line.removeprefix(codecs.BOM_UTF8), False
        field, _, value = line.partition(b":")
        if line.lstrip().startswith(b"{"):
            yield parse(line, who)
        elif field == b"data":
            if data and _is_whole(data):  # a server that puts no empty line between its events
                yield parse(b"\n".join(data), who)
                data = []
            if value.strip() == b"[DONE]":
                return
            data.append(value.removeprefix(b" "))
        elif field == b"error":  # older llama-servers
            raise ServerFailed(f"{who} failed: {complaint(value)}", HINT)
        elif not line.strip():
            if any(data):
                yield parse(b"\n".join(data), who)
            data = []
        elif field not in (b"", b"event", b"id", b"retry"):
            raise _garbled(line, who)
    if any(data):
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
        words = sentence(found) or _short(json.dumps(found["error"]))
        failure = ServerFailed(f"{who} failed: {words}", HINT)
        failure.detail = detail(found)
        raise failure
    return found


def detail(found: object) -> Mapping[str, object]:
    """Return what of an error is for programs: its type and code, and llama-server's counts.

    Args:
        found: the object with the error in it, or its bytes.
    """
    if isinstance(found, bytes):
        try:
            found = json.loads(found)
        except ValueError:
            return {}
    while isinstance(found, dict) and isinstance(found.get("error"), dict):
        found = found["error"]
    if not isinstance(found, dict):
        return {}
    return {name: found[name] for name in DETAILS if isinstance(found.get(name), (str, int))}


def complaint(body: bytes) -> str:
    """Return in one short line what a server says is wrong; "" when it says nothing."""
    try:
        found = json.loads(body)
    except ValueError:
        return _short(body.decode("utf-8", "replace").strip().partition("\n")[0])
    return sentence(found)


def _is_whole(data: list[bytes]) -> bool:
    try:
        json.loads(b"\n".join(data))
    except ValueError:
        return False
    return True


def sentence(found: object) -> str:
    """Return what an error says: each kind of server has another place for it."""
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
