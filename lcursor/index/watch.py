"""Notices which files of a project change, as soon as they are quiet again.

One thread (`lcursor-watch`) decides, a second one reads the kernel's events. Only directories that
are not ignored are watched. What is told may be wrong in one direction: a path that did not change;
who is told looks at it. Where the kernel gives no watches, the project is looked through again and
again, and `remarks` says so.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from lcursor.errors import Cancelled, IndexFailed
from lcursor.index.inotify import Folders, WatchFailed
from lcursor.index.notes import GIT, Notes
from lcursor.project import listing
from lcursor.project.git import GitFailed
from lcursor.project.ignore import MARKS, IgnoreMatcher
from lcursor.project.listing import Found, Survey

STORM = 500
"""More changed files than this are not worth being handled one by one."""
LOCK_S = 10.0
"""How long a git command that is at work is waited for."""
LOOK_EVERY_S = 0.05
"""How often it is looked whether git has ended."""
POLL_S, POLL_REST = 2.0, 25
"""Without watches: the least pause between two surveys, and the longer one after a slow one."""
JOIN_S = 5.0
NOT_NOTED = "a change of the project's files was not noted: {!r}"


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed, came or went since the last time."""

    paths: frozenset[str]
    """Relative to the root; what is not there any more counts too. Empty in a storm."""
    is_storm: bool = False
    """Anything may have changed: compare `survey` with what is known."""
    survey: Survey | None = None
    """Of a storm: how the project looks now."""


class Watcher:
    """Watches a project until `stop`.

    Args:
        root: of the project.
        survey: what is known of it; changes since then are told, too.
        changed: told on the watcher's thread; while it runs, changes are collected.
        remark: told, on the watcher's thread, what a person should know.
    """

    def __init__(
        self,
        root: Path,
        survey: Survey,
        changed: Callable[[Changes], None],
        remark: Callable[[str], None] = lambda words: None,
    ) -> None:
        self.remarks: list[str] = []
        self.is_polling = False
        self._root = Path(os.path.realpath(root))
        self._changed, self._remark = changed, remark
        self._folders: Folders | None = None
        self._wake = threading.Condition()
        self._notes = Notes()
        self._is_stopped = False
        self._is_ready = threading.Event()
        self._learn(survey)
        self._thread = threading.Thread(target=self._loop, name="lcursor-watch", daemon=True)
        self._thread.start()

    @property
    def watched(self) -> set[str]:
        """The directories under watch, relative to the root."""
        return self._folders.names - {GIT} if self._folders else set()

    def wait_ready(self, timeout_s: float) -> bool:
        """Wait until all directories are watched; return whether they are."""
        return self._is_ready.wait(timeout_s)

    def stop(self) -> None:
        """End the threads; nothing is told after it."""
        with self._wake:
            self._is_stopped = True
            self._wake.notify()
        if self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)

    # On the reading thread.

    def _see(self, folder: str, name: str, is_folder: bool) -> None:
        with self._wake:
            if self._notes.see(folder, name, is_folder, time.monotonic()):
                self._wake.notify()

    def _lose(self) -> None:
        with self._wake:
            self._notes.ask_survey(time.monotonic())
            self._wake.notify()

    # On the watcher's thread.

    def _loop(self) -> None:
        try:
            self._folders = Folders(self._see, self._lose)
            self._cover(self._folders)
            self._is_ready.set()
            while self._step(self._folders):
                pass
        except Cancelled:
            pass
        except Exception as failure:  # noqa: BLE001 - the root of a thread
            self._poll(str(failure) if isinstance(failure, WatchFailed) else repr(failure))
        finally:
            self._is_ready.set()
            if self._folders:
                self._folders.close()

    def _step(self, folders: Folders) -> bool:
        """Wait for something and tell it; return whether to go on."""
        notes = self._wait()
        if self._is_stopped:
            return False
        try:
            if not notes or not self._tell_paths(folders, notes):
                self._tell_storm(folders)
        except (Cancelled, WatchFailed):
            raise
        except Exception as error:  # noqa: BLE001 - the root of a thread
            self._say(NOT_NOTED.format(error))
        return not self._is_stopped

    def _wait(self) -> Notes | None:
        """Wait until what changed is quiet; return the paths, None for all there is."""
        with self._wake:
            while not self._is_stopped:
                now_s = time.monotonic()
                paths_s = self._notes.paths_due_s()
                survey_s = self._notes.survey_due_s(self._surveyed_s, self._survey.seconds)
                due_s = min((at for at in (paths_s, survey_s) if at is not None), default=None)
                if due_s is None:
                    self._wake.wait()
                elif due_s > now_s:
                    self._wake.wait(due_s - now_s)
                elif now_s < due_s + LOCK_S and self._is_git_at_work():
                    self._wake.wait(LOOK_EVERY_S)
                elif survey_s is not None and survey_s <= now_s:
                    self._notes = Notes()
                    return None
                else:
                    return self._notes.take_paths()
        return None

    def _is_git_at_work(self) -> bool:
        """Return whether a git command changes the work tree just now."""
        if not self._survey.git_folder:
            return False
        try:
            lock = os.stat(self._survey.git_folder / "index.lock")
        except OSError:
            return False
        return time.time() - lock.st_mtime < LOCK_S  # an older one is of a git that died

    def _tell_paths(self, folders: Folders, notes: Notes) -> bool:
        """Tell what became of some paths; false if only a survey can say."""
        paths = set(notes.paths)
        try:
            if notes.folders:
                if "" in notes.folders:
                    return False
                paths |= self._enter_anew(folders, notes.folders)
            told = self._sift(paths)
        except GitFailed:
            return False
        if len(told) > STORM:
            return False
        if told:
            self._tell(Changes(frozenset(told)))
        return True

    def _sift(self, paths: Iterable[str]) -> set[str]:
        """Return those paths that are or were files of the project."""
        told, new = set(), []
        for path in paths:
            is_there = listing.found(self._root, path) is not None
            if path in self._known:
                told.add(path)
                if not is_there:
                    self._known.discard(path)
            elif is_there:
                new.append(path)
        if new:
            told.update(set(new) - self._matcher.reasons(new).keys())
            self._known.update(told.intersection(new))
        return told

    def _enter_anew(self, folders: Folders, names: set[str]) -> set[str]:
        """Watch what directories have become; return all paths that were or are below them."""
        for name in names:
            folders.drop(name)
        below = tuple(f"{name}/" for name in names)
        paths = {path for path in self._known if path.startswith(below)}
        tops = [name for name in names if not _is_inside(name, names)]
        there = [name for name in tops if self._is_folder(name)]
        return paths.union(file.path for file in self._enter(folders, there, frozenset()))

    def _is_folder(self, name: str) -> bool:
        path = self._root / name
        return path.is_dir() and not path.is_symlink()

    def _enter(
        self, folders: Folders, names: list[str], trusted: frozenset[str] | set[str]
    ) -> list[Found]:
        """Watch directories and those below, less what is left out; return the files in them.

        Args:
            folders: the watches.
            names: where to begin.
            trusted: directories that are known to be not left out.
        """
        seen: list[Found] = []
        while names:
            self._look()
            names = [name for name in names if f"{name}/" not in self._left_out]
            asked = [f"{name}/" for name in names if name not in trusted]
            out = self._matcher.reasons(asked)
            below: list[str] = []
            for name in names:
                if f"{name}/" in out or not folders.add(name, self._root / name):
                    continue
                # Listed only now: what comes later raises an event.
                entries, subfolders, is_marked = self._list(name)
                if is_marked and name not in trusted:
                    folders.drop(name)
                    continue
                seen += entries
                below += subfolders
            names = below
        return seen

    def _list(self, folder: str) -> tuple[list[Found], list[str], bool]:
        """Return the files of a directory, the directories, and whether it is marked a cache."""
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
            pass  # gone while we looked: its own event comes
        return found, folders, is_marked

    def _cover(self, folders: Folders) -> None:
        """Watch all directories of the survey; note what changed since it was made."""
        trusted = {""}
        for path in self._known:
            folder = path.rpartition("/")[0]
            while folder not in trusted:
                trusted.add(folder)
                folder = folder.rpartition("/")[0]
        before = folders.names
        if self._survey.git_folder:
            folders.add(GIT, self._survey.git_folder)
        try:
            now = self._enter(folders, [""], trusted)
        except GitFailed as failure:
            self._say(f"git cannot say what it ignores: {failure}")
            self._matcher = IgnoreMatcher(self._root, is_in_git=False)
            now = self._enter(folders, [""], trusted)
        for gone in before - {GIT}:
            if (gone and not self._is_folder(gone)) or f"{gone}/" in self._left_out:
                folders.drop(gone)
        left_out = self._left_out
        known = {file.path: file for file in self._survey.files}
        changed = [
            file.path
            for file in now
            if known.pop(file.path, None) != file and file.path not in left_out
        ]
        with self._wake:
            self._notes.add([*changed, *known], time.monotonic())

    def _learn(self, survey: Survey) -> None:
        self._survey = survey
        self._surveyed_s = time.monotonic()
        self._known = {file.path for file in survey.files}
        self._left_out = {path for path, _ in survey.ignored}
        self._matcher = IgnoreMatcher(self._root, is_in_git=bool(survey.repositories))

    def _tell_storm(self, folders: Folders) -> None:
        """Look at everything and tell it."""
        survey = self._look_through()
        self._cover(folders)
        self._tell(Changes(frozenset(), is_storm=True, survey=survey))

    def _look_through(self) -> Survey:
        """Survey the project; wait while it is not there."""
        while True:
            self._look()
            try:
                survey = listing.survey(self._root, lambda: self._is_stopped)
                break
            except IndexFailed as failure:
                self._say(failure.message)
                self._pause(POLL_S)
        for remark in survey.remarks:
            self._say(remark)
        self._learn(survey)
        return survey

    def _poll(self, reason: str) -> None:
        """Look at everything, again and again, since the directories cannot be watched."""
        if self._folders:
            self._folders.close()
            self._folders = None
        self.is_polling = True
        self._say(f"{reason}; changed files are looked for every few seconds instead")
        self._is_ready.set()
        while not self._is_stopped:
            try:
                self._poll_once()
            except Cancelled:
                return
            except Exception as error:  # noqa: BLE001 - the root of a thread
                self._say(NOT_NOTED.format(error))
            self._pause(max(POLL_S, POLL_REST * self._survey.seconds))

    def _poll_once(self) -> None:
        """Compare all files with the last survey, and report what changed."""
        before = {file.path: file for file in self._survey.files}
        survey = self._look_through()
        paths = [file.path for file in survey.files if before.pop(file.path, None) != file]
        paths += before
        if len(paths) > STORM:
            self._tell(Changes(frozenset(), is_storm=True, survey=survey))
        elif paths:
            self._tell(Changes(frozenset(paths)))

    def _tell(self, changes: Changes) -> None:
        if not self._is_stopped:
            self._changed(changes)

    def _say(self, words: str) -> None:
        if words not in self.remarks:
            self.remarks.append(words)
            self._remark(words)

    def _pause(self, pause_s: float) -> None:
        with self._wake:
            self._wake.wait_for(lambda: self._is_stopped, pause_s)

    def _look(self) -> None:
        if self._is_stopped:
            raise Cancelled("watching was stopped")


def _is_inside(name: str, folders: set[str]) -> bool:
    """Return whether a directory lies in one of others."""
    at = name.rfind("/")
    while at > 0:
        if name[:at] in folders:
            return True
        at = name.rfind("/", 0, at)
    return False
