"""The child process of the engine's self-test: evaluates fixed tokens and compares the logits.

    python -m lcursor.fim.selftest [--gpu-layers N] [--record MODEL]

Prints one JSON object per line: `{"doing": …}` before each step, so that the parent
(`installer/selftest.py`) can name the step of a crash or hang, and a last line
`{"result": "passed" | "wrong" | "no-gpu", …}`. If the small model is installed, it is tested,
too, because its shapes use other kernels.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from lcursor.catalog import hardware, manifest, recommend, selftest_model, store
from lcursor.catalog.selftest_model import references
from lcursor.errors import LcursorError, OutOfMemory
from lcursor.fim import llama


def main(arguments: list[str] | None = None) -> int:
    """Run the self-test and return the exit status."""
    parser = argparse.ArgumentParser(prog="lcursor.fim.selftest")
    parser.add_argument("--gpu-layers", type=int, default=0, help="-1 puts all on the GPU")
    parser.add_argument("--record", help="print the samples of this model instead: tiny, or a name")
    options = parser.parse_args(arguments)
    faulthandler.enable()
    with tempfile.TemporaryDirectory(prefix="lcursor-selftest-") as folder:
        tiny = Path(folder) / "tiny.gguf"
        selftest_model.write(tiny)
        if name := options.record:
            path = tiny if name == "tiny" else _file_of(name)
            _say(**{name: dict(decode(name, path, 0, hardware.physical_cores(), False))})
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
        expected = references()[name]
        plans = {(1, False), (cores, False), (cores, True)} if name == "tiny" else {(cores, True)}
        for threads, is_secondary in sorted(plans):
            for batch, found in _tried(name, path, gpu_layers, threads, is_secondary):
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
    """Yield the models to test: the tiny one, and the small one if installed, as it is used."""
    yield "tiny", tiny
    name = recommend.SMALL
    known = next((model for model in manifest.load() if model.name == name), None)
    if known and store.is_adapted(known) and selftest_model.adapted(name) in references():
        name = selftest_model.adapted(name)
    if known and name in references() and _file_of(name).is_file():
        yield name, _file_of(name)


def _file_of(name: str) -> Path:
    """Return the file of a model of the manifest, or of its copy with the adapter."""
    for model in manifest.load():
        if name == selftest_model.adapted(model.name):
            return store.adapted_path(model)
    return store.path_of(manifest.find(name))


def _step(name: str, batch: int, threads: int, is_secondary: bool) -> str:
    thread = "a second thread" if is_secondary else "the main thread"
    return f"reading {batch} tokens with {threads} threads from {thread} (model {name})"


def _tried(
    name: str, path: Path, gpu_layers: int, threads: int, is_secondary: bool
) -> Iterable[tuple[int, list[float]]]:
    """Do the same as `_run`; nothing if a GPU has no memory for more than the tiny model."""
    try:
        return _run(name, path, gpu_layers, threads, is_secondary)
    except OutOfMemory:
        if name == "tiny" or not gpu_layers:
            raise
        return ()


def _run(
    name: str, path: Path, gpu_layers: int, threads: int, is_secondary: bool
) -> Iterable[tuple[int, list[float]]]:
    """Return batch sizes and sampled logits; from a second thread all at its end."""
    decoded = decode(name, path, gpu_layers, threads, is_secondary)
    if not is_secondary:
        return decoded
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(list, decoded).result()


def decode(
    name: str, path: Path, gpu_layers: int, threads: int, is_secondary: bool
) -> Iterator[tuple[int, list[float]]]:
    """Yield each batch size and the sampled logits after such a batch of fixed tokens.

    Args:
        name: of the model, for messages.
    """
    _say(doing=f"loading the model {name}")
    model = llama.Model(path, gpu_layers, lambda _: True)
    size = llama.ContextSize(cells=1024, batch=512, ubatch=512, threads=threads)
    with closing(model), closing(llama.Context(model, size)) as context:
        for batch in _batches(name):
            _say(doing=_step(name, batch, threads, is_secondary))
            context.remove(0, 0)
            context.decode(selftest_model.tokens(batch, model.n_vocab), 0)
            yield batch, selftest_model.sample(context.logits().tolist())


if __name__ == "__main__":
    sys.exit(main())
