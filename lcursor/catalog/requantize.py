"""Make a Q4_0 copy of a model: llama.cpp has faster Q4_0 kernels on many CPUs.

A child process, `fim/quantize.py`, calls llama.cpp, because the call cannot be interrupted and may
crash. The file is renamed once complete, else deleted.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Final

from lcursor.catalog import download, gguf, manifest, store
from lcursor.errors import EngineFailed, ModelUnsuitable
from lcursor.process.run import run

ROOT: Final = Path(__file__).resolve().parents[2]
Q4_0 = 2  # LLAMA_FTYPE_MOSTLY_Q4_0


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
    partial = store.partial_of(target)
    with download.locked(target, watch):
        try:
            store.check_space(partial, source.stat().st_size)
            watch.begin("Requantizing to Q4_0", source.stat().st_size)
            _run(source, partial, watch)
            digest = download.hash_with_progress(partial, watch)
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)
        if model := manifest.with_file(target.name):
            store.write_record(target, model, digest, "made", None)
    return target


def _run(source: Path, partial: Path, watch: download.Reporter) -> None:
    """Run the child that writes the file; kill it when this process is interrupted."""

    def report() -> bool:
        watch.at(partial.stat().st_size if partial.exists() else 0)
        return False

    files = (str(source.absolute()), str(partial.absolute()))
    done = run(
        [sys.executable, "-m", "lcursor.fim.quantize", *files],
        ROOT,
        max_bytes=0,
        max_error_bytes=1 << 20,
        drops_excess=True,
        max_s=None,
        cancel=report,
    )
    if not done.failure:
        return
    message = f"{source.name} could not be requantized"
    if done.status is not None and done.status < 0:
        message += f" (its process ended with {signal.Signals(-done.status).name})"
    elif lines := done.errors.decode(errors="replace").strip().splitlines():
        message = lines[-1]
    raise EngineFailed(
        message,
        "Check the free disk space and memory, and the file: python -m lcursor models verify",
    )
