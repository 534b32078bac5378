"""`python -m lcursor server …` with a program that says it is llama-server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.llm.server_state import ServerFolder, default_folder
from tests.unit.llm.serving import Machine, machine_of

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with machine_of(monkeypatch) as made:
        made.install()
        made.folder = default_folder()
        yield made
        made.server().stop()


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lcursor", "server", *words],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=50,
        check=False,
        env=os.environ | {"COLUMNS": "200"},
    )


def test_a_servers_life_on_the_command_line(machine: Machine) -> None:
    nothing = run("log")
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert "the server has no log" in nothing.stderr

    started = run("start", "--model", str(machine.model), "--context", "2048", "--json")
    assert started.returncode == 0, started.stderr
    found = json.loads(started.stdout)
    assert (found["state"], found["model"]) == ("running", "toy")
    assert "starting toy on the CPU, 2,048 tokens of context" in started.stderr
    assert "reserved for completion" in started.stderr

    again = run("start", "--model", str(machine.model))
    assert (again.returncode, again.stderr) == (0, "")
    assert f"process {found['pid']}" in again.stdout
    assert len(machine.commands()) == 1

    assert json.loads(run("status", "--json").stdout)["state"] == "running"
    assert "toy on the CPU, 2,048 tokens" in run("log").stdout
    assert len(run("log", "-n", "1").stdout.splitlines()) == 1
    assert "has ended" in run("stop").stdout
    assert "The local server does not run" in run("stop").stdout
    assert not ServerFolder(machine.folder).is_running()


def test_a_failed_start_is_reported_in_one_line(machine: Machine) -> None:
    machine.set(END="unknown model architecture: 'future'")
    done = run("restart", "--model", str(machine.model))
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1]
    assert line.startswith("lcursor: the local server ended while it loaded toy: error: unknown")
    assert "python -m lcursor server log" in line
