"""Handle the index's messages: forward requests to the worker process of a project.

One executor finds the project of a path; each project has its own (`project.py`). Message
handlers run on the event loop's thread and never block.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcursor.config import IndexConfig
from lcursor.errors import LcursorError
from lcursor.executor import SerialExecutor
from lcursor.host.project import Project, hit_message, open_client, report_message
from lcursor.project.root import is_begun, root_of
from lcursor.protocol import index as wire
from lcursor.reporting import Notify, report_error

if TYPE_CHECKING:
    from lcursor.index.client import Client

OnRelated = Callable[[Project, Sequence[Mapping[str, Any]]], None]
"""Called with the chunks related to a position, and their project. Thread: the project's."""


class Indexing:
    """The handlers of the index's messages.

    Args:
        notify: sends a message to Neovim, from any thread.
        open_client: returns a client, given a project's root and the embedder's name.
    """

    def __init__(
        self, notify: Notify, open_client: Callable[[Path, str], Client] = open_client
    ) -> None:
        self._notify, self._open_client = notify, open_client
        self._config = IndexConfig()
        self._secrets: tuple[str, ...] = ()
        self._executor = SerialExecutor("lcursor-projects", self._on_error)
        self._lock = threading.Lock()
        self._known: dict[Path, Project] = {}
        self._newest_search = 0
        self._newest_project = 0

    def configure(self, config: IndexConfig, secrets: Sequence[str] = ()) -> None:
        """Apply settings; running workers get only the secrets."""
        self._config = config
        if self._secrets != tuple(secrets):
            self._secrets = tuple(secrets)
            self._submit_to_all(lambda project: project.set_secrets(secrets))

    def close(self) -> None:
        """Disconnect from all workers, which keep running."""
        for project in self._all():
            project.close()

    def enter(self, params: wire.IndexPath) -> None:
        """Connect to the index of an entered file's project, if there is one."""
        path = params["path"]

        def connect(project: Project) -> None:
            if is_begun(project.root):
                project.enter(path)

        self._in_project(path, connect)

    def saved(self, params: wire.IndexPath) -> None:
        """Report a saved file."""
        path = params["path"]
        self._in_project(path, lambda it: it.notify("changed", paths=[it.name_of(path)]))

    def begin(self, params: wire.IndexBegin) -> None:
        """Index a project."""
        options = {"confirmed": params["is_confirmed"], "rebuild": params["rebuild"]}

        def begin(project: Project) -> None:
            project.ask_without_index("begin", **options)

        self._in_project(params["path"], begin, params["id"])

    def report(self, params: wire.IndexAsk) -> None:
        """Report a preview of a project's index."""

        def report(project: Project) -> None:
            found = project.ask_without_index("report")
            self._notify("index.reported", report_message(params["id"], project.root, found))

        self._in_project(params["path"], report, params["id"])

    def why(self, params: wire.IndexAsk) -> None:
        """Report why a file is not in the index."""

        def explain(project: Project) -> None:
            name = project.name_of(params["path"])
            answer: wire.IndexExplained = {
                "id": params["id"],
                "path": name,
                "root": str(project.root),
                "reason": project.ask_without_index("why", path=name)["reason"],
            }
            self._notify("index.explained", answer)

        self._in_project(params["path"], explain, params["id"])

    def search(self, params: wire.IndexSearch) -> None:
        """Search for a text, unless a newer search arrives first."""
        options = {"text": params["text"], "limit": params["limit"], "mode": params["mode"]}
        self._search(params["id"], params["path"], params["text"], "search", "hits", options)

    def symbols(self, params: wire.IndexSymbols) -> None:
        """Find definitions by the start of their name, unless a newer search arrives first."""
        name = params["name"]
        options = {"name": name, "limit": params["limit"], "prefix": True}
        self._search(params["id"], params["path"], f"@{name}", "symbols", "symbols", options)

    def find_related(self, path: str, before: str, after: str, on_found: OnRelated) -> None:
        """Find chunks related to a position, if a worker runs; only for the latest position.

        Errors are not reported, because the user did not request this. Thread: any.
        """
        self._newest_project += 1
        number = self._newest_project

        def find(project: Project) -> None:
            if project.is_connected and number == self._newest_project:
                name = project.name_of(path)
                with contextlib.suppress(LcursorError):
                    found = project.ask("around", path=name, before=before, after=after)
                    on_found(project, found["hits"])

        self._in_project(path, find)

    def buffer(self, params: wire.IndexBuffer) -> None:
        """Send the unsaved text of a buffer to the index."""
        path, text = params["path"], params["text"] if params["is_changed"] else None
        self._in_project(path, lambda it: it.notify("buffer", path=it.name_of(path), text=text))

    def client_of(self, root: Path) -> Client | None:
        """Return the client of a project whose worker runs; it may be used on any thread."""
        with self._lock:
            project = self._known.get(root)
        return project.connect() if project is not None and project.is_connected else None

    def typing(self) -> None:
        """Pause all workers briefly."""

        def pause(project: Project) -> None:
            if project.is_connected:
                project.notify("typing")

        self._submit_to_all(pause)

    def _search(
        self,
        number: int,
        path: str,
        query: str,
        method: str,
        field: str,
        options: Mapping[str, Any],
    ) -> None:
        self._newest_search = number

        def search(project: Project) -> None:
            if number != self._newest_search:
                return
            started_s = time.monotonic()
            found = project.ask(method, **options)
            answer: wire.IndexFound = {
                "id": number,
                "root": str(project.root),
                "query": query,
                "hits": [hit_message(project.root, hit) for hit in found[field]],
                "ms": (time.monotonic() - started_s) * 1000,
                "note": project.note(),
            }
            self._notify("index.found", answer)

        self._in_project(path, search, number)

    def _all(self) -> list[Project]:
        with self._lock:
            return list(self._known.values())

    def _submit_to_all(self, job: Callable[[Project], None]) -> None:
        for project in self._all():
            self._executor.submit(partial(project.executor.submit, partial(job, project)))

    def _in_project(self, path: str, job: Callable[[Project], None], number: int = 0) -> None:
        """Find the project of a path, and run a job on its thread."""

        def find() -> None:
            root = root_of(Path(path))
            project = self._known.get(root)
            if project is None:
                project = Project(
                    root, self._new_client, self._notify, self._on_error, self._secrets
                )
                with self._lock:
                    self._known[root] = project
            project.executor.submit(partial(job, project), number)

        self._executor.submit(find, number)

    def _new_client(self, root: Path) -> Client:
        return self._open_client(root, self._config.embedder or "none")

    def _on_error(self, error: Exception, number: int) -> None:
        report_error(self._notify, error, number, "the index request failed")
