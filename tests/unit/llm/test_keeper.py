"""When the keeper of a server leaves by itself; real processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.errors import ServerEnded
from lcursor.llm import child
from lcursor.llm.lease import Folder, Lease
from tests.unit.llm.serving import Machine, answers, folder_of, machine_of
from tests.waiting import wait_for

pytestmark = pytest.mark.process


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with machine_of(monkeypatch) as made:
        made.install()
        yield made


def test_a_keeper_whose_socket_was_removed_makes_room(machine: Machine) -> None:
    server = machine.server()
    url = server.ensure().url
    os.unlink(url.removeprefix("unix://"))
    wait_for(lambda: folder_of(machine).living() is None, what="it leaves")
    assert answers(server.ensure())


def test_a_keeper_whose_socket_vanished_before_it_looked_makes_room(machine: Machine) -> None:
    machine.set(LOSE_SOCKET=1)
    with pytest.raises(ServerEnded, match="files were removed"):
        machine.server().ensure()
    wait_for(lambda: folder_of(machine).living() is None, what="it leaves")


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
    (tmp_path / "s.sock").touch()
    assert keeper._is_found()
    monkeypatch.setattr(child, "MOST_DEAF_S", 120.0)
    (tmp_path / "s.sock").unlink()
    assert not keeper._is_found(), "it was there"
