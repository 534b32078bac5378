"""One project's index as the host has it: the client of its worker, on a thread of its own.

Calls of the client wait, also for a worker that is being started; so nothing here is called on the
loop's thread but `Lane.put` and `Project.close`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from lcursor import protocol
from lcursor.config import IndexConfig
from lcursor.errors import IndexRefused
from lcursor.executor import OnError, SerialExecutor
from lcursor.project.root import relative_name
from lcursor.reporting import Notify

Hear = Callable[[Mapping[str, Any]], None]
"""Given an event of a worker."""

MOST_RECENT = 16
REVIVALS, REVIVAL_S = 3, 60.0
"""So many workers may die in that time; then the next question starts one, and nothing else."""


class Worker(Protocol):
    """What of the index's client is used here; it waits for answers."""

    def call(self, do: Any, **params: Any) -> dict[str, Any]:
        """Ask, and start a worker where none runs."""

    def tell(self, do: Any, **params: Any) -> None:
        """Say what needs no answer; what was said of buffers is told to the next worker as well."""

    def listen(self, listener: Hear) -> None:
        """Give every event to a function, on a thread of the client's."""

    def close(self) -> None:
        """Leave; the worker goes on without us."""


class Projects(Protocol):
    """Where projects are and how their workers are reached; `workers.py` has the real ones."""

    def configure(self, config: IndexConfig) -> None:
        """Take the settings with which workers are started."""

    def root_of(self, path: str) -> Path:
        """Return the root of the project that a path is in."""

    def is_begun(self, root: Path) -> bool:
        """Return whether somebody has asked for an index of it."""

    def client(self, root: Path) -> Worker:
        """Return a client that is not connected yet."""


class Project:
    """A project and the client of its worker. Thread: its own lane, but for `_hear` and `close`.

    Args:
        root: of the project.
        projects: knows its worker.
        send: sends a message to Neovim, from any thread.
        failed: as of `Lane`.
        secrets: globs of the user's own, told to every worker.
    """

    def __init__(
        self,
        root: Path,
        projects: Projects,
        send: Notify,
        failed: OnError,
        secrets: Sequence[str] = (),
    ) -> None:
        self.root = root
        self.lane = SerialExecutor(f"lcursor-index-{root.name}", failed)
        self.is_awake = False
        self._send, self._projects = send, projects
        self._secrets = list(secrets)
        self._client = self._reached()
        self._state: Mapping[str, Any] = {}
        self._recent: list[str] = []
        self._ends_s: list[float] = []

    def wake(self) -> Worker:
        """Return the client when its worker runs and tells us what it does."""
        if not self.is_awake:
            self._client.listen(self._hear)
            self.is_awake = True
            self._look()
        return self._client

    def ask(self, do: str, **params: Any) -> Mapping[str, Any]:
        """Ask about what is indexed.

        Raises:
            IndexRefused: nobody has asked for an index.
        """
        if not self.is_awake and not self._projects.is_begun(self.root):
            raise IndexRefused(f"{self.root.name} is not indexed", "Run :LCursor index")
        return self.wake().call(do, **params)

    def inquire(self, do: str, **params: Any) -> Mapping[str, Any]:
        """Ask what needs no index; without one the worker is let go of again."""
        try:
            return self.wake().call(do, **params)
        finally:
            if not self._projects.is_begun(self.root):
                self.close()
                self._client = self._reached()

    def enter(self, path: str) -> None:
        """Tell which files are open, the one that was entered last before the others."""
        name = self.name_of(path)
        self._recent = [name, *(each for each in self._recent if each != name)][:MOST_RECENT]
        self.tell("recent", paths=self._recent)

    def tell(self, do: str, **params: Any) -> None:
        """Say what needs no answer; nothing is started for it."""
        self._client.tell(do, **params)

    def hide(self, secrets: Sequence[str]) -> None:
        """Tell globs of files that must not be indexed, to this worker and the next ones."""
        self._secrets = list(secrets)
        self.tell("secrets", globs=self._secrets)

    def close(self) -> None:
        """Let go of the worker. Thread: any."""
        self.is_awake = False
        self._client.close()

    def name_of(self, path: str) -> str:
        """Return a path as the index has it."""
        return relative_name(self.root, path)

    def note(self) -> str:
        """Say why there may be more to find some day; empty when all is there."""
        state = self._state
        phase, done, total = state.get("phase"), state.get("done", 0), state.get("total", 0)
        if phase == "surveying":
            return "indexing has begun"
        if phase == "reading":
            return f"{done} of {total} files are indexed"
        if phase == "embedding":
            return f"{done} of {total} pieces have a vector"
        return ""

    def _reached(self) -> Worker:
        """Return a client that says what is secret before anything else."""
        client = self._projects.client(self.root)
        if self._secrets:
            client.tell("secrets", globs=self._secrets)
        return client

    def _look(self) -> None:
        self._hear({"event": "state", **self._client.call("status")})

    def _hear(self, event: Mapping[str, Any]) -> None:
        """Thread: the client's, or the lane's."""
        kind = event.get("event")
        if not self.is_awake:
            return
        if kind == "state":
            self._state = event
        elif kind == "gone":
            self._state = {**self._state, "phase": "absent", "pid": 0}
            self.lane.submit(self._revive)
        else:
            return
        self._send("index.state", state_message(self.root, self._state))

    def _revive(self) -> None:
        """Start another worker in place of one that ended, unless they end as fast as they come."""
        now_s = time.monotonic()
        self._ends_s = [at_s for at_s in self._ends_s if now_s - at_s < REVIVAL_S]
        if len(self._ends_s) < REVIVALS and self.is_awake and self._projects.is_begun(self.root):
            self._ends_s.append(now_s)
            self._look()


def state_message(root: Path, state: Mapping[str, Any]) -> protocol.IndexState:
    """Return what a worker says of itself, as Neovim is told."""
    return {
        "root": str(root),
        "phase": state.get("phase", "absent"),
        "detail": state.get("detail", ""),
        "done": state.get("done", 0),
        "total": state.get("total", 0),
        "seconds_left": float(state.get("seconds_left", -1)),
        "files": state.get("files", 0),
        "chunks": state.get("chunks", 0),
        "symbols": state.get("symbols", 0),
        "embedded": state.get("embedded", 0),
        "embedder": state.get("embedder", ""),
        "embedder_note": state.get("embedder_note", ""),
        "watching": state.get("watching", ""),
        "remarks": list(state.get("remarks", ())),
        "memory_bytes": state.get("memory_bytes", 0),
        "pid": state.get("pid", 0),
    }


def report_message(number: int, root: Path, said: Mapping[str, Any]) -> protocol.IndexReported:
    """Return a worker's report as Neovim is told it."""

    def row(name: str, files: int, size_bytes: int, examples: Sequence[str]) -> protocol.IndexRow:
        return {"name": name, "files": files, "bytes": size_bytes, "examples": list(examples)}

    languages, ignored = said["languages"], said["ignored"]
    examples = said.get("examples", {})
    return {
        "id": number,
        "root": str(root),
        "files": said["files"],
        "bytes": said["bytes"],
        "seconds": float(said["seconds"]),
        "embed_seconds": float(said["embed_seconds"]),
        "languages": [row(name, of["files"], of["bytes"], ()) for name, of in languages.items()],
        "ignored": [row(name, n, 0, examples.get(name, ())) for name, n in ignored.items()],
        "is_home": said["is_home"],
        "is_begun": said["is_begun"],
    }


def hit_message(root: Path, hit: Mapping[str, Any]) -> protocol.IndexHit:
    """Return a hit as Neovim is told it; a definition is one without a score."""
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
