"""`bench gpu` with a fake llama.cpp."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench import gpu
from lcursor.__main__ import app
from lcursor.catalog import hardware
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
