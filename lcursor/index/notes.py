"""What was seen to change and is not told yet, and when it is time to.

Pure: has no clock, the time is given. Not thread-safe: its owner has the lock.
"""

from __future__ import annotations

from lcursor.project.ignore import BY_GIT, MARKS, OWN

FEW = 8
"""So many changed paths are a person who saves."""
QUIET_FEW_S, QUIET_S = 0.1, 0.3
"""Nothing more must come for so long."""
LONGEST_S = 2.0
"""After the first of many changes, even if more keep coming."""
MOST = 20_000
"""Paths that are kept, ignored ones too, before they are asked for."""
INDEX_EVERY_S = 10.0
"""Least time between two surveys that only a change of git's index asks for."""
REST = 5
"""A survey is followed by a pause of so many times its length."""
GIT = "\0git"
"""Stands for the git directory: no path has a NUL."""


class Notes:
    """Changed paths and directories, and whether a survey of everything is due."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.folders: set[str] = set()
        """Made, moved or gone, with whatever is in them."""
        self._first_s = self._last_s = 0.0
        self._survey_s = self._index_s = 0.0
        """When a survey was first asked for; 0 if none was."""

    @property
    def _is_some(self) -> bool:
        return bool(self.paths or self.folders)

    def see(self, folder: str, name: str, is_folder: bool, now_s: float) -> bool:
        """Note a change of an entry of a directory; return whether it matters.

        Args:
            folder: it lies in, or `GIT`.
            name: in it; "" for the directory itself.
            is_folder: whether the entry is a directory.
            now_s: of a clock that only goes forward.
        """
        if folder == GIT:
            if name in {"HEAD", ""}:
                self.ask_survey(now_s)
            elif name == "index":
                self._index_s = self._index_s or now_s
            return name in {"HEAD", "", "index"}
        if name in {".git", BY_GIT, OWN} or name in MARKS:
            self.ask_survey(now_s)
        path = f"{folder}/{name}" if folder and name else folder or name
        if is_folder:
            if name != ".git":
                self._add(self.folders, [path], now_s)
        else:
            self._add(self.paths, [path], now_s)
        return True

    def add(self, paths: list[str], now_s: float) -> None:
        """Note some changed files."""
        if paths:
            self._add(self.paths, paths, now_s)

    def ask_survey(self, now_s: float) -> None:
        """Note that anything may have changed."""
        self._survey_s = self._survey_s or now_s
        self._last_s = now_s

    def _add(self, to: set[str], paths: list[str], now_s: float) -> None:
        if not self._is_some:
            self._first_s = now_s
        self._last_s = now_s
        to.update(paths)
        if len(to) > MOST:
            to.clear()
            self.ask_survey(now_s)

    def paths_due_s(self) -> float | None:
        """Return when the paths are to be told; None if there are none."""
        if not self._is_some:
            return None
        is_few = len(self.paths) <= FEW and not self.folders and not self._survey_s
        return min(self._last_s + (QUIET_FEW_S if is_few else QUIET_S), self._first_s + LONGEST_S)

    def survey_due_s(self, surveyed_s: float, took_s: float) -> float | None:
        """Return when to look at everything; None if nothing asks for it.

        Args:
            surveyed_s: when that was done last.
            took_s: how long it took then.
        """
        times = []
        if self._survey_s:
            times.append(min(self._last_s + QUIET_S, self._survey_s + LONGEST_S))
        if self._index_s:
            times.append(max(self._index_s + QUIET_S, surveyed_s + INDEX_EVERY_S))
        return max(min(times), surveyed_s + REST * took_s) if times else None

    def take_paths(self) -> Notes:
        """Return the paths as notes of their own, and keep the rest."""
        taken = Notes()
        taken.paths, self.paths = self.paths, set()
        taken.folders, self.folders = self.folders, set()
        return taken
