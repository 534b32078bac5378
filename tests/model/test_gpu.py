"""The engine on a GPU, with a tiny model: CUDA, Vulkan, or Mesa's software device.

    export GGML_VK_VISIBLE_DEVICES=0 GGML_VK_DISABLE_FUSION=1
    LCURSOR_GPU=vulkan LCURSOR_MODELS=/none python3 lcursor/install.py --venv .venv-gpu --with dev
    .venv-gpu/bin/python -m pytest tests/model/test_gpu.py

compiles with Vulkan, if `glslc` and new headers are here. The first variable lets ggml use a
software device; without the second one Mesa 22.3 crashes in most runs.
"""

from __future__ import annotations

import ctypes
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import llama_cpp
import pytest

from lcursor import system
from lcursor.catalog import selftest_model
from lcursor.config import CompletionConfig
from lcursor.errors import OutOfMemory
from lcursor.fim import gpus, llama
from lcursor.fim.engine import Engine
from lcursor.fim.families import FAMILIES
from lcursor.fim.llama import Context, ContextSize, Model
from lcursor.fim.prompt import Source
from lcursor.installer import selftest
from tests.waiting import BUDGET_MS

pytestmark = pytest.mark.skipif(not gpus.find(), reason="the engine was built for the CPU")

SIZE = ContextSize(cells=512, batch=64, ubatch=64, sequences=3, outputs=8, threads=1)
TOKENS = selftest_model.tokens(64)
ALL, NONE = -1, 0
"""Layers on the GPU."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model, with the markers of a model that fills in the middle."""
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    markers = list(FAMILIES["qwen2.5-coder"].markers.values())
    selftest_model.write(path, markers=markers)
    return path


@contextmanager
def log() -> Iterator[list[str]]:
    """Collect what llama.cpp logs."""
    lines: list[str] = []

    def collect(level: int, text: bytes, _data: object) -> None:
        lines.append(text.decode("utf-8", "replace"))

    receiver = llama_cpp.llama_log_callback(collect)
    listen = llama._listen
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llama, "_listen", lambda _: None)  # it replaces the receiver of the log
        llama_cpp.llama_log_set(receiver, ctypes.c_void_p(0))
        try:
            yield lines
        finally:
            listen(False)


def is_software() -> bool:
    return "llvmpipe" in gpus.find()[0].name


def load(path: Path, gpu_layers: int) -> Model:
    return Model(path, gpu_layers, lambda _: True)


def are_equal(one: list[float], other: list[float]) -> bool:
    return selftest_model.error(one, other) < selftest_model.MAX_ERROR


def on_both(path: Path, work: Callable[[Context], Any]) -> tuple[list[float], list[float]]:
    """Do some work on the GPU and on the CPU, and return the last logits of both."""
    found = []
    for layers in (ALL, NONE):
        with closing(load(path, layers)) as model, closing(Context(model, SIZE)) as context:
            work(context)
            found.append(context.logits().tolist())
    return found[0], found[1]


def test_a_build_for_a_gpu_passes_its_self_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without the default model: a software device has no buffers of the size of its output.
    monkeypatch.setenv("LCURSOR_MODELS", str(tmp_path))
    outcome = selftest.run_engine(Path(sys.executable), on_gpu=True)
    assert outcome.kind == "passed", outcome.sentence


def test_all_layers_and_the_cache_are_on_the_gpu(path: Path) -> None:
    with log() as lines, closing(load(path, ALL)) as model, closing(Context(model, SIZE)):
        pass
    text = "".join(lines)
    assert "offloaded 3/3 layers to GPU" in text
    [cache] = [line for line in lines if "KV buffer size" in line]
    assert "CPU" not in cache


def test_a_model_on_the_cpu_uses_no_gpu(path: Path) -> None:
    with log() as lines, closing(load(path, NONE)) as model, closing(Context(model, SIZE)):
        pass
    buffers = [line for line in lines if "buffer size" in line]
    assert any("compute" in line for line in buffers)
    on_cpu = (" CPU", " AMX")  # AMX: the matrix unit of some Intel processors
    assert [line for line in buffers if not any(name in line for name in on_cpu)] == []


def test_a_splice_computes_the_same_as_on_the_cpu(path: Path) -> None:
    def splice(context: Context) -> None:
        before, after = TOKENS[:20], TOKENS[20:40]
        context.decode(before, 0, sequence=1)
        context.copy(1, 0, 0, 20)
        context.decode(after, 20, sequence=0)
        context.move(0, 20, -1, 12)  # a gap for what is typed
        context.decode(TOKENS[40:44], 20, sequence=1)
        context.copy(1, 0, 20, 24)
        context.decode(TOKENS[50:54], context.length(0))

    on_gpu, on_cpu = on_both(path, splice)
    assert are_equal(on_gpu, on_cpu)
    plain, _ = on_both(path, lambda context: context.decode(TOKENS[:44], 0))
    assert not are_equal(on_gpu, plain)


def test_a_saved_state_continues_where_it_was(path: Path) -> None:
    with closing(load(path, ALL)) as model:
        with closing(Context(model, SIZE)) as context:
            context.decode(TOKENS[:40], 0)
            state = bytes(context.state(0, 1 << 30))
            context.decode(TOKENS[40:44], 40)
            expected = context.logits().tolist()
        with closing(Context(model, SIZE)) as context:
            assert context.restore(0, state)
            assert context.length() == 40
            context.decode(TOKENS[40:44], 40)
            assert are_equal(context.logits().tolist(), expected)


@contextmanager
def limited_memory(free_bytes: int) -> Iterator[None]:
    """Let this process, whose memory a software device uses, allocate only so much more."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + free_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def test_a_cache_that_does_not_fit_is_out_of_memory(path: Path) -> None:
    total_bytes = sum(device.total_bytes for device in gpus.find())
    cells = 1 << 18 if is_software() else 2 * total_bytes // 1024  # of 1 KiB each
    size = ContextSize(cells=cells, batch=64, ubatch=64)
    with closing(load(path, ALL)) as model:
        limited = limited_memory(1 << 27) if is_software() else nullcontext()
        with limited, pytest.raises(OutOfMemory, match=f"a cache of {cells} tokens"):
            Context(model, size)
        Context(model, SIZE).close()


def complete(path: Path, config: CompletionConfig) -> tuple[str, list[str]]:
    """Return where a model runs, and what was warned of."""
    with closing(Engine(path, "qwen2.5-coder", config, lambda _: True)) as engine:
        source = Source("def add(a, b):\n    return ", "\n", 0, "shapes.py", "demo")
        engine.complete(source, lambda _: None, bypass_cache=True)
        return engine.description, [warning.message for warning in engine.warnings]


def test_a_model_completes_on_the_gpu_or_else_on_the_cpu(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = CompletionConfig(
        context_tokens=512, min_confidence=0.0, save_cache=False, budget_ms=BUDGET_MS
    )
    where, warnings = complete(path, config)
    assert "on the GPU" in where
    assert not [each for each in warnings if "memory" in each]
    monkeypatch.setattr(gpus, "free_bytes", lambda _: 1 << 20)
    where, warnings = complete(path, config)
    assert "on the CPU" in where
    [warning] = [each for each in warnings if "does not fit into the GPU's memory" in each]
    assert warning.endswith("; it runs on the CPU instead")


def test_an_unloaded_model_leaves_nothing_on_the_gpu(path: Path) -> None:
    def used() -> int:
        on_gpu = sum(device.total_bytes - device.free_bytes for device in gpus.find())
        return (
            on_gpu or system.resident_bytes()
        )  # the memory of a software device is that of this process

    load(path, ALL).close()  # the first load keeps what the driver needs
    before = used()
    size = ContextSize(cells=1 << 16, batch=64, ubatch=64)
    with closing(load(path, ALL)) as model, closing(Context(model, size)):
        assert used() - before > 1 << 24
    assert used() - before < 1 << 24
