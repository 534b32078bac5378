"""The index of one project: open it, keep it up to date, and answer requests.

`search`, `symbols`, `retrieve` and `around` are called on one thread, other requests on any. No
file is read before the user has started the index once.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from lcursor import system
from lcursor.errors import IndexFailed, IndexRejected, LcursorError
from lcursor.index import embed, launch, protocol
from lcursor.index.chunk_embedder import ChunkEmbedder
from lcursor.index.fit import choose
from lcursor.index.pipeline import Pipeline, Progress
from lcursor.index.reader import Counts
from lcursor.index.records import Hit, Mode
from lcursor.index.report import summarize, why
from lcursor.index.retrieve import find_around
from lcursor.index.search import Searcher
from lcursor.index.store import Store
from lcursor.index.throttle import Throttle
from lcursor.index.watch import Watcher
from lcursor.project import filetypes, ignore, listing, secrets
from lcursor.project.root import BEGUN, begun_path, is_home_like, relative_name
from lcursor.storage import folders, json_text

RETAINED_FILES = frozenset({BEGUN, "worker.lock", "worker.json", "worker.log", "worker.log.1"})
"""Files that remain when the index is deleted."""
MAX_REMARKS = 20
MAX_HITS = 30
"""Hits that are considered for a prompt."""
MAX_VECTORS = 2000
"""Of texts that are not of the project."""
VECTOR_BATCH = 16


class EditorState(NamedTuple):
    """The open files of an editor."""

    recent: Sequence[str] = ()
    """Paths of open files, newest first."""
    buffers: Mapping[str, str] = MappingProxyType({})
    """Unsaved texts by path."""


NO_EDITOR = EditorState()


class Project:
    """The index of one project.

    Args:
        embedder: name of the embedder; "" for the default, "none" for none.
        on_change: called when the state changed, on any thread; must not block.
        on_remark: called with a message about a handled problem, on any thread; must not block.
    """

    def __init__(
        self,
        root: Path,
        embedder: str = "",
        on_change: Callable[[], None] = lambda: None,
        on_remark: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.root, self.folder = root, launch.make_folder(root)
        self.throttle = Throttle()
        self.remarks: dict[str, None] = {}
        """Handled problems, in order."""
        self.embedder_name = embedder or embed.DEFAULT
        self._on_change, self._on_remark = on_change, on_remark
        self._open: _OpenIndex | None = None
        self._failure = ""
        """Why the index could not be opened."""
        self._is_home = is_home_like(root)
        self.secret_globs = secrets.load(root)
        """The user's globs of secret files."""
        self._is_rebuilding = False
        """Whether the old index is being deleted and the new one is not yet open."""

    @property
    def is_begun(self) -> bool:
        """Whether the user started the index, now or earlier."""
        return bool(self._read_begun())

    def resume(self) -> None:
        """Open the index if the user started it earlier."""
        begun = self._read_begun()
        if not begun or (self._is_home and not begun.get("is_confirmed")):
            return
        try:
            self._start()
        except LcursorError as error:
            self._failure = str(error)
            self._remark(str(error))

    def begin(
        self, *, confirmed: bool = False, rebuild: bool = False, globs: Sequence[str] = ()
    ) -> None:
        """Index the project, now and whenever a worker runs.

        Args:
            confirmed: whether to index even a home directory or a folder above it.
            rebuild: delete the index first, and forget earlier secret globs.
            globs: secret globs of all clients.

        Raises:
            IndexRejected: it is a home directory or above, without confirmation.
            IndexFailed: the index cannot be stored.
        """
        is_confirmed = confirmed or bool(self._read_begun().get("is_confirmed"))
        if self._is_home and not is_confirmed:
            raise IndexRejected(
                f"{self.root} is a home directory or above one: everything in it would be read",
                "If intended, confirm it with :LCursor index; otherwise open a folder in it",
            )
        self._is_rebuilding = rebuild
        try:
            if rebuild:
                self._delete()
                self.secret_globs.replace(globs)
            self.secret_globs.add(globs)
            self._write_begun(is_confirmed)
            if self._open is None:
                self._start()
            else:
                self._open.pipeline.begin()
        finally:
            self._is_rebuilding = False

    def find_embedder(self) -> None:
        """Look again for a missing embedder, which may have been downloaded."""
        if (index := self._open) is not None and index.embedder.is_missing:
            index.pipeline.survey()

    def add_secrets(self, globs: Sequence[str]) -> None:
        """Exclude files that match some globs from the index.

        If the globs cannot be stored, they still apply to this worker.
        """
        is_new, begun = self.secret_globs.add(globs), self._read_begun()
        if begun and begun.get(secrets.KEY) != list(self.secret_globs.globs):
            try:
                self._write_begun(bool(begun.get("is_confirmed")))
            except IndexFailed as error:
                self._remark(f"privacy.exclude cannot be stored: {error}")
        if is_new and (index := self._open) is not None:
            index.pipeline.begin()  # also removes files that are being read now
            known = index.counter.files()
            index.pipeline.changed(path for path in known if self.secret_globs.reason(path))

    # Requests

    def search(
        self, text: str, limit: int, mode: Mode, editor: EditorState = NO_EDITOR
    ) -> dict[str, Any]:
        """Return the hits of a search, best first. On the search thread."""
        start_s = time.perf_counter()
        with self._query() as index:
            hits = index.search(text, limit, mode, editor)
        return {
            "hits": [asdict(hit) for hit in hits],
            "ms": (time.perf_counter() - start_s) * 1000,
            "phase": index.pipeline.progress.phase,
            "embedder": index.embedder_name,
        }

    def symbols(self, name: str, limit: int, prefix: bool) -> dict[str, Any]:
        """Return definitions by their name. On the search thread."""
        with self._query() as index:
            found = index.reader.symbols(name, limit, prefix=prefix)
        return {"symbols": [asdict(each) for each in found]}

    def similar(self, text: str, texts: Sequence[str]) -> dict[str, Any]:
        """Return how similar a text is to each of others in meaning; nothing without vectors."""
        with self._query() as index:
            return {"scores": index.similar(text, texts)}

    def retrieve(self, text: str, tokens: int, mode: Mode, editor: EditorState) -> dict[str, Any]:
        """Return the hits that fit into a prompt. On the search thread."""
        with self._query() as index:
            hits = index.search(text, MAX_HITS, mode, editor)
        found = choose(hits, tokens)
        return {
            "used": [asdict(hit) for hit in found.used],
            "left_out": [
                {**asdict(hit), "text": "", "reason": reason} for hit, reason in found.left_out
            ],
            "tokens": found.tokens,
        }

    def around(self, path: str, before: str, after: str, editor: EditorState) -> dict[str, Any]:
        """Return hits for a completion at a cursor. On the search thread."""
        with self._query() as index:
            searcher, (recent, buffers) = index.searcher(), editor
            hits = find_around(searcher, path, before, after, recent=recent, overlay=buffers)
        return {"hits": [asdict(hit) for hit in hits]}

    def why(self, path: str) -> dict[str, Any]:
        """Return the reason why a file is not in the index; "" if it is or will be."""
        name = relative_name(self.root, path) if os.path.isabs(path) else path
        reason = why(self.root, name, self.secret_globs)
        is_in = bool(self._open and self._open.reader.state(name))
        return {"path": name, "reason": reason, "is_indexed": is_in and not reason}

    def report(self) -> dict[str, Any]:
        """Return a preview of indexing; lists all files of the project."""
        survey = listing.survey(self.root, lambda: self.throttle.is_stopped)
        report = summarize(survey, self.secret_globs)
        about = {"root": str(self.root), "is_home": self._is_home, "is_begun": self.is_begun}
        return {**about, **asdict(report)}

    def state(self, clients: int = 0) -> protocol.State:
        """Return the state. Not on the search thread, because counting takes some time."""
        index = self._open
        progress = index.pipeline.progress if index else Progress(detail=self._failure)
        if self._failure and not index:
            progress.phase = "failed"
        counts, generation, vectors = Counts(0, 0, 0), 0, None
        if index is not None:
            self._pass_remarks(index)
            vectors = index.embedder.vectors
            with contextlib.suppress(IndexFailed):
                generation = index.counter.revision.generation
                counts = index.counter.counts()
        languages = dict(counts.by_language)
        empty = languages.pop("", 0)
        return {
            "root": str(self.root),
            "phase": "paused" if progress.is_paused else progress.phase,
            "detail": progress.detail,
            "done": progress.done,
            "total": progress.total,
            "seconds_left": progress.seconds_left,
            "files": counts.files - empty,
            "chunks": counts.chunks,
            "symbols": counts.symbols,
            "embedded": len(vectors) if vectors is not None else 0,
            "by_language": languages,
            "wanted_embedder": self.embedder_name,
            "embedder": index.embedder_name if index else "",
            "embedder_note": index.embedder.note if index else "",
            "watching": index.watcher.mode if index else "",
            "remarks": list(self.remarks)[-MAX_REMARKS:],
            "is_begun": self.is_begun,
            "is_home": self._is_home,
            "memory_bytes": system.resident_bytes(),
            "pid": os.getpid(),
            "version": protocol.VERSION,
            "clients": clients,
            "generation": generation,
        }

    def accepts_buffer(self, path: str, text: str) -> bool:
        """Return whether searches may use an unsaved text: not secret, not left out."""
        index = self._open
        if index is None or filetypes.by_name(path, len(text)) or self.secret_globs.reason(path):
            return False
        if filetypes.by_content(text.encode("utf-8", "replace")):
            return False
        if index.reader.state(path) is not None:
            return True
        return not ignore.why(self.root, path) or not os.path.lexists(self.root / path)

    def changed(self, paths: Sequence[str]) -> None:
        """Read files that an editor just saved."""
        if self._open is not None:
            self._open.pipeline.changed(paths)

    def recent(self, paths: Sequence[str]) -> None:
        """Set the open files, newest first."""
        if self._open is not None:
            self._open.pipeline.recent(paths)

    def warm(self) -> None:
        """Load the lexical index before the first search. Takes at most a second."""
        if (index := self._open) is not None:
            reader = index.store.reader()
            with contextlib.suppress(IndexFailed), contextlib.closing(reader):
                reader.warm()

    def close(self) -> None:
        """Stop all threads and close all files."""
        index, self._open = self._open, None
        self.throttle.stop()
        if index is not None:
            index.close()

    # Opening and deleting

    @contextlib.contextmanager
    def _query(self) -> Iterator[_OpenIndex]:
        """Yield the open index; bulk work is paused meanwhile."""
        index = self._open
        if index is None:
            if self._is_rebuilding:
                raise _being_rebuilt()
            if self._failure:
                raise IndexFailed(self._failure)
            raise IndexRejected(
                f"{self.root} is not indexed",
                f"Run :LCursor index, or in a shell python -m lcursor index {self.root}",
            )
        try:
            with self.throttle.query():
                yield index
        except IndexFailed as error:
            if self._is_rebuilding or self._open not in (index, None):
                raise _being_rebuilt() from error
            raise

    def _start(self) -> None:
        self.throttle = Throttle()
        self._open = _OpenIndex(self, self._publish, self._remark)
        self._failure = ""
        self._open.pipeline.begin()

    def _delete(self) -> None:
        self.close()
        for each in self.folder.iterdir():
            if each.name not in RETAINED_FILES and each.is_file():
                each.unlink(missing_ok=True)

    def _publish(self) -> None:
        if (index := self._open) is not None:
            self._pass_remarks(index)
        self._on_change()

    def _pass_remarks(self, index: _OpenIndex) -> None:
        for remark in [*index.store.remarks, *index.embedder.remarks()]:
            self._remark(remark)

    def _remark(self, text: str) -> None:
        """Report a handled problem, once. Any thread."""
        if text not in self.remarks:
            self.remarks[text] = None
            self._on_remark(text)

    def _read_begun(self) -> dict[str, Any]:
        try:
            found = json_text.parse(begun_path(self.root).read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write_begun(self, is_confirmed: bool) -> None:
        globs = list(self.secret_globs.globs)
        fields = {"root": str(self.root), "is_confirmed": is_confirmed, secrets.KEY: globs}
        try:
            folders.write_file(begun_path(self.root), json.dumps(fields).encode())
        except OSError as error:
            raise IndexFailed(
                f"the index cannot be started: {error.strerror or error} ({self.folder})",
                "Check disk space and permissions",
            ) from error


class _OpenIndex:
    """The components of an open index, opened and closed together.

    Raises:
        IndexFailed: the store cannot be opened.
    """

    def __init__(
        self, project: Project, on_change: Callable[[], None], on_remark: Callable[[str], None]
    ) -> None:
        self._root, self._throttle = project.root, project.throttle
        self.store = Store(project.folder)
        self.reader, self.counter = self.store.reader(), self.store.reader()
        self.embedder = ChunkEmbedder(
            project.embedder_name, self.store.reader(), self._throttle.is_quiet
        )
        self.watcher = Watcher(
            project.root,
            lambda paths: self.pipeline.changed(paths, is_accepted=True),
            lambda: self.pipeline.survey(),
            on_remark,
        )
        self.pipeline = Pipeline(
            project.root,
            self.store,
            self._throttle,
            self.embedder,
            self.watcher,
            project.secret_globs,
            on_change,
            on_remark,
        )
        self.store.database.on_rebuild = self.pipeline.begin
        self._searcher = Searcher(self.reader)
        self._vectors: dict[str, Any] = {}
        """Of texts that `similar` was asked about."""

    @property
    def embedder_name(self) -> str:
        """Name of the loaded embedder as in the settings; empty if none is loaded."""
        embedder = self.embedder.embedder
        return embedder.name.partition("@")[0] if embedder else ""

    def searcher(self) -> Searcher:
        """Return the searcher, lexical until an embedder is loaded. On the search thread."""
        embedder = self.embedder.embedder
        if self._searcher.embedder is not embedder:
            self._searcher = Searcher(self.reader, self.embedder.vectors, embedder)
        return self._searcher

    def search(self, text: str, limit: int, mode: Mode, editor: EditorState) -> list[Hit]:
        """Return the hits of a search, best first. On the search thread."""
        return self.searcher().search(
            text,
            limit=limit,
            mode=mode,
            recent=editor.recent,
            overlay=editor.buffers,
            is_stale=self._is_stale,
        )

    def similar(self, text: str, texts: Sequence[str]) -> list[float]:
        """Return how similar a text is to each of others in meaning; nothing without vectors."""
        embedder = self.embedder.embedder
        if embedder is None or not texts:
            return []
        if len(self._vectors) > MAX_VECTORS:
            self._vectors = {}
        vectors = self._vectors
        new = [each for each in dict.fromkeys(texts) if each not in vectors]
        for first in range(0, len(new), VECTOR_BATCH):
            batch = new[first : first + VECTOR_BATCH]
            vectors |= zip(batch, embedder.texts(batch), strict=True)
        vector = embedder.query(text)
        return [float(vectors[each] @ vector) for each in texts]

    def _is_stale(self, path: str) -> bool:
        known, now = self.reader.state(path), listing.found(self._root, path)
        return known is None or now is None or now[1:] != (known.size_bytes, known.mtime_ns)

    def close(self) -> None:
        """Stop all threads and close all files."""
        self.pipeline.stop()  # first, since it may be about to start the watcher
        self.watcher.stop()
        self.embedder.close()
        self.reader.close()
        self.counter.close()
        self.store.close()


def _being_rebuilt() -> IndexFailed:
    return IndexFailed("the index of the project is being rebuilt", "Try again in a moment")
