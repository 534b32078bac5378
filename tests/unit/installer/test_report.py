"""How far the set-up is, told to a terminal, to a log and to the editor."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.installer.report import Mode, Report, clock


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (8.24, "8.2 s"), (59.99, "60.0 s"), (60, "1 min 00 s"), (127.4, "2 min 07 s")],
)
def test_a_length_of_time_reads_well(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_a_log_gets_the_begin_and_the_end_of_a_step_and_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    out = io.StringIO()
    report = Report("plain", out)
    report.begin("engine", "compiling")
    for now in range(100, 126):
        report.move((now - 100) / 50, f"file {now - 100}")
    report.end("compiled")
    assert out.getvalue().splitlines() == [
        "engine       compiling  ...",
        "engine        20%  file 10  10.0 s",
        "engine        40%  file 20  20.0 s",
        "engine       compiled  (25.0 s)",
    ]


def test_a_terminal_has_one_line_that_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = io.StringIO()
    report = Report("terminal", out)
    report.begin("engine", "a very long text " * 10)
    assert "\n" not in out.getvalue()
    assert len(out.getvalue().split("\033[K")[-1]) < 40


def test_the_editor_reads_what_it_needs() -> None:
    out = io.StringIO()
    report = Report("json", out)
    report.begin("packages", "from the lock")
    report.end("41 packages")
    report.fail("no network", "Go and get one", ["a", "b"])
    first, second, last = map(json.loads, out.getvalue().splitlines())
    assert first == {
        "step": "packages",
        "fraction": -1,
        "text": "from the lock",
        "elapsed_s": first["elapsed_s"],
    }
    assert second["fraction"] == 1
    assert (last["step"], last["text"], last["hint"]) == (
        "failed",
        "no network",
        "Go and get one",
    )


@given(st.text(), st.text(), st.floats(0, 1))
def test_each_json_line_is_one_object_whatever_is_said(step: str, text: str, at: float) -> None:
    out = io.StringIO()
    report = Report("json", out)
    report.begin(step, text)
    report.move(at, text)
    report.note(text)
    report.finish(text)
    lines = out.getvalue().split("\n")
    assert lines.pop() == ""
    assert all(set(json.loads(line)) >= {"step", "fraction", "text"} for line in lines)


@pytest.mark.parametrize("mode", ["plain", "terminal"])
def test_a_failure_shows_the_end_of_the_log_and_what_to_do(mode: Mode) -> None:
    out = io.StringIO()
    Report(mode, out).fail("the disk is full", "Free some", ["line 1", "line 2"])
    assert "  | line 1\n  | line 2\n" in out.getvalue()
    assert "lcursor: the disk is full. Free some" in out.getvalue()
