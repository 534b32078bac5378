"""Connections to servers on this machine, as the HTTP library wants them. Imports its lower half.

The library's own way costs the reading of one token half again as much: it stops and starts the
watching of the socket, and sets a timer, for each read. Here a silence is seen by `client`, and
nothing is encrypted. Runs on the client's event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2

BUFFER_BYTES = 1 << 18


class Stream(httpcore2.AsyncNetworkStream):
    """One connection. The limits of single reads and writes are not kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._held: list[bytes] = []

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what has come, as soon as something has."""
        if self._held:
            await self._send()
        try:
            return await self._reader.read(max_bytes)
        except OSError as e:
            raise httpcore2.ReadError(str(e)) from e

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send it with what is written next, before an answer is read: one packet, not two."""
        if buffer:
            self._held.append(bytes(buffer))

    async def _send(self) -> None:
        whole, self._held = b"".join(self._held), []
        with contextlib.suppress(OSError):  # a server may refuse before it has read all
            self._writer.write(whole)
            await self._writer.drain()

    async def aclose(self) -> None:
        """Close it; what was not sent is dropped, as nobody wants the answer."""
        self._writer.transport.abort()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: who wants TLS uses the library's own."""
        raise httpcore2.ConnectError("no TLS to this machine")

    def get_extra_info(self, info: str) -> Any:
        """Tell what the library asks for: whether the other side has closed it meanwhile."""
        if info == "is_readable":  # nothing may come before a question
            is_open = not self._writer.transport.is_closing() and not self._reader.at_eof()
            return not is_open or self._reader.exception() is not None
        return None


class Backend(httpcore2.AsyncNetworkBackend):
    """Makes connections to this machine."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address of a name that answers."""
        return await _within(timeout, _tcp(host, port))

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to a socket in the file system."""
        return await _within(timeout, asyncio.open_unix_connection(path, limit=BUFFER_BYTES))

    async def sleep(self, seconds: float) -> None:
        """Sleep; the library does between attempts, of which we want one."""
        await asyncio.sleep(seconds)


async def _tcp(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for at, (*_, place) in enumerate(found):
        try:
            return await asyncio.open_connection(*place[:2], limit=BUFFER_BYTES)
        except OSError:
            if at == len(found) - 1:
                raise
    raise httpcore2.ConnectError(f"no address of {host}")


async def _within(timeout: float | None, connecting: Any) -> Stream:
    try:
        return Stream(*await asyncio.wait_for(connecting, timeout))
    except asyncio.TimeoutError as e:
        raise httpcore2.ConnectTimeout(str(e)) from e
    except OSError as e:
        raise httpcore2.ConnectError(str(e)) from e
