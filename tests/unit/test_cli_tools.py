"""`python -m lcursor bench` and `eval`: tools of a checkout."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lcursor.__main__ import app
from lcursor.cli import tools
from lcursor.errors import LcursorError


@pytest.mark.parametrize(("tool", "command"), [("bench", "typing"), ("eval", "apply")])
def test_a_checkout_runs_its_tools(tool: str, command: str) -> None:
    done = CliRunner().invoke(app, [tool, command, "--help"], prog_name="lcursor")
    assert done.exit_code == 0, done.output
    assert f"Usage: lcursor {tool} {command} [OPTIONS]" in done.stdout


@pytest.mark.parametrize("tool", ["bench", "eval"])
def test_an_installed_package_says_that_it_has_none(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "ROOT", tmp_path)
    done = CliRunner().invoke(app, [tool, "--help"])
    assert isinstance(done.exception, LcursorError)
    assert "checkout" in str(done.exception)
