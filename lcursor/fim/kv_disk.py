"""What was read of a file, kept on disk: its KV cells, for the next start of the editor.

Owns a folder of `$XDG_CACHE_HOME/lcursor/kv`, one subfolder a project and one file a buffer,
readable by the user alone. A file that is broken, or was made by another model or another
llama.cpp, is as good as none. Several editors may use the folder at once. Used on the engine's
thread alone; raises nothing but `Cancelled`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lcursor import folders
from lcursor.errors import Cancelled
from lcursor.fim.files import File
from lcursor.fim.kv import KVShadow

MAGIC = b"lcursor kv 1\n"
DIGEST_BYTES = 32
MAX_BYTES = 512 << 20
"""Of all files of all projects; what was used longest ago goes first."""
MAX_STATE_BYTES = MAX_BYTES // 4
"""Of one file: copying more than this out of the model would keep a request waiting too long."""
PART_BYTES = 4 << 20
"""Written at a time, some 5 ms; a request waits no longer than that."""


@dataclass(frozen=True, slots=True)
class SavedSlot:
    """What stood in the cache for one file."""

    cells: KVShadow
    files: tuple[File, ...]
    """The pieces of other files before it."""
    state: bytes | memoryview
    """The cells themselves, in llama.cpp's form."""


def default_folder() -> Path:
    """Return `$XDG_CACHE_HOME/lcursor/kv`, with the usual default for the first."""
    return folders.cache_home() / "kv"


class KVDiskCache:
    """The folder.

    Args:
        folder: where; made when the first file is written.
        fingerprint: names the model and the program that made the cells, and what of their form
            may differ from one machine to another.
        most_bytes: of all files together.
    """

    def __init__(self, folder: Path, fingerprint: str, max_bytes: int = MAX_BYTES) -> None:
        self.folder = folder
        self._fingerprint = fingerprint
        self._max_bytes = max_bytes
        self._is_writable = True

    def path(self, root: str, name: str) -> Path:
        """Return where the cells of a file are.

        Args:
            root: folder of its project.
            name: its path in there.
        """
        return self.folder / _hash(root) / f"{_hash(name)}.kv"

    def load(self, root: str, name: str) -> SavedSlot | None:
        """Return what was saved for a file; None where there is nothing that can be used."""
        path = self.path(root, name)
        try:
            data = memoryview(path.read_bytes())
        except OSError:
            return None
        saved = self._read(data, name)
        with contextlib.suppress(OSError):
            if saved is None:
                path.unlink()
            else:
                os.utime(path)
        return saved

    def save(
        self,
        root: str,
        name: str,
        saved: SavedSlot,
        is_aborted: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Keep what stands in the cache for a file; return whether that went well.

        A disk that is full or may not be written to ends all saving: it is only a matter of speed.

        Args:
            root: folder of its project.
            name: its path in there.
            saved: what to keep.
            is_aborted: asked between parts.

        Raises:
            Cancelled: `is_aborted` returned True; what was on the disk stays.
        """
        if not self._is_writable:
            return False
        path, head = self.path(root, name), self._head(name, saved)
        digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._make_room(len(head) + len(saved.state) + DIGEST_BYTES, path)
            with folders.replacing(path) as file:
                parts: list[bytes | memoryview] = [head, *_parts(saved.state)]
                for part in parts:
                    if is_aborted():
                        raise Cancelled("a newer request came")
                    digest.update(part)
                    file.write(part)
                file.write(digest.digest())
        except OSError:
            self._is_writable = False
        return self._is_writable

    def _head(self, name: str, saved: SavedSlot) -> bytes:
        cells = saved.cells
        head = json.dumps(
            {
                "made_by": self._fingerprint,
                "name": name,
                "prefix": cells.prefix,
                "has_marker": cells.has_marker,
                "suffix": cells.suffix,
                "suffix_at": cells.suffix_at,
                "stale": cells.stale,
                "files": [[file.path, file.text] for file in saved.files],
            }
        ).encode()
        return MAGIC + struct.pack("<Q", len(head)) + head

    def _read(self, data: memoryview, name: str) -> SavedSlot | None:
        body, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
        at = len(MAGIC) + 8
        is_whole = body[: len(MAGIC)] == MAGIC and len(body) >= at
        if not is_whole or hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest() != digest:
            return None
        try:
            [length] = struct.unpack("<Q", body[len(MAGIC) : at])
            head = json.loads(bytes(body[at : at + length]))
            if head["made_by"] != self._fingerprint or head["name"] != name:
                return None
            cells = KVShadow()
            cells.prefix, cells.has_marker = head["prefix"], head["has_marker"]
            cells.suffix = None if head["suffix"] is None else tuple(head["suffix"])
            cells.suffix_at, cells.stale = head["suffix_at"], head["stale"]
            files = tuple(File(*file) for file in head["files"])
        except (KeyError, TypeError, ValueError):  # another version wrote it
            return None
        return SavedSlot(cells, files, body[at + length :])

    def _make_room(self, size: int, own: Path) -> None:
        others = []
        for path in self.folder.glob("*/*.kv"):
            if path != own:
                with contextlib.suppress(FileNotFoundError):  # another editor removed it
                    stat = path.stat()
                    others.append((stat.st_mtime, stat.st_size, path))
        total = sum(each for _, each, _ in others)
        for _, each, path in sorted(others):
            if total + size <= self._max_bytes:
                break
            path.unlink(missing_ok=True)
            total -= each


def _parts(state: bytes | memoryview) -> Iterator[memoryview]:
    view = memoryview(state)
    for start in range(0, len(view), PART_BYTES):
        yield view[start : start + PART_BYTES]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:20]
