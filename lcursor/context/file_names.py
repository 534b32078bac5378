"""Match typed text against the names of a project's files. Any thread."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from lcursor.process.run import Cancel
from lcursor.project import listing

CACHED_S = 5.0
"""Time for which a project's names are cached: completion needs them with each key."""

_cache: dict[Path, tuple[float, listing.Names]] = {}
_lock = threading.Lock()


def cached(root: Path, cancel: Cancel | None = None) -> tuple[str, ...]:
    """Return a project's files, cached for a few seconds."""
    now_s = time.monotonic()
    with _lock:
        at_s, found = _cache.get(root, (0.0, None))
    if found is None or now_s - at_s >= CACHED_S:
        found = listing.names(root, cancel=cancel)
        with _lock:
            if len(_cache) > 8:
                _cache.clear()
            _cache[root] = (time.monotonic(), found)
    return found.files


def folders(names: Iterable[str]) -> list[str]:
    """Return the folders of files, sorted."""
    return sorted({folder for name in names for folder in listing.folders_of(name)})


def ending_in(names: Sequence[str], tail: str) -> list[str]:
    """Return the files whose path ends with `tail`, such as `chat/turn.py`."""
    whole = [name for name in names if name == tail or name.endswith(f"/{tail}")]
    if whole or not tail:
        return whole
    lower = tail.lower()
    return [name for name in names if f"/{name.lower()}".endswith(f"/{lower}")]


def ranked(names: Iterable[str], typed: str, most: int) -> list[str]:
    """Return the names that match typed text, best first.

    Matches at the start of the file name come first, then inside it, then in the path, and last
    names that contain the characters in order.
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
    """Return whether a name contains characters in order."""
    at = -1
    for letter in typed:
        at = name.find(letter, at + 1)
        if at < 0:
            return False
    return True
