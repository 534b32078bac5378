"""A disk cache of evaluated prompts: the KV data of each buffer, for the next start of the editor.

The folder `$XDG_CACHE_HOME/lcursor/kv` has one subfolder per project and one file per buffer,
readable only by the user. A file that is damaged, or was made with another model, version of
llama.cpp or `privacy.exclude`, is deleted. Several editors may use the folder at once. Used only on
the engine's thread; raises only `Cancelled`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lcursor.errors import Cancelled
from lcursor.fim.kv import KVShadow
from lcursor.fim.prompt import File
from lcursor.storage import folders, json_text

MAGIC = b"lcursor kv 1\n"
DIGEST_BYTES = 32
MAX_BYTES = 512 << 20
"""Total size of all projects; the least recently used files are deleted first."""
MAX_STATE_BYTES = MAX_BYTES // 4
"""Maximum size of a file: copying more out of the model would delay a request too long."""
PART_BYTES = 4 << 20
"""Size of one write, about 5 ms, the maximum delay of a request."""
SAVED = ("prefix", "has_marker", "suffix", "suffix_at", "stale")
"""Saved fields of the shadow; the tail is left out, because its logits are not saved."""


@dataclass(frozen=True, slots=True)
class SavedSlot:
    """The content of one slot: its tokens, the other files in the prompt, and the KV data."""

    shadow: KVShadow
    files: tuple[File, ...]
    state: bytes | memoryview


def default_folder() -> Path:
    """Return `$XDG_CACHE_HOME/lcursor/kv`; the variable defaults to `~/.cache`."""
    return folders.cache_home() / "kv"


class KVDiskCache:
    """The folder.

    Args:
        folder: its path; created when the first file is written.
        fingerprint: identifies the model, the version of llama.cpp, the data format, which may
            differ between machines, and the excluded files.
        max_bytes: limit of all files together.
    """

    def __init__(self, folder: Path, fingerprint: str, max_bytes: int = MAX_BYTES) -> None:
        self.folder = folder
        self._fingerprint = fingerprint
        self._max_bytes = max_bytes
        self._is_writable = True

    def path(self, root: str, name: str) -> Path:
        """Return the path of the file for a buffer, given its project and relative path."""
        return self.folder / _hash(root) / f"{_hash(name)}.kv"

    def load(self, root: str, name: str) -> SavedSlot | None:
        """Return the saved slot of a buffer; None if there is no usable one."""
        path = self.path(root, name)
        saved = None
        with contextlib.suppress(OSError):
            saved = self._parse(memoryview(path.read_bytes()), name)
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
        """Save the slot of a buffer; return whether that succeeded.

        After the first failure, for example on a full or read-only disk, nothing is saved.

        Raises:
            Cancelled: `is_aborted`, called between parts, returned True; the old file stays.
        """
        if not self._is_writable:
            return False
        path, head, state = self.path(root, name), self._head(name, saved), memoryview(saved.state)
        digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._delete_oldest(len(head) + len(state) + DIGEST_BYTES, path)
            with folders.open_replacement(path) as file:
                starts = range(0, len(state), PART_BYTES)
                parts: list[bytes | memoryview] = [head]
                parts += [state[start : start + PART_BYTES] for start in starts]
                for part in parts:
                    if is_aborted():
                        raise Cancelled("superseded by a newer request")
                    digest.update(part)
                    file.write(part)
                file.write(digest.digest())
        except OSError:
            self._is_writable = False
        return self._is_writable

    def _head(self, name: str, saved: SavedSlot) -> bytes:
        values = {
            "made_by": self._fingerprint,
            "name": name,
            **{each: getattr(saved.shadow, each) for each in SAVED},
            "files": [[file.path, file.text] for file in saved.files],
        }
        head = json.dumps(values).encode()
        return MAGIC + struct.pack("<Q", len(head)) + head

    def _parse(self, data: memoryview, name: str) -> SavedSlot | None:
        body, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
        at = len(MAGIC) + 8
        is_whole = body[: len(MAGIC)] == MAGIC and len(body) >= at
        if not is_whole or hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest() != digest:
            return None
        try:
            [length] = struct.unpack("<Q", body[len(MAGIC) : at])
            head = json_text.parse(bytes(body[at : at + length]))
            if head["made_by"] != self._fingerprint or head["name"] != name:
                return None
            shadow = KVShadow(**{each: head[each] for each in SAVED})
            shadow.suffix = None if shadow.suffix is None else tuple(shadow.suffix)
            files = tuple(File(*file) for file in head["files"])
        except (KeyError, TypeError, ValueError):  # written by another version
            return None
        return SavedSlot(shadow, files, body[at + length :])

    def _delete_oldest(self, size: int, own: Path) -> None:
        """Delete the least recently used files until `size` more bytes fit."""
        others = []
        for path in self.folder.glob("*/*.kv*"):  # also what a process that ended left unfinished
            if path != own:
                with contextlib.suppress(FileNotFoundError):  # another editor deleted it
                    stat = path.stat()
                    others.append((stat.st_mtime, stat.st_size, path))
        total = sum(each for _, each, _ in others)
        for _, each, path in sorted(others):
            if total + size <= self._max_bytes:
                break
            path.unlink(missing_ok=True)
            total -= each


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:20]
