"""Whose server listens at a port, and which of its models can be used."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from lcursor import system
from lcursor.llm import discovery

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid"
PORT = 11434
OWN = os.getuid()
SERVICE, OTHER_SERVICE, PERSON = OWN + 997, OWN + 998, OWN + 999
ACCOUNTS = {SERVICE: "ollama", OTHER_SERVICE: "autossh", PERSON: "ollamafan"}


def table(*rows: tuple[str, int, int, str]) -> str:
    """Return the text of `/proc/net/tcp`: address, port, uid and state of each socket."""
    lines = [
        f"   {n}: {address}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000"
        f" {uid:5d}        0 {77 + n} 1 0000000000000000 100 0 0 10 0"
        for n, (address, port, uid, state) in enumerate(rows)
    ]
    return "\n".join([HEAD, *lines, ""])


def proc(folder: Path, text: str, program: str = "ollama") -> Path:
    """Make a `/proc` with one process, which has the socket 77."""
    (folder / "net").mkdir()
    (folder / "net/tcp").write_text(text)
    fds = folder / "123/fd"
    fds.mkdir(parents=True)
    (fds / "4").symlink_to("socket:[77]")
    (folder / "123/comm").write_text(f"{program}\n")
    return folder


@pytest.mark.parametrize(
    ("rows", "program", "is_own"),
    [
        ([("0100007F", PORT, OWN, "0A")], "ollama", True),
        ([("00000000", PORT, OWN, "0A")], "llama-server", True),
        ([("0100007F", PORT, OWN, "0A")], "ssh", False),
        ([("0100007F", PORT, OWN, "01")], "ollama", False),
        ([("0100007F", PORT + 1, OWN, "0A")], "ollama", False),
        ([("0100007F", PORT, 1234, "0A")], "ollama", False),
        ([("0100007F", PORT, SERVICE, "0A")], "?", True),
        ([("0100007F", PORT, OTHER_SERVICE, "0A")], "?", False),
        ([("0100007F", PORT, PERSON, "0A")], "?", False),
        ([("0100007F", PORT, OWN, "0A"), ("00000000", PORT, 1234, "0A")], "ollama", False),
        ([], "ollama", False),
    ],
)
def test_a_server_is_the_users_or_has_its_own_account(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: list[tuple[str, int, int, str]],
    program: str,
    is_own: bool,
) -> None:
    monkeypatch.setattr(discovery, "_account", lambda uid: ACCOUNTS.get(uid, "somebody"))
    monkeypatch.setattr(system, "PROC", proc(tmp_path, table(*rows), program))
    assert discovery.is_own(PORT) is is_own


def test_the_name_of_an_account() -> None:
    assert discovery._account(0) == "root"
    assert discovery._account(2**31 - 3) == ""


def test_without_proc_no_server_is_known_to_be_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "PROC", tmp_path)
    assert not discovery.is_own(PORT)


def test_a_real_socket_of_this_process_is_of_no_server_program() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not discovery.is_own(server.getsockname()[1])


@pytest.mark.parametrize(
    ("model", "is_remote"),
    [("qwen3-coder:480b-cloud", True), ("qwen:cloud", True), ("qwen2.5-coder:1.5b", False)],
)
def test_models_that_run_elsewhere(model: str, is_remote: bool) -> None:
    assert discovery.is_remote(model) is is_remote


def test_the_smallest_model_comes_first() -> None:
    names = ["qwen2.5-coder:7b", "codestral:latest", "qwen2.5-coder:1.5b-base", "starcoder2:3b"]
    assert sorted(names, key=discovery.parameters) == [names[2], names[3], names[0], names[1]]
