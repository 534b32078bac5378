"""`python -m lcursor sandbox check`, and what the doctor reports on the sandbox."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lcursor import system
from lcursor.__main__ import app
from lcursor.cli import doctor
from lcursor.config import Config
from lcursor.process import bubblewrap, confine, sandbox
from lcursor.process.sandbox import LEVELS, open_sandbox, probe_all


@pytest.fixture
def no_sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Let each level fail as on an Ubuntu without a profile, with an older kernel."""
    program = tmp_path / "bwrap"
    program.write_text(
        "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2; exit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "find", lambda: str(program))
    monkeypatch.setattr(confine, "command_line", lambda _: [str(program)])
    monkeypatch.setattr(confine, "landlock_version", lambda: 4)
    monkeypatch.setattr(sandbox, "SWITCHES", sandbox.SWITCHES[:1])
    monkeypatch.setattr(system, "kernel_setting", lambda name: "1")
    open_sandbox.cache_clear()
    yield
    open_sandbox.cache_clear()


def test_check() -> None:
    """All levels are listed, and the status says whether one works."""
    result = CliRunner().invoke(app, ["sandbox", "check"])
    works = [each.level for each in probe_all() if each.works]
    assert result.exit_code == (0 if works else 1)
    first, *lines = result.output.splitlines()
    assert first == f"active: {works[0]}" or not works
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(LEVELS)


@pytest.mark.usefixtures("no_sandbox")
def test_nothing_works() -> None:
    """Each failure is quoted, with the step that helps."""
    result = CliRunner().invoke(app, ["sandbox", "check"])
    assert result.exit_code == 1
    assert "agents of others do not start" in result.output
    assert "bubblewrap  fails: " in result.output
    assert "uid map: Permission denied" in result.output
    assert "/etc/apparmor.d/" in result.output
    assert "sysctl" not in result.output
    assert "Linux 6.12" in result.output
    result = CliRunner().invoke(app, ["sandbox", "check", "--json"])
    found = json.loads(result.output)
    assert found["level"] == "none"
    assert [each["works"] for each in found["levels"]] == [False, False, False]


@pytest.mark.usefixtures("no_sandbox")
def test_doctor_warns() -> None:
    """Without a sandbox the doctor warns, and names the step that helps."""
    fact = next(each for each in doctor.examine(Config()) if each.section == "sandbox")
    assert fact.data["level"] == "none"
    assert fact.level == "warn"
    assert fact.problem
    assert "apparmor" in fact.problem.hint
