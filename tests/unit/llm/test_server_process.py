"""When the process of a server ends by itself; real processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.llm import server_process
from lcursor.llm.server_process import ServerProcess, Settings
from lcursor.llm.server_state import ServerFolder, ServerState
from tests.unit.llm.serving import Machine, answers, folder_of, machine_of
from tests.waiting import wait_for

pytestmark = pytest.mark.process


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with machine_of(monkeypatch) as made:
        made.install()
        yield made


def test_a_server_whose_socket_was_removed_makes_room(machine: Machine) -> None:
    server = machine.server()
    url = server.ensure().url
    threading.Event().wait(20 * server_process.FIRST_STEP_S)  # it has seen the socket
    os.unlink(url.removeprefix("unix://"))
    wait_for(lambda: folder_of(machine).running() is None, what="it ends")
    assert answers(server.ensure())


def test_the_priority_is_lowered_when_the_model_is_loaded(machine: Machine) -> None:
    """Lowered before, a load of two seconds took two minutes next to two busy processes."""
    machine.set(LOAD_S=1.5)
    threading.Timer(0.0, machine.server().ensure).start()
    wait_for(lambda: folder_of(machine).running(), what="it loads")
    running = folder_of(machine).running()
    assert running is not None

    def nice() -> int:
        return os.getpriority(os.PRIO_PROCESS, running.server_pid)

    own = os.getpriority(os.PRIO_PROCESS, 0)
    wait_for(lambda: Path(running.url.removeprefix("unix://")).exists(), what="it listens")
    assert nice() == own
    wait_for(lambda: nice() == server_process.NICE_ON_CPU, what="it has loaded")


def test_a_server_that_makes_no_socket_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ServerFolder(tmp_path / "server")
    folder.create()
    folder.write(ServerState(os.getpid(), "", "", "", "", 0))
    path = tmp_path / "s.sock"
    settings = Settings(str(folder.path), {}, [], str(path), "", 0, 0, 0, [], 0.0)
    process = ServerProcess(settings)
    assert process._can_be_found()
    monkeypatch.setattr(server_process, "LISTEN_S", -1.0)
    assert not process._can_be_found()
    path.touch()
    assert process._can_be_found()
    monkeypatch.setattr(server_process, "LISTEN_S", 120.0)
    path.unlink()
    assert not process._can_be_found(), "it was there"
