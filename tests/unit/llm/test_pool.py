"""A pool of models that several share: who waits for a server, and what is done if it has ended."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from lcursor.config import ChatConfig
from lcursor.http import endpoint
from lcursor.http.client import Client
from lcursor.llm.client import ChatClient
from lcursor.llm.pool import Connection, ModelPool
from lcursor.llm.records import Served
from tests.unit.llm.serving import Machine
from tests.waiting import wait_for

pytestmark = pytest.mark.process


def test_a_caller_gets_the_reports_of_the_server_that_it_waits_for(machine: Machine) -> None:
    heard, others = list[str](), list[str]()
    models = ModelPool(ChatConfig(model=str(machine.model)), machine.folder, others.append)
    models.connect(models.names()[0], threading.Event(), heard.append)
    assert heard[0].startswith("starting toy")
    assert others == []
    models.close()


def pid_of(connection: Connection) -> int:
    """Return the process of a server, which answers itself."""
    client = Client(connection.client.target.url, connection.client.target.key, "chat")
    try:
        return int(json.loads(b"".join(client.request("/props")))["pid"])
    finally:
        client.close()


def is_refused(url: str) -> bool:
    """Return whether a server accepts no connection."""
    path, parts = endpoint.socket_path(url), urlsplit(url)
    with socket.socket(socket.AF_UNIX if path else socket.AF_INET) as sock:
        return sock.connect_ex(path or (parts.hostname, parts.port)) != 0


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_a_server_of_ours_that_went_is_started_and_asked_once_more(
    machine: Machine, how: str
) -> None:
    models, cancel = (
        ModelPool(ChatConfig(model=str(machine.model)), machine.folder),
        threading.Event(),
    )
    name = models.names()[0]
    first = models.connect(name, cancel)
    before = pid_of(first)
    if how == "stopped":
        assert machine.server().stop()
    else:
        os.kill(before, signal.SIGKILL)  # its keeper has not seen it yet
        wait_for(
            lambda: is_refused(first.client.target.url), what="it accepts no connection any more"
        )
    asked: list[int] = []

    def ask(connection: Connection) -> int:
        asked.append(1)
        connection.client.probe()
        return pid_of(connection)

    assert models.with_retry(first, ask, lambda: models.connect(name, cancel)) != before
    assert len(asked) == 2
    assert len(machine.commands()) == 2
    models.close()


def test_a_server_of_ours_that_dies_with_the_question_is_started_and_asked_once_more(
    machine: Machine,
) -> None:
    die = machine.home / "die"
    machine.set(DIE=die)
    models, cancel = (
        ModelPool(ChatConfig(model=str(machine.model)), machine.folder),
        threading.Event(),
    )
    name = models.names()[0]
    first = models.connect(name, cancel)
    before = pid_of(first)
    die.touch()
    assert models.with_retry(first, pid_of, lambda: models.connect(name, cancel)) != before
    assert not die.exists()
    assert len(machine.commands()) == 2
    models.close()


def test_a_server_of_ours_that_is_slow_to_answer_is_waited_for(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = list[str]()
    config, cancel = ChatConfig(model=str(machine.model)), threading.Event()
    models = ModelPool(config, machine.folder)
    name = models.names()[0]
    pid = pid_of(models.connect(name, cancel))
    others = ModelPool(config, machine.folder, heard.append)
    probe, tries = ChatClient.probe, list[int]()

    def slow(client: ChatClient) -> Served:
        tries.append(len(tries))
        is_stopped = len(tries) < 3
        os.kill(pid, signal.SIGSTOP if is_stopped else signal.SIGCONT)
        limits = client._http._limits
        # A stopped server does not answer within any time; the other has all that it needs.
        client._http._limits = replace(limits, answer_s=0.05 if is_stopped else 60.0)
        return probe(client)

    monkeypatch.setattr(ChatClient, "probe", slow)
    try:
        assert pid_of(others.connect(name, cancel)) == pid
    finally:
        os.kill(pid, signal.SIGCONT)
    assert len(tries) == 3
    assert heard == ["it is slow to answer"] * 2
    models.local_server().stop()
    for each in (models, others):
        each.close()


def test_a_connection_that_was_made_again_is_not_dropped(machine: Machine) -> None:
    models, cancel = (
        ModelPool(ChatConfig(model=str(machine.model)), machine.folder),
        threading.Event(),
    )
    name = models.names()[0]
    first = models.connect(name, cancel)
    models.invalidate(first)
    second = models.connect(name, cancel)
    models.invalidate(first)  # by another who asked it
    assert models.known(name) is second
    second.client.probe()
    models.close()


def test_callers_at_the_same_time_share_a_connection(machine: Machine) -> None:
    models, cancel = (
        ModelPool(ChatConfig(model=str(machine.model)), machine.folder),
        threading.Event(),
    )
    name, found = models.names()[0], list[Connection]()
    both = [
        threading.Thread(target=lambda: found.append(models.connect(name, cancel)))
        for _ in range(4)
    ]
    for each in both:
        each.start()
    for each in both:
        each.join(20)
    assert len({id(each) for each in found}) == 1
    found[0].client.probe()
    models.close()
