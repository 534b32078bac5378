"""Read and parse the files of a project: one file here, or many in separate processes.

The tree-sitter grammars hold the interpreter lock while they parse. Many files are therefore parsed
in separate processes, so that queries are not blocked, and a crash of a grammar loses one file, not
the index. Independent of the store.
"""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from lcursor import system
from lcursor.index import chunk
from lcursor.index.records import FileState, Parsed
from lcursor.index.throttle import NICE
from lcursor.project import filetypes, listing
from lcursor.project.reading import NotRegularFile, open_inside

READ_TRIES = 3
DIGEST_BYTES = 16
FRESH_S = 0.02
"""A younger file may change again without a new time, because file system clocks are coarse."""
MAX_BYTES = 4 << 20
"""Maximum size; a file may have grown since `filetypes.by_name` checked it."""

NOTHING = Parsed("", (), ())
"""Result for a file without searchable content, stored so that it is not read again."""
MAX_PROCESSES = 2
"""Maximum processes; the thread that writes the store keeps up with about three."""
GROUP_FILES = 8
GROUPS_AHEAD = 3
"""Groups queued per process, so that it is busy while the caller writes."""
MAX_CRASHES = 20
"""Crashes within one project, after which all files are parsed in this process."""

Wanted = tuple[str, "bytes | None"]
"""The path of a file, and the digest of its stored content."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file."""

    state: FileState
    data: bytes


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The reason why a file is not read."""

    reason: str
    is_changing: bool = False
    """Whether it is being written, so that its stored content stays."""


@dataclass(frozen=True, slots=True)
class ParseResult:
    """The result for the path of a file."""

    path: str
    state: FileState | None = None
    """None if the file was not read."""
    parsed: Parsed | None = None
    """None if the content is unchanged."""
    is_gone: bool = False
    """Whether to remove the file from the index."""
    is_fatal: bool = False
    """Whether parsing it crashed a process; it counts as empty, so it is not tried again."""


def read_file(root: Path, path: str) -> Content | Unreadable:
    """Read a consistent state of a file, without following links; waits if it was just written."""
    try:
        for _ in range(READ_TRIES):
            if found := _read_once(root, path):
                return found
    except (IsADirectoryError, NotRegularFile):
        return Unreadable("it is not a regular file")
    except (FileNotFoundError, NotADirectoryError):
        return Unreadable("there is no such file")
    except OSError as error:
        return Unreadable(f"it cannot be read: {error.strerror or error}")
    return Unreadable("it changes all the time", is_changing=True)


def _read_once(root: Path, path: str) -> Content | Unreadable | None:
    """Read a file; return None if it changed meanwhile."""
    with open_inside(root, path) as file:
        fd = file.fileno()
        before = os.fstat(fd)
        if reason := filetypes.by_name(path, before.st_size):
            return Unreadable(reason)
        age_s = time.time() - before.st_mtime_ns / 1e9
        if 0 <= age_s < FRESH_S:
            time.sleep(FRESH_S - age_s)
            before = os.fstat(fd)
        data = file.read(MAX_BYTES)
        after = os.fstat(fd)
    is_same = (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    # With no hard link left, another file has replaced it meanwhile.
    if not is_same or len(data) != after.st_size or not after.st_nlink:
        return None
    digest = hashlib.sha256(data).digest()[:DIGEST_BYTES]
    return Content(FileState(len(data), after.st_mtime_ns, digest), data)


def parse_file(root: Path, path: str, known: bytes | None) -> ParseResult:
    """Read and parse one file of a project.

    Args:
        known: digest of the stored content; None for none.
    """
    found = read_file(root, path)
    if isinstance(found, Unreadable):
        return ParseResult(path, is_gone=not found.is_changing)
    if found.state.digest == known:
        return ParseResult(path, found.state)
    if filetypes.by_content(found.data):
        return ParseResult(path, found.state, NOTHING)
    return ParseResult(path, found.state, chunk.read(path, filetypes.decode(found.data)))


def parse_group(root: Path, group: Sequence[Wanted]) -> list[ParseResult]:
    """Parse some files; runs in the processes of a `ParsePool`."""
    return [parse_file(root, path, known) for path, known in group]


class ParsePool:
    """Parses files in separate processes. For one thread; only `kill` may be called from others."""

    def __init__(self, root: Path, digest_of: Callable[[str], bytes | None]) -> None:
        self._root, self._digest_of = root, digest_of
        self._executor: ProcessPoolExecutor | None = None
        self._processes = 0
        self._starting: list[Future[int]] = []
        self._groups: deque[tuple[Future[list[ParseResult]], list[str]]] = deque()
        """Submitted groups in order."""
        self._suspects: deque[str] = deque()
        """Files of which one crashed a process; they are submitted one at a time."""
        self._crashes = 0

    @property
    def is_busy(self) -> bool:
        """Whether there are submitted files that `next` has not returned yet."""
        return bool(self._suspects or self._groups)

    def start(self) -> None:
        """Start the processes without waiting for them; does nothing if they cannot be started."""
        if self._executor is not None or self._crashes >= MAX_CRASHES:
            return
        self._processes = min(MAX_PROCESSES, system.usable_cores())
        try:
            context = multiprocessing.get_context("spawn")
            self._executor = ProcessPoolExecutor(self._processes, context, _initialize)
            self._starting = [self._executor.submit(os.getpid) for _ in range(self._processes)]
        except (OSError, BrokenProcessPool):
            self._give_up()

    def next(self, waiting: deque[str]) -> list[ParseResult]:
        """Submit some of the files in `waiting`; return the results of the oldest group.

        Without processes, and while they start, the group is one file, parsed in this process. A
        file that changed after it was read goes back to `waiting`.
        """
        while self._is_ready():
            try:
                self._submit(waiting)
                if not self._groups:
                    return []
                results = self._groups[0][0].result()
            except BrokenProcessPool:
                if fatal := self._on_crash():
                    return [fatal]
                continue
            self._groups.popleft()
            outdated = {one.path for one in results if self._is_outdated(one)}
            waiting.extend(outdated)
            return [one for one in results if one.path not in outdated]
        if self._executor is None:
            waiting.extendleft(self._suspects)
            self._suspects.clear()
        if not waiting:
            return []
        path = waiting.popleft()
        return [parse_file(self._root, path, self._digest_of(path))]

    def close(self) -> None:
        """Drop the submitted files; the processes end after their current files."""
        self._groups.clear()
        self._suspects.clear()
        self._stop()

    def kill(self) -> None:
        """Kill the processes at once."""
        for process in multiprocessing.active_children():
            process.kill()

    def _is_ready(self) -> bool:
        """Whether a process has started; waits for that only if suspects need one."""
        if self._executor is None:
            return False
        if self._suspects:
            self._starting[0].exception()
        done = [one for one in self._starting if one.done()]
        if any(one.exception() for one in done):
            self._give_up()
            return False
        return bool(done)

    def _submit(self, waiting: deque[str]) -> None:
        while self._suspects or waiting:
            if len(self._groups) >= (1 if self._suspects else GROUPS_AHEAD * self._processes):
                return
            source, size = (self._suspects, 1) if self._suspects else (waiting, GROUP_FILES)
            paths = [source.popleft() for _ in range(min(size, len(source)))]
            wanted = [(path, self._digest_of(path)) for path in paths]
            try:
                assert self._executor is not None
                future = self._executor.submit(parse_group, self._root, wanted)
            except BrokenProcessPool:
                source.extendleft(reversed(paths))
                raise
            self._groups.append((future, paths))

    def _on_crash(self) -> ParseResult | None:
        """Restart, and return the file that crashed a process, if known."""
        paths = [path for _, group in self._groups for path in group]
        self._groups.clear()
        self._crashes += 1
        self._stop()
        self.start()
        if len(paths) == 1:
            found = read_file(self._root, paths[0])
            state = found.state if isinstance(found, Content) else None
            return ParseResult(paths[0], state, NOTHING, is_fatal=True)
        self._suspects.extend(paths)
        return None

    def _give_up(self) -> None:
        """Parse everything in this process from now on."""
        self._crashes = MAX_CRASHES
        self._suspects.extend(path for _, group in self._groups for path in group)
        self._groups.clear()
        self._stop()

    def _stop(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:  # not killed: a process may be sending a result, and a
            executor.shutdown(
                wait=False, cancel_futures=True
            )  # thread here would wait forever for the rest

    def _is_outdated(self, result: ParseResult) -> bool:
        state, now = result.state, listing.found(self._root, result.path)
        return state is not None and (now is None or now[1:] != (state.size_bytes, state.mtime_ns))


def _initialize() -> None:
    system.lower_priority(NICE)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when its parent ends in any way."""
    with contextlib.suppress(OSError):
        if parent := multiprocessing.parent_process():
            parent.join()
    os._exit(0)
