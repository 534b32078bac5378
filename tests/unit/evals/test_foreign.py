"""`lcursor eval foreign`: what it says without packages, and its scripted model."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evals.cli import app
from evals.foreign import commands_of
from evals.scripted_api import Script, serving
from lcursor.acp.client import catalog

WRITE = {"type": "object", "properties": {"file_path": {}, "content": {}}}
TASK = {"role": "user", "content": "SITUATION two"}


def test_without_packages_it_says_what_to_install(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["foreign", "--packages", str(tmp_path)])
    assert found.exit_code == 2
    for each in catalog.AGENTS:
        assert each.install.split()[-1] in found.output


def test_the_commands_of_installed_packages(tmp_path: Path) -> None:
    package = tmp_path / "node_modules/@qwen-code/qwen-code"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"bin": {"qwen": "cli.js"}}')
    assert commands_of(tmp_path, "/node") == {
        "qwen-code": ["/node", f"{package}/cli.js", "--acp"],
    }


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [TASK], "tools": [
            {"function": {"name": "write_file", "parameters": WRITE}}]}),
        ("/v1/messages", {"messages": [TASK], "tools": [
            {"name": "write_file", "input_schema": WRITE}]}),
        ("/v1/responses", {"input": [TASK], "tools": [
            {"type": "function", "name": "write_file", "parameters": WRITE}]}),
    ],
)  # fmt: skip
def test_each_protocol_calls_the_tool_that_is_offered(path: str, body: Mapping[str, Any]) -> None:
    script = Script({"two": [("write", {"path": "/p/b.py", "text": "b = 1\n"})]})
    with serving(script) as url:
        request = urllib.request.Request(url + path, json.dumps(body).encode())
        with urllib.request.urlopen(request) as found:
            text = found.read().decode().replace("\\", "")
    assert '"write_file"' in text
    assert '"file_path": "/p/b.py"' in text
    assert script.asked[0].situation == "two"
