"""Find the file that a reply means by a path.

If a path fits several files, or is only mentioned, the user chooses.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lcursor.edit.apply.blocks import Block, Files
from lcursor.edit.apply.place import Ambiguous, CannotApply, Choice

MAX_CHOICES = 12


def find_file(key: str, block: Block, files: Files, answers: Mapping[str, Choice]) -> str:
    """Return the path of the file that a block is about; raise `Ambiguous` or `CannotApply`."""
    if key in answers:
        return answers[key].path
    if not block.path:
        if not files.current():
            raise CannotApply("Nothing says which file it is about")
        return files.current()
    found = _candidates(clean_path(block.path), files)
    if len(found) == 1:
        return found[0]
    if found:
        shown = [(path, (files.read(path) or ())[:3]) for path in found[:MAX_CHOICES]]
        choices = (Choice(path, 0, 0, lines, "a file of that name") for path, lines in shown)
        raise Ambiguous(key, f"Which {block.path}?", tuple(choices))
    is_new = block.kind == "create" or block.form in {"fence", "search_replace"}
    if not is_new or block.kind not in {"edit", "create"} or block.is_elided:
        raise CannotApply(f"There is no file {block.path}")
    if not block.is_path_sure:
        raise CannotApply(f"There is no file {block.path}, and nothing says that it is new")
    return files.absolute(clean_path(block.path))


def _candidates(path: str, files: Files) -> list[str]:
    """Return the files that a path may name; only the exact one if it exists."""
    if files.read(path) is not None:
        return [files.absolute(path)]
    if files.current().endswith(f"/{path}"):
        return [files.current()]
    found = [one for one in files.all() if one.endswith(f"/{path}")]
    rest = path.partition("/")[2]  # without the project's own name in front
    is_named = "/" in rest or files.absolute(rest).endswith(f"/{path}")
    if not found and rest and is_named and files.read(rest) is not None:
        found = [rest]
    return sorted({files.absolute(one) for one in found})


def clean_path(path: str) -> str:
    """Return a path with slashes, and without `.` and `..`."""
    text = path.replace("\\", "/").strip()
    return os.path.normpath(text) if text else text
