"""Decode streams of model servers: server-sent events with JSON, or one object per line.

Pure. Interprets only errors, which are similar in all APIs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lcursor.errors import ServerFailed, ServerGarbled
from lcursor.storage import json_text

HINT = "Check the server's own log"
DETAILS = ("type", "code", "param", "n_prompt_tokens", "n_ctx")
"""Fields of an error that programs evaluate."""


class LineSplitter:
    """Splits a stream of bytes into lines.

    httpx2's own splitter also splits at characters like U+2028, which JSON may contain.
    """

    def __init__(self) -> None:
        self.rest = bytearray()
        """Bytes after the last line end."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the completed lines, without their ends; in linear time, however it is cut."""
        if b"\n" not in data:
            self.rest += data
            return []
        *lines, rest = (bytes(self.rest) + data).split(b"\n")
        self.rest = bytearray(rest)
        return [line.removesuffix(b"\r") for line in lines]


def objects(lines: Iterable[bytes], server: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a stream of events, or of one object per line, up to `[DONE]`.

    Raises:
        ServerFailed: one of them is an error.
        ServerGarbled: a line is neither.
    """
    data: list[bytes] = []
    for line in lines:
        field, _, value = line.partition(b":")
        if line.lstrip().startswith(b"{"):
            yield parse(line, server)
        elif field == b"data" and value.strip() == b"[DONE]":
            break
        elif field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"error":  # older llama-servers
            raise ServerFailed(f"{server} failed: {body_message(value)}", HINT)
        elif not line.strip():
            if any(data):
                yield parse(b"\n".join(data), server)
            data = []
        elif field not in (b"", b"event", b"id", b"retry"):
            raise _garbled(line, server)
    if any(data):
        yield parse(b"\n".join(data), server)


def parse(data: bytes, server: str) -> dict[str, Any]:
    """Return the object that a server sent.

    Raises:
        ServerFailed: it is an error.
        ServerGarbled: it is not an object.
    """
    try:
        found = json_text.parse(data)
    except ValueError:
        raise _garbled(data, server) from None
    if not isinstance(found, dict):
        raise _garbled(data, server)
    if found.get("error"):
        raise failure(found, server)
    return found


def failure(found: Mapping[str, Any], server: str) -> ServerFailed:
    """Return the error that an object describes."""
    error = ServerFailed(f"{server} failed: {error_message(found) or 'no reason given'}", HINT)
    error.detail = error_detail(found)
    return error


def error_detail(found: object) -> dict[str, object]:
    """Return the `DETAILS` of an error object, or of its bytes."""
    if isinstance(found, bytes):
        try:
            found = json_text.parse(found)
        except ValueError:
            return {}
    while isinstance(found, dict) and isinstance(found.get("error"), dict):
        found = found["error"]
    if not isinstance(found, dict):
        return {}
    return {name: found[name] for name in DETAILS if isinstance(found.get(name), (str, int))}


def body_message(body: bytes) -> str:
    """Return the message in the body of an error response, shortened; "" if it has none."""
    try:
        return error_message(json_text.parse(body))
    except ValueError:
        return _shorten(body.decode("utf-8", "replace").strip().partition("\n")[0])


def error_message(found: object) -> str:
    """Return the message in an error object; its field depends on the kind of server."""
    while isinstance(found, dict):
        words = [found[name] for name in ("error", "message", "detail") if found.get(name)]
        found = words[0] if words else _text(found) if "code" in found else ""
    return _shorten(_text(found))


def _text(found: object) -> str:
    """Return a text as it is, and another value as JSON."""
    try:
        return found if isinstance(found, str) else json.dumps(found)
    except RecursionError:  # it could just be read
        return "it is nested too deeply"


def _shorten(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= 200 else line[:200] + "…"


def _garbled(data: bytes, server: str) -> ServerGarbled:
    sample = _shorten(data.decode("utf-8", "replace"))[:60]
    return ServerGarbled(
        f"{server} sent invalid JSON: {sample!r}",
        "Check that the address is the server's API",
    )
