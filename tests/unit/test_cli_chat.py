"""`python -m lcursor chat` as a process, with a scripted server on a real socket."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.chat_server import Answer, ChatServer, Hang, refuse, say
from tests.unit.index import workers
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]


class Shell:
    """A shell in a project of the test."""

    def __init__(self, folder: Path, server: ChatServer) -> None:
        self.root, self.server = folder / "project", server
        (self.root / ".git").mkdir(parents=True)
        self.env = {
            **os.environ,
            "LCURSOR_DATA": str(folder / "data"),
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "80",
        }

    def begin(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "lcursor", "chat", *words],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str, str]:
        process = self.begin(*words)
        out, err = process.communicate(timeout=50)
        return process.returncode, out, err

    def ask(self, *words: str) -> tuple[int, str, str]:
        return self.run("--url", self.server.url, *words)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with ChatServer() as server:
        yield Shell(tmp_path, server)


def test_a_question_is_answered_and_gone_on_from(shell: Shell) -> None:
    (shell.root / "a.py").write_text("x = 1\n")
    status, out, err = shell.ask("What", "is @file:a.py ?")
    assert status == 0, err
    assert out == "You said: a.py:\n```python\nx = 1\n```\n\nWhat is @file:a.py ?\n"
    assert "+ a.py" in err
    status, out, err = shell.ask("--continue", "--json", "And", "now?")
    assert status == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    assert rows[-1]["message"] == "chat.done"
    assert rows[-1]["cached_tokens"] > 0
    assert len(shell.server.bodies[1]["messages"]) == 4
    status, out, _ = shell.run("--list")
    assert out.rstrip().endswith("What is @file:a.py ?")
    _, out, _ = shell.run("--show", out.split()[0])
    assert out.startswith("# What is @file:a.py ?\n\n## You\n\nWhat is")
    assert "Attached: a.py" in out


def test_an_indexed_project_is_found_by_its_index(shell: Shell) -> None:
    (shell.root / "a.py").write_text("def backoff():\n    return 1\n")
    (shell.root / "b.local").write_text("backoff = 2\n")
    plain = "full-text search only: the project is not indexed"
    assert plain in shell.ask("--json", "@codebase backoff")[1]
    env = {name: shell.env[name] for name in ("LCURSOR_DATA",)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        try:
            with workers.connect(shell.root) as client:
                client.call("begin")
                wait_for(lambda: client.call("status")["phase"] == "ready")
                _ask_indexed(shell)
                client.call("stop")
            wait_for(lambda: workers.is_free(shell.root))
            _ask_indexed(shell)  # which starts a worker
        finally:
            workers.end(shell.root)


def _ask_indexed(shell: Shell) -> None:
    status, out, err = shell.ask("--json", "--secret", "*.local", "@codebase backoff")
    assert status == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    (items,) = [row["items"] for row in rows if row["message"] == "chat.started"]
    found = {item["name"]: item["note"] for item in items if not item["is_left_out"]}
    assert not any("full-text search only" in note for note in found.values()), found
    assert [name for name in found if name.startswith("a.py")], found
    assert not [name for name in found if name.startswith("b.local")], found


def test_an_interrupt_stops_the_answer_and_keeps_it(tmp_path: Path) -> None:
    parts = [*say("So far", finish=None, is_done=False).parts, Hang()]
    with ChatServer([Answer(parts)]) as server:
        shell = Shell(tmp_path, server)
        process = shell.begin("--url", server.url, "Tell me")
        assert process.stdout is not None
        assert process.stdout.read(6) == "So far"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert process.returncode == 130, err
        assert "stopped" in err
        deadline_s = time.monotonic() + 5
        while not server.gone_s and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert server.gone_s
    key = shell.run("--list")[1].split()[0]
    assert "So far\n\n*(It was stopped here.)*" in shell.run("--show", key)[1]


def test_a_failure_is_one_line_and_a_status(tmp_path: Path) -> None:
    with ChatServer([refuse(401, "Invalid API Key")]) as server:
        status, out, err = Shell(tmp_path, server).ask("Hello")
    assert status == 1
    assert not out.strip()
    assert [line for line in err.splitlines() if line.startswith("lcursor: ")] == err.splitlines()
    assert "denies access" in err


def test_what_a_terminal_would_obey_is_not_printed(tmp_path: Path) -> None:
    with ChatServer([say("a\x1b[2Jb")]) as server:
        _, out, _ = Shell(tmp_path, server).ask("Hello")
    assert out == "a�[2Jb\n"


def test_an_answer_is_printed_unchanged(tmp_path: Path) -> None:
    text = "all:\n\tcc a.c\nroot:x:0:0 [b]\n«\u202fun\u00a0mot\u202f» 👩\u200d💻 soft\u00adly  \n"
    with ChatServer([say(text + "x" * 200 + "\n")]) as server:
        shell = Shell(tmp_path, server)
        _, out, _ = shell.ask("Hello")
    assert out == text + "x" * 200 + "\n"
    _, listing, _ = shell.run("--list")
    _, shown, _ = shell.run("--show", listing.split()[0])
    assert text in shown


def test_a_chat_that_there_is_not_is_reported(shell: Shell) -> None:
    status, _, err = shell.run("--show", "nothing")
    assert status == 1
    assert "there is no chat nothing" in err
