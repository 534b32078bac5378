"""The self-tests of the real engine with the default model, and of the real chat server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lcursor.installer import selftest
from lcursor.installer.process import ROOT


def test_the_engine_passes_with_the_default_model() -> None:
    command = [sys.executable, "-m", "lcursor.fim.selftest"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert "from a second thread (model qwen2.5-coder-0.5b-adapted)" in done.stdout
    assert '"result": "passed"' in done.stdout


def test_the_chat_server_passes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # not a llama-server of the machine
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    outcome = selftest.run_server(Path(sys.executable))
    assert outcome.kind == "passed", outcome.sentence


def test_a_chat_server_that_crashes_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "llama-server"
    program.write_text(CRASHING)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    outcome = selftest.run_server(Path(sys.executable))
    assert outcome.kind == "crashed", outcome.sentence


CRASHING = """#!/bin/sh
case "$*" in
  *--version*) echo "version: 9999 (abc)" ;;
  *--help*) echo "--host HOST --port PORT --api-key-file FNAME --slot-save-path PATH" ;;
  *--list-devices*) echo "Available devices:" ;;
  *) kill -SEGV $$ ;;
esac
"""
