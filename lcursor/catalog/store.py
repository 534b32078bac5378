"""The model files on this machine, and a record of each file's verification.

A record (`<file>.json`) has the digest, size and time of a verified file, so that it need not be
hashed again. No network. Any thread.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lcursor.catalog import hardware, manifest, recommend, speed
from lcursor.catalog.manifest import Model, Slot
from lcursor.config import AUTO
from lcursor.errors import DiskFull, DownloadFailed, ModelMissing, ModelUnsuitable
from lcursor.storage import folders, json_text

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_SPACE_HINT = (
    "Free some space and run the same command again (a download continues where it stopped), "
    "or set LCURSOR_MODELS to a directory on a larger disk"
)


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A verified file."""

    sha256: str
    bytes: int
    mtime_ns: int
    source: str
    """`hub`, `registry`, `found` (an existing file with the right digest) or `made`."""
    repo: str
    revision: str
    commit: str | None
    """Commit of the revision, from the hub; None from other sources."""


def models_dir() -> Path:
    """Return the directory of the model files; it need not exist.

    `$LCURSOR_MODELS`, else `models` in the user's data folder.
    """
    if chosen := os.environ.get("LCURSOR_MODELS"):
        return Path(chosen).expanduser()
    return folders.data_home() / "models"


def path_of(model: Model, directory: Path | None = None) -> Path:
    """Return the path of a model's file, which need not exist."""
    return (directory or models_dir()) / model.file


def adapted_path(model: Model) -> Path:
    """Return the path of the copy that has the model's adapter; it need not exist."""
    return models_dir() / model.adapted_file


def is_adapted(model: Model) -> bool:
    """Return whether there is a copy with the model's adapter, of its present version."""
    if model.adapter is None:
        return False
    record = read_record(adapted_path(model), replace(model, sha256=None))
    return record is not None and record.revision == model.adapter.sha256


def float16_of(partial: Path) -> Path:
    """Return the path of the intermediate file of a copy."""
    return partial.with_name(partial.name + ".f16")


def made_here() -> list[Model]:
    """Return the Q4_0 copies that are on this machine, each with the size of its file."""
    return [
        replace(model, bytes=path_of(model).stat().st_size, bytes_exact=True)
        for model in manifest.requantized()
        if path_of(model).is_file()
    ]


def partial_of(target: Path) -> Path:
    """Return the path of a file while it is downloaded."""
    return target.with_name(target.name + ".partial")


def _record_path(target: Path) -> Path:
    return target.with_name(target.name + ".json")


def write_record(
    target: Path, model: Model, sha256: str, source: str, commit: str | None
) -> FileRecord:
    """Record that a file was verified; errors are ignored."""
    stat = target.stat()
    record = FileRecord(
        sha256=sha256,
        bytes=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        source=source,
        repo=model.repo,
        revision=model.revision,
        commit=commit,
    )
    with contextlib.suppress(OSError):
        _record_path(target).write_text(json.dumps(asdict(record), indent=1) + "\n")
    return record


def read_record(target: Path, model: Model) -> FileRecord | None:
    """Return the record of a file; None if the file or the manifest changed since."""
    try:
        stat = target.stat()
        record = FileRecord(**json_text.parse(_record_path(target).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    if (record.bytes, record.mtime_ns) != (stat.st_size, stat.st_mtime_ns):
        return None
    if model.sha256 not in (None, record.sha256):
        return None
    return record


def remove(target: Path) -> None:
    """Remove a file and its record."""
    target.unlink(missing_ok=True)
    _record_path(target).unlink(missing_ok=True)


def format_bytes(count: int) -> str:
    """Return a number of bytes as text, in powers of 1024."""
    if count < 1 << 20:
        return f"{count:,} bytes"
    return f"{count / (1 << 30):.2f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"


def check_space(path: Path, missing: int) -> None:
    """Raise `DiskFull` if the disk has no space for `missing` more bytes."""
    if shutil.disk_usage(path.parent).free < missing:
        raise DiskFull(
            f"The disk of {path.parent} is full: {format_bytes(missing)} more would be needed",
            _SPACE_HINT,
        )


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Translate the errors of writing a file into `DiskFull` and `DownloadFailed`."""
    try:
        yield
    except OSError as e:
        if e.errno in _FULL:
            raise DiskFull(f"The disk of {path.parent} is full", _SPACE_HINT) from e
        raise DownloadFailed(
            f"{path} cannot be written ({e.strerror or e})",
            "Set LCURSOR_MODELS to a directory that you may write to",
        ) from e


def pull_command(name: str) -> str:
    """Return the command that downloads a model."""
    return f"python -m lcursor models pull {name}"


def completion_model(setting: str) -> str:
    """Return the model that `completion.model` names.

    Args:
        setting: `AUTO` is the model recommended for this CPU if it is on this machine, else the
            small one; anything else names the model.
    """
    if setting != AUTO:
        return setting
    best, _ = recommend.for_cpu(hardware.ram_bytes(), speed.load())
    is_here = path_of(manifest.find(best)).is_file()
    return best if is_here else recommend.SMALL


def resolve(name_or_path: str, slot: Slot) -> Path:
    """Find the file of a setting.

    Args:
        name_or_path: a name of the manifest, the path of a GGUF file, or `AUTO` for completion.

    Returns:
        For completion the copy with the model's adapter, if it was made.

    Raises:
        ModelUnknown: no such name; the nearest are suggested.
        ModelMissing: the file is not on this machine.
        ModelUnsuitable: according to the manifest, the model is not for this slot.
    """
    if slot == "completion":
        name_or_path = completion_model(name_or_path)
    if os.sep in name_or_path or name_or_path.endswith(".gguf"):
        path = Path(name_or_path).expanduser()
        if not path.is_file():
            raise ModelMissing(
                f"There is no model file {path}",
                "Correct the path in the configuration, or name a model of "
                "python -m lcursor models list",
            )
        return path
    model = manifest.find(name_or_path)
    if slot not in model.slots:
        raise ModelUnsuitable(
            f"{model.name} is not for the {slot} slot",
            f"Models for it: {', '.join(m.name for m in manifest.load() if slot in m.slots)}",
        )
    for each in model.files:
        path = path_of(each)
        if not path.is_file():
            part = partial_of(path)
            state = "is only partly downloaded" if part.exists() else "is not on this machine"
            raise ModelMissing(
                f"The model {model.name} {state} ({path})",
                f"Run :LCursor install, or in a shell {pull_command(model.name)}",
            )
    return adapted_path(model) if slot == "completion" and is_adapted(model) else path
