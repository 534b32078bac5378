"""One server, asked over HTTP. The only importer of the HTTP library.

Requests run on an event loop in a thread of their own, since there one can be stopped whatever it
waits for: a name, a connection, an answer. Any thread may begin a call, read it and close it.
Redirects are not followed: what is sent goes where the user said, or nowhere.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import queue
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

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
from lcursor.http import address, events

CONNECT_S = 2.0
ANSWER_S = 4.0
"""Longest that a question which costs the server nothing may take in all."""
SILENCE_S = 60.0
"""Longest pause in a stream; before its first token a slow machine reads the whole prompt."""
MOST_BYTES = 16 << 20
REST_S = 2.0
"""Longest that a server may take to end an answer of which all that matters has come."""
STALE_S = 1.0
"""A kept connection that is lost sooner than this, before any answer, was closed before."""
KEEP_S = 120.0
"""How long a connection over a network is kept unused; a new one takes several round trips."""
NO_ANSWER = "without sending a response"
"""In what the library says of a connection that the server closed before it answered."""

FAILURES = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, ValueError)
"""What the library raises, also for who uses it through another one."""

Response = httpx2.Response


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a server may take, and how much it may say."""

    connect_s: float
    answer_s: float
    """For a question which costs it nothing."""
    silence_s: float
    """Between two lines of a stream, and before the first."""
    most_bytes: int
    """Of one answer."""


class Call:
    """A running request: its lines, once.

    Iterating waits for the next line and raises what failed, `Cancelled` after `close`.
    """

    def __init__(self) -> None:
        # By all that came at once, so that who waits is woken once.
        self._lines: queue.SimpleQueue[list[bytes] | Exception | None] = queue.SimpleQueue()
        self._is_closed = threading.Event()
        self._work: concurrent.futures.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard_s = 0.0
        self._is_slow = False
        self._is_answered = False

    def close(self) -> None:
        """Drop the connection, unless all has come; at once, on any thread."""
        self._is_closed.set()
        self._lines.put(None)  # wakes who waits
        if self._work is not None:
            self._work.cancel()

    def release(self) -> None:
        """Want no more of it than its end within `REST_S`, so that its connection can be kept."""
        if self._work is None or self._loop is None or self._work.done():
            return
        with contextlib.suppress(RuntimeError):  # the client is closed
            self._loop.call_soon_threadsafe(self._loop.call_later, REST_S, self._work.cancel)

    def _end(self, work: concurrent.futures.Future[None]) -> None:
        """Tell the reader that the request was cancelled."""
        if work.cancelled():
            self._lines.put(Cancelled("the request was stopped"))

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
    """A server. Connections are kept and used again.

    Args:
        url: its address, as `address.check` returns it.
        key: sent as a bearer token; "" for none.
        setting: what the settings of its address, key and model begin with, for hints; see
            `address.named`.
        patience: None for what suits short answers.
        advice: what to do when it fails, in place of correcting the settings.
        name: what messages call it; "" for its address.
    """

    def __init__(
        self,
        url: str,
        key: str,
        setting: str,
        patience: Patience | None = None,
        advice: str = "",
        name: str = "",
    ) -> None:
        self.name = name or address.shown(url)
        self._socket = address.socket_path(url)
        self._url, self._key, self._setting = url, key, setting
        self._patience = patience or Patience(CONNECT_S, ANSWER_S, SILENCE_S, MOST_BYTES)
        self._advice = advice
        self._loop = asyncio.new_event_loop()
        self._library: httpx2.AsyncClient | None = None
        self._is_used = False
        self._lock = threading.Lock()
        self._is_closed = False
        self._works: set[concurrent.futures.Future[None]] = set()
        self._thread = threading.Thread(target=self._serve, name="lcursor-http", daemon=True)
        self._thread.start()

    def ask(
        self, path: str, body: dict[str, Any] | None = None, limit_s: float | None = None
    ) -> Call:
        """Begin a question that a server answers from what it knows, within `answer_s`.

        Args:
            path: where.
            body: posted; None for a GET.
            limit_s: another limit.
        """
        limit_s = self._patience.answer_s if limit_s is None else limit_s
        return self._begin("GET" if body is None else "POST", path, body, limit_s)

    def post(self, path: str, body: dict[str, Any]) -> Call:
        """Begin a request whose answer comes as it is made."""
        return self._begin("POST", path, body, None)

    def close(self, timeout_s: float = 1.0) -> None:
        """Drop all connections and end the thread; each call ends with `Cancelled`."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout_s)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        for work in list(self._works):  # the library ends the tasks that are its own
            work.cancel()
        while tasks := asyncio.all_tasks(self._loop):
            self._loop.run_until_complete(asyncio.wait(tasks))
        if self._library is not None:
            self._loop.run_until_complete(self._library.aclose())
        self._loop.run_until_complete(asyncio.sleep(0))  # connections close one round later
        self._loop.close()

    def _begin(
        self, method: str, path: str, body: dict[str, Any] | None, limit_s: float | None
    ) -> Call:
        call = Call()
        with self._lock:  # the loop creates the tasks of all calls begun before it stops
            if self._is_closed:
                call.close()
                return call
            work = self._run(call, method, path, body, limit_s)
            call._loop = self._loop
            call._work = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._works.add(call._work)
        call._work.add_done_callback(self._works.discard)
        # A task that is cancelled before its first step runs no code of its own.
        call._work.add_done_callback(call._end)
        return call

    async def _run(
        self, call: Call, method: str, path: str, body: dict[str, Any] | None, limit_s: float | None
    ) -> None:
        tell = call._lines.put
        watch = self._watch(call) if limit_s is None else None
        try:
            exchange = self._exchange_surely(call, method, path, body)
            # A wait with a limit makes another task, which costs the first word some time.
            await (exchange if limit_s is None else asyncio.wait_for(exchange, limit_s))
            tell(None)
        except asyncio.CancelledError:
            if not call._is_slow:
                raise
            tell(self._slow(f"sent nothing for {self._patience.silence_s:.0f} s"))
        except asyncio.TimeoutError:
            tell(self._slow(f"gave no whole answer in {limit_s or 0:.0f} s"))
        except LcursorError as e:
            tell(e)
        except FAILURES as e:
            tell(self._translated(e, call._is_answered))
        except Exception as e:  # noqa: BLE001 - the root of a task: who reads it raises it
            tell(e)
        finally:
            if watch is not None:
                watch()

    def _watch(self, call: Call) -> Callable[[], None]:
        """Stop a stream that is silent for too long; return what ends the watch.

        The library's own limit would be for each read, and a server may send a line byte by byte.
        """
        task, loop, limit_s = asyncio.current_task(), self._loop, self._patience.silence_s
        call._heard_s = loop.time()

        def look() -> None:
            left_s = call._heard_s + limit_s - loop.time()
            if left_s > 0:
                timers[0] = loop.call_later(left_s, look)
            elif task is not None:
                call._is_slow = True
                task.cancel()

        timers = [loop.call_later(limit_s, look)]
        return lambda: timers[0].cancel()

    async def _exchange_surely(
        self, call: Call, method: str, path: str, body: dict[str, Any] | None
    ) -> None:
        """Ask once more where a server closes a kept connection just as it is used again."""
        began_s, was_used = self._loop.time(), self._is_used
        try:
            await self._exchange(call, method, path, body)
        except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError):
            if not was_used or call._is_answered or self._loop.time() - began_s > STALE_S:
                raise
            await self._exchange(call, method, path, body)

    async def _exchange(
        self, call: Call, method: str, path: str, body: dict[str, Any] | None
    ) -> None:
        if self._library is None:
            self._library = self._opened()
        cutter, got, most = events.Lines(), 0, self._patience.most_bytes
        url = ("http://localhost" if self._socket else self._url) + path
        async with self._library.stream(method, url, json=body) as response:
            self._is_used = call._is_answered = True
            if response.status_code != httpx2.codes.OK:
                beginning = await _beginning(response)
                refusal = self._refused(response, beginning, path)
                refusal.detail = events.detail(beginning)
                refusal.status = response.status_code
                raise refusal
            kind = response.headers.get("Content-Type", "")
            if kind.startswith(("text/html", "image/", "video/")):
                raise ServerGarbled(
                    f"{self.name} answers with {kind.partition(';')[0]}: it is no server of models",
                    self._advice or f"Correct {self._at('url')}",
                )
            async for data in response.aiter_bytes():
                got += len(data)
                if got > most:
                    raise ServerGarbled(f"{self.name} does not stop sending", events.HINT)
                lines = cutter.feed(data)
                if lines:
                    call._heard_s = self._loop.time()  # before anyone can act on the lines
                    call._lines.put(lines)
        call._lines.put(cutter.finish())

    def _opened(self) -> httpx2.AsyncClient:
        headers = {"Accept-Encoding": "identity", "User-Agent": "lcursor"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        is_secure, is_local = self._url.startswith("https:"), address.is_local(self._url)
        # Certificates take 30 ms to load, and plain HTTP looks at none.
        bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context = httpx2.create_ssl_context() if is_secure else bare
        limits = httpx2.Limits(keepalive_expiry=5.0 if is_local else KEEP_S)
        transport = None
        if self._socket:
            transport = httpx2.AsyncHTTPTransport(verify=bare, limits=limits, uds=self._socket)
        return httpx2.AsyncClient(
            headers=headers,
            verify=context,
            # What else takes long is seen by `_watch`, without a timer for each read.
            timeout=httpx2.Timeout(None, connect=self._patience.connect_s),
            limits=limits,
            transport=transport,
            # A proxy would take to its own machine what is meant for this one.
            trust_env=not is_local,
            follow_redirects=False,
        )

    def _refused(self, response: httpx2.Response, body: bytes, path: str) -> ServerError:
        """Turn a status into what failed."""
        status, words = response.status_code, self._clean(events.complaint(body))
        reason = f"{status}: {words}" if words else f"{status}"
        if status in (401, 403):
            name = self._at("key_env")
            hint = f"Check the key that {name} names" if self._key else f"Name its key in {name}"
            return ServerDenied(f"{self.name} refuses access ({reason})", self._advice or hint)
        wait_s = _retry_s(response.headers)
        if status == httpx2.codes.TOO_MANY_REQUESTS or wait_s:
            hint = f"Try again in {wait_s:.0f} s" if wait_s else "Try again later"
            busy = ServerBusy(f"{self.name} wants no more questions now ({reason})", hint)
            busy.retry_s = wait_s
            return busy
        if status == httpx2.codes.NOT_FOUND and "model" in words.lower():
            return ServerModelMissing(
                f"{self.name} does not have that model ({reason})",
                self._advice or f"Correct {self._at('model')}",
            )
        if status == httpx2.codes.NOT_FOUND:
            return ServerGarbled(
                f"{self.name} has no {path} ({reason})",
                self._advice or f"Correct {self._at('url')} or {self._at('api')}",
            )
        if response.has_redirect_location:
            target = address.shown(response.headers["Location"])
            return ServerGarbled(
                f"{self.name} sends us on to {target}",
                f"Set {self._at('url')} to that address if you trust it",
            )
        return ServerFailed(f"{self.name} answers with status {reason}", events.HINT)

    def _translated(self, error: Exception, is_answered: bool) -> ServerError:
        """Turn an exception of the library, or below it, into what failed.

        Args:
            error: the exception.
            is_answered: whether the head of an answer has come.
        """
        start = self._advice or f"Start the server, or correct {self._at('url')}"
        tls = _below(error, ssl.SSLError)
        if tls is not None:
            words = getattr(tls, "verify_message", "") or getattr(tls, "reason", "") or "TLS failed"
            return ServerInsecure(
                f"there is no safe connection to {self.name} ({words})",
                "Set SSL_CERT_FILE to the certificate of its authority, or correct "
                f"{self._at('url')} if the server speaks plain HTTP",
            )
        if isinstance(error, httpx2.ConnectTimeout):
            limit_s = self._patience.connect_s
            text = f"nothing answers at {self.name} (no connection in {limit_s:.0f} s)"
            return ServerUnreachable(text, start)
        if isinstance(error, (httpx2.ConnectError, httpx2.ProxyError)):
            refused = _below(error, ConnectionRefusedError)
            words = "connection refused" if refused else self._clean(str(error)) or "no connection"
            if self._socket and _below(error, FileNotFoundError):
                words = "there is no such socket"
            return ServerUnreachable(f"nothing answers at {self.name} ({words})", start)
        is_lost = isinstance(error, httpx2.NetworkError) or NO_ANSWER in str(error)
        if is_lost and not is_answered:
            text = f"{self.name} closed the connection without an answer"
            return ServerUnreachable(text, start)
        if isinstance(error, (httpx2.NetworkError, httpx2.RemoteProtocolError)):
            return ServerGarbled(f"{self.name} broke off its answer", self._advice or events.HINT)
        words = self._clean(str(error)) or type(error).__name__
        return ServerFailed(f"asking {self.name} failed ({words})", start)

    def _slow(self, what: str) -> ServerSlow:
        return ServerSlow(f"{self.name} {what}", "Wait until it is less busy, or restart it")

    def _at(self, name: str) -> str:
        return address.named(self._setting, name)

    def _clean(self, text: str) -> str:
        """Leave the key out of what a server or a library says."""
        return text.replace(self._key, "…") if self._key else text


async def _beginning(response: httpx2.Response) -> bytes:
    """Return what of an answer is enough to find the reason in."""
    body = b""
    async for data in response.aiter_bytes():
        body += data
        if len(body) > 1 << 16:
            break
    return body


def _retry_s(headers: Mapping[str, str]) -> float:
    """Return after how many seconds a server wants to be asked again, 0 where it does not say."""
    value = headers.get("Retry-After", "").strip()
    try:
        wait_s = float(value)
    except ValueError:
        try:
            wait_s = parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError):
            return 0.0
    return min(max(wait_s, 1.0), 86400.0) if wait_s == wait_s else 0.0


def _below(error: BaseException, kind: type[BaseException]) -> BaseException | None:
    """Find an exception of a kind among the causes of another."""
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, kind):
            return one
        if id(one) in seen:
            continue
        seen.add(id(one))
        waiting += [other for other in (one.__cause__, one.__context__) if other is not None]
        waiting += getattr(one, "exceptions", ())  # a group: one for each address of a name
    return None
