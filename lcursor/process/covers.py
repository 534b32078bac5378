"""Find what the sandbox covers in the folders of the user that it shows.

These are installed packages, which git ignores, and folders of the settings. Covered are sockets
and pipes, to which a read-only mount allows connections, and what package managers do not install:
secrets of the user. Names that code has, as `credentials.py`, `tokens.json` or `cacert.pem`, are
those of secrets only if there is a private key in the file. Any thread.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from lcursor.project.reading import open_regular
from lcursor.project.secrets import has_private_key, is_secret_path

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


_known: dict[str, _Folder] = {}
"""By absolute path; a later walk reads only the folders that changed."""


def covered(top: str) -> list[str]:
    """Return what is to be covered below a folder, as absolute paths, the least deep first.

    Does not follow links.
    """
    return [f"{path}/{name}" for path, folder in _walk(top) for name in folder.covered]


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
    folders, hidden, count, name = list[str](), list[str](), 0, os.path.basename(path)
    with os.scandir(path) as entries:
        for entry in entries:
            count += 1
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                if _is_secret(path, name, entry.name):
                    hidden.append(entry.name)
            elif not entry.is_symlink():
                hidden.append(entry.name)
    looked_at = _Folder(identity, count, tuple(folders), tuple(hidden))
    if time.time_ns() - status.st_ctime_ns > FRESH_NS:
        if len(_known) >= MAX_KNOWN:
            _known.clear()
        _known[path] = looked_at
    return looked_at


def _is_secret(path: str, folder: str, name: str) -> bool:
    if name == "config" and folder in MANAGERS:
        return PASSWORD.search(_content(f"{path}/{name}")) is not None
    if f"{folder}/{name}" in ACTIVATION:
        return VARIABLE.search(_content(f"{path}/{name}")) is not None
    if not is_secret_path(f"{folder}/{name}"):
        return False
    if name[0] == "." or folder[:1] == "." or ".env" in name or name.endswith(SETTINGS):
        return True
    return has_private_key(_content(f"{path}/{name}"))


def _content(path: str) -> bytes:
    try:
        with open_regular(path, follows_links=False) as file:
            return file.read(MAX_BYTES)
    except OSError:
        return b""  # commands cannot read it either
