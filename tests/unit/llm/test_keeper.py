"""When the keeper of a server leaves by itself; real processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.errors import ServerEnded
from lcursor.llm import child
from lcursor.llm.lease import Folder, Lease
from tests.unit.llm.serving import Machine, answers, folder_of, machine_of, until


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with machine_of(monkeypatch) as made:
        made.install()
        yield made


def test_a_keeper_whose_socket_was_removed_makes_room(machine: Machine) -> None:
    server = machine.server()
    url = server.ensure().url
    time.sleep(20 * child.FIRST_STEP_S)  # the keeper looks, and has seen its socket
    os.unlink(url.removeprefix("unix://"))
    until(lambda: folder_of(machine).living() is None, "it leaves")
    assert answers(server.ensure())


def test_a_keeper_whose_socket_vanished_before_it_looked_makes_room(machine: Machine) -> None:
    machine.set(LOSE_SOCKET=1)
    with pytest.raises(ServerEnded, match="files were removed"):
        machine.server().ensure()
    until(lambda: folder_of(machine).living() is None, "it leaves")


def test_a_server_that_makes_no_socket_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(tmp_path / "server")
    folder.make()
    where = {"url": "", "engine": "", "model": "", "path": "", "context_tokens": 0}
    folder.write(Lease(pid=os.getpid(), ticks=0, boot="", **where))  # type: ignore[arg-type]
    keeper = child.Keeper({"folder": str(folder.path), "socket": str(tmp_path / "s.sock")})
    assert keeper._is_found()
    monkeypatch.setattr(child, "MOST_DEAF_S", -1.0)
    assert not keeper._is_found()
