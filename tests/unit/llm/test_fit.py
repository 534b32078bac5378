from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.catalog import manifest, memory, recommend, store
from lcursor.catalog.hardware import GIB, MIB, Device, Hardware
from lcursor.errors import ModelMissing, OutOfMemory
from lcursor.llm import fit
from lcursor.llm.fit import MemoryBudget, ModelSize
from tests.unit.llm.serving import write_gguf

Q05, Q15, Q7, Q30 = (
    "qwen2.5-coder-0.5b",
    "qwen2.5-coder-1.5b",
    "qwen2.5-coder-7b",
    "qwen3-coder-30b-a3b",
)
CPU = Hardware("none", None, None, None, 16 * GIB, 8)


def weights(name: str) -> ModelSize:
    model = manifest.find(name)
    return ModelSize(
        name, Path(model.file), model.bytes, model.kv_bytes_per_token, model.context_tokens
    )


def gpu(total_gib: float, free_gib: float | None = None, beside: str = Q15) -> MemoryBudget:
    free = total_gib if free_gib is None else free_gib
    here = replace(CPU, vendor="nvidia", gpu="A card", gpu_bytes=int(total_gib * GIB))
    return fit.memory_budget(replace(here, gpu_free_bytes=int(free * GIB)), beside)


def cpu(total_gib: float, beside: str = Q05) -> MemoryBudget:
    return replace(
        fit.memory_budget(replace(CPU, ram_bytes=int(total_gib * GIB)), beside), free_bytes=1 << 60
    )


@pytest.mark.parametrize(
    ("name", "room", "tokens", "fits_whole"),
    [
        (Q30, gpu(24), 65536, True),
        (Q30, gpu(22), 32768, True),
        (Q30, gpu(20.5), 8192, True),
        (Q30, gpu(16), 16384, False),  # a part of it on the CPU
        (Q7, gpu(8), 32768, True),
        (Q7, gpu(24, free_gib=5.5), 16384, True),  # something else has the rest
        (Q7, gpu(80), 65536, True),  # more is of no use
        (Q15, cpu(16), 16384, True),  # a CPU reads no more in a time that one waits
        (Q05, cpu(3), 4096, True),
    ],
)
def test_as_much_context_as_fits(
    name: str, room: MemoryBudget, tokens: int, fits_whole: bool
) -> None:
    plan = fit.make_plan(weights(name), room)
    assert (plan.context_tokens, plan.fits_whole) == (tokens, fits_whole)
    assert ("slowly" in plan.describe()) == (not fits_whole)


def test_the_completion_model_keeps_its_room() -> None:
    alone, beside = gpu(24, beside=""), gpu(24, beside=Q7)
    assert alone.bytes - beside.bytes == memory.completion_bytes(Q7)
    assert "reserved for completion" in fit.make_plan(weights(Q15), beside).describe()


@pytest.mark.parametrize("name", [Q05, Q15, Q7, Q30])
@pytest.mark.parametrize("placement", ["on the GPU", "on the CPU"])
def test_the_numbers_are_those_that_models_recommend_shows(
    name: str, placement: memory.Placement
) -> None:
    assert weights(name).need_bytes(memory.CHAT_TOKENS, placement) == memory.chat_bytes(
        name, placement
    )


@pytest.mark.parametrize("total_mib", [6144, 8188, 12282, 16376, 24564, 32607, 81559])
def test_a_recommended_model_fits_with_its_context(total_mib: int) -> None:
    size = total_mib * MIB
    pair = recommend.recommend(Hardware("nvidia", "A card", size, size, 32 * GIB, 8))
    room = gpu(total_mib / 1024, beside=pair.completion.model)
    plan = fit.make_plan(weights(pair.chat.model), room)
    assert plan.fits_whole
    assert plan.context_tokens >= memory.CHAT_TOKENS


def test_a_wanted_context_is_kept_up_to_the_limit_of_the_model() -> None:
    assert fit.make_plan(weights(Q7), gpu(24), 5000).context_tokens == 5000
    assert fit.make_plan(weights(Q7), gpu(80), 1_000_000).context_tokens == 131072


def test_an_error_names_the_needed_memory_and_what_would_fit() -> None:
    with pytest.raises(OutOfMemory) as caught:
        fit.make_plan(weights(Q7), cpu(7, beside=Q15), 32768)
    assert caught.value.message == (
        "qwen2.5-coder-7b with 32,768 tokens of context needs about 6.7 GiB, and 4.5 GiB of "
        "7.0 GiB are free on the CPU, with 1.5 GiB reserved for completion"
    )
    assert caught.value.hint == ('Set chat.model = "qwen2.5-coder-1.5b" (about 2.1 GiB)')


def test_a_smaller_context_is_offered_first() -> None:
    with pytest.raises(OutOfMemory) as caught:
        fit.make_plan(weights(Q7), cpu(7.5, beside=""), 32768)
    assert caught.value.hint.startswith("Set chat.context_tokens = 24576 (about 6.3 GiB), or set")


def test_if_nothing_fits_another_machine_is_suggested() -> None:
    with pytest.raises(OutOfMemory) as caught:
        fit.make_plan(weights(Q05), cpu(1.5), 0)
    assert "see models" in caught.value.hint


@given(
    total=st.integers(0, 200 * GIB),
    free=st.integers(0, 200 * GIB),
    beside=st.integers(0, 20 * GIB),
    name=st.sampled_from([Q05, Q15, Q7, Q30]),
    placement=st.sampled_from(["on the GPU", "on the CPU"]),
)
def test_a_plan_never_needs_more_than_the_free_memory(
    total: int, free: int, beside: int, name: str, placement: memory.Placement
) -> None:
    room = MemoryBudget(placement, total, min(free, total), beside, 16 * GIB)
    try:
        plan = fit.make_plan(weights(name), room)
    except OutOfMemory:
        assert weights(name).need_bytes(fit.MIN_TOKENS, placement) > room.bytes
        return
    assert not plan.fits_whole or plan.need_bytes <= min(free, total - beside)
    less = fit.smaller_plan(plan)
    assert less is None or less.need_bytes < plan.need_bytes


def test_an_engine_that_was_built_without_the_gpu_has_none() -> None:
    here = replace(CPU, vendor="nvidia", gpu="A card", gpu_bytes=24 * GIB, gpu_free_bytes=24 * GIB)
    assert here.using(()).gpu_bytes is None
    seen = CPU.using([Device("Vulkan0", 8 * GIB, 7 * GIB)])
    assert (seen.gpu, seen.gpu_bytes, seen.gpu_free_bytes) == ("Vulkan0", 8 * GIB, 7 * GIB)
    assert recommend.recommend(seen).chat.placement == "on the GPU"


def test_the_head_of_a_file_says_how_large_its_cache_is(tmp_path: Path) -> None:
    found = fit.measure("toy", write_gguf(tmp_path / "toy.gguf"))
    assert (found.kv_bytes, found.max_tokens) == (8 * 4 * (64 + 64) * 2, 32768)


def test_all_pieces_of_a_cut_file_count(tmp_path: Path) -> None:
    first = write_gguf(tmp_path / "big-00001-of-00003.gguf")
    for number in (2, 3):
        (tmp_path / f"big-0000{number}-of-00003.gguf").write_bytes(bytes(5000))
    assert fit.measure("big", first).file_bytes == first.stat().st_size + 10000


def test_the_recommended_model_or_the_best_that_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LCURSOR_MODELS", str(tmp_path))
    here = replace(CPU, vendor="nvidia", gpu="A card", gpu_bytes=24 * GIB, gpu_free_bytes=24 * GIB)
    said: list[str] = []
    with pytest.raises(ModelMissing) as caught:
        fit.choose_model("", here, said.append)
    assert f"models pull {Q30}" in caught.value.hint
    for name in (Q05, Q7, Q30):
        store.path_of(manifest.find(name)).write_bytes(b"")
        assert fit.choose_model("", here, said.append)[0] == name
    assert fit.choose_model("", CPU, said.append)[0] == Q05
    assert [words.partition(" serves")[0] for words in said] == [Q05, Q7, Q05]
    assert f"models pull {Q30}" in said[0]


def test_a_gpu_of_apple_shares_its_memory() -> None:
    here = replace(CPU, vendor="apple", gpu="Apple GPU", gpu_bytes=12 * GIB, ram_bytes=16 * GIB)
    with pytest.raises(OutOfMemory):
        fit.make_plan(weights(Q30), fit.memory_budget(here, Q15))
    card = replace(here, vendor="nvidia", ram_bytes=64 * GIB)
    assert not fit.make_plan(weights(Q30), fit.memory_budget(card, Q15)).fits_whole
