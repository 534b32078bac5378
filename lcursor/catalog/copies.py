"""Make copies of a model on this machine: in Q4_0, or with an adapter of lcursor.

llama.cpp has faster Q4_0 kernels on many CPUs. An adapter is a small change of the weights that
lcursor trained for completion; the copy has the format and speed of the original. A child process,
`fim/quantize.py`, calls llama.cpp, because the call cannot be interrupted and may crash. The file
is renamed once complete, else deleted.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from lcursor.catalog import download, gguf, manifest, store
from lcursor.catalog.manifest import Model
from lcursor.errors import EngineFailed, ModelCorrupt, ModelUnsuitable
from lcursor.process.run import run

ROOT: Final = Path(__file__).resolve().parents[2]
Q4_0, Q4_K_M = 2, 15  # enum llama_ftype
MERGING_SIZE = 5
"""Disk space that an adapted copy needs while it is made, in sizes of the original: a copy in
float16, and the result."""


def requantize(source: Path, watch: download.Reporter) -> Path:
    """Write the Q4_0 copy of a completion model next to its file, and its record.

    Args:
        source: a GGUF file; an existing copy is replaced.

    Returns:
        The new file.

    Raises:
        ModelError: `source` is damaged, is not a completion model or is Q4_0 already, or the disk
            is full.
        EngineFailed: llama.cpp failed.
    """
    head = gguf.check_for_completion(source)
    if head.scalars.get("general.file_type") == Q4_0:
        raise ModelUnsuitable(
            f"{source.name} is Q4_0 already", "Use it as it is: a copy would be the same"
        )
    target = source.with_name(manifest.requantized_file(source.name))
    model = manifest.with_file(target.name)
    with download.locked(target, watch) as lock:
        _write(source, target, model, "Requantizing to Q4_0", [str(Q4_0)], lock, watch)
    return target


def adapt(model: Model, watch: download.Reporter) -> Path | None:
    """Write the copy of a downloaded model that has its adapter, unless there is one.

    Returns:
        The copy; None if the model has no adapter.

    Raises:
        ModelError: the adapter is missing or damaged, or the disk is full.
        EngineFailed: llama.cpp failed, or the copy does not compute what it should.
    """
    if model.adapter is None:
        return None
    source, target = store.path_of(model), store.adapted_path(model)
    if store.is_adapted(model):
        return target
    with download.locked(target, watch) as lock:
        if store.is_adapted(model):  # another process may have been faster
            return target
        record = store.read_record(source, model)
        if record is None:
            raise ModelCorrupt(
                f"{source.name} is not verified", f"Run {store.pull_command(model.name)}"
            )
        adapter = manifest.MANIFEST.with_name(model.adapter.file)
        if _digest(adapter) != model.adapter.sha256:
            raise ModelCorrupt(
                f"models/{adapter.name} is missing or damaged", "Restore it from the repository"
            )
        file_type = gguf.check(source).scalars.get("general.file_type", Q4_K_M)
        made = replace(model, sha256=None, repo="", revision=model.adapter.sha256)
        arguments = [str(file_type), str(adapter), record.sha256, model.name]
        _write(source, target, made, "Adapting", arguments, lock, watch)
    return target


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _write(
    source: Path,
    target: Path,
    model: Model | None,
    what: str,
    arguments: list[str],
    lock: int,
    watch: download.Reporter,
) -> None:
    """Write a copy and its record.

    Args:
        model: of the record; None writes none.
        what: is done, in words.
        arguments: further ones of `fim/quantize.py`.
        lock: descriptor of the target's lock, which the child holds until it ends.
    """
    partial, size = store.partial_of(target), source.stat().st_size
    _clean(partial)
    try:
        store.check_space(target, size * (MERGING_SIZE if len(arguments) > 1 else 1))
        with store.writing(partial):
            watch.begin(what, size)
            _run(source, partial, arguments, lock, watch)
            digest = download.hash_with_progress(partial, watch)
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(partial, target)
    finally:
        _clean(partial)
    if model:
        store.write_record(target, model, digest, "made", None)


def _clean(partial: Path) -> None:
    """Remove unfinished files, also those that a killed process left."""
    partial.unlink(missing_ok=True)
    store.float16_of(partial).unlink(missing_ok=True)


def _run(
    source: Path, partial: Path, arguments: list[str], lock: int, watch: download.Reporter
) -> None:
    """Run the child that writes the file; kill it when this process is interrupted."""

    def report() -> bool:
        if partial.exists():
            watch.at(partial.stat().st_size)
        return False

    files = (str(source.absolute()), str(partial.absolute()))
    done = run(
        [sys.executable, "-m", "lcursor.fim.quantize", *files, *arguments],
        ROOT,
        max_bytes=0,
        max_error_bytes=1 << 20,
        drops_excess=True,
        max_s=None,
        pass_fds=(lock,),
        cancel=report,
    )
    if not done.failure:
        return
    message = f"{source.name} could not be copied"
    if done.status is not None and done.status < 0:
        message += f" (its process ended with {signal.Signals(-done.status).name})"
    elif lines := done.errors.decode(errors="replace").strip().splitlines():
        message = lines[-1]
    raise EngineFailed(
        message,
        "Check the free disk space and memory, and the file: python -m lcursor models verify",
    )
