"""The child process of the engine's self-test: evaluates fixed tokens and compares the logits.

    python -m lcursor.fim.selftest [--gpu-layers N] [--record MODEL] [--times MODEL]

Prints one JSON object a line: `{"doing": …}` before each step, so that the parent
(`installer/selftest.py`) can name the step in which the process crashed or hung, and a last line
`{"result": "passed" | "wrong" | "no-gpu", …}`. With the default model installed it is tested too:
its shapes choose other kernels.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lcursor.catalog import hardware, manifest, selftest_model, store
from lcursor.config import CompletionConfig
from lcursor.errors import LcursorError
from lcursor.fim import llama


def main(arguments: list[str] | None = None) -> int:
    """Run the self-test and return the exit status."""
    parser = argparse.ArgumentParser(prog="lcursor.fim.selftest")
    parser.add_argument("--gpu-layers", type=int, default=0, help="-1 puts all on the GPU")
    parser.add_argument("--record", help="print the samples of this model instead: tiny, or a name")
    parser.add_argument("--times", help="print how long each batch of this model takes instead")
    options = parser.parse_args(arguments)
    faulthandler.enable()
    with tempfile.TemporaryDirectory(prefix="lcursor-selftest-") as folder:
        tiny = Path(folder) / "tiny.gguf"
        selftest_model.write(tiny)
        if name := options.record or options.times:
            path = tiny if name == "tiny" else store.resolve(name, "completion")
            _print_samples(name, path) if options.record else _print_times(path, options.gpu_layers)
            return 0
        try:
            _say(**_test(tiny, options.gpu_layers))
        except LcursorError as error:
            _say(result="error", message=error.message)
    return 0


def _say(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _test(tiny: Path, gpu_layers: int) -> dict[str, Any]:
    if gpu_layers and not llama.has_gpu():
        return {"result": "no-gpu", "message": "the engine finds no GPU that it can use"}
    cores = 2 if gpu_layers else hardware.physical_cores()
    worst = 0.0
    for name, path in _models(tiny):
        expected = selftest_model.references()[name]
        plans = {(1, False), (cores, False), (cores, True)} if name == "tiny" else {(cores, True)}
        for threads, is_secondary in sorted(plans):
            for batch, found in _run(name, path, gpu_layers, threads, is_secondary):
                error = selftest_model.error(found, expected[str(batch)])
                worst = max(worst, error)
                if not error <= selftest_model.MAX_ERROR:
                    return {
                        "result": "wrong",
                        "message": f"{_step(name, batch, threads, is_secondary)}:"
                        f" error {error:.3g}, at most {selftest_model.MAX_ERROR} is right",
                    }
    return {"result": "passed", "message": f"largest error {worst:.2g}"}


def _batches(name: str) -> tuple[int, ...]:
    most = selftest_model.BATCHES[-1] if name == "tiny" else selftest_model.MAX_BATCH_OF_DEFAULT
    return tuple(batch for batch in selftest_model.BATCHES if batch <= most)


def _models(tiny: Path) -> Iterator[tuple[str, Path]]:
    """Yield the models to test with: the tiny one, and the default one where it is installed."""
    yield "tiny", tiny
    name = CompletionConfig().model
    known = next((model for model in manifest.load() if model.name == name), None)
    if known and name in selftest_model.references() and store.path_of(known).is_file():
        yield name, store.path_of(known)


def _step(name: str, batch: int, threads: int, is_secondary: bool) -> str:
    thread = "a second thread" if is_secondary else "the main thread"
    return f"reading {batch} tokens with {threads} threads from {thread} (model {name})"


def _run(
    name: str, path: Path, gpu_layers: int, threads: int, is_secondary: bool
) -> Iterator[tuple[int, list[float]]]:
    """Yield batch size and sampled logits; on a second thread all of them come at its end."""
    if not is_secondary:
        yield from _decode(name, path, gpu_layers, threads, is_secondary)
        return
    found: list[tuple[int, list[float]]] = []
    raised: list[LcursorError] = []

    def work() -> None:
        try:
            found.extend(_decode(name, path, gpu_layers, threads, is_secondary))
        except LcursorError as error:
            raised.append(error)

    thread = threading.Thread(target=work, name="selftest")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    yield from found


def _decode(
    name: str, path: Path, gpu_layers: int, threads: int, is_secondary: bool
) -> Iterator[tuple[int, list[float]]]:
    _say(doing=f"loading the model {name}")
    model = llama.Model(path, gpu_layers, lambda _: True)
    size = llama.ContextSize(cells=1024, batch=512, ubatch=512, threads=threads)
    try:
        context = llama.Context(model, size)
        try:
            for batch in _batches(name):
                _say(doing=_step(name, batch, threads, is_secondary))
                context.remove(0, 0)
                context.decode(selftest_model.tokens(batch, model.n_vocab), 0)
                yield batch, selftest_model.sample(context.logits().tolist())
        finally:
            context.close()
    finally:
        model.close()


def _print_samples(name: str, path: Path) -> None:
    samples = dict(_decode(name, path, 0, hardware.physical_cores(), False))
    _say(**{name: samples})


def _print_times(path: Path, gpu_layers: int, rounds: int = 5) -> None:
    """Print the median time of each batch size in ms."""
    threads = hardware.physical_cores()
    model = llama.Model(path, gpu_layers, lambda _: True)
    size = llama.ContextSize(cells=1024, batch=512, ubatch=512, threads=threads)
    context = llama.Context(model, size)
    for batch in selftest_model.BATCHES:
        times = []
        for _ in range(rounds + 1):
            context.remove(0, 0)
            begun = time.perf_counter()
            context.decode(selftest_model.tokens(batch, model.n_vocab), 0)
            context.logits()
            times.append((time.perf_counter() - begun) * 1000)
        _say(tokens=batch, ms=round(statistics.median(times[1:]), 1))
    context.close()
    model.close()


if __name__ == "__main__":
    sys.exit(main())
