"""What the user calls secret besides the built-in list: globs, kept for each project.

The union of what any editor has said of a project holds, so that no second editor with other
settings lets a file in; only making the index anew forgets it. Any thread: a change is one
assignment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lcursor.index import place, private

KEY = "secrets"
"""In the file that says that a project was begun."""
REASON = "a pattern of completion.secrets names it"
"""Followed by a colon and the pattern."""


class OwnSecrets:
    """The user's globs of one project.

    Args:
        root: of the project; globs are compared with whole paths, as in the editor.
        globs: of `completion.secrets`.
    """

    def __init__(self, root: Path, globs: Iterable[str] = ()) -> None:
        self._root = str(root).rstrip("/")
        self._tests: tuple[tuple[str, re.Pattern[str]], ...] = ()
        self.replace(globs)

    @property
    def globs(self) -> tuple[str, ...]:
        """All that hold, in order."""
        return tuple(glob for glob, _ in self._tests)

    def add(self, globs: Iterable[str]) -> bool:
        """Let some hold as well; return whether there was a new one."""
        before = self.globs
        self.replace([*before, *globs])
        return self.globs != before

    def replace(self, globs: Iterable[str]) -> None:
        """Let these hold, and no others."""
        known = sorted({glob for glob in globs if glob})
        self._tests = tuple((glob, _test(glob)) for glob in known)

    def reason(self, path: str) -> str:
        """Return why a file is left out, in words; "" if no glob names it.

        Args:
            path: relative to the project's root.
        """
        tests = self._tests
        if tests:
            whole = f"{self._root}/{path}"
            for glob, test in tests:
                if test.fullmatch(whole):
                    return f"{REASON}: {glob}"
        return ""


def of_begun(root: Path, begun: dict[str, Any]) -> OwnSecrets:
    """Return what the file that began a project has kept; nothing where it is broken."""
    globs = begun.get(KEY)
    kept = [glob for glob in globs if isinstance(glob, str)] if isinstance(globs, list) else []
    return OwnSecrets(root, kept)


def kept(root: Path) -> OwnSecrets:
    """Return what was kept for a project, also where no worker runs."""
    try:
        begun = json.loads(place.begun_path(root).read_bytes())
    except (OSError, ValueError):
        begun = {}
    return of_begun(root, begun if isinstance(begun, dict) else {})


def _test(glob: str) -> re.Pattern[str]:
    """Return what a glob means; one that is none means itself."""
    try:
        return private.pattern([glob])
    except re.error:
        return re.compile(f".*/{re.escape(glob)}", re.IGNORECASE | re.DOTALL)
