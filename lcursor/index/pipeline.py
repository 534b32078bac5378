"""Keep the index of a project up to date: decide which files to read, in which order, and when.

Owns the low-priority thread `lcursor-reading`, the only one that writes to the store. It works in
small steps, between which it gives way to queries and typing, and can stop; the next start
continues with the rest. Other threads report changes and read the progress.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lcursor import system
from lcursor.errors import LcursorError
from lcursor.index.chunk_embedder import ChunkEmbedder
from lcursor.index.index_writer import IndexWriter, WriteBatch, difference
from lcursor.index.parse import ParsePool
from lcursor.index.protocol import Phase
from lcursor.index.store import Store
from lcursor.index.throttle import NICE, Throttle
from lcursor.index.watch import Watcher
from lcursor.project import filetypes, ignore, listing
from lcursor.project.secrets import SecretGlobs

FIRST_BATCH_S = 0.03
"""Reading time of the first transaction, which is short to give first results quickly."""
MAX_BATCH_S = 0.5
MAX_BATCH_FILES = 128
MAX_BATCH_BYTES = 4 << 20
POOL_FILES = 64
"""Minimum number of files for parsing in separate processes."""
RECONCILE_S = 300.0
"""Time between two surveys of all files, because watching may miss changes."""
MAX_RECONCILE_S = 3600.0
"""Maximum time between surveys; it doubles while surveys find nothing that watching missed."""
POLL_S, POLL_REST = 2.0, 25
"""Time between surveys without watching: minimum, and multiple of a survey's duration."""
RETRY_S = 30.0
"""Delay after a failure, for example a full disk."""
URGENT_PATHS = 16
"""Maximum changed files that are read even while the user types, because they were just saved."""
FIRST_PATHS = 8
"""Maximum open files that are read before the first survey."""
CHECKED_PATHS = 32
"""Maximum unknown paths that are checked one by one; for more, all files are surveyed."""


@dataclass(slots=True)
class Progress:
    """The progress of the pipeline, in files or chunks of the whole project."""

    phase: Phase = "idle"
    done: int = 0
    total: int = 0
    begun: int = 0
    """What was done before this work began."""
    detail: str = ""
    is_paused: bool = False
    """Whether it is paused because the user types."""
    since_s: float = field(default_factory=time.monotonic)

    @property
    def seconds_left(self) -> float:
        """Remaining time of this phase at the speed so far, with its pauses; -1 if unknown."""
        spent_s, done = time.monotonic() - self.since_s, self.done - self.begun
        if not self.total or done < 8 or spent_s < 0.5:
            return -1.0
        return spent_s / done * (self.total - self.done)


class Pipeline:
    """The thread that keeps the index up to date.

    Args:
        store: used only on this thread.
        on_change: called when progress, phase or content changed, on this thread; returns at once.
        on_remark: called with a message about a handled failure.
    """

    def __init__(
        self,
        root: Path,
        store: Store,
        throttle: Throttle,
        embedder: ChunkEmbedder,
        watcher: Watcher,
        secret_globs: SecretGlobs,
        on_change: Callable[[], None],
        on_remark: Callable[[str], None],
    ) -> None:
        self._root, self._throttle = root, throttle
        self._writer = IndexWriter(root, store, secret_globs, between=throttle.passes)
        self._on_change, self._on_remark = on_change, on_remark
        self._embedder, self._watcher = embedder, watcher
        self.progress = Progress()
        self._embedding: Progress | None = None
        """The progress of the embeddings, until all are made."""
        self._wake = threading.Condition()
        self._dirty: dict[str, bool] = {}
        """Changed paths, and whether they are known to belong to the project."""
        self._recent: tuple[str, ...] = ()
        self._waiting: deque[str] = deque()
        self._pool = ParsePool(root, self._writer.digest_of)
        self._batch_s = FIRST_BATCH_S
        self._is_survey_due = False
        self._is_first = False
        """Whether the last step read changed files."""
        self._surveys = 0
        self._failed = ""
        """The last reported failure."""
        self._survey_s = float("-inf")
        self._reconcile_s = RECONCILE_S
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start the thread, or survey all files again."""
        with self._wake:
            if self.progress.phase in ("idle", "ready", "failed"):
                self.progress = Progress("surveying")
            if self._thread is None and not self._throttle.is_stopped:
                self._thread = threading.Thread(
                    target=self._loop, name="lcursor-reading", daemon=True
                )
                self._thread.start()
        self.survey()

    def changed(self, paths: Iterable[str], *, is_accepted: bool = False) -> None:
        """Read changed files again. Any thread.

        Args:
            is_accepted: whether the paths certainly belong to the project.
        """
        with self._wake:
            for path in paths:
                self._dirty[path] = is_accepted or self._dirty.get(path, False)
            self._wake.notify()

    def survey(self) -> None:
        """Compare all files with the index. Any thread."""
        with self._wake:
            self._is_survey_due = True
            self._wake.notify()

    def recent(self, paths: Sequence[str]) -> None:
        """Set the files that are read first. Any thread."""
        self._recent = tuple(paths)

    def stop(self, timeout_s: float = 5.0) -> bool:
        """Stop after the current step; return whether it stopped in time."""
        self._throttle.stop()
        with self._wake:
            self._wake.notify()
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._pool.kill()  # otherwise this process would wait for them before it exits
        return not self._thread.is_alive()

    def _loop(self) -> None:
        system.lower_priority(NICE)
        try:
            self._run()
        finally:
            self._pool.close()

    def _run(self) -> None:
        wait_s = 0.0
        while not self._throttle.is_stopped:
            with self._wake:
                self._wake.wait_for(self._has_work, wait_s)
            try:
                wait_s = 0.0 if self._step() else self._rest_s()
            except Exception as error:  # noqa: BLE001 - the root of a thread
                if self._throttle.is_stopped:
                    return
                wait_s = RETRY_S
                is_ours = isinstance(error, LcursorError)
                self._fail(str(error) if is_ours else f"{type(error).__name__}: {error}")

    def _has_work(self) -> bool:
        if self._throttle.is_stopped:
            return True
        if self._throttle.held_s:
            return 0 < len(self._dirty) <= URGENT_PATHS
        return bool(self._dirty or self._is_survey_due)

    def _rest_s(self) -> float:
        due_s = self._survey_s + self._reconcile_s
        return self._throttle.held_s or max(due_s - time.monotonic(), 0.05)

    def _step(self) -> bool:
        """Do one small step; return False if there is nothing to do."""
        if self._writer.load():
            self._is_survey_due = True
            self._embedder.sync()
        if not self._surveys and self._recent:
            self._read_open_files(self._recent)
        is_urgent = self._dirty and (len(self._dirty) <= URGENT_PATHS or not self._throttle.held_s)
        # A file that changes continuously must not block the others.
        self._is_first = bool(is_urgent) and not self._is_first
        if self._is_first:
            return self._read_changes()
        self._pause(self._throttle.held_s > 0)
        if self.progress.is_paused or not self._throttle.passes():
            return False
        if time.monotonic() > self._survey_s + self._reconcile_s and not self._waiting:
            self._is_survey_due = True
        if self._is_survey_due:
            self._survey()
            return True
        if self._waiting or self._pool.is_busy:
            self._read_some()
            return True
        if self._embed() or self._has_work():
            return True
        self._set_phase("ready")
        self._failed = ""
        self._writer.tidy()
        return False

    def _read_open_files(self, paths: Sequence[str]) -> None:
        """Read the files that are open in an editor before the first survey."""
        self._recent = ()
        wanted = [path for path in paths[:FIRST_PATHS] if path not in self._writer.known]
        self._read_now([path for path in wanted if not ignore.why(self._root, path)])

    def _read_changes(self) -> bool:
        """Read changed files, if they belong to the project."""
        self._embedder.retry()
        with self._wake:
            dirty, self._dirty = self._dirty, {}
        known = self._writer.known
        unknown = [path for path, is_in in dirty.items() if not is_in and path not in known]
        if len(unknown) > CHECKED_PATHS:
            self._is_survey_due = True
        elif unknown:
            dirty.update((path, not ignore.why(self._root, path)) for path in unknown)
        wanted = [path for path, is_in in dirty.items() if is_in or path in known]
        self._writer.forget_below(path for path in wanted if path not in known)
        self._read_now(wanted)
        return True

    def _survey(self) -> None:
        """List all files, and queue those that changed."""
        self._embedder.retry()
        is_polling = self._watcher.mode == "polling"
        if not is_polling:
            self._set_phase("surveying")
        self._is_survey_due = False
        if not self._root.is_dir():  # an unmounted disk is not an empty project
            raise LcursorError(f"there is no directory {self._root}")
        survey = listing.survey(self._root, lambda: self._throttle.is_stopped)
        if self._throttle.is_stopped:
            return
        for remark in survey.remarks:
            self._on_remark(remark)
        self._watcher.use(survey)
        self._writer.forget_secrets()
        changed, gone = difference(self._writer.known, survey)
        self._writer.forget(gone)
        first = {path: n for n, path in enumerate(self._recent)}
        order = [
            file.path
            for file in changed
            if not filetypes.by_name(file.path, file.size_bytes)
            and not self._writer.is_secret(file.path)
        ]
        order.sort(key=lambda path: first.get(path, len(first)))  # the rest by age, newest first
        self._waiting = deque(order)
        if len(order) >= POOL_FILES:
            self._pool.start()
        self._survey_s = time.monotonic()
        is_unchanged = bool(self._surveys) and not order and not gone
        if is_polling:
            self._reconcile_s = max(POLL_S, POLL_REST * survey.seconds)
        elif is_unchanged:
            self._reconcile_s = min(2 * self._reconcile_s, MAX_RECONCILE_S)
        else:
            self._reconcile_s = RECONCILE_S
        self._surveys += 1
        if order:
            done = len(self._writer.known.keys() - set(order))
            self.progress = Progress("reading", done, done + len(order), begun=done)
        if not (is_polling and is_unchanged):
            self._on_change()

    def _read_some(self) -> None:
        """Read queued files for a while, then write them in one transaction."""
        start_s = time.monotonic()
        batch = WriteBatch()
        while (self._waiting or self._pool.is_busy) and batch.count < MAX_BATCH_FILES:
            for result in self._pool.next(self._waiting):
                if result.is_fatal:
                    self._on_remark(f"{result.path} was skipped: the parser crashes on it")
                self._writer.add(result, batch)
            if self._dirty or time.monotonic() - start_s > self._batch_s:
                break
            if batch.bytes > MAX_BATCH_BYTES:
                break
            if self._throttle.held_s or not self._throttle.passes():
                break
        self._writer.write(batch)
        self._batch_s = min(self._batch_s * 2, MAX_BATCH_S)
        self.progress.done += batch.count
        if not self._waiting and not self._pool.is_busy:
            self._pool.close()
            if self.progress.total > MAX_BATCH_FILES:
                system.trim_memory()  # before the embedder allocates memory
        self._on_change()

    def _read_now(self, paths: Iterable[str]) -> None:
        batch = WriteBatch()
        for path in paths:
            self._writer.parse(path, batch)
            if not self._throttle.passes():
                return
        self._writer.write(batch)
        self._on_change()

    def _embed(self) -> bool:
        if not self._embedder.step():
            self._embedding = None
            return False
        total = self._embedder.total
        done = total - self._embedder.left
        if self._embedding is None:
            self._embedding = Progress("embedding", begun=done)
        self._embedding.done, self._embedding.total = done, total
        self.progress = self._embedding
        self._on_change()
        return True

    def _set_phase(self, phase: Phase) -> None:
        if self.progress.phase != phase:
            self.progress = Progress(phase)
            self._on_change()

    def _pause(self, is_paused: bool) -> None:
        is_paused = is_paused and self.progress.phase not in ("idle", "ready", "failed")
        if self.progress.is_paused != is_paused:
            self.progress.is_paused = is_paused
            self._on_change()

    def _fail(self, reason: str) -> None:
        """Report a failure once, and retry later, or at once if the store was rebuilt."""
        self._waiting.clear()
        self._pool.close()
        self._is_survey_due = False
        self._survey_s = float("-inf")
        with contextlib.suppress(LcursorError):
            if self._writer.is_rebuilt:
                self._is_survey_due = True
                self._on_change()
                return
        self.progress = Progress("failed", detail=reason)
        if reason != self._failed:
            self._failed = reason
            self._on_remark(reason)
        self._on_change()
