"""Make the Q4_0 copy of a model, for which llama.cpp has faster kernels on many CPUs.

A child process, `fim/quantize.py`, calls llama.cpp: the call cannot be interrupted and may end the
process. The file is renamed once it is complete, and deleted otherwise.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from lcursor.catalog import download, gguf, manifest, store
from lcursor.catalog.partial_file import check_space
from lcursor.errors import EngineFailed, ModelUnsuitable

ROOT: Final = Path(__file__).resolve().parents[2]
Q4_0 = 2  # LLAMA_FTYPE_MOSTLY_Q4_0
_POLL_S = 0.1


def requantize(source: Path, watch: download.Reporter) -> Path:
    """Write the Q4_0 copy of a completion model next to its file, and its record.

    Args:
        source: a GGUF file; an existing copy is replaced.
        watch: gets the progress.

    Returns:
        The new file.

    Raises:
        ModelError: `source` is damaged, is no completion model or is Q4_0 already, or the disk is
            too full.
        EngineFailed: llama.cpp could not do it.
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
            check_space(partial, source.stat().st_size)
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
    files = (source.absolute(), partial.absolute())
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        child = subprocess.Popen(
            [sys.executable, "-m", "lcursor.fim.quantize", *files],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd=ROOT,
            start_new_session=True,  # Ctrl-C is for the parent alone
        )
        try:
            while child.poll() is None:
                try:
                    child.wait(_POLL_S)
                except subprocess.TimeoutExpired:
                    watch.at(partial.stat().st_size if partial.exists() else 0)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
        if child.returncode == 0:
            return
        errors.seek(0)
        lines = errors.read().strip().splitlines()
    message = f"{source.name} could not be requantized"
    if child.returncode < 0:
        message += f" (its process ended with {signal.Signals(-child.returncode).name})"
    raise EngineFailed(
        lines[-1] if lines and child.returncode > 0 else message,
        "See whether the disk and the memory have room, and check the file: "
        "python -m lcursor models verify",
    )
