"""The speed of models: stored for one machine, and predicted for models that were not measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lcursor import system
from lcursor.catalog import hardware, manifest, speed, store
from lcursor.catalog.speed import Measured, Speed

SMALL, LARGE = "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b-q4_0"
FAST = Speed(400, 60)


@pytest.fixture(autouse=True)
def _folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LCURSOR_MODELS", str(tmp_path / "models"))
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: AMD EPYC\ncpu MHz\t\t: 2445.406\n")
    monkeypatch.setattr(system, "PROC", tmp_path)


def test_a_stored_speed_is_found_on_the_same_machine() -> None:
    assert speed.load() is None
    speed.save(SMALL, FAST)
    found = speed.load()
    assert found == Measured(speed.machine(), SMALL, FAST)
    assert found.machine.startswith("AMD EPYC, ")


@pytest.mark.parametrize("part", ["cpu", "cores", "engine"])
def test_another_machine_is_measured_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, part: str
) -> None:
    speed.save(SMALL, FAST)
    if part == "cpu":
        (tmp_path / "cpuinfo").write_text("model name\t: Intel Xeon\n")
    elif part == "cores":
        monkeypatch.setattr(hardware, "physical_cores", lambda: 96)
    else:
        monkeypatch.setattr("sys.prefix", str(tmp_path))
        stamp = {"format": 1, "parts": {"engine": "new"}, "engine": {"step": "avx2"}}
        (tmp_path / "lcursor-stamp.json").write_text(json.dumps(stamp))
    assert speed.load() is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"model": 1}', "null", '{"machine": "", "model": "x", "speed": {}}']
)
def test_a_damaged_file_is_as_none(text: str) -> None:
    speed.save(SMALL, FAST)
    speed.path().write_text(text)
    assert speed.load() is None


@pytest.mark.parametrize(("model", "found"), [("gone", FAST), (SMALL, Speed(0, 60))])
def test_a_speed_that_says_nothing_is_as_none(model: str, found: Speed) -> None:
    speed.save(model, found)
    assert speed.load() is None


def test_the_measured_model_is_as_fast_as_measured() -> None:
    assert speed.predict(Measured("", SMALL, FAST), manifest.find(SMALL)) == FAST


@pytest.mark.parametrize(
    ("model", "real"),
    [
        ("qwen2.5-coder-0.5b-q4_0", Speed(169, 35.1)),
        ("qwen2.5-coder-1.5b-q4_0", Speed(40.5, 11.3)),
        ("qwen2.5-coder-1.5b", Speed(34.8, 10.5)),
    ],
)
def test_a_prediction_is_within_a_quarter_of_what_was_measured(model: str, real: Speed) -> None:
    """The medians of bench/results/2026-11-27-speed-cpu.md."""
    found = speed.predict(Measured("", SMALL, Speed(88.1, 23.9)), manifest.find(model))
    assert found.read_tokens_s == pytest.approx(real.read_tokens_s, rel=0.25)
    assert found.write_tokens_s == pytest.approx(real.write_tokens_s, rel=0.25)


def test_a_larger_model_is_slower() -> None:
    measured = Measured("", SMALL, FAST)
    names = [SMALL, LARGE, "starcoder2-3b", "qwen2.5-coder-7b"]
    found = [speed.predict(measured, manifest.find(name)) for name in names]
    assert found == sorted(found, key=lambda each: (-each.read_tokens_s, -each.write_tokens_s))
    assert len({each.write_tokens_s for each in found}) == 4


def test_only_active_weights_are_read() -> None:
    measured = Measured("", "starcoder2-3b", FAST)
    found = speed.predict(measured, manifest.find("qwen3-coder-30b-a3b"))
    assert found.read_tokens_s == FAST.read_tokens_s
    assert FAST.write_tokens_s * 0.8 < found.write_tokens_s < FAST.write_tokens_s * 1.2


@pytest.mark.parametrize("model", manifest.load() + manifest.requantized())
def test_every_completion_model_can_be_predicted(model: manifest.Model) -> None:
    if "completion" in model.slots:
        found = speed.predict(Measured("", SMALL, FAST), model)
        assert found.read_tokens_s > 0
        assert found.write_tokens_s > 0


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Speed(149.6, 27.9), "reads about 150 and writes 28 tokens per second here"),
        (Speed(8.04, 2.96), "reads about 8.0 and writes 3.0 tokens per second here"),
    ],
)
def test_the_words_for_a_speed(found: Speed, words: str) -> None:
    assert found.describe() == words


def test_auto_is_the_recommended_model_once_it_is_here() -> None:
    def put(name: str) -> None:
        path = store.path_of(manifest.find(name))
        path.parent.mkdir(exist_ok=True)
        path.touch()

    put(SMALL)
    assert store.completion_model("auto") == SMALL, "nothing is measured"
    speed.save(SMALL, FAST)
    assert store.completion_model("auto") == SMALL, "the recommended one is not here"
    put(LARGE)
    put("qwen2.5-coder-1.5b")
    best = store.completion_model("auto")
    assert best in (LARGE, "qwen2.5-coder-1.5b")
    assert store.resolve("auto", "completion") == store.path_of(manifest.find(best))
    speed.save(SMALL, Speed(20, 5))
    assert store.completion_model("auto") == SMALL, "this machine is too slow for it"
    assert store.completion_model("other") == "other"
