"""The index's messages: what Neovim asks of a project's worker, and what it is told.

Owns a thread that finds out which project a path is in; each project has its own (`project.py`).
Handlers run on the loop's thread and return at once. The work is done in the workers' processes.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lcursor import protocol
from lcursor.config import IndexConfig
from lcursor.errors import LcursorError
from lcursor.executor import SerialExecutor
from lcursor.host.project import (
    Project,
    Projects,
    Worker,
    hit_message,
    report_message,
)
from lcursor.reporting import Notify, report_error

Around = Callable[[Project, Sequence[Mapping[str, Any]]], None]
"""Told what belongs to a place, and in which project. Thread: the project's lane."""


class Indexing:
    """The index's part of the dispatch.

    Args:
        send: sends a message to Neovim, from any thread.
        projects: finds them, and their workers.
    """

    def __init__(self, send: Notify, projects: Projects) -> None:
        self._send, self._projects = send, projects
        self._config = IndexConfig()
        self._secrets: tuple[str, ...] = ()
        self._front = SerialExecutor("lcursor-projects", self._failed)
        self._lock = threading.Lock()
        self._known: dict[Path, Project] = {}
        self._newest = 0
        self._places = 0

    def configure(self, config: IndexConfig, secrets: Sequence[str] = ()) -> None:
        """Take settings; of a worker that runs only the secrets' globs are new."""
        self._config = config
        self._projects.configure(config)
        if self._secrets != tuple(secrets):
            self._secrets = tuple(secrets)
            for project in self._all():
                self._front.submit(partial(project.lane.submit, partial(project.hide, secrets)))

    def close(self) -> None:
        """Let go of every worker; none of them ends by it."""
        for project in self._all():
            project.close()

    def enter(self, params: protocol.IndexPath) -> None:
        """Wake the index of a project where there is one."""
        path = params["path"]

        def wake(project: Project) -> None:
            if self._config.auto and self._projects.is_begun(project.root):
                project.wake()
                project.enter(path)

        self._in_project(path, wake)

    def saved(self, params: protocol.IndexPath) -> None:
        """Have a file read that was just written."""
        path = params["path"]
        self._in_project(path, lambda it: it.tell("changed", paths=[it.name_of(path)]))

    def begin(self, params: protocol.IndexBegin) -> None:
        """Index a project."""
        wishes = {"confirmed": params["is_confirmed"], "rebuild": params["rebuild"]}

        def begin(project: Project) -> None:
            project.inquire("begin", **wishes)

        self._in_project(params["path"], begin, params["id"])

    def report(self, params: protocol.IndexAsk) -> None:
        """Say what indexing a project would read."""

        def report(project: Project) -> None:
            said = project.inquire("report")
            self._send("index.reported", report_message(params["id"], project.root, said))

        self._in_project(params["path"], report, params["id"])

    def why(self, params: protocol.IndexAsk) -> None:
        """Say why a file is not in the index."""

        def explain(project: Project) -> None:
            name = project.name_of(params["path"])
            answer: protocol.IndexExplained = {
                "id": params["id"],
                "path": name,
                "root": str(project.root),
                "reason": project.inquire("why", path=name)["reason"],
            }
            self._send("index.explained", answer)

        self._in_project(params["path"], explain, params["id"])

    def search(self, params: protocol.IndexSearch) -> None:
        """Find what a text is about, unless a newer search has come meanwhile."""
        number = self._newest = params["id"]
        wishes = {"text": params["text"], "limit": params["limit"], "mode": params["mode"]}

        def search(project: Project) -> None:
            if number == self._newest:
                self._find(project, number, params["text"], "search", "hits", wishes)

        self._in_project(params["path"], search, number)

    def symbols(self, params: protocol.IndexSymbols) -> None:
        """Find definitions by the beginning of their name, unless a newer search has come."""
        number = self._newest = params["id"]
        wishes = {"name": params["name"], "limit": params["limit"], "prefix": True}

        def search(project: Project) -> None:
            if number == self._newest:
                self._find(project, number, "@" + params["name"], "symbols", "symbols", wishes)

        self._in_project(params["path"], search, number)

    def around(self, path: str, before: str, after: str, found: Around) -> None:
        """Have pieces found that belong to a place, where a worker runs; the newest place only.

        Failures are told by those who asked to be told: here nobody did. Thread: any.
        """
        self._places += 1
        number = self._places

        def find(project: Project) -> None:
            if project.is_awake and number == self._places:
                name = project.name_of(path)
                with contextlib.suppress(LcursorError):
                    said = project.ask("around", path=name, before=before, after=after)
                    found(project, said["hits"])

        self._in_project(path, find)

    def buffer(self, params: protocol.IndexBuffer) -> None:
        """Let searches see what a buffer has that its file has not."""
        path, text = params["path"], params["text"] if params["is_changed"] else None
        self._in_project(path, lambda it: it.tell("buffer", path=it.name_of(path), text=text))

    def worker_of(self, root: Path) -> Worker | None:
        """Return the client of a project whose worker runs; it may be asked on any thread."""
        with self._lock:
            project = self._known.get(root)
        return project.wake() if project is not None and project.is_awake else None

    def typing(self) -> None:
        """Let every worker rest for a moment."""
        for project in self._all():
            if project.is_awake:
                self._front.submit(partial(project.lane.submit, partial(project.tell, "typing")))

    def _find(
        self,
        project: Project,
        number: int,
        query: str,
        do: str,
        field: str,
        wishes: Mapping[str, Any],
    ) -> None:
        began_s = time.monotonic()
        said = project.ask(do, **wishes)
        answer: protocol.IndexFound = {
            "id": number,
            "root": str(project.root),
            "query": query,
            "hits": [hit_message(project.root, hit) for hit in said[field]],
            "ms": (time.monotonic() - began_s) * 1000,
            "note": project.note(),
        }
        self._send("index.found", answer)

    def _all(self) -> list[Project]:
        with self._lock:
            return list(self._known.values())

    def _in_project(self, path: str, job: Callable[[Project], None], number: int = 0) -> None:
        """Find the project of a path, and run a job on its lane."""

        def find() -> None:
            root = self._projects.root_of(path)
            project = self._known.get(root)
            if project is None:
                project = Project(root, self._projects, self._send, self._failed, self._secrets)
                with self._lock:
                    self._known[root] = project
            project.lane.submit(partial(job, project), number)

        self._front.submit(find, number)

    def _failed(self, error: Exception, number: int) -> None:
        """Thread: a lane's."""
        report_error(self._send, error, number, "the index could not answer")
