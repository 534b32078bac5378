"""Files with random weights are read by llama.cpp, and `bench gpu` runs on them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from bench import weights
from bench.weights import TINY, Shape
from lcursor.__main__ import app
from lcursor.fim import llama

EXPERTS = replace(
    TINY, name="tiny-moe", vocab=152064, tied=False, experts=8, used=2, expert_ffn=256
)


@pytest.mark.parametrize("shape", [TINY, EXPERTS], ids=lambda shape: shape.name)
def test_a_written_file_decodes(shape: Shape, tmp_path: Path, model_path: Path) -> None:
    path = weights.ensure(shape, tmp_path, model_path, lambda done: None)
    model = llama.Model(path, 0, lambda fraction: True)
    context = llama.Context(model, llama.ContextSize(cells=256, threads=1))
    try:
        assert model.n_vocab == shape.vocab
        assert model.tokenize("<|fim_middle|>", special=True) == [151660]
        context.decode(model.tokenize("def main():\n    return 0\n"), 0)
        logits = context.logits()
        assert np.isfinite(logits).all()
        assert 0.1 < float(logits.std()) < 100
        assert len(np.unique(logits[:1000])) > 900
    finally:
        context.close()
        model.close()


def test_the_bench_runs_on_a_cpu(tmp_path: Path, model_path: Path) -> None:
    done = CliRunner().invoke(
        app,
        ["bench", "gpu", "--cpu", "--shape", "tiny", "--rounds", "1", "--json"]
        + ["--folder", str(tmp_path), "--kv-type", "q8_0"],
    )
    assert done.exit_code == 0, done.output
    (run,) = json.loads(done.stdout.splitlines()[-1])["shapes"]
    assert run["is_random"] is True
    assert (run["kv_type"], run["cells"], run["gpu_bytes"]) == ("q8_0", 4096, None)
    assert 1900 <= run["prompt_tokens"] <= 2100
    found = {row["name"]: row for row in run["figures"]}
    assert {f"verify {count} at once" for count in range(1, 9)} <= set(found)
    assert found["a keystroke, spliced"]["p50"] < found["read 2000 tokens, 512 at once"]["p50"]
    assert "a line of 12 tokens after a keystroke" in found
    assert all(row["count"] >= 1 and row["p50"] > 0 for row in run["figures"])
    assert "GB on the disk" in done.stderr
