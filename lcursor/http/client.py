"""One server, asked over HTTP. The only importer of the HTTP library.

Requests run on an event loop in a thread of their own, since there one can be stopped whatever it
waits for: a name, a connection, an answer. Any thread may begin a call, read it and close it.
Redirects are not followed: what is sent goes where the user said, or nowhere.
"""

from __future__ import annotations

import asyncio
import queue
import ssl
import threading
from collections.abc import Iterator
from typing import Any

import httpx2

from lcursor.errors import (
    Cancelled,
    LcursorError,
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

FAILURES = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, ValueError)
"""What the library raises, also for who uses it through another one."""

Response = httpx2.Response


class Call:
    """A running request: its lines, once.

    Iterating waits for the next line and raises what failed, `Cancelled` after `close`.
    """

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[bytes | Exception | None] = queue.SimpleQueue()
        self._is_closed = threading.Event()
        self._work: Any = None  # a concurrent future

    def close(self) -> None:
        """Drop the connection, unless all has come; at once, on any thread."""
        self._is_closed.set()
        self._lines.put(None)  # wakes who waits
        if self._work is not None:
            self._work.cancel()

    def __iter__(self) -> Iterator[bytes]:
        while True:
            item = self._lines.get()
            if self._is_closed.is_set():
                raise Cancelled("the request was stopped")
            if item is None:
                return
            if isinstance(item, Exception):
                raise item
            yield item


class Client:
    """A server. Connections are kept and used again.

    Args:
        url: its address, as `address.check` returns it.
        key: sent as a bearer token; "" for none.
        setting: what the settings of its address, key and model begin with, for hints.
    """

    def __init__(self, url: str, key: str, setting: str) -> None:
        self.name = address.shown(url)
        self._url, self._key, self._setting = url, key, setting
        self._loop = asyncio.new_event_loop()
        self._library: httpx2.AsyncClient | None = None
        self._thread = threading.Thread(target=self._serve, name="lcursor-http", daemon=True)
        self._thread.start()

    def ask(self, path: str) -> Call:
        """Begin a question that a server answers from what it knows, within `ANSWER_S`."""
        return self._begin("GET", path, None, ANSWER_S)

    def post(self, path: str, body: dict[str, Any]) -> Call:
        """Begin a request whose answer comes as it is made."""
        return self._begin("POST", path, body, None)

    def close(self, timeout_s: float = 1.0) -> None:
        """Drop all connections and end the thread; no call may begin any more."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout_s)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        if self._library is not None:
            self._loop.run_until_complete(self._library.aclose())
        self._loop.close()

    def _begin(
        self, method: str, path: str, body: dict[str, Any] | None, limit_s: float | None
    ) -> Call:
        call = Call()
        if not self._thread.is_alive():
            call.close()
            return call
        work = self._run(call, method, path, body, limit_s)
        call._work = asyncio.run_coroutine_threadsafe(work, self._loop)
        return call

    async def _run(
        self, call: Call, method: str, path: str, body: dict[str, Any] | None, limit_s: float | None
    ) -> None:
        tell = call._lines.put
        try:
            await asyncio.wait_for(self._exchange(call, method, path, body), limit_s)
            tell(None)
        except asyncio.CancelledError:
            tell(Cancelled("the request was stopped"))  # the client may have been closed, not it
            raise
        except asyncio.TimeoutError:
            tell(self._slow(f"gave no whole answer in {limit_s or SILENCE_S:.0f} s"))
        except LcursorError as e:
            tell(e)
        except FAILURES as e:
            tell(self._translated(e))
        except Exception as e:  # noqa: BLE001 - the root of a task: who reads it raises it
            tell(e)

    async def _exchange(
        self, call: Call, method: str, path: str, body: dict[str, Any] | None
    ) -> None:
        if self._library is None:
            self._library = self._opened()
        cutter, got = events.Lines(), 0
        url = self._url + path
        async with self._library.stream(method, url, json=body) as response:
            if response.status_code != httpx2.codes.OK:
                refusal = self._refused(response, await _beginning(response), path)
                refusal.status = response.status_code
                raise refusal
            kind = response.headers.get("Content-Type", "")
            if kind.startswith(("text/html", "image/", "video/")):
                raise ServerGarbled(
                    f"{self.name} answers with {kind.partition(';')[0]}: it is no server of models",
                    f"Correct {self._setting}_url",
                )
            async for data in response.aiter_bytes():
                got += len(data)
                if got > MOST_BYTES:
                    raise ServerGarbled(f"{self.name} does not stop sending", events.HINT)
                for line in cutter.feed(data):
                    call._lines.put(line)
        for line in cutter.finish():
            call._lines.put(line)

    def _opened(self) -> httpx2.AsyncClient:
        headers = {"Accept-Encoding": "identity", "User-Agent": "lcursor"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        is_secure = self._url.startswith("https:")
        # Certificates take 30 ms to load, and plain HTTP looks at none.
        bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context = httpx2.create_ssl_context() if is_secure else bare
        return httpx2.AsyncClient(
            headers=headers,
            verify=context,
            timeout=httpx2.Timeout(SILENCE_S, connect=CONNECT_S),
            # A proxy would take to its own machine what is meant for this one.
            trust_env=not address.is_local(self._url),
            follow_redirects=False,
        )

    def _refused(self, response: httpx2.Response, body: bytes, path: str) -> ServerError:
        """Turn a status into what failed."""
        status, words = response.status_code, self._clean(events.complaint(body))
        reason = f"{status}: {words}" if words else f"{status}"
        if status in (401, 403):
            name = f"{self._setting}_key_env"
            hint = f"Check the key that {name} names" if self._key else f"Name its key in {name}"
            return ServerDenied(f"{self.name} refuses access ({reason})", hint)
        if status == httpx2.codes.NOT_FOUND and "model" in words.lower():
            return ServerModelMissing(
                f"{self.name} does not have that model ({reason})",
                f"Correct {self._setting}_model",
            )
        if status == httpx2.codes.NOT_FOUND:
            return ServerGarbled(
                f"{self.name} has no {path} ({reason})",
                f"Correct {self._setting}_url or {self._setting}_api",
            )
        if response.has_redirect_location:
            target = address.shown(response.headers["Location"])
            return ServerGarbled(
                f"{self.name} sends us on to {target}",
                f"Set {self._setting}_url to that address if you trust it",
            )
        return ServerFailed(f"{self.name} answers with status {reason}", events.HINT)

    def _translated(self, error: Exception) -> ServerError:
        """Turn an exception of the library, or below it, into what failed."""
        start = f"Start the server, or correct {self._setting}_url"
        tls = _below(error, ssl.SSLError)
        if tls is not None:
            words = getattr(tls, "verify_message", "") or getattr(tls, "reason", "") or "TLS failed"
            return ServerInsecure(
                f"there is no safe connection to {self.name} ({words})",
                "Set SSL_CERT_FILE to the certificate of its authority, or correct "
                f"{self._setting}_url if the server speaks plain HTTP",
            )
        if isinstance(error, httpx2.ConnectTimeout):
            text = f"nothing answers at {self.name} (no connection in {CONNECT_S:.0f} s)"
            return ServerUnreachable(text, start)
        if isinstance(error, httpx2.TimeoutException):
            return self._slow(f"sent nothing for {SILENCE_S:.0f} s")
        if isinstance(error, (httpx2.ConnectError, httpx2.ProxyError)):
            refused = _below(error, ConnectionRefusedError)
            words = "connection refused" if refused else self._clean(str(error)) or "no connection"
            return ServerUnreachable(f"nothing answers at {self.name} ({words})", start)
        if isinstance(error, (httpx2.NetworkError, httpx2.RemoteProtocolError)):
            return ServerGarbled(f"{self.name} broke off its answer", events.HINT)
        words = self._clean(str(error)) or type(error).__name__
        return ServerFailed(f"asking {self.name} failed ({words})", start)

    def _slow(self, what: str) -> ServerSlow:
        return ServerSlow(f"{self.name} {what}", "Wait until it is less busy, or restart it")

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
