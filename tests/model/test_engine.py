"""The engine with the real model: what it writes, what it reuses, how it stops."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled, ModelCorrupt, OutOfMemory
from lcursor.fim import gpus, llama
from lcursor.fim.drafts import BranchDecoder
from lcursor.fim.engine import Engine
from lcursor.fim.llama import Model
from lcursor.fim.prompt import Source
from tests.waiting import BUDGET_MS

CONFIG = CompletionConfig(min_confidence=0.0, save_cache=False, budget_ms=BUDGET_MS)
BEFORE = 'def add(a, b):\n    """Return the sum of a and b."""\n    return '
AFTER = "\n\n\nprint(add(2, 3))\n"
NEARLY_EQUAL = 0.5
"""Logits of two tokens that differ by less may change places in a batch of another width."""


def complete(engine: Engine, before: str = BEFORE, after: str = AFTER, **options: bool):
    """Complete; return the result and every partial text."""
    partials: list[str] = []
    source = Source(before, after, 0, "shapes.py", "demo")
    options = {"bypass_cache": True, **options}
    return engine.complete(source, partials.append, **options), partials


def do_idle_work(engine: Engine) -> None:
    """Do all idle work; the vocabulary, which healing needs, is there as well then."""
    while engine.idle():
        pass


def test_a_model_that_does_not_fit_the_gpu_runs_on_the_cpu(
    model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = llama.Model

    def refuse(path: Path, gpu_layers: int, progress: llama.Progress, main_gpu: int) -> Model:
        if gpu_layers:
            raise OutOfMemory(f"{path.name} does not fit into memory")
        return load(path, gpu_layers, progress, main_gpu)

    monkeypatch.setattr(llama, "Model", refuse)
    monkeypatch.setattr(llama, "has_gpu", lambda: True)
    engine = Engine(model_path, "", CompletionConfig(budget_ms=BUDGET_MS), lambda _: True)
    try:
        do_idle_work(engine)
        assert complete(engine)[0].text == "a + b"
        [warning] = engine.warnings
        assert "does not fit into the GPU's memory" in warning.message
        assert warning.message.endswith("; it runs on the CPU instead")
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("free", "found"),
    [(1100 << 20, "on the GPU: 9984 cells"), (100 << 20, "on the CPU: 4096 cells")],
)
def test_what_is_free_in_the_gpu_decides_where_the_model_runs(
    model_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, found: str
) -> None:
    monkeypatch.setattr(llama, "has_gpu", lambda: True)
    monkeypatch.setattr(gpus, "free_bytes", lambda number: free)
    # This build has no GPU with a number; "all of them" is none, and the model runs all the same.
    config = CompletionConfig(
        main_gpu=-1, min_confidence=0.0, save_cache=False, budget_ms=BUDGET_MS
    )
    engine = Engine(model_path, "", config, lambda _: True)
    try:
        do_idle_work(engine)
        assert found in engine.description
        assert complete(engine)[0].text == "a + b"
        assert [warning.code for warning in engine.warnings] == ["out_of_memory"] * ("CPU" in found)
        assert engine.config.idle_minutes == 30  # then the GPU is tried again
        engine.configure(replace(config, max_tokens=50))
        assert found in engine.description
    finally:
        engine.close()


def test_a_quantized_cache_completes_with_half_the_memory(model_path: Path, engine: Engine) -> None:
    config = CompletionConfig(
        kv_type="q8_0", min_confidence=0.0, save_cache=False, budget_ms=BUDGET_MS
    )
    small = Engine(model_path, "", config, lambda _: True)
    try:
        do_idle_work(small)
        before = BEFORE.replace("sum", "total sum")  # typed further up: cells are moved and kept
        for text, rest in ((BEFORE, "a + b"), (before, "a + b"), (before + "a ", "+ b")):
            assert complete(small, text)[0].text == rest
        complete(engine, before + "a ")
        assert small._fingerprint() != engine._fingerprint()
        sizes = [
            len(each._context.state(each._slots.current.sequences.full, 1 << 30))
            for each in (small, engine)
        ]
        assert 0 < sizes[0] < 0.6 * sizes[1]
    finally:
        small.close()


def test_it_completes_code(engine: Engine) -> None:
    result, _ = complete(engine)
    assert result.text == "a + b"
    assert 0 < result.confidence <= 1


def test_typing_inside_a_word_reads_nothing(engine: Engine) -> None:
    before = BEFORE.removesuffix("return ")
    complete(engine, before + "re")
    result, _ = complete(engine, before + "retu")
    assert result.text == "rn a + b"
    assert result.read_tokens == 0


def test_typing_on_reads_a_handful(engine: Engine) -> None:
    before = BEFORE.removesuffix("return ")
    for end in range(1, len("return sum((a")):
        result, _ = complete(engine, before + "return sum((a"[:end])
        if end > 1:
            assert result.read_tokens <= 6, end


def test_alternatives_are_others_and_leave_the_first_as_it_was(engine: Engine) -> None:
    first, _ = complete(engine, "colors = [", "]\n")
    others = engine.alternatives()
    assert others
    assert len({first.text, *others}) == 1 + len(others)
    again, _ = complete(engine, "colors = [", "]\n")
    assert again.text[:5] == first.text[:5]  # later, a wider batch may tip what is nearly even
    assert again.read_tokens == 0


def test_alternatives_are_the_same_when_written_one_by_one(
    unadapted: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of another width round differently, which may decide between near equals only."""
    read, widths = BranchDecoder.read, list[int]()
    steps: dict[int, list[tuple[int, float]]]

    def read_together(self: BranchDecoder, tokens: dict[int, int]) -> dict[int, Any]:
        widths.append(len(tokens))
        logits = read(self, tokens)
        for n, row in logits.items():
            second, first = np.partition(row, -2)[-2:]
            steps.setdefault(n, []).append((int(row.argmax()), float(first - second)))
        return logits

    def read_one_by_one(self: BranchDecoder, tokens: dict[int, int]) -> dict[int, Any]:
        return {n: read_together(self, {n: token})[n].copy() for n, token in tokens.items()}

    for before in ("colors = [", BEFORE.removesuffix("return ") + "result = "):
        complete(unadapted, before, "]\n")
        written = []
        for method in (read_together, read_one_by_one):
            steps = {}
            monkeypatch.setattr(BranchDecoder, "read", method)
            unadapted.alternatives()  # after trimming, they may be equal to the first
            assert steps
            written.append(steps)
        together, one_by_one = written
        assert together.keys() == one_by_one.keys()
        for n, text in together.items():
            for (token, margin), (alone, _) in zip(text, one_by_one[n], strict=False):
                if token != alone:
                    assert margin < NEARLY_EQUAL
                    break
    assert max(widths) == 2


def test_the_rest_of_a_suggestion_is_guessed_with_the_prompt(engine: Engine) -> None:
    before = "def area(width, height):\n    return width * height\n\n\ndef volume("
    first, _ = complete(engine, before, "\n", single_line=True)
    assert first.text.startswith("width, height")
    cold = first.passes
    again, _ = complete(engine, before + "wide, height", "\n", single_line=True)
    assert again.generated_tokens > again.passes
    assert again.passes < cold


@pytest.mark.parametrize("switch", ["splices", "heals"])
def test_switches_change_how_not_what(
    engine: Engine, switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, _ = complete(engine)
    monkeypatch.setattr(engine.reader, switch, False)
    result, _ = complete(engine)
    assert result.text == wanted.text


def test_reuse_changes_nothing(engine: Engine) -> None:
    for end in range(len(BEFORE) - 8, len(BEFORE)):
        complete(engine, BEFORE[:end])
    warm, _ = complete(engine)
    complete(engine, "x = 1\n", "")
    cold, _ = complete(engine)
    assert warm.text == cold.text


HEADS = {
    "a.py": ("def f(x):", "class A:\n    def f(self, x):", "while True:", "if x:\n    pass\nelse:"),
    "crlf.py": ("class A:\r\n    def f(self, x):", "def f(x):\r\n    if x:"),
    "a.c": ("int add(int a, int b) {", "int f(int x)\n{\n\tif (x > 0) {"),
    "a.go": ("package main\n\nfunc add(a, b int) int {",),
    "a.js": ("function add(a, b) {", "class A {\n  get(x) {"),
}


@pytest.mark.parametrize("heals", [True, False])
@pytest.mark.parametrize(
    ("path", "head"), [(path, head) for path, heads in HEADS.items() for head in heads]
)
def test_a_block_begins_on_the_next_line(
    engine: Engine,
    unadapted: Engine,
    path: str,
    head: str,
    heals: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without healing too, as on servers; the adapter was trained with it."""
    engine = engine if heals else unadapted
    monkeypatch.setattr(engine.reader, "heals", heals)
    shown: list[str] = []
    result = engine.complete(Source(head, "", 0, path, "demo"), shown.append, bypass_cache=True)
    own = head.rpartition("\n")[2]
    indent = own[: len(own) - len(own.lstrip())]
    for text in (*shown, result.text):
        newline, first, rest = text.partition("\n")[1], *text.partition("\n")[::2]
        assert (newline, first.strip()) == ("\n", "")
        assert rest.startswith(indent)
        assert rest.removeprefix(indent)[:1].isspace()


@pytest.mark.parametrize("immediately", [False, True])
def test_a_cancelled_request_leaves_the_cache_true(engine: Engine, immediately: bool) -> None:
    """Stop at many moments; afterwards the answer is that of an undisturbed engine."""
    stop = partial(engine.abort.set, immediately=immediately)
    wanted, _ = complete(engine)
    filler = "".join(f"value_{n} = {n}\n" for n in range(60))
    for number in range(6):
        timer = threading.Timer(0.03 + number * 0.04, stop)
        timer.start()
        with pytest.raises(Cancelled):  # for how long it may go on then, the bench has a number
            for turn in range(100):
                complete(engine, f"# {number} {turn}\n" + filler + BEFORE)
        timer.join()
        engine.abort.clear()
        assert (
            engine._context.length(engine._slots.current.sequences.full)
            == engine._slots.current.shadow.end
        )
        assert engine._context.length(engine._slots.current.sequences.prefix) == len(
            engine._slots.current.shadow.prefix
        )
        after, _ = complete(engine)
        assert after.text == wanted.text


@pytest.mark.parametrize("is_request", [False, True])
def test_a_decode_that_runs_is_stopped(
    engine: Engine, is_request: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flag reaches llama.cpp itself; the batch of a request stops only if told so."""
    decode, stopped = engine._context.decode, list[int]()

    def stop(tokens: list[int], *where: int) -> None:
        timer = threading.Timer(0.02, partial(engine.abort.set, immediately=is_request))
        timer.start()
        try:
            decode(tokens, *where)
        except Cancelled:
            stopped.append(len(tokens))
            raise
        finally:
            timer.join()

    monkeypatch.setattr(engine._context, "decode", stop)
    with pytest.raises(Cancelled):
        for turn in range(20):
            before = f"# {turn}\n" + "".join(f"a_{turn}_{n} = {n}\n" for n in range(60))
            complete(engine, before) if is_request else engine.warm(Source(before, AFTER))
    assert stopped
    engine.abort.clear()


def test_a_file_of_garbage_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"no GGUF at all" * 100)
    with pytest.raises(ModelCorrupt, match=r"model\.gguf"):
        Engine(path, "", CompletionConfig(), lambda fraction: True)


def test_a_load_can_be_stopped(model_path: Path) -> None:
    with pytest.raises(Cancelled):
        Engine(model_path, "", CompletionConfig(), lambda fraction: fraction < 0.3)


def test_a_window_larger_than_the_cache_is_cut(model_path: Path) -> None:
    config = CompletionConfig(context_tokens=256, prefix_tokens=4096, max_tokens=8)
    small = Engine(model_path, "", config, lambda fraction: True)
    try:
        result, _ = complete(small, "".join(f"value_{n} = {n}\n" for n in range(400)), AFTER)
        assert result.prompt_tokens + 8 <= 256
    finally:
        small.close()
