"""When the process of a server ends by itself; real processes."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lcursor.llm import server_process
from lcursor.llm.server_process import ServerProcess, Settings
from lcursor.llm.server_state import ServerFolder, ServerState
from lcursor.process import supervise
from tests.unit.llm.serving import Machine, answers, folder_of
from tests.waiting import is_running, wait_for

pytestmark = pytest.mark.process


def test_a_server_whose_socket_was_removed_makes_room(machine: Machine) -> None:
    server = machine.server()
    url = server.ensure().url
    threading.Event().wait(20 * server_process.FIRST_STEP_S)  # it has seen the socket
    os.unlink(url.removeprefix("unix://"))
    wait_for(lambda: folder_of(machine).running() is None, what="it ends")
    assert answers(server.ensure())


@pytest.mark.linux
def test_a_server_is_paused_while_a_completion_runs(machine: Machine) -> None:
    """Its priority stays: one that is lowered cannot be raised again without rights."""
    machine.server().ensure()
    folder = folder_of(machine)
    running = folder.running()
    assert running is not None
    pid = running.server_pid
    priorities = {os.getpriority(os.PRIO_PROCESS, each) for each in (0, pid, running.pid)}
    assert len(priorities) == 1

    def begin() -> None:
        def is_stopped() -> bool:
            folder.signal(is_begin=True)  # the pipe may not exist yet
            return is_paused(pid)

        wait_for(is_stopped, what="it is paused")

    begin()
    folder.signal(is_begin=False)
    wait_for(lambda: not is_paused(pid), what="it continues")
    begin()
    wait_for(lambda: not is_paused(pid), what="it continues without a message")
    begin()

    def is_running_between_keys() -> bool:
        has_stopped = is_paused(pid)
        folder.signal(is_begin=True)
        return not has_stopped

    wait_for(is_running_between_keys, what="fast typing does not stop it for ever")
    begin()
    os.kill(running.pid, signal.SIGKILL)
    wait_for(lambda: not is_running(pid), what="it ends with its parent")
    folder.signal(is_begin=True)  # nobody reads it


class Pausing(NamedTuple):
    process: ServerProcess
    folder: ServerFolder
    pid: int
    thread: threading.Thread
    sent: list[int]
    """The signals that the child got, in order."""


@pytest.fixture
def pausing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pausing]:
    """A process that pauses another one, `sleep`, for a moment at most, and then hardly again."""
    monkeypatch.setattr(server_process, "MAX_PAUSE_S", 0.05)
    monkeypatch.setattr(server_process, "MIN_RUN_S", 10_000.0)
    folder = ServerFolder(tmp_path / "server")
    folder.create()
    settings = Settings(str(folder.path), {}, [], str(tmp_path / "s"), "", 0, 0, 0, 0, [], 0.0)
    made, sent = ServerProcess(settings), []

    def send_signal(pid: int, number: int, *, is_group: bool) -> None:
        supervise.send_signal(pid, number, is_group=is_group)
        sent.append(number)

    monkeypatch.setattr(server_process, "send_signal", send_signal)
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as child:
        made._child = child
        thread = threading.Thread(target=made._pause, args=(child.pid,), daemon=True)
        thread.start()
        wait_for((folder.path / "completions").exists, what="the pipe")
        yield Pausing(made, folder, child.pid, thread, sent)
        child.kill()


def send(folder: ServerFolder, *, is_begin: bool = True) -> None:
    """Send the begin or the end of a completion, and wait until it was read."""
    folder.signal(is_begin=is_begin)
    fd = os.open(folder.path / "completions", os.O_RDONLY | os.O_NONBLOCK)
    wait_for(lambda: not select.select([fd], [], [], 0)[0], what="it was read")
    os.close(fd)


@pytest.mark.linux
def test_after_the_longest_pause_the_server_runs_for_some_time(pausing: Pausing) -> None:
    """Otherwise it would have a twelfth of the time while somebody types."""
    folder, sent = pausing.folder, pausing.sent
    send(folder)
    wait_for(lambda: len(sent) == 2, what="it was paused and continues")
    for _ in range(50):
        send(folder)
    send(folder, is_begin=False)  # a completion that ended: the next one has the processor
    send(folder)
    wait_for(lambda: len(sent) >= 2 + 50 + 2, what="it is paused again")
    assert sent[:54] == [signal.SIGSTOP, *[signal.SIGCONT] * 52, signal.SIGSTOP]


@pytest.mark.linux
def test_a_key_during_its_end_does_not_pause_it(pausing: Pausing) -> None:
    task = f"self/task/{pausing.thread.native_id}"
    wait_for(lambda: state_of(task) == "S", what="it waits for a key")
    pausing.process._is_over.set()
    pausing.folder.signal(is_begin=True)
    pausing.thread.join()
    assert not is_paused(pausing.pid)
    pending = Path(f"/proc/{pausing.pid}/status").read_text().partition("ShdPnd:\t")[2].split()[0]
    assert not int(pending, 16) & 1 << signal.SIGSTOP - 1


def is_paused(pid: int) -> bool:
    """Return whether a process is paused."""
    return state_of(pid) == "T"


def state_of(task: int | str) -> str:
    """Return the letter for what a process, or a thread, does."""
    return Path(f"/proc/{task}/stat").read_text().rpartition(") ")[2][0]


def test_a_server_that_makes_no_socket_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ServerFolder(tmp_path / "server")
    folder.create()
    folder.write(ServerState(os.getpid(), "", "", "", "", 0))
    path = tmp_path / "s.sock"
    settings = Settings(str(folder.path), {}, [], str(path), "", 0, 0, 0, 0, [], 0.0)
    process = ServerProcess(settings)
    assert process._can_be_found()
    monkeypatch.setattr(server_process, "LISTEN_S", -1.0)
    assert not process._can_be_found()
    path.touch()
    assert process._can_be_found()
    monkeypatch.setattr(server_process, "LISTEN_S", 120.0)
    path.unlink()
    assert not process._can_be_found(), "it was there"
