"""Which files a folder of the project has, as git and the ignore files have it. Any thread.

Looks at names; opens nothing but ignore files. What is not read for its name or its content is
reading.py's and the index's `skip`.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lcursor.context import running
from lcursor.context.items import Cancel
from lcursor.errors import Cancelled

MOST_FILES = 50_000
MOST_BYTES = 8 << 20
MOST_S = 5.0
KEPT_S = 5.0
"""How long a project's names are good for completion: it asks again with each key."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Files below a folder, ordered."""

    files: tuple[str, ...]
    """Relative to the folder."""
    note: str = ""
    """Why there may be more; empty where these are all."""


def files(
    folder: Path, root: Path | None = None, cancel: Cancel | None = None, most: int = MOST_FILES
) -> Listing:
    """List what is neither ignored nor left out by default.

    Args:
        folder: absolute.
        root: of the project, whose ignore files hold as well; by default the folder.
        cancel: asked now and then.
        most: files.

    Raises:
        Cancelled: `cancel` said so.
    """
    from lcursor.project.ignore import Rules

    folder = Path(os.path.realpath(folder))
    top = Path(os.path.realpath(root or folder))
    if not folder.is_relative_to(top):
        top = folder
    inside = "" if folder == top else f"{folder.relative_to(top).as_posix()}/"
    rules = Rules(top, is_in_git=True)
    excludes = [f"--exclude={pattern}" for pattern in rules.excludes]
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", *excludes)
    said = running.git(folder, *words, most_bytes=MOST_BYTES, most_s=MOST_S, cancel=cancel)
    if (said.failure and not said.is_cut) or _is_ignored(folder, cancel):
        return _walked(folder, top, inside, cancel, most)
    names = said.data.split(b"\0")[: -1 if said.data else None]
    found = []
    for name in dict.fromkeys(map(os.fsdecode, names)):
        if not name or name.endswith("/") or rules.of_file(inside + name):
            continue
        found.append(name)
        if len(found) > most:
            break
    note = f"there are more: {said.failure}" if said.is_cut else ""
    if len(found) > most:
        note = f"there are more than {most:,}"
    return Listing(tuple(sorted(found[:most])), note)


def _is_ignored(folder: Path, cancel: Cancel | None) -> bool:
    """Return whether git ignores a folder: it is built, or a home under git ignores all it has."""
    words = ("check-ignore", ".")
    return bool(running.git(folder, *words, most_bytes=1 << 12, fine=(0, 1), cancel=cancel).data)


def _walked(folder: Path, top: Path, inside: str, cancel: Cancel | None, most: int) -> Listing:
    """List without git."""
    from lcursor.project.ignore import MARKS, Rules

    rules = Rules(top, is_in_git=False)
    if rules.of_folder(inside.rstrip("/")):  # asked for by name, it is not left out
        rules, inside = Rules(folder, is_in_git=False), ""
    end_s = time.monotonic() + MOST_S
    found: list[str] = []
    waiting = [""]
    while waiting:
        if cancel and cancel():
            raise Cancelled("gathering the context was stopped")
        if time.monotonic() > end_s:
            return Listing(tuple(sorted(found)), "there are more: looking took too long")
        here = waiting.pop()
        try:
            with os.scandir(folder / here) as entries:
                known = list(entries)
        except OSError:
            continue
        if here and not MARKS.isdisjoint(entry.name for entry in known):
            continue
        for entry in known:
            path = here + entry.name
            if entry.is_dir(follow_symlinks=False):
                if not rules.of_folder(inside + path):
                    waiting.append(f"{path}/")
            elif entry.is_file(follow_symlinks=False) and not rules.of_file(inside + path):
                found.append(path)
                if len(found) > most:
                    return Listing(tuple(sorted(found[:most])), f"there are more than {most:,}")
    return Listing(tuple(sorted(found)))


_kept: dict[Path, tuple[float, Listing]] = {}
_keeping = threading.Lock()


def known(root: Path, cancel: Cancel | None = None) -> Listing:
    """List a project's files as they were a moment ago, for names that are being typed."""
    now_s = time.monotonic()
    with _keeping:
        at_s, listing = _kept.get(root, (0.0, None))
    if listing is not None and now_s - at_s < KEPT_S:
        return listing
    listing = files(root, cancel=cancel)
    with _keeping:
        if len(_kept) > 8:
            _kept.clear()
        _kept[root] = (time.monotonic(), listing)
    return listing


def folders(names: Iterable[str]) -> list[str]:
    """Return the folders that some files lie in, ordered."""
    found: set[str] = set()
    for name in names:
        at = name.rfind("/")
        while at > 0 and name[:at] not in found:
            found.add(name[:at])
            at = name.rfind("/", 0, at)
    return sorted(found)


def ending_in(names: Sequence[str], tail: str) -> list[str]:
    """Return the files whose path ends with another path: `chat/turn.py`, `turn.py`."""
    whole = [name for name in names if name == tail or name.endswith(f"/{tail}")]
    if whole or not tail:
        return whole
    lower = tail.lower()
    return [name for name in names if f"/{name.lower()}".endswith(f"/{lower}")]


def ranked(names: Iterable[str], typed: str, most: int) -> list[str]:
    """Return the names that fit what is typed of them, best first.

    The beginning of a file's name comes before its middle, that before the path's, and last what
    has the letters in their order.
    """
    if not typed:
        return sorted(names, key=lambda name: (name.count("/"), name))[:most]
    lower = typed.lower()
    found = []
    for name in names:
        rank = _rank(name.lower(), lower)
        if rank is not None:
            found.append((rank, len(name), name))
    found.sort()
    return [name for _, _, name in found[:most]]


def _rank(name: str, typed: str) -> int | None:
    last = name.rstrip("/").rpartition("/")[2]
    if name.startswith(typed):
        return 0 if "/" in typed or last.startswith(typed) else 2
    if last.startswith(typed):
        return 1
    if typed in last:
        return 3
    if f"/{typed}" in name:
        return 4
    if typed in name:
        return 5
    if _is_in_order(typed, re.sub(r"(\w)\w*|\W", r"\1", name.replace("_", "/"))):
        return 6  # `sct` is `src/chat/turn.py`
    return 7 if _is_in_order(typed, name) else None


def _is_in_order(typed: str, name: str) -> bool:
    """Return whether a name has some letters one after another."""
    at = -1
    for letter in typed:
        at = name.find(letter, at + 1)
        if at < 0:
            return False
    return True
