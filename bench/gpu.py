"""What a model costs on a GPU, part by part and as a whole line: `python -m lcursor bench gpu`.

Where a model is not at hand, a file of its shape with random weights stands for it: each step costs
the same, and what is written means nothing. Everything runs in this process, on this thread; only
the flag that stops a request is set from another.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

from bench import report, weights
from bench.report import Figure, figure, percentile
from bench.shapes import Shape
from lcursor.catalog import gguf, hardware, manifest, store
from lcursor.config import CompletionConfig
from lcursor.drive.editor import ROOT
from lcursor.errors import Cancelled, LcursorError, OutOfMemory
from lcursor.fim import devices, likelihood, llama, placement
from lcursor.fim.engine import Engine
from lcursor.fim.prompt import Source
from lcursor.fim.slots import context_size

DONOR = "qwen2.5-coder-0.5b"
"""Its tokenizer is that of all shapes."""
FAMILY = "qwen2.5-coder"
PREFIX_TOKENS, SUFFIX_TOKENS, PROMPT_TOKENS = 1880, 150, 2000
LINE_TOKENS = 12
MAX_VERIFIED = 8
SLICES = 128, 512
LINE_LIMIT_MS = 60.0
ROUNDS_ON_CPU, ROUNDS_ON_GPU = 1, 10
TYPED = "values = compute(first, second)[index] + offset * factor # and the rest\n    "

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Run:
    """What was measured of one shape."""

    shape: str
    model: str
    """The file and llama.cpp's words on it."""
    is_random: bool
    """Whether the weights are random: then the times are all that it tells."""
    file_bytes: int
    active_bytes: int
    """Weights that one token reads."""
    prompt_tokens: int
    kv_type: str
    cells: int
    gpu_bytes: int | None
    """GPU memory that the engine took, before anything else was measured; None without a GPU."""
    estimated_bytes: int
    """What `placement` counts for weights and cache."""
    figures: list[Figure]


def check_gpu(on_cpu: bool) -> None:
    """Refuse to call a CPU's times a GPU's.

    Raises:
        LcursorError: there is no GPU that this llama.cpp can use.
    """
    if on_cpu or llama.has_gpu():
        return
    found = hardware.detect()
    if found.vendor == "none":
        raise LcursorError("no GPU here", "--cpu runs it anyway, and tells the CPU's times")
    raise LcursorError(
        f"this machine has a GPU ({found.gpu}), and llama.cpp was built without support for it",
        "Run :LCursor install to build it anew; --cpu runs the bench anyway, on the CPU",
    )


def needs(shape: Shape, folder: Path, on_cpu: bool) -> str:
    """Say what a shape takes, before anything is written.

    Raises:
        OutOfMemory: it does not fit.
    """
    needed = weights.needs(shape, _cells(on_cpu))
    found = hardware.detect()
    room, what = found.ram_bytes, "memory"
    if not on_cpu:
        room, what = found.gpu_free_bytes or found.gpu_bytes, "GPU memory"
    if room is not None and needed > room:
        raise OutOfMemory(
            f"{shape.name} needs about {needed / 1e9:.1f} GB of {what}, "
            f"and there are {room / 1e9:.1f} GB",
            "Choose a smaller --shape, or end what uses the memory",
        )
    return (
        f"{shape.name}: about {needed / 1e9:.1f} GB of {what}; "
        f"without the model itself, {shape.bytes / 1e9:.1f} GB on the disk, in {folder}"
    )


def measure(
    shape: Shape, folder: Path, on_cpu: bool, rounds: int, told: Told, kv_type: str = "f16"
) -> Run:
    """Measure one shape, with its model where that is here.

    Args:
        shape: one of `shapes.SHAPES`.
        folder: for a file with random weights.
        on_cpu: use no GPU.
        rounds: samples, times 1 to 8; 0 for what suits the machine.
        told: what goes on.
        kv_type: see the setting `completion.kv_type`.

    Raises:
        ModelMissing: the tokenizer's model is not here.
        DiskFull, OutOfMemory, LcursorError: see `weights.ensure`, `Engine`.
    """
    path, is_random = _model_of(shape), False
    if path is None:
        donor = store.resolve(DONOR, "completion")
        path, is_random = weights.ensure(shape, folder, donor, _percent(shape, told)), True
    config = CompletionConfig(
        gpu_layers=0 if on_cpu else -1,
        context_tokens=_cells(on_cpu),
        kv_type=kv_type,
        prefix_tokens=PREFIX_TOKENS + 160,  # typing never moves the window
        suffix_tokens=SUFFIX_TOKENS,
        files_tokens=0,
        max_tokens=LINE_TOKENS + 4,
    )
    told(f"loading {path.name}")
    free = None if on_cpu else devices.free_bytes(config.main_gpu)
    began = time.perf_counter()
    engine = Engine(path, FAMILY, config, lambda fraction: True)
    loading = figure("load the model", [_ms_since(began)])
    for warning in engine.warnings:  # that it runs on the CPU instead, for example
        told(warning.message)
    left = None if on_cpu else devices.free_bytes(config.main_gpu)
    head, cells = gguf.check(path), engine.config.context_tokens
    engine.reader.heals = False
    try:
        rig = _Rig(engine, rounds or (ROUNDS_ON_CPU if on_cpu else ROUNDS_ON_GPU))
        figures = [loading, *rig.figures(None if on_cpu else LINE_LIMIT_MS, told)]
        return Run(
            shape=shape.name,
            model=f"{path.name} ({engine.model.description})",
            is_random=is_random,
            file_bytes=path.stat().st_size,
            active_bytes=shape.active_bytes,
            prompt_tokens=rig.prompt_tokens,
            kv_type=kv_type,
            cells=cells,
            gpu_bytes=None if free is None or left is None else free - left,
            estimated_bytes=head.file_bytes + placement.cache_bytes(head, cells, kv_type),
            figures=figures,
        )
    finally:
        engine.close()


def as_markdown(run: Run, facts: dict[str, str], command: str) -> str:
    """Return a run as a table, and say what it is not."""
    only = "random weights, timing only" if run.is_random else "the real model"
    shown = {
        **facts,
        "model": f"{run.model}; {only}; {run.file_bytes / 1e9:.2f} GB, of which a token reads "
        f"{run.active_bytes / 1e9:.2f} GB",
        "prompt": f"{run.prompt_tokens} tokens",
        "cache": f"{run.cells} cells of {run.kv_type}",
        "memory": f"{run.estimated_bytes / 1e9:.2f} GB estimated for weights and cache",
    }
    if run.gpu_bytes is not None:
        shown["memory"] += f"; {run.gpu_bytes / 1e9:.2f} GB of the GPU's were taken"
    return f"## {run.shape}\n\n" + report.as_markdown(run.figures, shown, command)


def _cells(on_cpu: bool) -> int:
    """Return the default number of cells, as the engine has it."""
    return placement.DEFAULTS["cpu" if on_cpu else "gpu"]["context_tokens"]


def _model_of(shape: Shape) -> Path | None:
    """Return the file of the real model with this shape, if it is here."""
    try:
        path = store.path_of(manifest.find(shape.model)) if shape.model else None
    except LcursorError:
        return None
    return path if path and path.is_file() else None


def _percent(shape: Shape, told: Told) -> Callable[[float], None]:
    said = -1

    def tell(fraction: float) -> None:
        nonlocal said
        if int(fraction * 10) > said:
            said = int(fraction * 10)
            told(f"writing random weights for {shape.name}: {said * 10} %")

    return tell


class _Rig:
    """An engine, a second context on its model, and the text that both read."""

    def __init__(self, engine: Engine, rounds: int) -> None:
        self.engine, self.rounds = engine, rounds
        tokenize = engine.model.tokenize
        self.prefix, self.suffix = text_around(tokenize)
        self.tokens = tokenize(self.prefix + self.suffix)[:PROMPT_TOKENS]
        self.line = line_of(tokenize)
        self.prompt_tokens = 0

    def figures(self, line_limit_ms: float | None, told: Told) -> Iterator[Figure]:
        """Measure all, one after the other."""
        size = context_size(self.engine.config, bool(self.engine.config.gpu_layers), 0)
        size = replace(size, sequences=1)
        context = llama.Context(self.engine.model, size)
        try:
            told("the steps: prefill, decode, verify")
            for most in SLICES:
                reads = [self._prefill(context, most) for _ in range(self.rounds + 1)][1:]
                yield figure(f"read {len(self.tokens)} tokens, {most} at once", reads)
            yield figure("write one token", self._decode(context))
            for count in range(1, MAX_VERIFIED + 1):
                yield figure(f"verify {count} at once", self._verify(context, [count]))
            widths = list(range(1, MAX_VERIFIED + 1))
            yield figure("verify 1 to 8 in turn", self._verify(context, widths))
            yield figure("verify 1 or 8 in turn", self._verify(context, [1, MAX_VERIFIED]))
        finally:
            context.close()
        told("typing: splices, lines, stops")
        yield figure("a keystroke, spliced", self._typing(4 * self.rounds, ""))
        lines = self._typing(3 * self.rounds, self.line)
        yield figure(
            f"a line of {LINE_TOKENS} tokens after a keystroke", lines, limit=line_limit_ms
        )
        stops = self._stops(percentile(reads, 50))
        if stops:
            yield figure("a running read stops", stops)

    def _prefill(self, context: llama.Context, most: int) -> float:
        context.remove(0, 0)
        began = time.perf_counter()
        for start in range(0, len(self.tokens), most):
            context.decode(self.tokens[start : start + most], start)
        context.logits()
        return _ms_since(began)

    def _decode(self, context: llama.Context) -> list[float]:
        """Write token after token, as a model does that is not helped."""
        position, samples = len(self.tokens), []
        context.decode(self.tokens[-1:], position)
        for number in range(1, 6 * self.rounds + 3):
            began = time.perf_counter()
            token, _ = likelihood.argmax_with_probability(context.logits())
            context.decode([token], position + number)
            context.logits()
            samples.append(_ms_since(began))
        context.remove(0, position)
        return samples[2:]  # graphs are made in the first

    def _verify(self, context: llama.Context, counts: Sequence[int]) -> list[float]:
        """Check batches of guesses of these widths, one after the other."""
        position, samples = len(self.tokens), []
        for _, count in zip(range(3 * self.rounds + 2), cycle(counts), strict=False):
            began = time.perf_counter()
            context.decode(self.tokens[:count], position, outputs=count)
            for number in range(count):
                likelihood.argmax_with_probability(context.logits(number))
            samples.append(_ms_since(began))
            context.remove(0, position)
        return samples[2:]

    def _typing(self, keys: int, text: str) -> list[float]:
        """Type, and have the model write `text` behind each key."""
        engine, typed, samples = self.engine, "", []
        engine.reader.splices = False
        engine.nll(self._source(""), "")
        self.prompt_tokens = self.prompt_tokens or engine.read_tokens
        engine.reader.splices = True
        for _, char in zip(range(keys + 2), cycle(TYPED), strict=False):
            typed += char
            began = time.perf_counter()
            engine.nll(self._source(typed), text)
            samples.append(_ms_since(began))
        return samples[2:]

    def _stops(self, read_ms: float) -> list[float]:
        """Stop readings of a whole prompt at random moments."""
        rng, samples, engine = random.Random(1), [], self.engine
        for number in range(2 * self.rounds):
            asked = 0.0

            def stop() -> None:
                nonlocal asked
                asked = time.perf_counter()
                engine.abort.set()

            timer = threading.Timer(rng.uniform(0.1, 0.8) * read_ms / 1000, stop)
            timer.start()
            try:
                engine.nll(self._source("", first=f"# {number}\n"), "")
            except Cancelled:
                samples.append(_ms_since(asked))
            finally:
                timer.cancel()
                timer.join()
                engine.abort.clear()
        return samples

    def _source(self, typed: str, first: str = "") -> Source:
        return Source(first + self.prefix + typed, self.suffix, 0, "bench.py", "bench")


def text_around(tokenize: Callable[[str], list[int]]) -> tuple[str, str]:
    """Return code of this project as the text before and behind a cursor, of the wanted sizes."""
    lines = (
        line
        for path in sorted((ROOT / "lcursor").rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True)
    )
    parts = []
    for wanted in (PREFIX_TOKENS, SUFFIX_TOKENS + 60):
        text, count = "", 0
        while count < wanted:
            line = next(lines)
            text, count = text + line, count + len(tokenize(line))
        parts.append(text)
    return parts[0] + "\n    ", "\n" + parts[1]


def line_of(tokenize: Callable[[str], list[int]]) -> str:
    """Return the longest start of a line of code that is `LINE_TOKENS` tokens."""
    line = "return sorted(found, key=lambda each: (each.name, each.size, -each.weight))"
    ends = range(len(line), 0, -1)
    return next(line[:end] for end in ends if len(tokenize(line[:end])) == LINE_TOKENS)


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
