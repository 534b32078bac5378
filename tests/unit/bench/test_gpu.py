"""`bench gpu` with a fake llama.cpp."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired
from typing import Any

import pytest
from typer.testing import CliRunner

from bench import gpu
from lcursor.__main__ import app
from lcursor.catalog import hardware, manifest, selftest_model
from lcursor.errors import LcursorError
from lcursor.fim import llama
from tests.fakes.llama import FakeModel, engines
from tests.gguf_files import write_model


def test_the_bench_runs_on_a_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["bench", "gpu", "--cpu", "--rounds", "1", "--kv-type", "q8_0", "--json"]
    monkeypatch.setattr(FakeModel, "description", "fake", raising=False)
    with engines(monkeypatch, tmp_path, {}):
        path = tmp_path / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
        write_model(path)
        done = CliRunner().invoke(app, [*words, "--model", str(path)])
    assert done.exit_code == 0, done.output
    run = json.loads(done.stdout.splitlines()[-1])
    assert (run["kv_type"], run["gpu_bytes"]) == ("q8_0", None)
    found = {row["name"]: row for row in run["figures"]}
    assert {f"verify {count} at once" for count in range(1, 9)} <= set(found)
    assert "a line of 12 tokens after a keystroke" in found
    assert all(row["count"] >= 1 and row["p50"] > 0 for row in run["figures"])


def test_random_weights_are_loaded_and_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    small = selftest_model.Shape(256, 768, 4, 2, gpu._layers(8), head=64, vocabulary=2048)
    monkeypatch.setitem(gpu.SHAPES, "7b", small)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with gpu.random_model("7b") as path:
        assert manifest.family_of(path) == gpu.FAMILY
        with closing(llama.Model(path, 0, lambda _: True)) as model:
            assert (model.n_vocab, model.n_ctx_train) == (2048, 32_768)
            assert len(model.tokenize("x = 1")) == 6  # bytes, after a space
            assert len(model.tokenize("<|fim_prefix|>", special=True)) == 1
    assert not path.exists()


def test_a_shape_is_not_combined_with_a_model() -> None:
    words = ["bench", "gpu", "--cpu", "--shape", "7b", "--model", "qwen2.5-coder-0.5b"]
    assert CliRunner().invoke(app, words).exit_code == 2


def test_all_measurements_write_tables_until_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran: list[tuple[list[str], bool]] = []

    def run(command: list[str], **options: Any) -> CompletedProcess[str]:
        ran.append((command[4:], options["timeout"] <= 600))
        options["stdout"].write("| name |")
        if command[4] == "slots":
            raise TimeoutExpired(command, 1.0)
        return CompletedProcess(command, int(command[4] == "edit"))

    monkeypatch.setattr("bench.gpu.subprocess.run", run)
    done = CliRunner().invoke(app, ["bench", "gpu-all", str(tmp_path / "out"), "--cpu"])
    assert done.exit_code == 1
    assert "line-7b: done" in done.stderr
    assert "edit: failed with exit status 1" in done.stderr
    assert "slots: stopped, because the time is over" in done.stderr
    assert (["gpu", "--shape", "7b", "--cpu"], True) in ran
    tables = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert tables == {f"{name}.md": "| name |" for name in gpu.STEPS}
    ran.clear()
    words = ["bench", "gpu-all", str(tmp_path / "none"), "--cpu", "--minutes", "0"]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, ran) == (1, [])
    assert "index: not run, because the time is over" in done.stderr


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (hardware.Hardware("none", None, None, None, 8 << 30, 2), "no GPU here"),
        (
            hardware.Hardware("nvidia", "Some GPU", 12 << 30, 3 << 30, 64 << 30, 8),
            r"has a GPU \(Some GPU\), and llama.cpp was built without",
        ),
    ],
)
def test_without_a_usable_gpu_it_says_why(
    monkeypatch: pytest.MonkeyPatch, found: hardware.Hardware, words: str
) -> None:
    monkeypatch.setattr(llama, "has_gpu", lambda: False)
    monkeypatch.setattr(hardware, "detect", lambda: found)
    with pytest.raises(LcursorError, match=words):
        gpu.check_gpu(on_cpu=False)
    gpu.check_gpu(on_cpu=True)
