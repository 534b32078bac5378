"""The one local server of the chat slot: found, started, asked how it is, stopped.

Shared by all editors of the user: who runs and who uses it is in `lease.py`, what is tried to start
it in `start.py`. All calls block: for threads that may
wait, several at once.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lcursor import folders
from lcursor.config import ChatConfig
from lcursor.errors import (
    Cancelled,
    LcursorError,
    ServerError,
    ServerOccupied,
    ServerSlow,
)
from lcursor.http import endpoint
from lcursor.http.client import Client
from lcursor.llm import discovery, fit, lease
from lcursor.llm.lease import Folder, Lease, User
from lcursor.llm.records import Target
from lcursor.llm.start import Starter

State = Literal["none", "starting", "running", "sleeping", "failed", "foreign"]
STEP_S = 0.05
TELL_S = 1.0
LOAD_S = 900.0
"""A large model from a slow disk takes minutes."""
STOP_S = 8.0
CLOSE_S = 1.0
LOADING = 503
SETTING = "chat"


@dataclass(frozen=True, slots=True)
class Status:
    """What the local server is."""

    state: State
    lines: tuple[str, ...]
    """For people."""
    url: str = ""
    pid: int = 0
    model: str = ""
    log: str = ""


def default_folder() -> Path:
    """Return the folder of this machine's server; homes may be shared by several machines."""
    name = "".join(sign if sign.isalnum() or sign in "-." else "-" for sign in socket.gethostname())
    return folders.data_home() / "server" / (name.strip(".")[:64] or "here")


class LocalServer:
    """The local server, as one process uses it.

    Args:
        config: the chat's settings.
        folder: of the server; `default_folder()`, but in tests.
        tell: hears in words what is waited for; on the thread of the call.
        completion: name or path of the completion model, whose memory stays free; "" for none.
        idle_s: None for what the settings say.
    """

    def __init__(
        self,
        config: ChatConfig,
        folder: Path,
        tell: Callable[[str], None],
        completion: str = "",
        idle_s: float | None = None,
    ) -> None:
        self._config, self._tell, self._completion = config, tell, completion
        self._folder = Folder(folder)
        self._idle_s = config.idle_minutes * 60.0 if idle_s is None else idle_s
        self._lock = threading.Lock()
        self._user: User | None = None
        self._known: tuple[Lease, Target] | None = None
        self._failure = ""
        self._is_starting = self._is_closed = False
        self._stops = 0

    @property
    def log_path(self) -> Path:
        """Where the server writes what it does."""
        return self._folder.log_path

    def ensure(self, cancel: threading.Event | None = None) -> Target:
        """Return where the server answers; starts it where none runs.

        Cost: under a millisecond while it runs.

        Raises:
            Cancelled: `cancel` was set, and the server goes on loading; or it was stopped.
            ServerMissing: there is nothing that could serve, or the settings say "off".
            ServerOccupied: it serves another model to somebody else.
            ServerEnded: it was started and ended.
            OutOfMemory: the model does not fit.
            ModelError: the model's file is not here, or wrong.
        """
        cancel = cancel or threading.Event()
        stops = self._stops
        while not self._lock.acquire(timeout=STEP_S):  # another thread waits for it, too
            self._check(cancel, stops)
        try:
            self._check(cancel, stops)
            known, living = self._known, self._folder.living()
            if known is not None and known[0] == living:
                return known[1]
            self._known = None
            self._folder.make()
            self._user = self._user or self._folder.join()
            self._is_starting = True
            target = self._found_or_started(cancel, stops)
            self._failure = ""
            return target
        except LcursorError as error:
            if not isinstance(error, Cancelled):
                self._failure = str(error)
            raise
        finally:
            self._is_starting = False
            if self._is_closed:
                self._leave()
            self._lock.release()

    def status(self) -> Status:
        """Say what the server is; starts none."""
        log = str(self.log_path) if self.log_path.exists() else ""
        living = self._folder.living()
        if living is None:
            if self._failure:
                return Status("failed", (self._failure,), log=log)
            if self._is_starting:
                return Status("starting", ("The local server is being started",), log=log)
            others = discovery.running()
            if others:
                lines = ["No server of ours runs; there is one that lcursor did not start:"]
                lines += [each.describe() for each in others]
                lines.append(discovery.advice(others[0]))
                return Status("foreign", tuple(lines), url=others[0].url, log=log)
            return Status("none", ("No local server runs; the first question starts one",), log=log)
        state = _state(living)
        users = len(self._folder.users())
        where = f" {living.place}" if living.place else ""
        lines = [
            f"{living.model}{where}, {living.context_tokens:,} tokens of context, "
            f"about {fit.gib(living.need_bytes)}",
            f"{living.engine}, process {living.pid}, at {living.url}",
            f"{state}; used by {users} process{'es' if users != 1 else ''}",
        ]
        return Status(state, tuple(lines), living.url, living.pid, living.model, log)

    def stop(self) -> bool:
        """End the server, whoever uses it or waits for it; return whether one ran.

        Raises:
            ServerSlow: it does not end.
        """
        self._stops += 1
        self._known, self._failure = None, ""
        return self._end()

    def restart(self, cancel: threading.Event | None = None) -> Target:
        """End the server and start it as these settings say; raises what `ensure` raises."""
        self.stop()
        return self.ensure(cancel)

    def doubt(self) -> None:
        """Have the next `ensure` see whether it answers, after it did not."""
        self._known = None

    def close(self) -> None:
        """Use the server no more; it leaves when nobody does, some time later."""
        self._is_closed = True  # whoever waits for it stops doing so
        if self._lock.acquire(timeout=CLOSE_S):
            self._leave()
            self._lock.release()

    def _leave(self) -> None:
        self._known = None
        if self._user is not None:
            self._user.leave()
            self._user = None

    def _check(self, cancel: threading.Event, stops: int) -> None:
        """Stop waiting where nobody wants it any more.

        Raises:
            Cancelled: that is so.
        """
        if cancel.is_set() or self._is_closed or self._stops != stops:
            raise Cancelled("the server is not waited for any more")

    def _found_or_started(self, cancel: threading.Event, stops: int) -> Target:
        start = Starter(self._config, self._folder, self._tell, self._completion, self._idle_s)
        right: Lease | None = None  # the one that was found to be what the settings ask for
        with _Waiting(self._tell) as waiting:
            while True:
                self._check(cancel, stops)
                living = self._folder.living()
                if living is not None:
                    if living != right and not self._is_right(living):
                        self._make_room(living)
                        continue
                    right = living
                    if waiting.is_ready(living):
                        self._known = (living, _target(living))
                        return self._known[1]
                elif (fd := self._folder.take()) is not None:
                    try:
                        start.begin(fd, self._folder.read())
                    finally:
                        os.close(fd)
                cancel.wait(STEP_S)

    def _is_right(self, living: Lease) -> bool:
        """Whether a server that runs is the one that the settings ask for."""
        config = self._config
        if config.context_tokens > living.context_tokens and self._most(living) > 0:
            return False
        if not config.model:
            return True
        try:
            name, path = fit.named(config.model)
        except LcursorError:
            return living.model == config.model
        return living.model == name and os.path.realpath(living.path) == os.path.realpath(path)

    def _most(self, living: Lease) -> int:
        """Return how much more context the model of a running server could have than it has."""
        try:
            most = fit.weigh(living.model, Path(living.path)).most_tokens
        except LcursorError:
            return 0
        return min(most, self._config.context_tokens) - living.context_tokens if most else 0

    def _make_room(self, living: Lease) -> None:
        if self._config.model:
            fit.named(self._config.model)  # nothing makes room for a model that is not there
        others = [pid for pid in self._folder.users() if pid != os.getpid()]
        if others:
            raise ServerOccupied(
                f"the local server runs {living.model} with {living.context_tokens:,} tokens of "
                f"context for another editor (process {others[0]})",
                ":LCursor server restart starts it anew with your settings, for both",
            )
        if _is_busy(living):
            raise ServerOccupied(
                f"the local server is writing an answer with {living.model}",
                "Wait for its end or stop it, then ask again",
            )
        self._tell(f"{living.model} makes room for other settings")
        self._end()

    def _end(self) -> bool:
        """End the server that runs now; another that somebody starts meanwhile may live."""
        first: Lease | None = None
        number, deadline_s = signal.SIGTERM, 0.0
        while self._folder.is_held():
            said = self._folder.read()
            if first is None or said is None or said == first:
                first = first or said
            else:
                return True
            now_s = time.monotonic()
            if first is not None and now_s > deadline_s:
                if number == signal.SIGKILL and deadline_s:
                    raise ServerSlow(
                        "the local server does not end", f"End it by hand: kill -9 {first.pid}"
                    )
                number = signal.SIGKILL if deadline_s else signal.SIGTERM
                deadline_s = now_s + STOP_S
                lease.end(first.pid, first.ticks, first.boot, number)
            time.sleep(STEP_S)
        if first is not None and first.server_pid:
            lease.end(first.server_pid, first.server_ticks, first.boot, signal.SIGKILL)
        return first is not None


class _Waiting:
    """Waits for a server that loads, and says so now and then."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._began_s = self._told_s = time.monotonic()
        self._client: Client | None = None
        self._of: Lease | None = None

    def is_ready(self, living: Lease) -> bool:
        """Ask once whether it answers.

        Raises:
            ServerSlow: it should have for long.
        """
        if self._of != living:
            self._close()
            self._client, self._of = Client(living.url, living.key, SETTING), living
        if self._answers(living):
            return True
        now_s = time.monotonic()
        if now_s - self._began_s > LOAD_S:
            raise ServerSlow(
                f"the local server has not loaded {living.model} in {LOAD_S / 60:.0f} minutes",
                "See :LCursor server log, or run :LCursor server restart",
            )
        if now_s - self._told_s > TELL_S:
            self._told_s = now_s
            self._tell(f"loading {living.model}: {now_s - self._began_s:.0f} s")
        return False

    def __enter__(self) -> _Waiting:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _answers(self, living: Lease) -> bool:
        socket_path = endpoint.socket_path(living.url)
        if self._client is None or (socket_path and not os.path.exists(socket_path)):
            return False
        try:
            for _ in self._client.request("/health"):
                pass
        except ServerError:
            return False
        return True

    def _close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def _target(living: Lease) -> Target:
    return Target(
        name=living.model,
        url=living.url,
        model=living.model,
        kind="llama.cpp",
        key=living.key,
        setting=SETTING,
    )


def _asked(living: Lease, path: str) -> Any:
    """Return what a server says, as JSON.

    Raises:
        ServerError: it does not answer.
        ValueError: its answer is no JSON.
    """
    client = Client(living.url, living.key, SETTING)
    try:
        return json.loads(b"\n".join(client.request(path)))
    finally:
        client.close()


def _is_busy(living: Lease) -> bool:
    """Whether it writes an answer now."""
    try:
        return any(slot.get("is_processing") for slot in _asked(living, "/slots"))
    except (ServerError, ValueError, TypeError, AttributeError):
        return False


def _state(living: Lease) -> State:
    """Return what a server that lives does now."""
    path = endpoint.socket_path(living.url)
    if path and not os.path.exists(path):
        return "starting"
    try:
        return "sleeping" if _asked(living, "/props").get("is_sleeping") else "running"
    except ServerError as error:
        return "starting" if error.status in (LOADING, 0) else "running"
    except (ValueError, AttributeError):
        return "running"
