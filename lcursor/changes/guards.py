"""Mark changes of files that run code by themselves, which are only accepted one by one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lcursor.changes.records import FileChange
from lcursor.project.guarded import BARE_REPOSITORY, runs_by_itself


def marked(root: Path | str, files: Sequence[FileChange]) -> list[FileChange]:
    """Return changes in a project with those of guarded files marked; a deletion never is."""
    top = Path(os.path.realpath(root))
    return [
        replace(each, is_guarded=True)
        if each.kind != "delete" and _is_guarded(top, each.to or each.path)
        else each
        for each in files
    ]


def _is_guarded(root: Path, path: str) -> bool:
    """Return whether a file is guarded by its name, or by that of what a link leads to."""
    folder, name = os.path.split(os.path.normpath(path))
    names = {Path(os.path.realpath(folder), name), Path(os.path.realpath(path))}
    return any(_is_guarded_name(root, each) for each in names)


def _is_guarded_name(root: Path, path: Path) -> bool:
    if not path.is_relative_to(root):
        return runs_by_itself(path.as_posix())
    parts = path.relative_to(root).parts
    return runs_by_itself("/".join(parts)) or any(
        part.lower() in BARE_REPOSITORY and root.joinpath(*parts[:at], "HEAD").is_file()
        for at, part in enumerate(parts)
    )
