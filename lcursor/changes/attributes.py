"""Read and restore what a file has besides its bytes: owner, permissions, ACL, attributes, time."""

from __future__ import annotations

import base64
import contextlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass

from lcursor import system


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of a file. Of turns of older versions only the permissions are known."""

    mode: int
    """Permissions."""
    owner: tuple[int, int] | None = None
    """User and group."""
    extended: Mapping[str, str] | None = None
    """Values of the extended attributes, in base64; on Linux an ACL is one of them."""
    mtime_ns: int | None = None


def read(path: str, seen: os.stat_result) -> Attributes:
    """Return the attributes of a file with the status `seen`."""
    found = system.extended_attributes(path)
    values = {name: base64.b64encode(value).decode() for name, value in found.items()}
    owner = (seen.st_uid, seen.st_gid)
    return Attributes(stat.S_IMODE(seen.st_mode), owner, values, seen.st_mtime_ns)


def give(fd: int, like: Attributes, *, must_own: bool) -> None:
    """Give an open new file the attributes of another, except for its time.

    What the user may not set is left out.

    Raises:
        OSError: the permissions cannot be set, or with `must_own` the owner.
    """
    made = os.fstat(fd)
    if like.owner is not None and like.owner != (made.st_uid, made.st_gid):
        with contextlib.nullcontext() if must_own else contextlib.suppress(OSError):
            os.fchown(fd, *like.owner)
    if like.extended is not None:
        decoded = {name: base64.b64decode(value) for name, value in like.extended.items()}
        system.set_extended_attributes(fd, decoded)
    os.fchmod(fd, like.mode)


def give_time(fd: int, like: Attributes) -> None:
    """Give an open file the time of another, whose bytes it has."""
    if like.mtime_ns is not None:
        with contextlib.suppress(OSError):
            os.utime(fd, ns=(os.fstat(fd).st_atime_ns, like.mtime_ns))
