"""`python -m lcursor agent` as a process, with a scripted server on a real socket."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lcursor.cli import agent
from tests.fakes.script_server import Entry, Fault, ScriptServer
from tests.unit.agent.runs_over_http import FILES, MODEL, bash, call, finish, replace, view
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
SHOWN_CURSOR = "\x1b[?25h"


class Shell:
    """A shell in a project of the test."""

    def __init__(self, folder: Path, server: ScriptServer) -> None:
        self.root, self.server = folder / "project", server
        (self.root / ".git").mkdir(parents=True)
        for name, text in FILES.items():
            (self.root / name).write_text(text)
        self.env = {**os.environ, "LCURSOR_DATA": str(folder / "data"), "PYTHONPATH": str(ROOT)}

    def begin(
        self, *words: str, stderr: int = subprocess.PIPE, stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "lcursor", "agent", "--url", self.server.url, *words],
            cwd=self.root,
            env=self.env,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str, str]:
        process = self.begin(*words)
        out, err = process.communicate(timeout=90)
        return process.returncode, out, err

    def end(self, *words: str) -> dict[str, Any]:
        """Return the last object of a run."""
        _, out, err = self.run("--json", *words)
        assert out, err
        return dict(json.loads(out.splitlines()[-1]))


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Callable[[Sequence[Entry]], Shell]]:
    servers: list[ScriptServer] = []

    def make(script: Sequence[Entry]) -> Shell:
        servers.append(ScriptServer(script))
        servers[0].model = MODEL
        return Shell(tmp_path, servers[0])

    yield make
    for each in servers:
        each.close()


def test_a_run_with_its_totals(shell: Callable[..., Shell]) -> None:
    it = shell([view(), replace(), finish("1"), replace("2", "3"), finish("x is 3")])
    words = ["Set", "x.", "--path", str(it.root), "--model", MODEL, "--max-steps", "9", "--apply"]
    end = it.end(*words, "--test", "grep -q 3 a.py")
    named = {name: end[name] for name in ("method", "state", "message", "gate", "steps", "paths")}
    assert named == {
        "method": "agent.done", "state": "done", "message": "x is 3", "gate": "passed", "steps": 5,
        "paths": [f"{it.root}/a.py"],
    }  # fmt: skip
    assert (it.root / "a.py").read_text() == "x = 3\n"
    assert end["read_tokens"] == sum(it.server.fresh)
    assert end["cached_tokens"] == sum(map(len, it.server.ids)) - end["read_tokens"]
    assert end["answer_tokens"] > 100
    assert end["seconds"] > 0


def test_a_gate_that_fails(shell: Callable[..., Shell]) -> None:
    it = shell([view(), replace(), *map(finish, "123")])
    end = it.end("Set", "x.", "--test", "false")
    assert (end["state"], end["gate"], end["is_checked"]) == ("done", "failed", False)


def test_attempts_until_the_tests_pass(shell: Callable[..., Shell]) -> None:
    wrong, right = [view(), replace(), *map(finish, "123")], [view(), replace("1", "3"), finish()]
    it = shell([*wrong, *right, Fault.SILENCE])
    words = ["Set", "x.", "--attempts", "3", "--test", "grep -q 3 a.py", "--apply"]
    status, _, err = it.run(*words)
    assert status == 0
    assert "attempt 2: done, tests passed, +1 -1" in err
    assert "attempt 1: done, tests failed, +1 -1" in err
    assert "attempt 3" not in err
    assert "attempt 2 is the best" in err
    assert (it.root / "a.py").read_text() == "x = 3\n"


def test_a_run_that_is_killed_is_listed_and_resumed(shell: Callable[..., Shell]) -> None:
    it = shell([view(), replace(), Fault.SILENCE])
    process = it.begin("Set", "x.")
    wait_for(lambda: len(it.server.prompts) == 3, 60, "the third request")
    process.kill()
    process.communicate()
    row = json.loads(it.run("--list", "--json")[1])
    assert (row["state"], row["task"], row["steps"]) == ("stopped", "Set x.", 2)
    it.server.play = [finish("x is 2")] * 9
    status, out, err = it.run("--resume", "last", "--apply", "Set", "y,", "too.")
    assert (status, out) == (0, "x is 2\n")
    assert "The user says: Set y, too." in it.server.prompts[-1]
    assert "  2 ✓ edit    a.py" in err
    assert (it.root / "a.py").read_text() == "x = 2\n"


def test_what_a_summary_replaced_can_still_be_read(shell: Callable[..., Shell]) -> None:
    it = shell([view(), Fault.FULL, "Known:\n- x", replace(), finish("x is 2")])
    it.run("Set", "x.")
    assert "<tool_response>" not in it.server.prompts[-2].partition("Summary of your work")[0]
    status, out, _ = it.run("--show", "last")
    assert status == 0
    parts = ["Set x.", view(), "1 ✓ read a.py", "x = 1", replace(), "2 ✓ edit a.py", "x is 2"]
    assert [each for each in parts if each not in out] == []
    assert sorted(parts, key=out.index) == parts


def test_an_interrupt_stops_the_run(shell: Callable[..., Shell]) -> None:
    it = shell([Fault.SILENCE])
    process = it.begin("Set", "x.")
    wait_for(lambda: it.server.prompts, 60, "the request")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "continue it with --resume 2" in err


def test_changes_of_a_run_that_was_stopped_are_not_written(shell: Callable[..., Shell]) -> None:
    it = shell([view(), replace(), Fault.SILENCE])
    process = it.begin("Set", "x.", "--apply")
    wait_for(lambda: len(it.server.prompts) > 2, 60, "the request")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Review the changes" in err
    assert (it.root / "a.py").read_text() == FILES["a.py"]


def test_an_interrupt_at_a_question_stops_the_run(shell: Callable[..., Shell]) -> None:
    it = shell([bash("touch made", escalate="it must"), finish()])
    screen, terminal = pty.openpty()
    process = it.begin("Touch", "--json", stderr=terminal, stdin=terminal)
    os.close(terminal)
    seen = ""
    while "reason against it: " not in seen:
        assert select.select([screen], [], [], 60)[0], seen
        seen += os.read(screen, 4096).decode("utf-8", "replace")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    os.close(screen)
    assert process.returncode == 130
    assert [json.loads(line) for line in out.splitlines()][-1]["state"] == "stopped"
    assert not (it.root / "made").exists()


def test_files_that_run_code_are_not_written(shell: Callable[..., Shell]) -> None:
    create = {"command": "create", "path": ".vscode/tasks.json", "file_text": "{}\n"}
    it = shell([call("str_replace_editor", **create), finish()])
    _, _, err = it.run("Add a task.", "--apply")
    assert "not written, because it runs code by itself" in err
    assert not (it.root / ".vscode").exists()


def test_a_step_that_was_not_possible_has_its_reason(shell: Callable[..., Shell]) -> None:
    it = shell([view("none.py"), bash("no-such-program"), finish("x")])
    _, _, err = it.run("Set", "x.")
    assert "not possible: there is no file none.py" in err
    assert "exit 127: bash: line 1: no-such-program: command not found" in err


def test_tests_that_cannot_start_end_the_run_with_the_option_that_helps(
    shell: Callable[..., Shell], tmp_path: Path
) -> None:
    """A folder of another project is hidden, unless an option names it."""
    folder = tmp_path / "other"
    (folder / ".git").mkdir(parents=True)
    venv.create(folder, symlinks=True)
    command = f"{folder}/bin/python -c 'print(1)'"
    it = shell([bash(command), view(), replace(), finish("x is 2")])
    words = ["Set", "x.", "--test", command]
    status, out, err = it.run(*words)
    assert (status, f"--readable {folder})" in out) == (1, True), (out, err)
    assert len(it.server.prompts) == 1
    status, out, err = it.run(*words, "--readable", str(folder))
    assert status == 0, err


def test_a_terminal_shows_the_progress_within_a_step(shell: Callable[..., Shell]) -> None:
    it = shell([Fault.SILENCE])
    screen, terminal = pty.openpty()
    it.env["TERM"] = "xterm"
    process = it.begin("Set", "x.", stderr=terminal)
    os.close(terminal)
    seen, seconds = "", re.compile(r"reading, ([1-9]\d*) s")
    while not seconds.search(seen):
        assert select.select([screen], [], [], 60)[0], seen
        seen += os.read(screen, 4096).decode("utf-8", "replace")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    while select.select([screen], [], [], 0)[0]:
        try:
            seen += os.read(screen, 4096).decode("utf-8", "replace")
        except OSError:  # all is read
            break
    os.close(screen)
    assert seen.rindex(SHOWN_CURSOR) > seen.rindex("reading")


def test_an_error_leaves_the_cursor_of_the_terminal_visible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", screen)
    session: Any = agent._Session()
    for _ in range(2):
        session.emit(agent.INTERRUPT, {})
    session.service = SimpleNamespace(handlers=lambda: {"agent.stop": lambda _: None})
    with pytest.raises(KeyboardInterrupt):
        session._follow(as_json=False)
    assert screen.getvalue().rindex(SHOWN_CURSOR) > screen.getvalue().rindex("preparing")
