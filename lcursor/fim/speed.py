"""Measure how fast a model reads and writes on this machine's CPU, in at most 5 s.

Other programs make a model look slow, so the best of several short runs counts, and only if these
programs left the cores to it. Runs on the engine's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

from lcursor.catalog import hardware, manifest, selftest_model, speed, store
from lcursor.catalog.speed import Speed
from lcursor.fim import llama
from lcursor.fim.slots import SLICE_TOKENS

LIMIT_S = 5.0
"""Time limit; the first round of a slow model may exceed it."""
ROUNDS = 5
WRITTEN_TOKENS = 8
"""Tokens that a round writes."""
MIN_SHARE = 0.85
"""Share of the cores' time that a run must have had to count."""


def measure(model: llama.Model, abort: llama.Abort | None = None) -> Speed | None:
    """Return the speed of a model; None if other programs used the cores.

    Args:
        abort: stops the measurement.

    Raises:
        Cancelled: `abort` was set.
        OutOfMemory, EngineFailed: see `llama.Context`.
    """
    threads = hardware.physical_cores()
    tokens = selftest_model.tokens(SLICE_TOKENS, model.n_vocab)
    size = llama.ContextSize(cells=256, batch=SLICE_TOKENS, sequences=1, outputs=1, threads=threads)
    with closing(llama.Context(model, size)) as context:
        if abort is not None:
            abort.install(context.handle)

        def read() -> None:
            context.remove(0, 0)
            context.decode(tokens, 0)
            context.logits()  # waits for the result

        def write() -> None:
            for at in range(WRITTEN_TOKENS):
                context.decode(tokens[at : at + 1], SLICE_TOKENS + at)
                context.logits()

        reads, writes = [], []
        end_s = time.perf_counter() + LIMIT_S
        for _ in range(ROUNDS):
            began_s = time.perf_counter()
            reads.append(_seconds(read, threads))
            writes.append(_seconds(write, threads))
            now_s = time.perf_counter()
            if now_s + (now_s - began_s) > end_s:
                break
    read_s, write_s = min(reads), min(writes)
    if max(read_s, write_s) == float("inf"):
        return None
    return Speed(SLICE_TOKENS / read_s, WRITTEN_TOKENS / write_s)


def _seconds(run: Callable[[], None], threads: int) -> float:
    """Return how long a function takes; infinity if it did not have the cores for itself."""
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    run()
    took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    return took_s if cpu_s >= MIN_SHARE * threads * took_s else float("inf")


def measure_once(model: llama.Model, abort: llama.Abort | None = None) -> Speed | None:
    """Measure and store the speed of a model of the manifest on the CPU, unless one is stored.

    For arguments and exceptions see `measure`.

    Returns:
        What was stored now; None for nothing.
    """
    known = manifest.with_file(model.path.name)
    if known is None or llama.has_gpu() or speed.load():
        return None
    if model.path not in (store.path_of(known), store.adapted_path(known)):
        return None
    found = measure(model, abort)
    if found is not None:
        speed.save(known.name, found)
    return found


def measure_here(name: str) -> Speed | None:
    """Load a model of the manifest for `measure_once`.

    Raises:
        ModelMissing: its file is not on this machine.
        LcursorError: see `llama.Model` and `measure`.
    """
    with closing(llama.Model(store.resolve(name, "completion"), 0, lambda _: True)) as model:
        return measure_once(model)
