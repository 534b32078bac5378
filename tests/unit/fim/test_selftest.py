"""The child process of the engine's self-test, with the tiny model alone."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lcursor.catalog import hardware, manifest, recommend, selftest_model, store
from lcursor.errors import OutOfMemory
from lcursor.fim import llama, selftest

PLANS = ["1 threads from the main", "2 threads from a second", "2 threads from the main"]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the default model, and what the machine has."""
    monkeypatch.setenv("LCURSOR_MODELS", str(tmp_path))
    monkeypatch.setattr("faulthandler.enable", lambda: None)
    monkeypatch.setattr(hardware, "physical_cores", lambda: 2)
    monkeypatch.setattr(llama, "has_gpu", lambda: False)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    # A new thread, as in the child process: other libraries may have left the AMX unit of this one
    # with their configuration, which ggml sets once for a thread.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(selftest.main, [*arguments]).result() == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_correct_engine_passes_in_all_batches_and_threads(
    capsys: pytest.CaptureFixture[str],
) -> None:
    *steps, last = run(capsys)
    assert last["result"] == "passed"
    assert 0 <= float(last["message"].removeprefix("largest error ")) <= selftest_model.MAX_ERROR
    doing = [step["doing"] for step in steps]
    assert doing.count("loading the model tiny") == 3
    for plan in PLANS:
        batches = [each.split()[1] for each in doing if f" tokens with {plan} thread" in each]
        assert batches == ["1", "2", "4", "8", "64", "512"]


def test_wrong_logits_are_reported_with_the_step(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = iter([0.0, selftest_model.MAX_ERROR, 1.0])
    monkeypatch.setattr(selftest_model, "error", lambda *_: next(errors))
    *_, last = run(capsys)
    assert last["result"] == "wrong"
    assert last["message"] == (
        "reading 4 tokens with 1 threads from the main thread (model tiny): error 1, at most "
        f"{selftest_model.MAX_ERROR} is right"
    )


def test_the_default_model_is_tested_as_well_if_it_is_installed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = recommend.SMALL
    model = next(each for each in manifest.load() if each.name == name)
    selftest_model.write(store.path_of(model))  # which is another one
    *steps, last = run(capsys)
    assert steps[-1]["doing"].endswith(f"with 2 threads from a second thread (model {name})")
    assert last["result"] == "wrong"
    assert f"(model {name})" in last["message"]


def test_without_a_gpu_none_is_tested(capsys: pytest.CaptureFixture[str]) -> None:
    assert [line["result"] for line in run(capsys, "--gpu-layers", "-1")] == ["no-gpu"]


def test_an_error_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OutOfMemory("no memory is left", "Buy some")

    monkeypatch.setattr(llama, "Model", fail)
    assert run(capsys)[-1] == {"result": "error", "message": "no memory is left"}


def test_the_samples_of_a_model_are_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "--record", "tiny")[-1]["tiny"]
    wanted = selftest_model.references()["tiny"]
    assert found.keys() == wanted.keys()
    for batch, samples in found.items():
        assert selftest_model.error(samples, wanted[batch]) <= selftest_model.MAX_ERROR
