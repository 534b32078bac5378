"""A commit message through the edit service, with a real git."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.chat_server import ChatServer
from tests.fakes.gone import gone_once
from tests.unit.edit.desk import Desk, reply


@pytest.fixture(autouse=True)
def _git(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")


def git(desk: Desk, *words: str) -> None:
    subprocess.run(["git", "-C", str(desk.root), *words], check=True, capture_output=True)


def repository(desk: Desk) -> None:
    (desk.root / ".git").rmdir()
    git(desk, "init", "-q")
    desk.put("a.py", "def one():\n    return 1\n")
    git(desk, "add", "a.py")
    git(desk, "commit", "-qm", "One")


def ask(desk: Desk, written: str = "") -> int:
    return desk.do("edit.commit", path=str(desk.root), model="", file="", index="", written=written)


def text_of(body: dict[str, Any]) -> str:
    return "\n".join(each["content"] for each in body["messages"])


def test_a_message_of_what_is_staged(tmp_path: Path) -> None:
    with (
        ChatServer(lambda _: reply("Return two\n\nOne was too little.\n")) as server,
        Desk(tmp_path, server) as desk,
    ):
        repository(desk)
        desk.put("a.py", "def one():\n    return 2\n")
        git(desk, "add", "a.py")
        desk.put("a.py", "def one():\n    return 3  # not staged\n")
        number = ask(desk)
        assert desk.wait("edit.message", number)["text"] == "Return two\n\nOne was too little."
        assert desk.done(number)["reason"] == "proposed"
        assert "+    return 2" in text_of(server.bodies[0])
        assert "not staged" not in text_of(server.bodies[0])


def test_nothing_staged_is_reported_with_what_to_do(tmp_path: Path) -> None:
    with ChatServer() as server, Desk(tmp_path, server) as desk:
        repository(desk)
        number = ask(desk)
        assert desk.done(number)["reason"] == "failed"
        assert "git add" in desk.told("error", number)[0]["hint"]
        number = ask(desk, "Another message")
        assert desk.done(number)["reason"] == "failed"
        assert "amended commit" in desk.told("error", number)[0]["hint"]
        assert not server.bodies


def test_a_server_of_ours_that_went_before_it_was_asked_is_reached_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = gone_once(monkeypatch)
    with ChatServer(lambda _: reply("Return two\n")) as server, Desk(tmp_path, server) as desk:
        repository(desk)
        desk.put("a.py", "def one():\n    return 2\n")
        git(desk, "add", "a.py")
        assert desk.wait("edit.message", ask(desk))["text"] == "Return two"
    assert names == ["fake", "fake"]
