"""Requests to one server that any thread can start, read and stop at once.

The only importer of httpx2. All clients of a process share one event loop thread, where a request
can be cancelled at any point: name resolution, connection, response. Redirects are not followed, so
that prompts and keys only go to the configured address. Secret values are removed from all that is
sent to another machine, and bytes that are not UTF-8 from all requests.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import queue
import re
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx2

from lcursor.errors import (
    Cancelled,
    LcursorError,
    ServerBusy,
    ServerDenied,
    ServerError,
    ServerFailed,
    ServerGarbled,
    ServerInsecure,
    ServerModelMissing,
    ServerSlow,
    ServerUnreachable,
)
from lcursor.http import endpoint, sse
from lcursor.project import redaction

DRAIN_S = 2.0
"""Time limit for the unneeded rest of a response."""
STALE_S = 1.0
"""A reused connection that breaks sooner, before any response, was closed by the server before."""
KEEP_LOCAL_S, KEEP_REMOTE_S = 5.0, 120.0
"""Lifetime of an unused connection; over a network, a new one takes several round trips."""
MAX_LINE_BYTES = 4 << 20
MAX_ERROR_BYTES = 1 << 16

FAILURES = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, ValueError)
"""Exceptions of httpx2, also for callers that use it through another library."""

Response = httpx2.Response


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of time and size for a server's responses."""

    connect_s: float = 2.0
    answer_s: float = 4.0
    """Time for a complete response that needs no computation."""
    silence_s: float = 60.0
    """Time between two parts of a stream; the first comes after prompt processing."""
    max_bytes: int = 16 << 20
    """Maximum size of a response."""


DEFAULT_LIMITS = Limits()
_REJECTED_KEY = re.compile(
    r"(invalid|incorrect|missing) api key|api key (is )?(not valid|invalid)", re.I
)


class Call:
    """A running request. Iterate it once for its lines; it raises `Cancelled` after `close`."""

    def __init__(self, server: str) -> None:
        self._server = server
        # Lines that arrive together are queued together, so that the reader wakes up once.
        self._lines: queue.SimpleQueue[list[bytes] | Exception | None] = queue.SimpleQueue()
        self._is_closed = threading.Event()
        self._future: concurrent.futures.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_answered = False

    def close(self) -> None:
        """Drop the connection at once, unless the response is complete. Any thread."""
        self._is_closed.set()
        self._lines.put(None)  # wakes the reader
        if self._future is not None:
            self._future.cancel()

    def drain(self) -> None:
        """Let the response end within `DRAIN_S`, so that its connection can be reused."""
        if self._future is not None and self._loop is not None and not self._future.done():
            self._loop.call_soon_threadsafe(self._loop.call_later, DRAIN_S, self._future.cancel)

    def json(self) -> dict[str, Any]:
        """Wait for the whole response and return its JSON object."""
        return sse.parse(b"\n".join(self), self._server)

    def __iter__(self) -> Iterator[bytes]:
        while True:
            item = self._lines.get()
            if self._is_closed.is_set():
                raise Cancelled("the request was stopped")
            if item is None:
                return
            if isinstance(item, Exception):
                raise item
            for line in item:
                yield line
                if self._is_closed.is_set():
                    raise Cancelled("the request was stopped")


class Client:
    """A server, with reused connections. All methods on any thread.

    Args:
        url: a result of `endpoint.check_url`.
        key: bearer token; "" for none.
        headers: of each request, with the key; None sends it as a bearer token.
        setting: prefix of its settings for hints: `models.NAME.`.
        limits: None for the defaults.
        advice: hint after a failure, instead of correcting the settings.
        name: name in messages; "" for its address.
    """

    def __init__(
        self,
        url: str,
        key: str,
        setting: str,
        limits: Limits | None = None,
        advice: str = "",
        name: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name or endpoint.display_url(url)
        self._headers = dict(headers or {})
        self._socket = endpoint.socket_path(url)
        self._url, self._key, self._setting = url, key, setting
        self._is_local = endpoint.is_local(url)
        self._host = urlsplit(url).hostname or ""
        self._proxy = endpoint.proxy_of(url)
        self._via = f" through the proxy {endpoint.display_url(self._proxy)}" if self._proxy else ""
        self._limits = limits or DEFAULT_LIMITS
        self._advice = advice
        self._lock = threading.Lock()
        self._is_closed = False
        self._is_used = False
        self._http: httpx2.AsyncClient | None = None
        self._calls: set[Call] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    def request(
        self, path: str, body: dict[str, Any] | None = None, limit_s: float | None = None
    ) -> Call:
        """Start a request with a time limit for the whole response, by default `Limits.answer_s`.

        Args:
            body: body of a POST, as JSON; None for a GET.
        """
        limit_s = self._limits.answer_s if limit_s is None else limit_s
        return self._start(path, body, limit_s)

    def stream(self, path: str, body: dict[str, Any]) -> Call:
        """Start a request without a time limit for the whole response, only between its parts."""
        return self._start(path, body, None)

    def close(self) -> None:
        """Drop all connections; each running call ends with `Cancelled`. Does not block."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            calls = list(self._calls)
        for call in calls:
            call.close()
        if self._http is not None:
            asyncio.run_coroutine_threadsafe(self._shut_down(self._http), _event_loop())

    async def _shut_down(self, http: httpx2.AsyncClient) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)
        await http.aclose()

    def _start(self, path: str, body: dict[str, Any] | None, limit_s: float | None) -> Call:
        call = Call(self.name)
        if not self._is_local:
            body, _ = redaction.redact_all(body)
        content = None
        if body is not None:
            text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
            content = redaction.encodable(text).encode()
        with self._lock:  # so that `close` sees every started call
            if self._is_closed:
                call.close()
                return call
            try:
                self._http = self._http or self._open()
            except ServerError as error:
                call._lines.put(error)
                return call
            call._loop = _event_loop()
            work = self._run(call, self._http, path, content, limit_s)
            call._future = asyncio.run_coroutine_threadsafe(work, call._loop)
            self._calls.add(call)
        call._future.add_done_callback(lambda _: self._calls.discard(call))
        return call

    async def _run(
        self,
        call: Call,
        http: httpx2.AsyncClient,
        path: str,
        content: bytes | None,
        limit_s: float | None,
    ) -> None:
        put, task = call._lines.put, asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await asyncio.wait_for(self._exchange_twice(call, http, path, content), limit_s)
            put(None)
        except asyncio.CancelledError:
            put(Cancelled("the request was stopped"))
            raise
        except asyncio.TimeoutError:
            put(self._slow(f"sent no complete response within {limit_s or 0:.0f} s"))
        except LcursorError as e:
            put(e)
        except FAILURES as e:
            put(self._translated(e, call._is_answered))
        except Exception as e:  # noqa: BLE001 - the root of a task: the reader raises it
            put(e)
        finally:
            self._tasks.discard(task)

    async def _exchange_twice(
        self, call: Call, http: httpx2.AsyncClient, path: str, content: bytes | None
    ) -> None:
        """Repeat a request if the server closed the reused connection at the same moment."""
        started, was_used = time.monotonic(), self._is_used
        try:
            await self._exchange(call, http, path, content)
        except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError):
            if not was_used or call._is_answered or time.monotonic() - started > STALE_S:
                raise
            await self._exchange(call, http, path, content)

    async def _exchange(
        self, call: Call, http: httpx2.AsyncClient, path: str, content: bytes | None
    ) -> None:
        method = "GET" if content is None else "POST"
        headers = None if content is None else {"Content-Type": "application/json"}
        url = ("http://localhost" if self._socket else self._url) + path
        async with http.stream(method, url, content=content, headers=headers) as response:
            self._is_used = call._is_answered = True
            if response.status_code != httpx2.codes.OK:
                beginning = await _read_beginning(response)
                error = self._error_for(response, beginning, path)
                error.detail = sse.error_detail(beginning)
                error.status = response.status_code
                raise error
            kind = response.headers.get("Content-Type", "")
            if kind.startswith(("text/html", "image/", "video/")):
                raise ServerGarbled(
                    f"{self.name} sent{self._via} {kind.partition(';')[0]}: it is no model server",
                    self._advice or f"Correct {self._setting}url",
                )
            splitter, size = sse.LineSplitter(), 0
            async for data in response.aiter_bytes():
                size += len(data)
                lines = splitter.feed(data)
                if size > self._limits.max_bytes or len(splitter.rest) > MAX_LINE_BYTES:
                    raise ServerGarbled(f"{self.name} sent too long a response", sse.HINT)
                if lines:
                    call._lines.put(lines)
        if splitter.rest:
            call._lines.put([bytes(splitter.rest)])

    def _open(self) -> httpx2.AsyncClient:
        """Return the connections to the server.

        Raises:
            ServerUnreachable: its proxy is of an unknown kind.
        """
        scheme = self._proxy.partition("://")[0].lower()
        if scheme not in ("", "http", "https"):
            kind = "SOCKS" if scheme.startswith("socks") else scheme
            raise ServerUnreachable(
                f"{self.name} cannot be reached{self._via}: {kind} proxies are not supported",
                f"Start Neovim without the variable ALL_PROXY, or with {self._host} in NO_PROXY",
            )
        headers = {"Accept-Encoding": "identity", "User-Agent": "lcursor", **self._headers}
        if self._key and not self._headers:
            headers["Authorization"] = f"Bearer {self._key}"
        keep_s = KEEP_LOCAL_S if self._is_local else KEEP_REMOTE_S
        limits = httpx2.Limits(keepalive_expiry=keep_s)
        # Loading certificates takes 30 ms, and plain HTTP needs none.
        is_secure = self._url.startswith("https:")
        empty = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        transport = None
        if self._socket:
            transport = httpx2.AsyncHTTPTransport(verify=empty, limits=limits, uds=self._socket)
        return httpx2.AsyncClient(
            headers=headers,
            verify=httpx2.create_ssl_context() if is_secure else empty,
            timeout=httpx2.Timeout(self._limits.silence_s, connect=self._limits.connect_s),
            limits=limits,
            transport=transport,
            proxy=self._proxy or None,
            trust_env=False,
            follow_redirects=False,
        )

    def _error_for(self, response: httpx2.Response, body: bytes, path: str) -> ServerError:
        """Return the error for a status."""
        status, words = response.status_code, self._without_key(sse.body_message(body))
        reason = f"{status}: {words}" if words else f"{status}"
        if status == httpx2.codes.PROXY_AUTHENTICATION_REQUIRED and self._proxy:
            return self._proxy_failed(f"does not accept the user ({reason})")
        # Some servers reject a key as an invalid request.
        if status in (401, 403) or (status == 400 and _REJECTED_KEY.search(words)):
            name = f"{self._setting}key_env or key_command"
            hint = f"Check the key in {name}" if self._key else f"Set its key in {name}"
            return ServerDenied(
                f"{self.name} denies access{self._via} ({reason})", self._advice or hint
            )
        wait_s = _retry_after_s(response.headers)
        if status == httpx2.codes.TOO_MANY_REQUESTS or wait_s:
            hint = f"Try again in {wait_s:.0f} s" if wait_s else "Try again later"
            busy = ServerBusy(f"{self.name} accepts no requests now ({reason})", hint)
            busy.retry_s = wait_s
            return busy
        if status == httpx2.codes.NOT_FOUND and "model" in words.lower():
            return ServerModelMissing(
                f"{self.name} does not have that model ({reason})",
                self._advice or f"Correct {self._setting}model",
            )
        if status == httpx2.codes.NOT_FOUND:
            return ServerGarbled(
                f"{self.name} has no {path} ({reason})",
                self._advice or f"Correct {self._setting}url or {self._setting}api",
            )
        if response.has_redirect_location:
            target = endpoint.display_url(response.headers["Location"])
            return ServerGarbled(
                f"{self.name} redirects to {target}",
                f"Set {self._setting}url to that address if you trust it",
            )
        return ServerFailed(f"{self.name} responded{self._via} with status {reason}", sse.HINT)

    def _translated(self, error: Exception, is_answered: bool) -> ServerError:
        """Translate an exception of httpx2, before or after the head of a response."""
        start = self._advice or f"Start the server, or correct {self._setting}url"
        tls = _cause(error, ssl.SSLError)
        if tls is not None:
            words = getattr(tls, "verify_message", "") or getattr(tls, "reason", "") or "TLS failed"
            return ServerInsecure(
                f"there is no secure connection to {self.name} ({words})",
                "Set SSL_CERT_FILE to the certificate of its authority, or correct "
                f"{self._setting}url if the server uses plain HTTP",
            )
        if isinstance(error, httpx2.ProxyError):
            return self._proxy_failed(f"responded with status {error}")
        if isinstance(error, httpx2.ConnectTimeout):
            limit_s = self._limits.connect_s
            if self._proxy:
                return self._proxy_failed(f"does not answer (no connection in {limit_s:.0f} s)")
            text = f"nothing answers at {self.name} (no connection in {limit_s:.0f} s)"
            return ServerUnreachable(text, start)
        if isinstance(error, httpx2.TimeoutException):
            return self._slow(f"sent nothing for {self._limits.silence_s:.0f} s")
        if isinstance(error, httpx2.ConnectError):
            words = self._without_key(str(error)) or "no connection"
            if _cause(error, ConnectionRefusedError):
                words = "connection refused"
            elif self._socket and _cause(error, FileNotFoundError):
                words = "there is no such socket"
            if self._proxy:
                return self._proxy_failed(f"does not answer ({words})")
            return ServerUnreachable(f"nothing answers at {self.name} ({words})", start)
        is_lost = isinstance(error, httpx2.NetworkError) or (
            "without sending a response" in str(error)
        )
        if is_lost and not is_answered:
            text = f"{self.name} closed the connection{self._via} without a response"
            return ServerUnreachable(text, start)
        if isinstance(error, (httpx2.NetworkError, httpx2.RemoteProtocolError)):
            return ServerGarbled(
                f"{self.name} sent an incomplete response", self._advice or sse.HINT
            )
        words = self._without_key(str(error)) or type(error).__name__
        return ServerFailed(f"the request to {self.name} failed ({words})", start)

    def _proxy_failed(self, what: str) -> ServerUnreachable:
        return ServerUnreachable(
            f"the proxy {endpoint.display_url(self._proxy)} {what}, so {self.name} was not reached",
            f"Correct the proxy variables of Neovim, or add {self._host} to NO_PROXY",
        )

    def _slow(self, what: str) -> ServerSlow:
        return ServerSlow(f"{self.name} {what}", "Wait until it is less busy, or restart it")

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "…") if self._key else text


_loop_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def _event_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of all clients; the first call starts its thread, which never ends."""
    with _loop_lock:
        if not _loops:
            _loops.append(asyncio.new_event_loop())
            threading.Thread(target=_loops[0].run_forever, name="lcursor-http", daemon=True).start()
        return _loops[0]


async def _read_beginning(response: httpx2.Response) -> bytes:
    """Return enough of a response to find the reason in it."""
    body = b""
    async for data in response.aiter_bytes():
        body += data
        if len(body) > MAX_ERROR_BYTES:
            break
    return body


def _retry_after_s(headers: Mapping[str, str]) -> float:
    """Return the seconds in a Retry-After header; 0 if there is none."""
    value = headers.get("Retry-After", "").strip()
    try:
        wait_s = float(value)
    except ValueError:
        wait_s = 0.0
        with contextlib.suppress(TypeError, ValueError):
            wait_s = max(parsedate_to_datetime(value).timestamp() - time.time(), 1.0)
    return min(wait_s, 86400.0) if wait_s > 0 else 0.0


def _cause(error: BaseException, kind: type[BaseException]) -> BaseException | None:
    """Return an exception of a kind from the chain of causes of another."""
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, kind):
            return one
        if id(one) in seen:
            continue
        seen.add(id(one))
        waiting += [other for other in (one.__cause__, one.__context__) if other is not None]
        waiting += getattr(
            one, "exceptions", ()
        )  # an exception group, with one per address of a name
    return None
