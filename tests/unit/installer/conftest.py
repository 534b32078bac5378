"""Tools with a log in a temporary place, and programs made of a few lines of shell."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lcursor import system
from lcursor.installer import engine, gpu, plan, selftest
from lcursor.installer.process import Tools
from lcursor.installer.report import Report
from lcursor.installer.selftest import SelftestOutcome
from lcursor.installer.venv import Stamp, Venv, write_stamp


@pytest.fixture
def said() -> io.StringIO:
    """What the person saw."""
    return io.StringIO()


@pytest.fixture
def tools(tmp_path: Path, said: io.StringIO) -> Tools:
    """Tools that tell a log file, not a terminal."""
    return Tools(Report("plain", said), tmp_path / "log" / "install.log")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Make an executable that is found first on PATH: `program("nvcc", "echo release 12.4")`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def make(name: str, body: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture(autouse=True)
def without_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the GPU and the toolkits of the machine that runs the tests."""
    for name in ("LCURSOR_GPU", "LCURSOR_CUDA", "CUDA_HOME", "CUDA_PATH", "VULKAN_SDK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(gpu, "TOOLKIT", tmp_path / "cuda")
    monkeypatch.setattr(system, "has_nvidia_driver", lambda: False)
    monkeypatch.setattr(system, "GPUS", tmp_path / "DRM")
    monkeypatch.setattr(system, "GPU_NODES", tmp_path / "NODES")
    monkeypatch.setattr(gpu, "DRIVER_FOLDERS", (tmp_path / "icd.d",))
    monkeypatch.setattr(gpu, "PREFIXES", (tmp_path / "usr",))


@pytest.fixture
def here() -> Path:
    """The interpreter that runs the tests."""
    return Path(sys.executable)


@pytest.fixture
def nvidia(program: Callable[[str, str], Path]) -> Callable[..., None]:
    """Fake an NVIDIA driver: `nvidia("8.6", "12.0", cuda="13.0")`."""

    def make(*capabilities: str, cuda: str = "13.0") -> None:
        lines = "; ".join(f"echo {each}" for each in capabilities)
        program(
            "nvidia-smi",
            f'case "$*" in *compute_cap*) {lines};; *) echo "| CUDA Version: {cuda}  |";; esac',
        )

    return make


@pytest.fixture
def venv(
    tmp_path: Path,
    tools: Tools,
    program: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Venv:
    """An environment where builds succeed at once, and all packages can be installed."""
    write_stamp(tmp_path, Stamp(python="3.11", parts={"runtime": "x"}))
    monkeypatch.setattr(plan, "cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(engine, "CUDA_SPACE_BYTES", 0)
    monkeypatch.setattr(engine, "build", lambda target, *_: Path(target.name))
    monkeypatch.setattr(Venv, "install_wheel", lambda *_: None)
    passed = SelftestOutcome("passed", "fine")
    monkeypatch.setattr(selftest, "run_engine", lambda *_, **__: passed)
    venv = Venv(tmp_path, tools)
    venv.python, venv._uv = program("python", ""), None
    return venv
