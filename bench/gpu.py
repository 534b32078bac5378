"""`bench gpu`: what a model costs on a GPU, for each step and for a whole line.

Everything runs in this process and thread; only the flag that aborts a request is set from another
thread.
"""

from __future__ import annotations

import random
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.report import Json, Report, exit_unless, ms_since, percentile, progress
from evals.run import Model
from lcursor.catalog import gguf, hardware, manifest, memory, selftest_model, store
from lcursor.config import CompletionConfig
from lcursor.drive.editor import ROOT
from lcursor.errors import Cancelled, LcursorError
from lcursor.fim import confidence, gpus, llama, placement
from lcursor.fim.engine import Engine
from lcursor.fim.families import FAMILIES
from lcursor.fim.prompt import Source
from lcursor.fim.slots import context_size

PREFIX_TOKENS, SUFFIX_TOKENS, PROMPT_TOKENS = 1880, 150, 2000
LINE_TOKENS = 12
MAX_VERIFIED = 8
SLICES = 128, 512
LINE_LIMIT_MS = 60.0
ROUNDS_ON_CPU, ROUNDS_ON_GPU = 1, 10
FAMILY = "qwen2.5-coder"
TYPED = "values = compute(first, second)[index] + offset * factor # and the rest\n    "


def _layers(count: int) -> tuple[tuple[str, str, str, str], ...]:
    """Return the formats of the layers of a model in Q4_K_M."""
    eighth = count // 8
    rows = []
    for at in range(count):
        is_finer = at < eighth or at >= 7 * eighth or (at - eighth) % 3 == 2
        form = "Q6_K" if is_finer else "Q4_K"
        rows.append(("Q4_K", form, "Q4_K", form))
    return tuple(rows)


SHAPES = {
    "1.5b": selftest_model.Shape(1536, 8960, 12, 2, _layers(28)),
    "7b": selftest_model.Shape(3584, 18944, 28, 4, _layers(28), vocabulary=152_064),
}
"""Sizes of Qwen2.5-Coder, by the number of parameters."""

STEPS = {
    "line": "gpu",
    "line-1.5b": "gpu --shape 1.5b",
    "line-7b": "gpu --shape 7b",
    "edit": "edit",
    "slots": "slots",
    "index": "index",
}
"""What `bench gpu-all` measures: names of the tables, and commands of `bench`."""


def command(
    model: Model = "",
    shape: Annotated[
        str, typer.Option(help=f"Random weights of this size: {' or '.join(SHAPES)}.")
    ] = "",
    cpu: Annotated[bool, typer.Option("--cpu", help="Use only the CPU.")] = False,
    rounds: Annotated[int, typer.Option(min=0, help="Repetitions; 0 chooses them.")] = 0,
    kv_type: Annotated[str, typer.Option(help="Type of the KV cache: f16 or q8_0.")] = "f16",
    as_json: Json = False,
) -> None:
    """Measure what a completion model costs on the GPU: its steps, a keystroke, a whole line.

    Exits with 1 when a promise is not kept.
    """
    if kv_type not in memory.KV_TYPE_BYTES:
        raise typer.BadParameter(f"unknown type: {kv_type}; one of f16, q8_0")
    if shape and (model or shape not in SHAPES):
        raise typer.BadParameter(f"--shape is {' or '.join(SHAPES)}, without --model")
    check_gpu(cpu)
    report = Report()
    report.facts["machine"] |= {
        "gpu": "not used" if cpu else hardware.detect().using(gpus.find()).describe(),
        "llama-cpp-python": version("llama-cpp-python"),
    }
    with random_model(shape) if shape else _stored(model) as path:
        measure(report, path, cpu, rounds, kv_type)
    if shape:
        report.facts["model"] += ", with random weights"
    report.finish(as_json, *heading(report.facts))


def all_command(
    folder: Annotated[Path, typer.Argument(help="Gets a table for each measurement.")],
    minutes: Annotated[float, typer.Option(help="Time for all of them.")] = 10.0,
    cpu: Annotated[bool, typer.Option("--cpu", help="Use only the CPU.")] = False,
) -> None:
    """Measure lines, edits, parallel requests and the index, for this environment's GPU.

    Exits with 1 when a measurement fails, does not end in time, or a promise is not kept.
    """
    check_gpu(cpu)
    folder.mkdir(parents=True, exist_ok=True)
    ends_s, holds = time.monotonic() + 60 * minutes, True
    for name, step in STEPS.items():
        words = [*shlex.split(step), *(["--cpu"] if cpu and step.startswith("gpu") else [])]
        problem = _run_step(words, folder / f"{name}.md", ends_s - time.monotonic())
        progress(f"{name}: {problem or 'done'}")
        holds = holds and not problem
    exit_unless(holds)


def _run_step(words: Sequence[str], path: Path, limit_s: float) -> str:
    """Write the table of a bench to a file; return what went wrong."""
    if limit_s <= 0:
        return "not run, because the time is over"
    command = [sys.executable, "-m", "lcursor", "bench", *words]
    with path.open("w", encoding="utf-8") as file:
        try:
            code = subprocess.run(command, stdout=file, timeout=limit_s, check=False).returncode
        except subprocess.TimeoutExpired:
            return "stopped, because the time is over"
    return f"failed with exit status {code}" if code else ""


@contextmanager
def random_model(shape: str) -> Iterator[Path]:
    """Write a model with random weights: its text is noise, and its speed that of a real one.

    Its tokens are single bytes.
    """
    file = manifest.find(f"{FAMILY}-{shape}").file
    with tempfile.TemporaryDirectory(prefix="lcursor-bench-") as folder:
        path = Path(folder, file)  # the name tells the family
        progress(f"writing random weights: {path}")
        markers = list(FAMILIES[FAMILY].markers.values())
        selftest_model.write(path, SHAPES[shape], markers)
        yield path


@contextmanager
def _stored(model: str) -> Iterator[Path]:
    yield store.resolve(model or CompletionConfig().model, "completion")


def check_gpu(on_cpu: bool) -> None:
    """Check that there is a GPU that llama.cpp can use, unless the CPU is asked for."""
    if on_cpu or llama.has_gpu():
        return
    found = hardware.detect()
    if found.vendor == "none":
        raise LcursorError("no GPU here", "--cpu measures the CPU instead")
    raise LcursorError(
        f"this machine has a GPU ({found.gpu}), and llama.cpp was built without support for it",
        "Run :LCursor install to build it again; --cpu measures the CPU instead",
    )


def measure(report: Report, path: Path, on_cpu: bool, rounds: int, kv_type: str) -> None:
    """Measure one model.

    Args:
        report: gets the figures, and as facts what was loaded.
        path: of the model.
        on_cpu: use no GPU.
        rounds: 1 to 8 samples each; 0 for a default.
        kv_type: type of keys and values: "f16" or "q8_0".

    Raises:
        OutOfMemory, LcursorError: see `Engine`.
    """
    config = CompletionConfig(
        gpu_layers=0 if on_cpu else -1,
        context_tokens=_cells(on_cpu),
        kv_type=kv_type,
        prefix_tokens=PREFIX_TOKENS + 160,  # typing never moves the window
        suffix_tokens=SUFFIX_TOKENS,
        files_tokens=0,
        max_tokens=LINE_TOKENS + 4,
    )
    progress(f"loading {path.name}")
    free = None if on_cpu else gpus.free_bytes(config.main_gpu)
    began = time.perf_counter()
    engine = Engine(path, manifest.family_of(path), config, lambda fraction: True)
    report.add("load the model", [ms_since(began)])
    for warning in engine.warnings:  # that it runs on the CPU instead, for example
        progress(warning.message)
    left = None if on_cpu else gpus.free_bytes(config.main_gpu)
    head, cells = gguf.check(path), engine.config.context_tokens
    engine.reader.heals = False
    try:
        rig = _Rig(engine, report, rounds or (ROUNDS_ON_CPU if on_cpu else ROUNDS_ON_GPU))
        rig.measure(None if on_cpu else LINE_LIMIT_MS)
        report.facts |= {
            "model": f"{path.name} ({engine.model.description})",
            "file_bytes": path.stat().st_size,
            "prompt_tokens": rig.prompt_tokens,
            "kv_type": kv_type,
            "cells": cells,
            "gpu_bytes": None if free is None or left is None else free - left,
            "estimated_bytes": head.file_bytes + memory.kv_cache_bytes(head, cells, kv_type),
        }
    finally:
        engine.close()


def heading(facts: Mapping[str, Any]) -> list[str]:
    """Return what the head of the report says about the model and its memory."""
    memory = f"{facts['estimated_bytes'] / 1e9:.2f} GB estimated for weights and cache"
    if facts["gpu_bytes"] is not None:
        memory += f"; {facts['gpu_bytes'] / 1e9:.2f} GB of GPU memory were allocated"
    return [
        f"Model: {facts['model']}; {facts['file_bytes'] / 1e9:.2f} GB",
        f"Prompt: {facts['prompt_tokens']} tokens",
        f"Cache: {facts['cells']} cells of {facts['kv_type']}",
        f"Memory: {memory}",
    ]


def _cells(on_cpu: bool) -> int:
    """Return the default number of cells, as the engine has it."""
    return placement.resolve(CompletionConfig(), "cpu" if on_cpu else "gpu").context_tokens


class _Rig:
    """An engine, a second context on its model, and the prompt of both."""

    def __init__(self, engine: Engine, report: Report, rounds: int) -> None:
        self.engine, self.report, self.rounds = engine, report, rounds
        tokenize = engine.model.tokenize
        self.prefix, self.suffix = text_around(tokenize)
        self.tokens = tokenize(self.prefix + self.suffix)[:PROMPT_TOKENS]
        self.line = line_of(tokenize)
        self.prompt_tokens = 0

    def measure(self, line_limit_ms: float | None) -> None:
        """Measure everything."""
        size = context_size(self.engine.config, bool(self.engine.config.gpu_layers), 0)
        context = llama.Context(self.engine.model, replace(size, sequences=1))
        add = self.report.add
        try:
            progress("the steps: prefill, decode, verify")
            for most in SLICES:
                reads = [self._prefill(context, most) for _ in range(self.rounds + 1)][1:]
                add(f"read {len(self.tokens)} tokens, {most} at once", reads)
            add("write one token", self._decode(context))
            widths = list(range(1, MAX_VERIFIED + 1))
            for count in widths:
                add(f"verify {count} at once", self._verify(context, [count]))
            add("verify 1 to 8 in turn", self._verify(context, widths))
            add("verify 1 or 8 in turn", self._verify(context, [1, MAX_VERIFIED]))
        finally:
            context.close()
        progress("typing: splices, lines, stops")
        add("a keystroke, spliced", self._typing(4 * self.rounds, ""))
        lines = self._typing(3 * self.rounds, self.line)
        title = f"a line of {LINE_TOKENS} tokens after a keystroke"
        add(title, lines, limit=line_limit_ms)
        if stops := self._stops(percentile(reads, 50)):
            add("a running read stops", stops)

    def _prefill(self, context: llama.Context, most: int) -> float:
        context.remove(0, 0)
        began = time.perf_counter()
        for start in range(0, len(self.tokens), most):
            context.decode(self.tokens[start : start + most], start)
        context.logits()
        return ms_since(began)

    def _decode(self, context: llama.Context) -> list[float]:
        """Generate token by token, without speculation."""
        position, samples = len(self.tokens), []
        context.decode(self.tokens[-1:], position)
        for number in range(1, 6 * self.rounds + 3):
            began = time.perf_counter()
            token, _ = confidence.argmax_with_probability(context.logits())
            context.decode([token], position + number)
            context.logits()
            samples.append(ms_since(began))
        context.remove(0, position)
        return samples[2:]  # the first ones build graphs

    def _verify(self, context: llama.Context, counts: Sequence[int]) -> list[float]:
        """Verify batches of drafted tokens of these sizes, in turn."""
        position, samples = len(self.tokens), []
        for _, count in zip(range(3 * self.rounds + 2), cycle(counts), strict=False):
            began = time.perf_counter()
            context.decode(self.tokens[:count], position, outputs=count)
            for number in range(count):
                confidence.argmax_with_probability(context.logits(number))
            samples.append(ms_since(began))
            context.remove(0, position)
        return samples[2:]

    def _typing(self, keys: int, text: str) -> list[float]:
        """Type, and have the model write `text` after each key."""
        engine, typed, samples = self.engine, "", []
        engine.reader.splices = False
        engine.nll(self._source(""), "")
        self.prompt_tokens = self.prompt_tokens or engine.read_tokens
        engine.reader.splices = True
        for _, char in zip(range(keys + 2), cycle(TYPED), strict=False):
            typed += char
            began = time.perf_counter()
            engine.nll(self._source(typed), text)
            samples.append(ms_since(began))
        return samples[2:]

    def _stops(self, read_ms: float) -> list[float]:
        """Abort the evaluation of a whole prompt at random moments."""
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
                samples.append(ms_since(asked))
            finally:
                timer.cancel()
                timer.join()
                engine.abort.clear()
        return samples

    def _source(self, typed: str, first: str = "") -> Source:
        return Source(first + self.prefix + typed, self.suffix, 0, "bench.py", "bench")


def text_around(tokenize: Callable[[str], list[int]]) -> tuple[str, str]:
    """Return code of this project as prefix and suffix of the wanted sizes."""
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
