"""The self-test's verdicts, and the ladder of engines that goes down by them."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from lcursor.catalog import selftest_model
from lcursor.errors import InstallFailed
from lcursor.installer import engine, plan, selftest
from lcursor.installer.engine import AVX2, BASELINE, NATIVE, NO_AMX, BuildTarget
from lcursor.installer.gpu import GpuBuild
from lcursor.installer.process import Tools
from lcursor.installer.selftest import SelftestOutcome
from lcursor.installer.venv import Stamp, Venv, read_stamp, write_stamp

DOING = 'echo \'{"doing": "reading 8 tokens"}\'; '
CHILDREN = {
    "passed": DOING + 'echo \'{"result": "passed", "message": "fine"}\'',
    "crashed": DOING + "kill -SEGV $$",
    "hung": DOING + "sleep 60",
    "wrong": DOING + 'echo \'{"result": "wrong", "message": "error 1.2"}\'',
    "no-gpu": 'echo \'{"result": "no-gpu", "message": "no device"}\'',
    "error": DOING + "echo 'ImportError: no such symbol' >&2; exit 1",
}


def stand_in(kind: str, hung_s: float = 0.5) -> SelftestOutcome:
    """Judge a child that ends as an engine of that kind would."""
    return selftest.run(["sh", "-c", CHILDREN[kind]], limit_s=hung_s if kind == "hung" else 30)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("passed", "passes its self-test (fine)"),
        ("crashed", "crashes: SIGSEGV while reading 8 tokens"),
        ("hung", "hangs: reading 8 tokens"),
        ("wrong", "computes wrong values: error 1.2"),
        ("no-gpu", "cannot use the GPU: no device"),
        ("error", "does not work: ImportError: no such symbol, while reading 8 tokens"),
    ],
)
def test_each_end_has_its_own_name(kind: str, words: str) -> None:
    outcome = stand_in(kind)
    assert outcome.kind == kind
    assert words in outcome.sentence


def test_a_program_that_is_not_there_is_an_error() -> None:
    assert selftest.run(["/nowhere/python"]).kind == "error"


@pytest.fixture
def venv(tmp_path: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch) -> Venv:
    """An environment in which installing a wheel only notes which one it is."""
    write_stamp(tmp_path, Stamp(python="3.11", parts={"runtime": "x"}))
    monkeypatch.setattr(plan, "cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(engine, "cpu_flags", lambda: ["avx2", "amx_tile"])
    monkeypatch.delenv("LCURSOR_ENGINE", raising=False)

    def build(target: BuildTarget, *_: object) -> Path:
        if target.gpu and "cannot" in target.why:
            raise InstallFailed("compiling the engine failed")
        return Path(target.name)

    def install(self: Venv, part: str, wheel: Path) -> None:
        self.discard_part(part)
        (self.path / "installed").write_text(wheel.name)

    monkeypatch.setattr(engine, "build", build)
    monkeypatch.setattr(Venv, "install_wheel", install)
    return Venv(tmp_path, tools)


def outcomes(monkeypatch: pytest.MonkeyPatch, venv: Venv, ends: dict[str, str]) -> None:
    """Let the engines that are named end so, and all others pass."""

    def run(python: Path, *, on_gpu: bool = False) -> SelftestOutcome:
        return stand_in(ends.get((venv.path / "installed").read_text(), "passed"), hung_s=0.1)

    monkeypatch.setattr(selftest, "run_engine", run)


LADDER = [BuildTarget(None, "for the CPU", step) for step in (NATIVE, NO_AMX, AVX2, BASELINE)]
NAMES = [target.name for target in LADDER]


@pytest.mark.parametrize("kind", ["crashed", "hung", "wrong", "error"])
@pytest.mark.parametrize("broken", [0, 1, 2, 3])
def test_the_first_engine_that_works_is_installed(
    venv: Venv, monkeypatch: pytest.MonkeyPatch, said: io.StringIO, kind: str, broken: int
) -> None:
    outcomes(monkeypatch, venv, dict.fromkeys(NAMES[:broken], kind))
    plan.install_engine(venv, LADDER, venv._tools)
    stamp = read_stamp(venv.path)
    assert stamp.engine["step"] == NAMES[broken] == (venv.path / "installed").read_text()
    assert stamp.parts["engine"] == LADDER[0].key
    assert stamp.cpu == LADDER[broken].cpu
    assert stamp.engine["reason"].count("The ") == broken
    assert said.getvalue().count("Falling back to the") == broken
    if broken:
        assert f"Falling back to the {NAMES[broken]} engine: {LADDER[broken].step.speed}" in (
            said.getvalue()
        )


def test_where_no_engine_works_none_is_vouched_for(
    venv: Venv, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes(monkeypatch, venv, dict.fromkeys(NAMES, "crashed"))
    with pytest.raises(InstallFailed, match="baseline engine crashes: SIGSEGV"):
        plan.install_engine(venv, LADDER, venv._tools)
    assert "engine" not in read_stamp(venv.path).parts


def test_a_forced_engine_that_fails_falls_back_to_nothing(
    venv: Venv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LCURSOR_ENGINE", "native")
    outcomes(monkeypatch, venv, {"native": "wrong"})
    with pytest.raises(InstallFailed, match="computes wrong values") as failure:
        plan.install_engine(venv, LADDER[:1], venv._tools)
    assert "Unset LCURSOR_ENGINE" in failure.value.hint


@pytest.mark.parametrize("why", ["cannot be built", "with CUDA"])
def test_cuda_that_does_not_build_or_work_ends_in_an_engine_for_the_cpu(
    venv: Venv, monkeypatch: pytest.MonkeyPatch, said: io.StringIO, why: str
) -> None:
    cuda = BuildTarget(GpuBuild("cuda", "13.0-9.0", why, ()), why)
    outcomes(monkeypatch, venv, {"cuda, native": "no-gpu"})
    plan.install_engine(venv, [cuda, *LADDER], venv._tools)
    stamp = read_stamp(venv.path)
    assert stamp.engine["step"] == "native"
    assert ("cannot be built" if "cannot" in why else "no device") in stamp.engine["reason"]
    assert said.getvalue().count("Falling back") == 1
    assert stamp.parts["engine"] == cuda.key


def test_a_forced_step_replaces_a_fallback(venv: Venv, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes(monkeypatch, venv, {})
    monkeypatch.setattr(engine, "wheel_of", lambda *_: Path("wheel"))
    for name in ("ensure", "install"):
        monkeypatch.setattr(Venv, name, lambda *_, **__: None)
    monkeypatch.setenv("LCURSOR_ENGINE", "native")
    monkeypatch.setenv("LCURSOR_CUDA", "0")
    venv.stamp.engine = {"step": "avx2", "reason": "The native engine crashes"}
    venv.record_part("engine", engine.ladder()[0].key)
    plan.install(venv.path, [], venv._tools)
    assert read_stamp(venv.path).engine["step"] == "native"
    (venv.path / "installed").unlink()
    plan.install(venv.path, [], venv._tools)
    assert not (venv.path / "installed").exists(), "there is nothing left to do"


def write_engine(venv: Venv, reason: str = "") -> None:
    venv.stamp.engine = {"step": "native", "reason": reason}
    (venv.path / "installed").write_text("native")


def test_verify_tests_what_is_installed(venv: Venv, monkeypatch: pytest.MonkeyPatch) -> None:
    write_engine(venv)
    outcomes(monkeypatch, venv, {})
    assert not plan._should_retry(venv, venv._tools)
    outcomes(monkeypatch, venv, {"native": "crashed"})
    assert plan._should_retry(venv, venv._tools)


def test_verify_tries_again_what_a_fallback_replaced(
    venv: Venv, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_engine(venv, reason="The cuda engine cannot use the GPU")
    outcomes(monkeypatch, venv, {})
    assert plan._should_retry(venv, venv._tools)


def test_the_tiny_model_is_always_the_same(tmp_path: Path) -> None:
    one, other = tmp_path / "one.gguf", tmp_path / "other.gguf"
    selftest_model.write(one)
    selftest_model.write(other)
    assert one.read_bytes() == other.read_bytes()


def test_an_error_is_relative_and_ignores_a_shift() -> None:
    expected = [float(i % 7) for i in range(64)]
    assert selftest_model.error(expected, expected) == 0
    assert selftest_model.error([x + 3 for x in expected], expected) == pytest.approx(0)
    assert selftest_model.error([0.0] * 64, expected) == pytest.approx(1)
    assert selftest_model.error([*expected[1:], expected[0]], expected) > 0.5
    assert selftest_model.error([float("nan"), *expected[1:]], expected) == float("inf")


def test_the_real_engine_passes_and_a_wrong_reference_is_found(tmp_path: Path) -> None:
    outcome = selftest.run_engine(Path(sys.executable))
    assert outcome.kind == "passed", outcome.sentence
    wrong = {
        name: {size: values[::-1] for size, values in sizes.items()}
        for name, sizes in selftest_model.references().items()
    }
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(wrong))
    code = (
        "import pathlib, sys; from lcursor.catalog import selftest_model as m;"
        f"m.REFERENCE = pathlib.Path({os.fspath(file)!r});"
        "from lcursor.fim import selftest; sys.exit(selftest.main([]))"
    )
    outcome = selftest.run([sys.executable, "-c", code])
    assert outcome.kind == "wrong"
    assert "reading 1 tokens with 1 threads" in outcome.detail
