"""The corpus of recorded messages: nearly all are read as meant, and no wrong call is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evals import tool_calls
from evals.cli import app
from lcursor.agent.dialects.native import Native
from lcursor.agent.records import Answer, Call, Reply
from lcursor.errors import LcursorError

MESSAGES = tool_calls.load()


def test_no_wrong_call_is_read_and_nearly_all_are_read_as_meant() -> None:
    document = tool_calls.as_dict([tool_calls.judge(one) for one in MESSAGES])
    assert document["wrong"] == 0, document["failed"]
    assert document["right_share"] >= 0.95, document["failed"]


def test_the_corpus_has_all_readings_and_real_messages() -> None:
    assert len(MESSAGES) >= 400
    assert len({one.name for one in MESSAGES}) == len(MESSAGES)
    assert sum(one.name.startswith("qwen") for one in MESSAGES) >= 80
    for right in ("none", "malformed"):
        assert sum(one.right == right for one in MESSAGES) >= 60


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (Reply("", (Call("bash", {"command": "ls"}),)), "right"),
        (Reply("", (Call("bash", {"command": "rm"}),)), "wrong"),
        (Reply("", (Call("bash", {"command": "ls"}),) * 2), "wrong"),
        (Reply("", problem="why"), "missed"),
        (Reply("text"), "missed"),
    ],
)
def test_a_reading_is_judged(monkeypatch: pytest.MonkeyPatch, reply: Reply, outcome: str) -> None:
    class Fixed(Native):
        def parse(self, *_: object) -> Reply:
            return reply

    monkeypatch.setattr(tool_calls, "DIALECTS", {"native": Fixed()})
    right = (Call("bash", {"command": "ls"}),)
    message = tool_calls.Message("one", "", "native", Answer("x"), right)
    assert tool_calls.judge(message).outcome == outcome


def test_the_command_reports(tmp_path: Path) -> None:
    row = {"id": "one", "kind": "", "dialect": "native", "text": "bash('ls')", "finish": "stop"}
    path = tmp_path / "calls.jsonl"
    path.write_text(json.dumps({**row, "right": "none"}) + "\n")
    result = CliRunner().invoke(app, ["calls", "--data", str(path)])
    assert result.exit_code == 1
    assert "meant none" in result.output
    last = json.loads(result.output.strip().splitlines()[-1])
    assert last == {"total": 1, "right_share": 0.0, "missed": 0, "wrong": 1}


def test_a_missing_corpus_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LcursorError, match="not a corpus"):
        tool_calls.load(tmp_path / "none")
