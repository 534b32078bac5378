"""The local server of the chat: find, start, inspect and stop it.

All editors of a user share one server. `server_state.py` records the server and its users,
`launch.py` starts it. All calls block, and may run on several threads at once.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lcursor.catalog.memory import gib
from lcursor.config import ChatConfig
from lcursor.errors import (
    Cancelled,
    LcursorError,
    ServerError,
    ServerFailed,
    ServerOccupied,
    ServerSlow,
)
from lcursor.http import endpoint
from lcursor.http.client import Client
from lcursor.llm import discovery, fit
from lcursor.llm.launch import Launcher
from lcursor.llm.records import ServedModel
from lcursor.llm.server_state import ServerFolder, ServerState, User
from lcursor.storage import json_text

Notify = Callable[[str], None]
"""Called with progress messages, on the thread of the call."""
State = Literal["none", "starting", "running", "sleeping", "failed", "foreign"]
STEP_S = 0.05
NOTIFY_S = 1.0
LOAD_S = 900.0
"""Time limit of a load; a large model from a slow disk takes minutes."""
CLOSE_S = 1.0
LOADING = 503
SETTING = "chat"


@dataclass(frozen=True, slots=True)
class Status:
    """The state of the local server."""

    state: State
    lines: list[str]
    """Description for the user."""
    url: str = ""
    pid: int = 0
    model: str = ""
    log: str = ""


class LocalServer:
    """The local server, used by this process.

    Args:
        folder: `server_state.default_folder()` except in tests.
        completion: name or path of the completion model, for which memory is reserved; "" for none.
        idle_s: None for the configured time.
    """

    def __init__(
        self,
        config: ChatConfig,
        folder: Path,
        notify: Notify,
        completion: str = "",
        idle_s: float | None = None,
    ) -> None:
        self._config, self._notify, self._completion = config, notify, completion
        self._folder = ServerFolder(folder)
        self._idle_s = config.idle_minutes * 60.0 if idle_s is None else idle_s
        self._lock = threading.Lock()
        self._user: User | None = None
        self._known: tuple[ServerState, ServedModel] | None = None
        self._failure = ""
        self._is_starting = self._is_closed = False
        self._stops = 0

    @property
    def log_path(self) -> Path:
        """The server's log file."""
        return self._folder.log_path

    def ensure(
        self, cancel: threading.Event | None = None, notify: Notify | None = None
    ) -> ServedModel:
        """Return the server's target, after starting it if necessary.

        Cost: under a millisecond while it runs.

        Args:
            notify: None for the default.

        Raises:
            Cancelled: `cancel` was set, while the server keeps loading; or it was stopped.
            ServerMissing: there is no server program, or the setting is "off".
            ServerOccupied: it serves another model to another editor.
            ServerEnded: it was started and ended.
            OutOfMemory: the model does not fit.
            ModelError: the model's file is missing or invalid.
        """
        cancel = cancel or threading.Event()
        stops = self._stops
        # Another thread may be waiting for the server, too.
        while not self._lock.acquire(timeout=STEP_S):
            self._check_wanted(cancel, stops)
        try:
            self._check_wanted(cancel, stops)
            known, running = self._known, self._folder.running()
            if known is not None and known[0] == running:
                return known[1]
            self._known = None
            self._folder.create()
            self._user = self._user or self._folder.join()
            self._is_starting = True
            target = self._find_or_start(cancel, stops, notify or self._notify)
            self._failure = ""
            return target
        except Cancelled:
            raise
        except LcursorError as error:
            self._failure = str(error)
            raise
        except OSError as error:
            raise ServerFailed(
                f"the server's folder cannot be used: {error.strerror or error} "
                f"({self._folder.path})",
                "Check disk space and permissions, or set LCURSOR_DATA",
            ) from error
        finally:
            self._is_starting = False
            if self._is_closed:
                self._leave()
            self._lock.release()

    def status(self) -> Status:
        """Return the state of the server, without starting one."""
        log = str(self.log_path) if self.log_path.exists() else ""
        running = self._folder.running()
        if running is None:
            if self._failure:
                return Status("failed", [self._failure], log=log)
            if self._is_starting:
                return Status("starting", ["The local server is starting"], log=log)
            others = discovery.running()
            if others:
                lines = ["The local server does not run; there is one that lcursor did not start:"]
                lines += [each.describe() for each in others]
                lines.append(discovery.advice(others[0]))
                return Status("foreign", lines, url=others[0].url, log=log)
            return Status(
                "none", ["The local server does not run; the first question starts it"], log=log
            )
        state = _activity(running)
        users = len(self._folder.users())
        where = f" {running.placement}" if running.placement else ""
        lines = [
            f"{running.model}{where}, {running.context_tokens:,} tokens of context, "
            f"about {gib(running.need_bytes)}",
            f"{running.engine}, process {running.pid}, at {running.url}",
            f"{state}; used by {users} process{'es' if users != 1 else ''}",
        ]
        return Status(state, lines, running.url, running.pid, running.model, log)

    def stop(self) -> bool:
        """Stop the server, even if other processes use it; return whether one ran.

        Raises:
            ServerSlow: it does not end.
        """
        self._stops += 1
        self._known, self._failure = None, ""
        return self._end()

    def restart(self, cancel: threading.Event | None = None) -> ServedModel:
        """Stop the server and start it with the current settings; raises errors of `ensure`."""
        self.stop()
        return self.ensure(cancel)

    def recheck(self) -> None:
        """Make the next `ensure` check that the server answers, after a failure."""
        self._known = None

    def close(self) -> None:
        """Stop using the server; it ends some time after its last user."""
        self._is_closed = True  # ends waiting threads
        if self._lock.acquire(timeout=CLOSE_S):
            self._leave()
            self._lock.release()

    def _leave(self) -> None:
        self._known = None
        if self._user is not None:
            self._user.leave()
            self._user = None

    def _check_wanted(self, cancel: threading.Event, stops: int) -> None:
        """Raise `Cancelled` if the server is no longer needed."""
        if cancel.is_set() or self._is_closed or self._stops != stops:
            raise Cancelled("the server is no longer needed")

    def _find_or_start(self, cancel: threading.Event, stops: int, notify: Notify) -> ServedModel:
        launcher = Launcher(self._config, self._folder, notify, self._completion, self._idle_s)
        suitable: ServerState | None = None  # the server that matches the settings
        started_s = notified_s = time.monotonic()
        while True:
            self._check_wanted(cancel, stops)
            running = self._folder.running()
            if running is None:
                if (lock := self._folder.try_lock()) is not None:
                    try:
                        launcher.start(lock)
                    finally:
                        os.close(lock)
            elif running != suitable and not self._suits(running):
                self._replace(running, notify)
                continue
            elif _answers(running):
                self._known = (running, _target(running))
                return self._known[1]
            else:
                suitable = running
                waited_s = time.monotonic() - started_s
                if waited_s > LOAD_S:
                    raise ServerSlow(
                        f"the local server has not loaded {running.model} in {LOAD_S / 60:.0f} "
                        "minutes",
                        "See :LCursor server log, or run :LCursor server restart",
                    )
                if time.monotonic() - notified_s > NOTIFY_S:
                    notified_s = time.monotonic()
                    notify(f"loading {running.model}: {waited_s:.0f} s")
            cancel.wait(STEP_S)

    def _suits(self, running: ServerState) -> bool:
        """Return whether a server matches the settings."""
        config = self._config
        if config.context_tokens > running.context_tokens and self._can_grow(running):
            return False
        if not config.model:
            return True
        try:
            name, path = fit.resolve_model(config.model)
        except LcursorError:
            return running.model == config.model
        return running.model == name and os.path.realpath(running.path) == os.path.realpath(path)

    def _can_grow(self, running: ServerState) -> bool:
        """Return whether a server's model can have the larger configured context."""
        try:
            most = fit.measure(running.model, Path(running.path)).max_tokens
        except LcursorError:
            return False
        return min(most, self._config.context_tokens) > running.context_tokens

    def _replace(self, running: ServerState, notify: Notify) -> None:
        """Stop a server that does not match the settings, unless it is in use."""
        if self._config.model:
            fit.resolve_model(self._config.model)  # raises if the configured model is missing
        others = [pid for pid in self._folder.users() if pid != os.getpid()]
        if others:
            raise ServerOccupied(
                f"the local server runs {running.model} with {running.context_tokens:,} tokens of "
                f"context for another editor (process {others[0]})",
                ":LCursor server restart restarts it with your settings for both editors",
            )
        if _is_busy(running):
            raise ServerOccupied(
                f"the local server is writing an answer with {running.model}",
                "Wait for its end or stop it, then try again",
            )
        notify(f"replacing {running.model}, because the settings differ")
        self._end()

    def _end(self) -> bool:
        try:
            return self._folder.stop()
        except TimeoutError as error:
            pid = error.args[0]
            hint = f"Stop it by hand: kill -9 {pid}" if pid else "See :LCursor server log"
            raise ServerSlow("the local server does not stop", hint) from error


def _target(server: ServerState) -> ServedModel:
    return ServedModel(
        name=server.model,
        url=server.url,
        model=server.model,
        kind="llama.cpp",
        setting=SETTING,
    )


def _has_socket(server: ServerState) -> bool:
    return os.path.exists(endpoint.socket_path(server.url))


def _answers(server: ServerState) -> bool:
    """Return whether a server has loaded its model."""
    try:
        return _has_socket(server) and bool(_get(server, "/health"))
    except (ServerError, ValueError):
        return False


def _get(server: ServerState, path: str) -> Any:
    """Return a server's response at a path.

    Raises:
        ServerError: it does not answer.
        ValueError: its answer is not JSON.
    """
    client = Client(server.url, "", SETTING)
    try:
        return json_text.parse(b"\n".join(client.request(path)))
    finally:
        client.close()


def _is_busy(server: ServerState) -> bool:
    """Return whether it is writing an answer."""
    try:
        return any(slot.get("is_processing") for slot in _get(server, "/slots"))
    except (ServerError, ValueError, TypeError, AttributeError):
        return False


def _activity(server: ServerState) -> State:
    """Return the state of a running server."""
    if not _has_socket(server):
        return "starting"
    try:
        return "sleeping" if _get(server, "/props").get("is_sleeping") else "running"
    except ServerError as error:
        return "starting" if error.status in (LOADING, 0) else "running"
    except (ValueError, AttributeError):
        return "running"
