"""The speed of a model of random weights, and what is stored of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lcursor.catalog import manifest, recommend, selftest_model, store
from lcursor.catalog import speed as stored
from lcursor.errors import Cancelled
from lcursor.fim import llama, speed


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[llama.Model]:
    """A tiny model in the file of the small one, on a machine of which nothing is known."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LCURSOR_MODELS", str(tmp_path))
    monkeypatch.setattr(llama, "has_gpu", lambda: False)
    monkeypatch.setattr(speed, "MIN_SHARE", 0.0)
    path = store.path_of(manifest.find(recommend.SMALL))
    selftest_model.write(path)
    with closing(llama.Model(path, 0, lambda _: True)) as found:
        yield found


def test_a_model_is_measured_once(model: llama.Model) -> None:
    found = speed.measure_once(model)
    assert found
    assert min(found.read_tokens_s, found.write_tokens_s) > 0
    assert stored.load() == stored.Measured(stored.machine(), recommend.SMALL, found)
    assert speed.measure_once(model) is None


def test_a_model_is_loaded_to_be_measured(model: llama.Model) -> None:
    assert speed.measure_here(recommend.SMALL)
    assert stored.load()


def test_a_speed_among_other_programs_is_not_stored(
    model: llama.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "MIN_SHARE", 1e6)
    assert speed.measure_once(model) is None
    assert stored.load() is None


def test_the_best_of_several_runs_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that did not have the cores does not count, however short it was."""
    clocks = {"perf_counter": [0.0, 2.0], "process_time": [0.0, 2 * 2 * 0.9]}
    for name, times in clocks.items():
        monkeypatch.setattr(f"time.{name}", iter(times).__next__)
    assert speed._seconds(lambda: None, 2) == 2.0
    clocks = {"perf_counter": [0.0, 1.0], "process_time": [0.0, 1.1]}
    for name, times in clocks.items():
        monkeypatch.setattr(f"time.{name}", iter(times).__next__)
    assert speed._seconds(lambda: None, 2) == float("inf")


def test_a_model_of_the_user_is_not_measured(model: llama.Model, tmp_path: Path) -> None:
    selftest_model.write(tmp_path / "mine.gguf")
    with closing(llama.Model(tmp_path / "mine.gguf", 0, lambda _: True)) as mine:
        assert speed.measure_once(mine) is None


def test_on_a_gpu_nothing_is_measured(model: llama.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama, "has_gpu", lambda: True)
    assert speed.measure_once(model) is None


def test_a_request_stops_it(model: llama.Model) -> None:
    abort = llama.Abort()
    abort.set()
    with pytest.raises(Cancelled):
        speed.measure_once(model, abort)
    assert stored.load() is None
