"""The index of one project in the host: the client of its worker process.

Calls block, even until a worker starts; the event loop's thread may only submit jobs to the
project's executor and call `Project.close`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lcursor.errors import IndexAway, IndexRejected
from lcursor.executor import OnError, SerialExecutor
from lcursor.project.root import is_begun, relative_name
from lcursor.protocol import index
from lcursor.reporting import Notify

if TYPE_CHECKING:
    from lcursor.index.client import Client

MAX_RECENT = 16
MAX_RESTARTS, RESTARTS_S = 3, 60.0
"""Maximum restarts of ended workers in this time; after that only a request starts one."""
AWAY_S = 60.0
"""Time without another attempt to connect after entering a file."""
NO_STATE: index.IndexState = {
    "root": "",
    "phase": "absent",
    "detail": "",
    "done": 0,
    "total": 0,
    "seconds_left": -1.0,
    "files": 0,
    "chunks": 0,
    "symbols": 0,
    "embedded": 0,
    "embedder": "",
    "embedder_note": "",
    "watching": "",
    "remarks": [],
    "memory_bytes": 0,
    "pid": 0,
}


def open_client(root: Path, embedder: str) -> Client:
    """Return a client; its first call connects, and starts a worker if none runs."""
    from lcursor.index.client import Client

    return Client(root, embedder=embedder)


class Project:
    """A project and the client of its worker. Thread: its executor's, unless noted.

    Args:
        new_client: opens a client of the project.
        notify: sends a message to Neovim, from any thread.
        on_error: see `SerialExecutor`.
        secrets: the user's globs, sent to every worker.
    """

    def __init__(
        self,
        root: Path,
        new_client: Callable[[Path], Client],
        notify: Notify,
        on_error: OnError,
        secrets: Sequence[str] = (),
    ) -> None:
        self.root = root
        self.executor = SerialExecutor(f"lcursor-index-{root.name}", on_error)
        self.is_connected = False
        self._notify, self._open_client = notify, new_client
        self._secrets = list(secrets)
        self._client = self._new_client()
        self._state: Mapping[str, Any] = {}
        self._recent: list[str] = []
        self._restarts_s: list[float] = []
        self._away_until_s = 0.0

    def connect(self) -> Client:
        """Return the client of a running worker, and subscribe to its state."""
        if not self.is_connected:
            self._client.listen(self._on_event)
            self.is_connected = True
            self._fetch_state()
        return self._client

    def ask(self, method: str, **params: Any) -> Mapping[str, Any]:
        """Send a request to the worker.

        Raises:
            IndexRejected: the project has no index.
        """
        if not self.is_connected and not is_begun(self.root):
            raise IndexRejected(f"{self.root.name} is not indexed", "Run :LCursor index")
        return self.connect().call(method, **params)

    def ask_without_index(self, method: str, **params: Any) -> Mapping[str, Any]:
        """Send a request that needs no index; without one, disconnect from the worker."""
        try:
            return self.connect().call(method, **params)
        finally:
            if not is_begun(self.root):
                self.close()
                self._client = self._new_client()

    def enter(self, path: str) -> None:
        """Connect, unless that has just failed, and send the recent files, newest first."""
        if time.monotonic() >= self._away_until_s:
            try:
                self.connect()
            except IndexAway:
                self._away_until_s = time.monotonic() + AWAY_S
                raise
        name = self.name_of(path)
        self._recent = [name, *(each for each in self._recent if each != name)][:MAX_RECENT]
        self.notify("recent", paths=self._recent)

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification; starts no worker."""
        self._client.notify(method, **params)

    def set_secrets(self, secrets: Sequence[str]) -> None:
        """Send the globs of secret files to this worker and later ones."""
        self._secrets = list(secrets)
        self.notify("secrets", globs=self._secrets)

    def close(self) -> None:
        """Disconnect. Thread: any."""
        self.is_connected = False
        self._client.close()

    def name_of(self, path: str) -> str:
        """Return a path relative to the project."""
        return relative_name(self.root, path)

    def note(self) -> str:
        """Return why a search may be incomplete; "" if it is complete."""
        state = self._state
        phase, done, total = state.get("phase"), state.get("done", 0), state.get("total", 0)
        if phase == "surveying":
            return "indexing has started"
        if phase == "reading":
            return f"{done} of {total} files are indexed"
        if phase == "embedding":
            return f"{done} of {total} chunks are embedded"
        return ""

    def _new_client(self) -> Client:
        client = self._open_client(self.root)
        if self._secrets:
            client.notify("secrets", globs=self._secrets)
        return client

    def _fetch_state(self) -> None:
        self._on_event({"event": "state", **self._client.call("status")})

    def _on_event(self, event: Mapping[str, Any]) -> None:
        """Thread: the client's, or the project's."""
        kind = event.get("event")
        if not self.is_connected:
            return
        if kind == "state":
            self._state = event
        elif kind == "gone":
            self._state = {**self._state, "phase": "absent", "pid": 0}
            self.executor.submit(self._restart)
        else:
            return
        self._notify("index.state", state_message(self.root, self._state))

    def _restart(self) -> None:
        """Start another worker after one ended, unless workers end too often."""
        now_s = time.monotonic()
        self._restarts_s = [at_s for at_s in self._restarts_s if now_s - at_s < RESTARTS_S]
        is_allowed = len(self._restarts_s) < MAX_RESTARTS
        if is_allowed and self.is_connected and is_begun(self.root):
            self._restarts_s.append(now_s)
            self._fetch_state()


def state_message(root: Path, state: Mapping[str, Any]) -> index.IndexState:
    """Return a worker's state as a message."""
    known = {name: value for name, value in state.items() if name in NO_STATE}
    return cast("index.IndexState", {**NO_STATE, **known, "root": str(root)})


def report_message(number: int, root: Path, report: Mapping[str, Any]) -> index.IndexReported:
    """Return a worker's report as a message."""

    def row(name: str, files: int, size_bytes: int, examples: Sequence[str]) -> index.IndexRow:
        return {"name": name, "files": files, "bytes": size_bytes, "examples": list(examples)}

    languages, ignored = report["languages"], report["ignored"]
    examples = report.get("examples", {})
    return {
        "id": number,
        "root": str(root),
        "files": report["files"],
        "bytes": report["bytes"],
        "seconds": float(report["seconds"]),
        "embed_seconds": float(report["embed_seconds"]),
        "languages": [row(name, of["files"], of["bytes"], ()) for name, of in languages.items()],
        "ignored": [row(name, n, 0, examples.get(name, ())) for name, n in ignored.items()],
        "is_home": report["is_home"],
        "is_begun": report["is_begun"],
    }


def hit_message(root: Path, hit: Mapping[str, Any]) -> index.IndexHit:
    """Return a search hit as a message; a definition is a hit without a score."""
    return {
        "path": str(root / hit["path"]),
        "name": hit["path"],
        "first_row": hit["first_row"],
        "end_row": hit["end_row"],
        "scope": hit["scope"],
        "kind": hit.get("kind", ""),
        "language": hit["language"],
        "text": hit.get("text", hit.get("name", "")),
        "score": float(hit.get("score", 0)),
        "parts": {name: float(value) for name, value in hit.get("parts", {}).items()},
        "is_stale": hit.get("is_stale", False),
    }
