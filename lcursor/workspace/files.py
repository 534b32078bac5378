"""Read and write the files of a folder, and never anything outside of it.

Paths are resolved by the kernel: `openat2` stays beneath the folder, whatever links exist and
however they change meanwhile. Where the kernel lacks it, each component is opened without following
links. Files with secrets, devices, pipes, files with several hard links, and large files are
never opened. Any error denies the access.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from lcursor import system
from lcursor.changes import text
from lcursor.changes.text import Text
from lcursor.errors import EditFailed
from lcursor.project import secrets
from lcursor.project.ignore import ALWAYS

MAX_BYTES: Final = 4 << 20
"""Maximum size of a file that is read or written."""
MAX_PATH_CHARS: Final = 1024
VCS: Final = frozenset({".git", ".hg", ".svn", ".jj"})


class Denied(Exception):
    """An access that is not allowed or failed, with the reason for the model."""


@dataclass(frozen=True, slots=True)
class File:
    """A file that was read."""

    path: str
    """Relative to the folder; of a link, its target's."""
    text: Text
    mode: int


class Files:
    """The files below a folder.

    Args:
        folder: the folder on disk.
        names: absolute paths by which the folder is known; the first is shown to the model.
        is_secret: returns why a path, relative to the folder, counts as secret; "" if it does not.
        scratch: a folder outside of it, on the same file system, for files that are being written.
        uses_openat2: False uses the fallback; for tests.
    """

    def __init__(
        self,
        folder: Path,
        names: tuple[Path, ...],
        is_secret: Callable[[str], str],
        scratch: Path,
        *,
        uses_openat2: bool = True,
    ) -> None:
        self.folder, self._names, self._is_secret = folder, names, is_secret
        self._scratch = scratch
        is_kernels = uses_openat2 and system.has_openat2()
        self._lookup = system.open_beneath if is_kernels else system.open_without_links

    def relative(self, path: str) -> str:
        """Return a path relative to the folder, "." for the folder itself; opens nothing.

        Raises:
            Denied: it is outside, in the data of version control, or has unusual characters.
        """
        if not path or len(path) > MAX_PATH_CHARS or any(ord(x) < 32 or x == "\x7f" for x in path):
            raise Denied("the path is empty, too long, or contains control characters")
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise Denied("the path is not valid text") from None
        normal = os.path.normpath(path)
        if os.path.isabs(normal):
            inside = [name for name in self._names if PurePosixPath(normal).is_relative_to(name)]
            if not inside:
                raise Denied(f"{path} is outside of the project {self._names[0]}")
            normal = os.path.relpath(normal, inside[0])
        if normal == ".." or normal.startswith("../"):
            raise Denied(f"{path} is outside of the project {self._names[0]}")
        if reason := self._reason(normal):
            raise Denied(f"{path} is not available: {reason}")
        return normal

    def read(self, path: str) -> File:
        """Return a text file.

        Raises:
            Denied: it is missing, not a text file, too large, or secret.
        """
        name = self.relative(path)
        with self._handle(name) as fd:
            status = os.fstat(fd)
            if stat.S_ISDIR(status.st_mode):
                raise Denied(f"{name} is a folder")
            if not stat.S_ISREG(status.st_mode):
                raise Denied(f"{name} is not a regular file")
            if status.st_nlink > 1:
                raise Denied(f"{name} has several hard links, so it may be a file from elsewhere")
            if status.st_size > MAX_BYTES:
                size = f"{status.st_size / (1 << 20):,.1f} MB"
                raise Denied(f"{name} has {size}; read a part of it with a command: sed -n 1,200p")
            real = _real_name(fd, self.folder) or name
            if reason := self._reason(real):
                raise Denied(f"{name} is not available: {reason}")
            try:
                with system.open_content(fd) as file:
                    data = file.read(MAX_BYTES + 1)
            except OSError as error:
                raise Denied(f"{name} cannot be read: {error.strerror}") from error
        if secrets.has_private_key(data):
            raise Denied(f"{name} is not available: it contains a private key")
        try:
            return File(real, text.from_bytes(data, name), stat.S_IMODE(status.st_mode))
        except EditFailed as error:
            raise Denied(error.message) from error

    def exists(self, path: str) -> bool:
        """Return whether there is anything at a path."""
        with contextlib.suppress(Denied), self._handle(self.relative(path)):
            return True
        return False

    def is_folder(self, path: str) -> bool:
        """Return whether a path is that of a folder."""
        with contextlib.suppress(Denied), self._handle(self.relative(path)) as fd:
            return stat.S_ISDIR(os.fstat(fd).st_mode)
        return False

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, of folders with a slash; without caches.

        Raises:
            Denied: it is missing or not a folder.
        """
        name = self.relative(path)
        with self._handle(name) as handle:
            try:
                fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
            except OSError as error:
                raise Denied(f"{name} cannot be listed: {error.strerror}") from error
            try:
                with os.scandir(fd) as scanned:
                    entries = [(entry.name, entry.is_dir(follow_symlinks=False))
                               for entry in scanned]  # fmt: skip
            finally:
                os.close(fd)
        return sorted(f"{each}/" if is_folder else each for each, is_folder in entries
                      if each not in ALWAYS)  # fmt: skip

    def write(self, path: str, content: Text, mode: int = 0o644) -> None:
        """Write a file atomically, and make its folders.

        Args:
            path: of a link, the target's path, as `read` returns it.

        Raises:
            Denied: it cannot be written; the old content stays.
        """
        name = self.relative(path)
        try:
            data = content.encode()
        except EditFailed as error:
            raise Denied(error.message) from error
        if len(data) > MAX_BYTES:
            raise Denied(f"{name} would have more than {MAX_BYTES >> 20} MB")
        above, _, last = name.rpartition("/")
        self._make_folders(above)
        with self._handle(above or ".") as folder:
            try:
                self._replace(folder, last, data, mode)
            except OSError as error:
                raise Denied(f"{name} cannot be written: {error.strerror}") from error

    def delete(self, path: str) -> None:
        """Delete a file, if it exists.

        Raises:
            Denied: it cannot be deleted.
        """
        name = self.relative(path)
        above, _, last = name.rpartition("/")
        if self.exists(name):
            with self._handle(above or ".") as folder:
                try:
                    os.unlink(last, dir_fd=folder)
                except OSError as error:
                    raise Denied(f"{name} cannot be deleted: {error.strerror}") from error

    def _replace(self, folder: int, name: str, data: bytes, mode: int) -> None:
        """Write a temporary file outside of the folder, and move it there."""
        fd, temporary = tempfile.mkstemp(dir=self._scratch)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                os.fchmod(fd, mode)
            os.rename(temporary, name, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def _make_folders(self, path: str) -> None:
        parts = path.split("/") if path else []
        for at, part in enumerate(parts):
            with self._handle("/".join(parts[:at]) or ".") as folder:
                try:
                    os.mkdir(part, dir_fd=folder)
                except FileExistsError:
                    pass
                except OSError as error:
                    raise Denied(f"{path} cannot be made: {error.strerror}") from error

    @contextlib.contextmanager
    def _handle(self, name: str) -> Iterator[int]:
        """Open a path without its content."""
        try:
            fd = self._lookup(self.folder, name)
        except FileNotFoundError:
            raise Denied(f"there is no file {name}") from None
        except NotADirectoryError:
            raise Denied(f"there is no file {name}, because a part of its path is a file") from None
        except OSError as error:
            if error.errno in (errno.EXDEV, errno.ELOOP):
                raise Denied(f"{name} is a link to outside of the project") from error
            raise Denied(f"{name} cannot be opened: {error.strerror}") from error
        try:
            yield fd
        finally:
            os.close(fd)

    def _reason(self, name: str) -> str:
        """Return why a path must not be opened; "" if it may."""
        if any(part.lower() in VCS for part in name.split("/")):
            return "it is data of version control, which git commands show"
        return self._is_secret(name)


def _real_name(fd: int, folder: Path) -> str:
    """Return the path of an open file relative to a folder; "" if the system does not know it."""
    real = system.path_of(fd)
    return os.path.relpath(real, os.path.realpath(folder)) if real else ""
