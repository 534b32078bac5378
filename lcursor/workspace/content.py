"""Compute an id of all files of a run, including those that are in no checkpoint. Blocks."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from lcursor.errors import AgentFailed
from lcursor.project.git import GitFailed, split
from lcursor.workspace.shadow_git import ShadowGit


def content_id(path: Path, folder: Path, checkpoint: str) -> str:
    """Return an id that differs if any file differs; equal to the checkpoint's without others.

    Files that git ignores are in no checkpoint, but a command may run them. They are not read:
    their time of change, which no command in the sandbox can set, stands for their content.

    Args:
        path: of the run's files.
        folder: of the run.
        checkpoint: the id of their last checkpoint.

    Raises:
        AgentFailed: git failed.
    """
    words = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    try:
        names = split(ShadowGit(folder).ask(path, *words))
    except GitFailed as error:
        raise AgentFailed(f"the files of the run cannot be listed: {error}") from error
    if not names:
        return checkpoint
    digest = hashlib.sha256()
    for name in sorted(names):
        try:
            status = os.lstat(path / name)
        except OSError:  # it is gone
            continue
        state = (
            status.st_mode,
            status.st_size,
            status.st_ino,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )
        digest.update(repr((name, *state)).encode("utf-8", "surrogateescape"))
    return f"{checkpoint} {digest.hexdigest()}"
