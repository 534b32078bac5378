"""Says of single paths what a survey would: left out or not.

For what appears while a project is watched. One object is for one thread, and only as good as the
ignore files were when it was made: make another when one of them changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lcursor.project import git
from lcursor.project.ignore import Rules

MOST_KEPT = 50_000
"""Answers that are remembered."""


class Judge:
    """Remembers what it said.

    Args:
        root: of the project, without symbolic links.
        repositories: directories of repositories, as `Survey` has them; none: git is not asked.
    """

    def __init__(self, root: Path, repositories: Sequence[str]) -> None:
        self._root = root
        self._repositories = sorted(repositories, key=len, reverse=True)
        self._rules = Rules(root, is_in_git=bool(repositories))
        self._said: dict[str, bool] = {}

    def left_out(self, paths: Sequence[str]) -> set[str]:
        """Return those of some existing paths that are left out; directories end with a slash.

        Raises:
            GitFailed: git cannot say.
        """
        new = [path for path in paths if path not in self._said]
        if len(self._said) + len(new) > MOST_KEPT:
            self._said.clear()
            new = list(paths)
        asked: dict[str, list[str]] = {}
        for path in new:
            rules = self._rules
            is_folder = path.endswith("/")
            is_out = bool(rules.of_folder(path[:-1]) if is_folder else rules.of_file(path))
            self._said[path] = is_out
            if not is_out and path not in self._repositories:
                for inside in self._repositories:
                    if path.startswith(inside):
                        asked.setdefault(inside, []).append(path[len(inside) :])
                        break
        try:
            for inside, below in asked.items():
                for path in git.ignored(self._root / inside, below):
                    self._said[inside + path] = True
        except git.GitFailed:
            self._said.clear()
            raise
        return {path for path in paths if self._said[path]}
