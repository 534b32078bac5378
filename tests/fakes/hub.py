"""A model hub on the loopback interface with one file; it can be slow or break off."""

from __future__ import annotations

import hashlib
from typing import Any

from tests.fakes.loopback import Handler, Loopback


class FakeHub(Loopback):
    """A server that has the same bytes under every name.

    Args:
        blob: the file.
        commit: that it says they are of.

    Attributes:
        etag: the digest that it tells.
        head_status: of an answer to a question about the file; get_status: to one for it.
        head_delay_s: before it answers one about the file.
        cuts: bytes after which the next answers break off.
        ranges: it sends parts where parts are wanted.
        chunk_bytes, chunk_delay_s: what it sends at once, and the pause after that.
        asked: `GET 0`, `GET 1234`: the offset of each download.
        paths: what the questions were about.
    """

    def __init__(self, blob: bytes, commit: str) -> None:
        self.blob, self.commit = blob, commit
        self.etag = hashlib.sha256(blob).hexdigest()
        self.head_status = self.get_status = 200
        self.head_delay_s = 0.0
        self.cuts: list[int] = []
        self.ranges = True
        self.chunk_bytes, self.chunk_delay_s = 65536, 0.0
        self.asked: list[str] = []
        self.paths: list[str] = []
        super().__init__()

    def answer(self, ask: Handler, body: dict[str, Any]) -> None:
        """Describe the file, or send it."""
        if ask.command == "HEAD":
            self.paths.append(ask.path)
            self.is_over.wait(self.head_delay_s)
            self._head(ask, self.head_status, len(self.blob) if self.head_status == 200 else 0)
        elif self.get_status != 200:
            self._head(ask, self.get_status, 0)
        else:
            self._send(ask)

    def _send(self, ask: Handler) -> None:
        wanted = ask.headers.get("Range", "bytes=0-")
        offset = int(wanted.removeprefix("bytes=").split("-")[0]) if self.ranges else 0
        self.asked.append(f"GET {offset}")
        body = self.blob[offset:]
        self._head(ask, 206 if offset else 200, len(body), offset)
        cut = self.cuts.pop(0) if self.cuts else len(body)
        for at in range(0, min(cut, len(body)), self.chunk_bytes):
            ask.wfile.write(body[at : min(at + self.chunk_bytes, cut)])
            if self.is_over.wait(self.chunk_delay_s):
                break
        ask.close_connection = True

    def _head(self, ask: Handler, status: int, length: int, first: int = 0) -> None:
        size = len(self.blob)
        headers = {
            "X-Repo-Commit": self.commit,
            "ETag": f'"{self.etag}"',
            "X-Linked-Etag": f'"{self.etag}"',
            "X-Linked-Size": str(size),
            "Content-Length": str(length),
        }
        if status == 206:
            headers["Content-Range"] = f"bytes {first}-{size - 1}/{size}"
        ask.head(status, "application/octet-stream", headers)
