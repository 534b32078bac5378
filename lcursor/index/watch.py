"""Report changed files of a project, after a short time without further changes.

One thread (`lcursor-watch`) decides; another one reads the system's events. Ignored directories are
not watched. A reported path may be unchanged, so the receiver compares it. After many changes the
watcher requests a survey of the project, which also updates the watched directories. If watching is
impossible, the mode is `polling`, and the receiver must survey the project periodically.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from lcursor.errors import Cancelled
from lcursor.index.fs_events import Watches, WatchFailed, open_watches
from lcursor.project import listing
from lcursor.project.git import GitFailed
from lcursor.project.ignore import BY_GIT, MARKS, OWN, IgnoreMatcher
from lcursor.project.listing import Found, Survey

FEW_PATHS = 8
"""Maximum changed paths that count as the user saving files."""
QUIET_FEW_S, QUIET_S = 0.1, 0.3
"""Time without further changes before few or many paths are reported."""
MAX_WAIT_S = 2.0
"""Maximum time from the first change to the report."""
MAX_PENDING = 20_000
"""Maximum pending paths, including ignored ones; for more, all files are surveyed."""
GIT_INDEX_S = 10.0
"""Minimum time between two surveys because of changes of git's index."""
SURVEY_REST = 5
"""The pause after a survey, as a multiple of its duration."""
STORM = 500
"""For more changed files, a survey is requested."""
JOIN_S = 5.0
GIT = "\0git"
"""Name of the git directory among the watched ones; no real path contains a NUL."""
NOT_REPORTED = "a change of the project's files was not recorded: {!r}"


class Pending:
    """Changes that are not yet reported, and the time when they are due.

    Callers pass the time. Not thread-safe; the watcher's lock protects it.
    """

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.folders: set[str] = set()
        """Directories that were created, moved or deleted with their content."""
        self._first_s = self._last_s = 0.0
        self._survey_s = self._index_s = 0.0
        """Time when a survey was first requested; 0 for none."""

    def add_entry(self, folder: str, name: str, is_folder: bool, now_s: float) -> bool:
        """Add a changed entry of a directory; return whether it matters.

        Args:
            folder: the directory, or `GIT`.
            name: name of the entry; "" for the directory itself.
        """
        if folder == GIT:
            if name in {"HEAD", ""}:
                self.request_survey(now_s)
            elif name == "index":
                self._index_s = self._index_s or now_s
            return name in {"HEAD", "", "index"}
        if name in {".git", BY_GIT, OWN} or name in MARKS:
            self.request_survey(now_s)
        path = f"{folder}/{name}" if folder and name else folder or name
        if not is_folder:
            self._add(self.paths, [path], now_s)
        elif name != ".git":
            self._add(self.folders, [path], now_s)
        return True

    def add_paths(self, paths: list[str], now_s: float) -> None:
        """Add changed files."""
        if paths:
            self._add(self.paths, paths, now_s)

    def request_survey(self, now_s: float) -> None:
        """Request a survey, because any file may have changed."""
        self._survey_s = self._survey_s or now_s
        self._last_s = now_s

    def _add(self, to: set[str], paths: list[str], now_s: float) -> None:
        if not (self.paths or self.folders):
            self._first_s = now_s
        self._last_s = now_s
        to.update(paths)
        if len(to) > MAX_PENDING:
            to.clear()
            self.request_survey(now_s)

    def paths_due_s(self) -> float | None:
        """Return the time when the paths are due; None if there are none."""
        if not (self.paths or self.folders):
            return None
        is_few = len(self.paths) <= FEW_PATHS and not self.folders and not self._survey_s
        return min(self._last_s + (QUIET_FEW_S if is_few else QUIET_S), self._first_s + MAX_WAIT_S)

    def survey_due_s(self, last_s: float, duration_s: float) -> float | None:
        """Return the time when a survey is due; None if none is requested."""
        times = []
        if self._survey_s:
            times.append(min(self._last_s + QUIET_S, self._survey_s + MAX_WAIT_S))
        if self._index_s:
            times.append(max(self._index_s + QUIET_S, last_s + GIT_INDEX_S))
        return max(min(times), last_s + SURVEY_REST * duration_s) if times else None

    def pop_paths(self) -> Pending:
        """Remove and return the paths and directories."""
        popped = Pending()
        popped.paths, self.paths = self.paths, set()
        popped.folders, self.folders = self.folders, set()
        return popped


class Watcher:
    """Watches a project from the first survey to `stop`.

    Args:
        on_changes: called on the watcher's thread with paths relative to the root, including
            deleted files; meanwhile further changes are collected.
        on_survey: called on the watcher's thread when any file may have changed; the receiver
            compares a survey with the index, and passes it to `use`.
        on_remark: called on the watcher's thread with a message for the user.
    """

    def __init__(
        self,
        root: Path,
        on_changes: Callable[[frozenset[str]], object],
        on_survey: Callable[[], object],
        on_remark: Callable[[str], object] = lambda text: None,
    ) -> None:
        self.mode = ""
        """`watching` or `polling`; empty before the start."""
        self._root = Path(os.path.realpath(root))
        self._on_changes, self._on_survey, self._on_remark = on_changes, on_survey, on_remark
        self._watches: Watches | None = None
        self._wake = threading.Condition()
        self._pending = Pending()
        self._new_survey: Survey | None = None
        self._is_survey_wanted = False
        self._is_stopped = False
        self._is_ready = threading.Event()
        self._thread: threading.Thread | None = None

    def use(self, survey: Survey) -> None:
        """Watch the directories of a survey; changes since the survey are reported."""
        if self.mode == "watching":
            with self._wake:
                self._new_survey = survey
                self._wake.notify()
        elif self._thread is None:
            self._load(survey)
            self.mode = "watching"
            self._thread = threading.Thread(target=self._run, name="lcursor-watch", daemon=True)
            self._thread.start()

    @property
    def watched(self) -> set[str]:
        """The watched directories, relative to the root."""
        return self._watches.names - {GIT} if self._watches else set()

    def wait_ready(self, timeout_s: float) -> bool:
        """Wait until all directories are watched; return whether they are."""
        return self._is_ready.wait(timeout_s)

    def stop(self) -> None:
        """End the threads; nothing is reported afterwards."""
        with self._wake:
            self._is_stopped = True
            self._wake.notify()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(JOIN_S)

    # On the reading thread.

    def _on_entry(self, folder: str, name: str, is_folder: bool) -> None:
        with self._wake:
            if self._pending.add_entry(folder, name, is_folder, time.monotonic()):
                self._wake.notify()

    def _on_lost(self) -> None:
        with self._wake:
            self._pending.request_survey(time.monotonic())
            self._wake.notify()

    # On the watcher's thread.

    def _run(self) -> None:
        try:
            self._watches = open_watches(self._root, self._on_entry, self._on_lost)
            try:
                self._watch_all(self._watches)
                self._is_ready.set()
                while self._step(self._watches):
                    pass
            finally:
                self._watches.close()
                self._watches = None
        except Cancelled:
            pass
        except Exception as error:  # noqa: BLE001 - the root of a thread
            reason = str(error) if isinstance(error, WatchFailed) else repr(error)
            self._on_remark(f"{reason}; all files are checked for changes periodically instead")
            self.mode = "polling"
            self._on_survey()
        finally:
            self._is_ready.set()

    def _step(self, watches: Watches) -> bool:
        """Wait for changes and report them; return whether to go on."""
        due = self._wait()
        if self._is_stopped:
            return False
        try:
            if isinstance(due, Survey):
                self._load(due)
                self._watch_all(watches)
            elif due is None or not self._report_paths(watches, due):
                self._is_survey_wanted = True
                self._on_survey()
        except (Cancelled, WatchFailed):
            raise
        except Exception as error:  # noqa: BLE001 - the root of a thread
            self._on_remark(NOT_REPORTED.format(error))
        return not self._is_stopped

    def _wait(self) -> Pending | Survey | None:
        """Wait until there is a new survey, changes are due, or a survey is due (None)."""
        with self._wake:
            while not self._is_stopped:
                if survey := self._new_survey:
                    self._new_survey, self._is_survey_wanted = None, False
                    return survey
                now_s = time.monotonic()
                paths_s, survey_s = self._pending.paths_due_s(), None
                if not self._is_survey_wanted:
                    survey_s = self._pending.survey_due_s(self._surveyed_s, self._survey.seconds)
                due_s = min((at for at in (paths_s, survey_s) if at is not None), default=None)
                if due_s is None:
                    self._wake.wait()
                elif due_s > now_s:
                    self._wake.wait(due_s - now_s)
                elif survey_s is not None and survey_s <= now_s:
                    self._pending = Pending()
                    return None
                else:
                    return self._pending.pop_paths()
        return None

    def _report_paths(self, watches: Watches, pending: Pending) -> bool:
        """Report changed paths; return False if a survey is needed instead."""
        paths = set(pending.paths)
        try:
            if pending.folders:
                if "" in pending.folders:
                    return False
                paths |= self._rewatch(watches, pending.folders)
            changed = self._select(paths)
        except GitFailed:
            return False
        if len(changed) > STORM:
            return False
        if changed and not self._is_stopped:
            self._on_changes(frozenset(changed))
        return True

    def _select(self, paths: Iterable[str]) -> set[str]:
        """Return the paths that are or were files of the project."""
        changed, new = set(), []
        for path in paths:
            exists = listing.found(self._root, path) is not None
            if path in self._known:
                changed.add(path)
                if not exists:
                    self._known.discard(path)
            elif exists:
                new.append(path)
        if new:
            changed.update(set(new) - self._matcher.reasons(new).keys())
            self._known.update(changed.intersection(new))
        return changed

    # Which directories are watched

    def _rewatch(self, watches: Watches, names: set[str]) -> set[str]:
        """Renew the watches of changed directories; return all old and new paths below them."""
        for name in names:
            watches.drop(name)
        below = tuple(f"{name}/" for name in names)
        paths = {path for path in self._known if path.startswith(below)}
        folders = [name for name in names if not name.startswith(below) and self._is_folder(name)]
        return paths.union(file.path for file in self._watch_tree(watches, folders, frozenset()))

    def _is_folder(self, name: str) -> bool:
        path = self._root / name
        return path.is_dir() and not path.is_symlink()

    def _watch_tree(
        self, watches: Watches, names: list[str], trusted: frozenset[str] | set[str]
    ) -> list[Found]:
        """Watch directories recursively, except ignored ones; return their files."""
        seen: list[Found] = []
        while names:
            self._check_stopped()
            names = [name for name in names if f"{name}/" not in self._ignored]
            ignored = self._matcher.reasons([f"{name}/" for name in names if name not in trusted])
            below: list[str] = []
            for name in names:
                if f"{name}/" in ignored or not watches.add(name, self._root / name):
                    continue
                # Listed after the watch was added, so that later changes raise an event.
                entries, subfolders, is_marked = self._list(name)
                if is_marked and name not in trusted:
                    watches.drop(name)
                    continue
                seen += entries
                below += subfolders
            names = below
        return seen

    def _list(self, folder: str) -> tuple[list[Found], list[str], bool]:
        """Return files and directories in a directory, and whether it is marked as a cache."""
        inside = f"{folder}/" if folder else ""
        found: list[Found] = []
        folders: list[str] = []
        is_marked = False
        try:
            with os.scandir(self._root / folder) as entries:
                for entry in entries:
                    path = inside + entry.name
                    is_marked = is_marked or entry.name in MARKS
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name != ".git":
                            folders.append(path)
                    elif entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        found.append(Found(path, status.st_size, status.st_mtime_ns))
        except OSError:
            pass  # deleted meanwhile, which also raises an event
        return found, folders, is_marked

    def _watch_all(self, watches: Watches) -> None:
        """Watch all directories of the survey; add the changes since it was made."""
        trusted = {"", *(folder for path in self._known for folder in listing.folders_of(path))}
        before = watches.names
        if self._survey.git_folder:
            watches.add(GIT, self._survey.git_folder)
        try:
            now = self._watch_tree(watches, [""], trusted)
        except GitFailed as failure:
            self._on_remark(f"git's ignore rules are not applied: {failure}")
            self._matcher = IgnoreMatcher(self._root, is_in_git=False)
            now = self._watch_tree(watches, [""], trusted)
        for name in before - {GIT}:
            if (name and not self._is_folder(name)) or f"{name}/" in self._ignored:
                watches.drop(name)
        known = {file.path: file for file in self._survey.files}
        changed = [
            file.path
            for file in now
            if known.pop(file.path, None) != file and file.path not in self._ignored
        ]
        with self._wake:
            self._pending.add_paths([*changed, *known], time.monotonic())

    def _load(self, survey: Survey) -> None:
        self._survey = survey
        self._surveyed_s = time.monotonic()
        self._known = {file.path for file in survey.files}
        self._ignored = {path for path, _ in survey.ignored}
        self._matcher = IgnoreMatcher(self._root, is_in_git=bool(survey.repositories))

    def _check_stopped(self) -> None:
        if self._is_stopped:
            raise Cancelled("watching was stopped")
