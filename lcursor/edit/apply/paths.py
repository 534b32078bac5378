"""Find the file that a reply means by a path.

If a path fits several files, or is only mentioned, the user chooses.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lcursor.edit.apply.blocks import Block, Files
from lcursor.edit.apply.place import Ambiguous, CannotApply, Choice

MAX_CHOICES = 12


class Paths:
    """Finds files by the paths that replies write."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def new(self, path: str) -> str:
        """Return the absolute path of a new file."""
        return self._files.absolute(_clean(path))

    def written(self, path: str) -> str:
        """Return the absolute path of a file that may or may not exist, "" for none."""
        return self.new(path) if path else ""

    def find(self, key: str, block: Block, answers: Mapping[str, Choice]) -> str:
        """Return the path of the file that a block is about.

        Raises:
            Ambiguous: there are several.
            CannotApply: there is none, and the block creates none.
        """
        if key in answers:
            return answers[key].path
        current = self._files.current()
        if not block.path:
            if not current:
                raise CannotApply("Nothing says which file it is about")
            return current
        found = self._candidates(_clean(block.path), current)
        if len(found) == 1:
            return found[0]
        if found:
            choices = tuple(self._choice(path) for path in found[:MAX_CHOICES])
            raise Ambiguous(key, f"Which {block.path}?", choices)
        is_new = block.kind == "create" or block.form in {"fence", "search_replace"}
        if not is_new or block.kind not in {"edit", "create"} or block.is_elided:
            raise CannotApply(f"There is no file {block.path}")
        if not block.is_path_sure:
            raise CannotApply(f"There is no file {block.path}, and nothing says that it is new")
        return self.new(block.path)

    def _candidates(self, path: str, current: str) -> list[str]:
        """Return the files that a path may name; only the exact one if it exists."""
        if self._files.read(path) is not None:
            return [self._files.absolute(path)]
        if current and (current == path or current.endswith(f"/{path}")):
            return [current]
        names = [*self._files.all()]
        found = [one for one in names if one == path or one.endswith(f"/{path}")]
        if not found and "/" in path:  # with the project's own name in front
            rest = path.partition("/")[2]
            if "/" in rest or self._files.absolute(rest).endswith(f"/{path}"):
                found = [rest] if self._files.read(rest) is not None else []
        return sorted({self._files.absolute(one) for one in found})

    def _choice(self, path: str) -> Choice:
        lines = self._files.read(path) or ()
        return Choice(path, 0, 0, lines[:3], "a file of that name")


def _clean(path: str) -> str:
    text = path.replace("\\", "/").strip()
    return os.path.normpath(text) if text else text
