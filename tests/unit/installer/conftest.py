"""Tools with a log in a temporary place, and programs made of a few lines of shell."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lcursor import system
from lcursor.installer import gpu
from lcursor.installer.process import Tools
from lcursor.installer.report import Report


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
