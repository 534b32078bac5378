"""Where the files are on this machine, and what is known about each.

A finished file has a receipt beside it (`<file>.json`): what was checked, when the file had which
size and time, so that asking again needs no second look at hundreds of megabytes. Reads and
writes only the models directory; no network. Any thread.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lcursor.catalog import manifest
from lcursor.catalog.manifest import Model, Slot
from lcursor.errors import ModelMissing, ModelUnsuitable
from lcursor.storage import folders


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was known about a file when it was checked."""

    sha256: str
    bytes: int
    mtime_ns: int
    source: str
    """`hub`, `registry`, `found` (it was there already and its digest matched) or `made`."""
    repo: str
    revision: str
    commit: str | None
    """The commit that the hub resolved the revision to; None when it was not asked."""


def models_dir() -> Path:
    """Return the directory of the model files; it need not exist.

    `$LCURSOR_MODELS`, else `models` where the user's data is.
    """
    if chosen := os.environ.get("LCURSOR_MODELS"):
        return Path(chosen).expanduser()
    return folders.data_home() / "models"


def path_of(model: Model, directory: Path | None = None) -> Path:
    """Return where the model's file is, or would be."""
    return (directory or models_dir()) / model.file


def made_here() -> list[Model]:
    """Return the Q4_0 copies that are on this machine, each with the size of its file."""
    return [
        replace(model, bytes=path_of(model).stat().st_size, bytes_exact=True)
        for model in manifest.requantized()
        if path_of(model).is_file()
    ]


def partial_of(target: Path) -> Path:
    """Return the name under which an unfinished file grows."""
    return target.with_name(target.name + ".partial")


def _receipt_of(target: Path) -> Path:
    return target.with_name(target.name + ".json")


def write_receipt(
    target: Path, model: Model, sha256: str, source: str, commit: str | None
) -> Receipt:
    """Record that the file is what it should be. A receipt that cannot be written is no error."""
    stat = target.stat()
    receipt = Receipt(
        sha256=sha256,
        bytes=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        source=source,
        repo=model.repo,
        revision=model.revision,
        commit=commit,
    )
    with contextlib.suppress(OSError):
        _receipt_of(target).write_text(json.dumps(asdict(receipt), indent=1) + "\n")
    return receipt


def read_receipt(target: Path, model: Model) -> Receipt | None:
    """Return the receipt if it still describes the file and the manifest, else None."""
    try:
        stat = target.stat()
        receipt = Receipt(**json.loads(_receipt_of(target).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    if (receipt.bytes, receipt.mtime_ns) != (stat.st_size, stat.st_mtime_ns):
        return None
    if model.sha256 not in (None, receipt.sha256):
        return None
    return receipt


def remove(target: Path) -> None:
    """Remove a refused file with its receipt."""
    target.unlink(missing_ok=True)
    _receipt_of(target).unlink(missing_ok=True)


def pull_command(name: str) -> str:
    """Return what a person types to get the model."""
    return f"python -m lcursor models pull {name}"


def resolve(name_or_path: str, slot: Slot) -> Path:
    """Find the file that a setting means.

    Args:
        name_or_path: a name as for `manifest.find`, or the path of a GGUF file.
        slot: what it shall serve; a manifest entry that cannot is refused.

    Raises:
        ModelUnknown: no such name; the nearest are suggested.
        ModelMissing: the file is not on this machine.
        ModelUnsuitable: the manifest says that the model is not for this slot.
    """
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
    return path
