"""One project with all that its index is made of: what a question is answered from.

Owns store, readers, pipeline, watcher, embedder. Questions come on the threads of the server:
`search`, `symbols` and `retrieve` on one, the others on any. No file is read before the project was
told to begin, to this worker or an earlier one.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lcursor.errors import IndexFailed, IndexRefused, LcursorError
from lcursor.index import explain, place, priority, protocol, reading
from lcursor.index.opened import Opened
from lcursor.index.pipeline import Progress
from lcursor.index.reader import Counts, Reader
from lcursor.index.records import Mode
from lcursor.index.report import summarize
from lcursor.index.throttle import Throttle
from lcursor.project import filetypes, ignore, listing, secrets
from lcursor.project.root import BEGUN, begun_path, is_home_like, relative_name
from lcursor.storage import folders

KEEP = frozenset({BEGUN, "worker.lock", "worker.log"})
"""What stays when all else is forgotten."""
MOST_REMARKS = 20
MOST_EXAMPLES = 3
"""Paths named for each reason to leave something out."""
CHARACTERS_PER_TOKEN = 3.2
"""Of code, on the safe side; who knows better counts for themselves."""


class Project:
    """The index of one project.

    Args:
        root: of the project.
        embedder: its name; "" is the default, "none" is none.
        tell: called when the state changed, on any thread; returns at once.
        remark: told what went wrong and was mended, on any thread; returns at once.
    """

    def __init__(
        self,
        root: Path,
        embedder: str = "",
        tell: Callable[[], None] = lambda: None,
        remark: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.root, self.folder = root, place.own_folder(root)
        self.throttle = Throttle()
        self.remarks: deque[str] = deque(maxlen=MOST_REMARKS)
        self.embedder_name, self._tell, self._hear = embedder, tell, remark
        self._open: Opened | None = None
        self._trouble = ""
        self._is_home = is_home_like(root)
        self.own = secrets.load(root)
        """What the user calls secret."""
        self._is_kept = True
        self._is_anew = False
        """While what there was is forgotten, and nothing is in its place yet."""
        self._said: set[str] = set()

    @property
    def is_begun(self) -> bool:
        """Whether somebody has told this project to begin, now or earlier."""
        return bool(self._begun())

    def resume(self) -> None:
        """Go on where an earlier worker ended; nothing where none was told to begin."""
        begun = self._begun()
        if not begun or (self._is_home and not begun.get("is_confirmed")):
            return
        try:
            self._start()
        except LcursorError as error:
            self._trouble = str(error)
            self.remark(str(error))

    def begin(
        self, *, confirmed: bool = False, rebuild: bool = False, secrets: Sequence[str] = ()
    ) -> None:
        """Index the project, now and from now on.

        Args:
            confirmed: also a home directory or what is above it.
            rebuild: forget what there is, and what was called secret earlier.
            secrets: globs of all who are here.

        Raises:
            IndexRefused: it is a home directory or above, and that is not confirmed.
            IndexFailed: there is no room or no right for the index.
        """
        is_confirmed = confirmed or bool(self._begun().get("is_confirmed"))
        if self._is_home and not is_confirmed:
            raise IndexRefused(
                f"{self.root} is a home directory or above one: all that is in it would be read",
                "If that is meant, run :LCursor index and say yes; else open a folder in it",
            )
        self._is_anew = rebuild
        try:
            if rebuild:
                self._forget()
                self.own.replace(secrets)
            self.own.add(secrets)
            self._write_begun(is_confirmed)
            if self._open is None:
                self._start()
            else:
                self._open.embedding.retry()
                self._open.pipeline.begin()
        finally:
            self._is_anew = False

    def hide(self, globs: Sequence[str]) -> None:
        """Answer `secrets`: index nothing any more that one of some globs names.

        Where that cannot be kept for the next worker it still holds for this one.
        """
        if not self.own.add(globs) and self._is_kept:
            return
        if begun := self._begun():
            self._is_kept = False
            try:
                self._write_begun(bool(begun.get("is_confirmed")))
                self._is_kept = True
            except IndexFailed as error:
                self.remark(f"what completion.secrets names is not kept: {error}")
        if (there := self._open) is not None:
            there.pipeline.begin()  # also what is being read just now is found by it
            known = there.counter.files()
            there.pipeline.changed(path for path in known if self.own.reason(path))

    def search(
        self,
        text: str,
        limit: int,
        mode: Mode,
        recent: Sequence[str] = (),
        overlay: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Answer `search`. Thread: the one that searches."""
        start_s = time.perf_counter()
        with self._asked() as there:
            hits = there.searcher().search(
                text,
                limit=limit,
                mode=mode,
                recent=recent,
                overlay=overlay or {},
                is_stale=lambda path: self._is_stale(there.reader, path),
            )
        return {
            "hits": [protocol.hit(hit) for hit in hits],
            "ms": (time.perf_counter() - start_s) * 1000,
            "phase": there.pipeline.progress.phase,
            "embedder": there.embedder_name,
        }

    def symbols(self, name: str, limit: int, prefix: bool) -> dict[str, Any]:
        """Answer `symbols`. Thread: the one that searches."""
        with self._asked() as there:
            found = there.reader.symbols(name, limit, prefix=prefix)
        return {"symbols": [protocol.symbol(each) for each in found]}

    def retrieve(
        self,
        text: str,
        tokens: int,
        mode: Mode,
        recent: Sequence[str] = (),
        overlay: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Answer `retrieve`. Thread: the one that searches."""
        from lcursor.index import retrieve

        with self._asked() as there:
            receipt = retrieve.retrieve(
                there.searcher(),
                text,
                tokens=tokens,
                count=lambda part: int(len(part) / CHARACTERS_PER_TOKEN) + 1,
                mode=mode,
                recent=recent,
                overlay=overlay,
                is_stale=lambda path: self._is_stale(there.reader, path),
            )
        left_out = [
            {**protocol.hit(each.hit), "text": "", "reason": each.reason}
            for each in receipt.left_out
        ]
        return {
            "used": [protocol.hit(hit) for hit in receipt.used],
            "left_out": left_out,
            "tokens": receipt.tokens,
        }

    def around(
        self,
        path: str,
        before: str,
        after: str,
        recent: Sequence[str] = (),
        overlay: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Answer `around`. Thread: the one that searches."""
        from lcursor.index import around

        with self._asked() as there:
            hits = around.around(
                there.searcher(), path, before, after, recent=recent, overlay=overlay
            )
        return {"hits": [protocol.hit(hit) for hit in hits]}

    def why(self, path: str) -> dict[str, Any]:
        """Answer `why`: the reason why a path is not in the index, empty where it is or will be."""
        name = relative_name(self.root, path) if os.path.isabs(path) else path
        reason = explain.why(self.root, name, self.own)
        is_in = bool(self._open and self._open.reader.state(name))
        return {"path": name, "reason": reason, "is_indexed": is_in and not reason}

    def report(self) -> dict[str, Any]:
        """Answer `report`: what indexing would read. Cost: a look at every name in the project."""
        survey = listing.survey(self.root, lambda: self.throttle.is_stopped)
        report = summarize(survey, self.own)
        examples: dict[str, list[str]] = {}
        for path, reason in survey.ignored:
            paths = examples.setdefault(reason.split(":", 1)[0], [])
            if len(paths) < MOST_EXAMPLES:
                paths.append(path)
        return {
            "examples": examples,
            "root": str(self.root),
            "is_home": self._is_home,
            "is_begun": self.is_begun,
            **asdict(report),
        }

    def state(self, clients: int = 0) -> protocol.State:
        """Answer `status`. Thread: any but the one that searches; it may count for a moment."""
        there = self._open
        progress = there.pipeline.progress if there else Progress(detail=self._trouble)
        if self._trouble and not there:
            progress.phase = "failed"
        counts, generation = Counts(0, 0, 0), 0
        if there is not None:
            self._pass_on(there)  # the thread that makes a graph has nobody to tell
            with contextlib.suppress(IndexFailed):
                generation = there.counter.generation
                counts = there.counter.counts()
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
            "embedded": len(there.embedding.vectors) if there and there.embedding.vectors else 0,
            "by_language": languages,
            "embedder": there.embedder_name if there else "",
            "embedder_note": there.embedding.note if there else "",
            "watching": there.following.how if there else "",
            "remarks": list(self.remarks),
            "is_begun": self.is_begun,
            "is_home": self._is_home,
            "memory_bytes": priority.memory_bytes(),
            "pid": os.getpid(),
            "version": protocol.VERSION,
            "clients": clients,
            "generation": generation,
        }

    def takes(self, path: str, text: str) -> bool:
        """Whether searches may see an unsaved text: no secret, and of a file that belongs here."""
        there = self._open
        if there is None or filetypes.by_name(path, len(text)) or self.own.reason(path):
            return False
        if filetypes.by_content(text.encode("utf-8", "replace")):
            return False
        if there.reader.state(path) is not None:
            return True
        return not ignore.why(self.root, path) or not os.path.lexists(self.root / path)

    def changed(self, paths: Sequence[str]) -> None:
        """Read files again at once: an editor has just written them."""
        if self._open is not None:
            self._open.pipeline.changed(paths)

    def recent(self, paths: Sequence[str]) -> None:
        """These files are open, newest first."""
        if self._open is not None:
            self._open.pipeline.recent(paths)

    def warm(self) -> None:
        """Read the words into memory, which the first question would do. Cost: a second at most."""
        if (there := self._open) is not None:
            reader = there.store.reader()
            with contextlib.suppress(IndexFailed), contextlib.closing(reader):
                reader.warm()

    def close(self) -> None:
        """End all threads and let go of all files."""
        there, self._open = self._open, None
        self.throttle.stop()
        if there is not None:
            there.close()

    def _there(self) -> Opened:
        there = self._open
        if there is None:
            if self._is_anew:
                raise _anew()
            if self._trouble:
                raise IndexFailed(self._trouble)
            raise IndexRefused(
                f"{self.root} is not indexed",
                f"Run :LCursor index, or in a shell python -m lcursor index {self.root}",
            )
        return there

    @contextlib.contextmanager
    def _asked(self) -> Iterator[Opened]:
        """Give what answers a question, which goes before bulk work."""
        there = self._there()
        try:
            with self.throttle.query():
                yield there
        except IndexFailed as error:
            if self._is_anew or self._open not in (there, None):
                raise _anew() from error
            raise

    def _start(self) -> None:
        self.throttle = Throttle()
        self._open = Opened(
            self.root,
            self.folder,
            self.embedder_name,
            self.throttle,
            self.note,
            self.remark,
            self.own,
        )
        self._trouble = ""
        self._open.pipeline.begin()

    def _forget(self) -> None:
        """End what runs, and delete the index."""
        self.close()
        for each in self.folder.iterdir():
            if each.name not in KEEP and each.is_file():
                each.unlink(missing_ok=True)

    def note(self) -> None:
        """Something changed: pass on what the rooms have to say, and that there is news."""
        if (there := self._open) is not None:
            self._pass_on(there)
        self._tell()

    def _pass_on(self, there: Opened) -> None:
        for remark in there.remarks():
            self.remark(remark)

    def remark(self, text: str) -> None:
        """Pass on what went wrong and was mended, once. Thread: any."""
        if text not in self._said:
            self._said.add(text)
            self.remarks.append(text)
            self._hear(text)

    def _is_stale(self, reader: Reader, path: str) -> bool:
        known, seen = reader.state(path), reading.look(self.root, path)
        return known is None or seen != (known.size_bytes, known.mtime_ns)

    def _begun(self) -> dict[str, Any]:
        try:
            found = json.loads(begun_path(self.root).read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write_begun(self, is_confirmed: bool) -> None:
        path = begun_path(self.root)
        globs = list(self.own.globs)
        words = {"root": str(self.root), "is_confirmed": is_confirmed, secrets.KEY: globs}
        try:
            folders.write_file(path, json.dumps(words).encode())
        except OSError as error:
            raise IndexFailed(
                f"the index cannot be begun: {error.strerror or error} ({self.folder})",
                "See who may write there and whether the disk is full",
            ) from error


def _anew() -> IndexFailed:
    return IndexFailed("the index of the project is being rebuilt", "Ask again in a moment")
