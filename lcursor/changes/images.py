"""Old contents of files, stored once each by digest.

Each image is a compressed file that only the user can read. Any thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from lcursor.changes.records import Lines
from lcursor.errors import EditUnsaved, LcursorError
from lcursor.storage import folders

MIN_AGE_S: Final = 86_400.0
"""Younger images are not deleted: another Neovim may be about to record their turn."""


class Images:
    """The images of one project, in a folder that is created with the first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._unsaved: dict[str, bytes] = {}

    def put(self, data: bytes, *, fsync: bool = False) -> str:
        """Store bytes, unless they are already stored and undamaged; return their key.

        If they cannot be written, keep them in memory, or with `fsync` raise `EditUnsaved`.

        Args:
            fsync: make them survive a power failure, together with a later `sync_names`.
        """
        key = hashlib.sha256(data).hexdigest()
        path = self.folder / key
        try:
            if self._is_stored(path, data):
                os.utime(path)  # protects it from deletion
                if fsync:
                    folders.fsync_file(path)
                return key
            for each in (self.folder.parent.parent, self.folder.parent, self.folder):
                folders.make_private(each)
            folders.write_file(path, zlib.compress(data), fsync=fsync)
        except (OSError, LcursorError) as error:
            if fsync:
                raise EditUnsaved(
                    f"the old contents cannot be stored in {self.folder}, so nothing was changed: "
                    f"{error}",
                    "Check disk space and permissions",
                ) from error
            self._unsaved[key] = data
        return key

    def sync_names(self) -> None:
        """Make the names of all images survive a power failure."""
        folders.fsync_folder(self.folder)

    def _is_stored(self, path: Path, data: bytes) -> bool:
        """Return whether a file has these bytes: after a power failure it may be incomplete."""
        with contextlib.suppress(OSError, zlib.error):
            return zlib.decompress(path.read_bytes()) == data
        return False

    def get(self, key: str) -> bytes | None:
        """Return the bytes of a key; None if missing or damaged."""
        if key in self._unsaved:
            return self._unsaved[key]
        try:
            data = zlib.decompress((self.folder / key).read_bytes()) if key else b""
        except (OSError, zlib.error):
            return None
        return data if hashlib.sha256(data).hexdigest() == key else None

    def put_lines(self, lines: Sequence[str], *, fsync: bool = False) -> str:
        """Store lines, see `put`; return their key."""
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        return self.put(data, fsync=fsync)

    def get_lines(self, key: str) -> Lines | None:
        """Return the lines of a key; None if missing or damaged."""
        data = self.get(key)
        if data is None:
            return None
        return tuple(data.decode("utf-8", "surrogateescape").split("\n")[:-1])

    def sizes(self) -> dict[str, int]:
        """Return the size of each image, by its key."""
        with contextlib.suppress(OSError), os.scandir(self.folder) as found:
            return {each.name: each.stat().st_size for each in found}
        return {}

    def drop_others(self, keep: Collection[str]) -> None:
        """Delete all images except some."""
        limit_s = time.time() - MIN_AGE_S
        with contextlib.suppress(OSError), os.scandir(self.folder) as found:
            for each in found:
                if each.name not in keep and each.stat().st_mtime < limit_s:
                    os.unlink(each.path)
