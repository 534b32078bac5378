"""What several tests of the installer do."""

from __future__ import annotations

from lcursor.installer import engine, plan
from lcursor.installer.gpu import GpuBuild
from lcursor.installer.venv import Stamp, Venv, read_stamp


def build(found: GpuBuild | str) -> GpuBuild:
    """Return what was found, which is a build."""
    assert isinstance(found, GpuBuild), found
    return found


def install(venv: Venv) -> Stamp:
    """Install the engine."""
    plan.install_engine(venv, engine.ladder(), venv._tools)
    return read_stamp(venv.path)
