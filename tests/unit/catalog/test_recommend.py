from __future__ import annotations

from dataclasses import replace

import pytest

from lcursor.catalog import hardware, manifest, memory, recommend
from lcursor.catalog.hardware import GIB, MIB, Device, Hardware
from lcursor.catalog.speed import Measured, Speed

Q05, Q15, Q7 = "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "qwen2.5-coder-7b"
DEVSTRAL, Q30 = "devstral-small-24b", "qwen3-coder-30b-a3b"


def gpu(total_mib: int, free_mib: int | None = None) -> Hardware:
    free = (total_mib if free_mib is None else free_mib) * MIB
    return Hardware("nvidia", "A card", total_mib * MIB, free, 32 * GIB, 8)


@pytest.mark.parametrize(
    ("total_mib", "completion", "chat"),
    [
        (4096, Q15, Q15),  # GTX 1650
        (6144, Q15, Q15),  # RTX 2060
        (8188, Q15, Q7),  # RTX 4060
        (12282, Q15, Q7),  # RTX 3060
        (15360, Q15, Q7),  # T4
        (16376, Q15, DEVSTRAL),  # RTX 4080
        (24564, Q15, Q30),  # RTX 4090
        (32607, Q7, Q30),  # RTX 5090
        (49140, Q7, Q30),  # RTX A6000
        (81559, Q7, Q30),  # H100
    ],
)
def test_pairs_by_gpu_memory(total_mib: int, completion: str, chat: str) -> None:
    found = recommend.recommend(gpu(total_mib))
    assert (found.completion.model, found.chat.model) == (completion, chat)
    assert found.completion.placement == found.chat.placement == "on the GPU"
    assert found.completion.need_bytes + found.chat.need_bytes < total_mib * MIB
    assert found.notes == ()


@pytest.mark.parametrize(
    ("ram_gib", "speed", "completion", "chat"),
    [
        (2, Speed(5000, 200), Q05, Q05),
        (8, Speed(20, 3), Q05, Q15),
        (24, Speed(5000, 200), Q15, Q15),
        (24, None, Q05, Q15),
    ],
)
def test_pairs_without_a_gpu(ram_gib: int, speed: Speed | None, completion: str, chat: str) -> None:
    here = Hardware("none", None, None, None, ram_gib * GIB, 2)
    found = recommend.recommend(here, Measured("", Q05, speed) if speed else None)
    assert (found.completion.model, found.chat.model) == (completion, chat)
    assert found.completion.placement == "on the CPU"
    words = "tokens per second here" if speed else "not measured yet"
    assert found.completion.why.endswith(words)


def test_a_model_saves_less_the_later_it_answers() -> None:
    for model, row in recommend.KEYS_SAVED.items():
        # 160 tokens are read, in effect: 6 tokens are written, each in the time of five.
        speeds = [Speed(160 / delay_s, 160 / delay_s / 5) for delay_s in recommend.DELAYS_S]
        saved = [recommend.keys_saved(model, each) for each in speeds]
        assert saved == pytest.approx(row)
        ends = [recommend.keys_saved(model, Speed(read, read)) for read in (1e9, 1)]
        assert ends == pytest.approx([row[0], row[-1]])
        middle = recommend.keys_saved(model, Speed(160 / 1.5, 160 / 1.5 / 5))
        assert middle == pytest.approx((row[0] + row[1]) / 2)


@pytest.mark.parametrize(
    ("speed", "model"),
    [
        (Speed(207, 43), Q15),  # two cores with AVX-512
        (Speed(150, 35), f"{Q15}-q4_0"),
        (Speed(88, 25), Q05),  # with AVX2
        (Speed(500, 60), Q15),
    ],
)
def test_a_recommendation_follows_the_measured_speed(speed: Speed, model: str) -> None:
    assert recommend.for_cpu(None, Measured("", Q05, speed))[0] == model


def test_a_better_model_needs_to_save_only_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Measured("", Q05, Speed(300, 40))
    for saved, best in ((100, Q15), (102, Q05)):
        table = {Q15: (96,) * 5, Q05: (saved,) * 5}
        monkeypatch.setattr(recommend, "KEYS_SAVED", table)
        assert recommend.for_cpu(None, measured)[0] == best


def test_a_gpu_that_is_too_small_is_reported() -> None:
    found = recommend.recommend(gpu(2048))
    assert found.completion.placement == "on the CPU"
    assert "2.0 GiB are too little" in found.notes[0]


def test_a_gpu_in_use_is_reported() -> None:
    found = recommend.recommend(gpu(24564, 9000))
    assert found.chat.model == Q30
    assert "only 8.8 GiB" in found.notes[0]


@pytest.mark.parametrize("vendor", ["amd", "apple"])
def test_an_unreadable_gpu_is_reported(vendor: hardware.Vendor) -> None:
    here = Hardware(vendor, f"{vendor} GPU", None, None, None, 8)
    found = recommend.recommend(here)
    assert found.completion.placement == "on the CPU"
    assert "cannot read the memory" in found.notes[0]
    assert "unknown" in here.describe()


def test_every_pair_is_of_the_manifest_and_for_its_slot() -> None:
    needs = []
    for completion, chat in recommend.GPU_PAIRS:
        assert "completion" in manifest.find(completion).slots
        assert "chat" in manifest.find(chat).slots
        needs.append(memory.pair_bytes(completion, chat))
    assert needs == sorted(needs, reverse=True)


def test_nvidia_smi_is_read() -> None:
    text = "NVIDIA GeForce RTX 4090, 24564, 23000\nNVIDIA GeForce RTX 3060, 12288, 12000\n"
    assert hardware.parse_nvidia(text) == [
        Device("NVIDIA GeForce RTX 4090", 24564 * MIB, 23000 * MIB),
        Device("NVIDIA GeForce RTX 3060", 12288 * MIB, 12000 * MIB),
    ]
    assert hardware.parse_nvidia("Some, GPU, 100, 50") == [Device("Some, GPU", 100 * MIB, 50 * MIB)]
    for text in ("", "NVIDIA GB10, [N/A], [N/A]", "No devices were found", "a,b", "\n\n"):
        assert not hardware.parse_nvidia(text)


def test_several_gpus_are_used_together() -> None:
    none = Hardware("none", None, None, None, 32 * GIB, 8)
    card = Device("A card", 12282 * MIB, 12000 * MIB)
    one, two = none.using([card]), none.using([card, card])
    assert (one.gpu, one.gpu_bytes, one.largest_gpu_bytes) == ("A card", 12282 * MIB, None)
    assert (two.gpu, two.gpu_free_bytes) == ("2 × A card", 24000 * MIB)
    assert recommend.recommend(two).chat == recommend.recommend(gpu(24564)).chat
    assert none.using([card, replace(card, name="Another")]).gpu == "A card + Another"


def test_a_completion_model_fits_into_one_of_several_gpus() -> None:
    small = Device("A card", 4096 * MIB, 4096 * MIB)
    found = recommend.recommend(gpu(0).using([small] * 10))
    assert found.completion.need_bytes < 4096 * MIB
    assert found.completion.model != recommend.recommend(gpu(40960)).completion.model


def test_physical_cores_are_counted_once() -> None:
    block = "processor\t: {}\nphysical id\t: 0\ncore id\t\t: {}\n"
    text = "\n".join(block.format(n, n % 4) for n in range(8))
    assert hardware.parse_cores(text) == 4
    assert hardware.parse_cores("processor : 0\nBogoMIPS : 48\n") == 0


def test_this_machine_is_found_out() -> None:
    here = hardware.detect()
    assert here.cores >= 1
    assert here.ram_bytes is not None, "each system that we know tells it"
    assert here.ram_bytes > 64 * MIB
    assert "physical cores" in here.describe()
