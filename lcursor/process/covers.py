"""Find what the sandbox covers in the folders of the user that it shows.

These are installed packages, which git ignores, and folders of the settings. Covered are sockets
and pipes, to which a read-only mount allows connections, and what package managers do not install:
secrets of the user. Names that code has, as `credentials.py`, `tokens.json` or `cacert.pem`, are
those of secrets only if there is a private key in the file. Any thread.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from lcursor.project.reading import open_regular
from lcursor.project.secrets import SecretGlobs, has_private_key, is_secret_path

MAX_ENTRIES: Final = 200_000
MAX_S: Final = 2.0
"""With more, or after that, what is in the deepest folders is not covered."""
MAX_BYTES: Final = 1 << 20
"""How much of a file is searched for a private key."""
MAX_KNOWN: Final = 50_000
FRESH_NS: Final = 50_000_000
"""A folder that changed more recently may change again without a new time."""
SETTINGS: Final = (
    ".env", ".yml", ".yaml", ".toml", ".ini", ".conf", ".cfg", ".properties", ".tfvars", ".tfstate",
    ".kdbx", ".p12", ".pfx", ".jks", ".keystore",
)  # fmt: skip
"""Endings that code does not have."""
REPOSITORY: Final = ".git"
MANAGERS: Final = (".git", ".bundle")
"""Folders with a file `config` that is needed, and rarely has a password."""
PASSWORD: Final = re.compile(rb"://[^/\s]+@|extraheader|password|BUNDLE_\w+__\w+:", re.IGNORECASE)

ACTIVATION: Final = ("conda-meta/state", "activate.d/env_vars.sh", "bin/postactivate",
                     "bin/preactivate")  # fmt: skip
"""Files in which conda and virtualenvwrapper let users set variables of an environment."""
VARIABLE: Final = re.compile(rb'^\s*export\s|^\s*\w+=|"env_vars": *\{\s*"', re.MULTILINE)


class _Folder(NamedTuple):
    identity: tuple[int, int, int]
    """Device, inode, and time of the last change."""
    entries: int
    folders: tuple[str, ...]
    covered: tuple[str, ...]
    judged: tuple[str, ...]
    """Files that are covered if their content is secret."""


_known: dict[str, _Folder] = {}
"""By absolute path; a later walk reads only the folders that changed."""
_judged: dict[str, tuple[int, int, bool]] = {}
"""Time of the last change, size and verdict of files, by absolute path."""


def covered(top: str, globs: Sequence[str] = ()) -> list[str]:
    """Return what is to be covered below a folder, as absolute paths, the least deep first.

    Does not follow links.

    Args:
        globs: of the user, for more files.
    """
    found, own = list[str](), SecretGlobs(Path("/"), globs)
    for path, folder in _walk(top):
        if globs:
            with contextlib.suppress(OSError):
                found += (each for each in _files(path) if own.reason(each.lstrip("/")))
        found += (f"{path}/{name}" for name in folder.covered)
        found += (f"{path}/{name}" for name in folder.judged if _has_secret(path, name))
    return [*dict.fromkeys(found)]


def _files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        yield from (each.path for each in entries if each.is_file(follow_symlinks=False))


def repositories(top: str) -> list[str]:
    """Return each `.git` in a folder and below, as absolute paths. Does not follow links."""
    found = (f"{path}/{REPOSITORY}" for path, _ in _walk(top))
    return [path for path in found if os.path.lexists(path)]


def _walk(top: str) -> Iterator[tuple[str, _Folder]]:
    """Yield a folder and those below, the least deep first, within the limits."""
    waiting, entries, end_s = deque([top]), 0, time.monotonic() + MAX_S
    while waiting and entries < MAX_ENTRIES and time.monotonic() < end_s:
        path = waiting.popleft()
        try:
            folder = _look(path)
        except OSError:
            continue  # commands cannot read it either
        entries += folder.entries
        yield path, folder
        waiting += (f"{path}/{name}" for name in folder.folders)


def _look(path: str) -> _Folder:
    """Return what is in a folder."""
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(path)
    identity = status.st_dev, status.st_ino, status.st_ctime_ns
    known = _known.get(path)
    if known and known.identity == identity:
        return known
    folders, hidden, judged = list[str](), list[str](), list[str]()
    count, name = 0, os.path.basename(path)
    with os.scandir(path) as entries:
        for entry in entries:
            count += 1
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                is_secret = _is_secret_name(name, entry.name)
                if is_secret is None:
                    judged.append(entry.name)
                elif is_secret:
                    hidden.append(entry.name)
            elif not entry.is_symlink():
                hidden.append(entry.name)
    looked_at = _Folder(identity, count, tuple(folders), tuple(hidden), tuple(judged))
    if time.time_ns() - status.st_ctime_ns > FRESH_NS:
        if len(_known) >= MAX_KNOWN:
            _known.clear()
        _known[path] = looked_at
    return looked_at


def _is_secret_name(folder: str, name: str) -> bool | None:
    """Return whether a file is secret by its name; None if its content decides."""
    if (name == "config" and folder in MANAGERS) or f"{folder}/{name}" in ACTIVATION:
        return None
    if not is_secret_path(f"{folder}/{name}"):
        return False
    is_secret = name[0] == "." or folder[:1] == "." or ".env" in name or name.endswith(SETTINGS)
    return is_secret or None


def _has_secret(folder: str, name: str) -> bool:
    """Return whether the content of a file is secret; it may change in place."""
    path = f"{folder}/{name}"
    try:
        status = os.lstat(path)
    except OSError:
        return False  # commands cannot read it either
    known = _judged.get(path)
    if known and known[:2] == (status.st_ctime_ns, status.st_size):
        return known[2]
    content, parent = _content(path), os.path.basename(folder)
    if name == "config" and parent in MANAGERS:
        is_secret = PASSWORD.search(content) is not None
    elif f"{parent}/{name}" in ACTIVATION:
        is_secret = VARIABLE.search(content) is not None
    else:
        is_secret = has_private_key(content)
    if time.time_ns() - status.st_ctime_ns > FRESH_NS:
        if len(_judged) >= MAX_KNOWN:
            _judged.clear()
        _judged[path] = status.st_ctime_ns, status.st_size, is_secret
    return is_secret


def _content(path: str) -> bytes:
    try:
        with open_regular(path, follows_links=False) as file:
            return file.read(MAX_BYTES)
    except OSError:
        return b""  # commands cannot read it either
