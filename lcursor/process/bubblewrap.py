"""Build the command line of bubblewrap, the strongest level of the sandbox. Pure, except `find`."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from typing import Final

from lcursor.process.mounts import Mount

FOLDERS: Final = "/usr/bin:/usr/local/bin:/bin:/run/current-system/sw/bin"
"""Where its program is looked for: never in a project, nor anywhere on PATH."""


def find() -> str:
    """Return the program; "" if it is missing, or runs with the rights of root (setuid)."""
    found = os.path.realpath(shutil.which("bwrap", path=FOLDERS) or "")
    if not os.path.isfile(found) or os.stat(found).st_mode & stat.S_ISUID:
        return ""
    return found


def command_line(
    program: str,
    mounts: Iterable[Mount],
    command: Sequence[str],
    *,
    cwd: str,
    filter_fd: int,
    info_fd: int,
    size_bytes: int,
) -> list[str]:
    """Return the command line that runs a command with its own namespaces.

    Args:
        cwd: working directory, as the command sees it.
        filter_fd: file descriptor of a seccomp filter.
        info_fd: file descriptor to write to: `{"child-pid": …}`, whose end is that of all.
        size_bytes: limit of each folder in memory.
    """
    words = [program, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"]
    words += ["--new-session", "--cap-drop", "ALL", "--hostname", "sandbox"]
    empty = ["--size", str(size_bytes), "--tmpfs"]
    words += ["--proc", "/proc", "--dev", "/dev", *empty, "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    for mount in mounts:
        if mount.kind == "read":
            words += ["--ro-bind", mount.source, mount.target]
        elif mount.kind == "write":
            words += ["--bind", mount.source, mount.target]
        elif mount.kind == "link":
            words += ["--symlink", mount.source, mount.target]
        else:
            words += [*empty, mount.target]
    words += ["--remount-ro", "/", "--seccomp", str(filter_fd), "--info-fd", str(info_fd)]
    return [*words, "--chdir", cwd, "--", *command]
