"""The local server's life, with a program that says it is llama-server; real processes."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from lcursor.errors import (
    Cancelled,
    ModelCorrupt,
    ModelError,
    ModelMissing,
    OutOfMemory,
    ServerEnded,
    ServerFailed,
    ServerMissing,
    ServerOccupied,
)
from lcursor.http.client import Client
from lcursor.llm.records import ServedModel
from lcursor.storage import file_lock
from tests.fakes.model_server import ModelServer
from tests.unit.llm.serving import (
    Machine,
    answers,
    folder_of,
    mode,
)
from tests.waiting import is_running, wait_for

pytestmark = pytest.mark.process


def server_pid(machine: Machine) -> int:
    running = folder_of(machine).running()
    assert running is not None
    return running.server_pid


def test_a_server_is_started_at_a_socket_of_the_users_own(machine: Machine) -> None:
    server = machine.server()
    target = server.ensure()
    assert target.url.startswith("unix:///")
    assert answers(target)
    path = target.url.removeprefix("unix://")
    assert stat.S_ISSOCK(os.stat(path).st_mode)
    assert mode(folder_of(machine).state_path) == 0o600
    assert mode(machine.folder) == 0o700
    assert machine.said[0].startswith("starting toy on the CPU, 16,384 tokens of context")
    (command,) = machine.commands()
    assert command[command.index("--parallel") + 1] == "9"
    assert "--no-context-shift" in command
    status = server.status()
    assert (status.state, status.model, status.url) == ("running", "toy", target.url)
    assert "used by 1 process" in status.lines[2]


def test_asking_again_costs_nothing(machine: Machine) -> None:
    server = machine.server()
    assert server.ensure() is server.ensure()
    assert len(machine.commands()) == 1


def test_another_editor_finds_it(machine: Machine) -> None:
    target = machine.server().ensure()
    code = (
        "import sys; from pathlib import Path; from lcursor.config import ChatConfig; "
        "from lcursor.llm.server import LocalServer; "
        "server = LocalServer(ChatConfig(model=sys.argv[2]), Path(sys.argv[1]), print); "
        "print(server.ensure().url); print(server.status().lines[2])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(machine.folder), str(machine.model)],
        capture_output=True,
        text=True,
        check=True,
        cwd=os.getcwd(),
    )
    assert done.stdout.split("\n")[:2] == [target.url, "running; used by 2 processes"]
    assert len(machine.commands()) == 1


def test_two_that_start_at_once_start_one(machine: Machine) -> None:
    machine.set(LOAD_S=0.5)
    servers = [machine.server() for _ in range(4)]
    found: list[ServedModel] = []
    threads = [
        threading.Thread(target=lambda each=each: found.append(each.ensure())) for each in servers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len({target.url for target in found}) == 1
    assert len(found) == 4
    assert len(machine.commands()) == 1


def test_waiting_for_a_load_can_be_stopped_and_the_load_goes_on(machine: Machine) -> None:
    machine.set(LOAD_S=2)
    server, cancel = machine.server(), threading.Event()
    folder = folder_of(machine)

    def stop_waiting() -> None:
        wait_for(folder.running, what="it loads")
        cancel.set()

    stopper = threading.Thread(target=stop_waiting)
    stopper.start()
    with pytest.raises(Cancelled):
        server.ensure(cancel)
    stopper.join()
    assert server.status().state == "starting"
    assert answers(server.ensure())
    assert len(machine.commands()) == 1


def test_a_load_can_be_stopped_by_another_caller(machine: Machine) -> None:
    machine.set(LOAD_S=30)
    server, ended = machine.server(), []

    def wait() -> None:
        with pytest.raises(Cancelled):
            server.ensure()
        ended.append(True)

    waiter = threading.Thread(target=wait)
    waiter.start()
    wait_for(folder_of(machine).running, what="it loads")
    assert server.status().state == "starting"
    pid = server_pid(machine)
    assert server.stop()
    waiter.join(30)
    assert ended
    assert not is_running(pid)
    assert server.status().state == "none"


def test_closing_does_not_wait_for_a_load(machine: Machine) -> None:
    machine.set(LOAD_S=30)
    server, ended = machine.server(), []

    def wait() -> None:
        with pytest.raises(Cancelled):
            server.ensure()
        ended.append(True)

    waiter = threading.Thread(target=wait)
    waiter.start()
    wait_for(folder_of(machine).running, what="it loads")
    server.close()
    waiter.join(30)
    assert ended
    assert folder_of(machine).users() == []


ONLY_THE_KEEPER = pytest.param("keeper", marks=pytest.mark.linux)  # elsewhere the server goes on


@pytest.mark.parametrize("who", [ONLY_THE_KEEPER, "server", "both"])
def test_a_server_that_was_killed_is_started_again(machine: Machine, who: str) -> None:
    server = machine.server()
    server.ensure()
    running = folder_of(machine).running()
    assert running is not None
    for pid, name in ((running.pid, "keeper"), (running.server_pid, "server")):
        if who in (name, "both"):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not folder_of(machine).is_running(), what="the keeper ends")
    again = server.ensure()
    assert answers(again)
    assert not is_running(running.server_pid)
    assert server_pid(machine) != running.server_pid


def test_a_server_ends_when_nobody_uses_it(machine: Machine) -> None:
    first, second = machine.server(idle_s=1.0), machine.server(idle_s=1.0)
    target = first.ensure()
    second.ensure()
    pid, path = server_pid(machine), target.url.removeprefix("unix://")
    first.close()
    wait_for(lambda: len(folder_of(machine).users()) == 1)
    assert answers(target)
    second.close()
    wait_for(lambda: not folder_of(machine).is_running(), what="it leaves")
    assert not is_running(pid)
    assert not os.path.exists(path)
    assert not folder_of(machine).state_path.exists()


def test_a_state_that_was_left_behind_is_not_trusted(machine: Machine) -> None:
    server = machine.server()
    server.ensure()
    folder = folder_of(machine)
    state = folder.running()
    assert state is not None
    server.stop()
    bystander = subprocess.Popen(["sleep", "60"])  # has the number of a server that was killed
    try:
        folder.write(replace(state, pid=bystander.pid, server_pid=bystander.pid))
        assert folder.running() is None
        assert not server.stop()
        assert answers(server.ensure())
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_program_that_is_too_old_is_not_used(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.set(VERSION=9599)
    monkeypatch.setattr("lcursor.llm.llama_server.has_package", lambda: False)
    with pytest.raises(ServerMissing, match="build 9599, and 9600 is required"):
        machine.server().ensure()
    assert machine.commands() == []


def test_a_stale_socket_is_no_hindrance(machine: Machine) -> None:
    server = machine.server()
    path = server.ensure().url.removeprefix("unix://")
    server.stop()
    assert not os.path.exists(path)
    open(path, "w").close()
    assert answers(server.ensure())


def test_a_missing_program_is_an_error(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.program.unlink()
    monkeypatch.setattr("lcursor.llm.llama_server.has_package", lambda: False)
    monkeypatch.setattr("lcursor.llm.discovery.PORTS", {})
    with pytest.raises(ServerMissing, match="no program on this machine") as caught:
        machine.server().ensure()
    assert "llama-server" in caught.value.hint


def test_another_running_server_is_suggested_and_not_used(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.program.unlink()
    monkeypatch.setattr("lcursor.llm.llama_server.has_package", lambda: False)
    with ModelServer() as other:
        other.routes["/v1/models"] = (200, "application/json", b'{"data": [{"id": "theirs"}]}')
        port = other.port
        monkeypatch.setattr("lcursor.llm.discovery.PORTS", {port: "openai"})
        status = machine.server().status()
        assert status.state == "foreign"
        assert status.url == f"http://127.0.0.1:{port}"
        with pytest.raises(ServerMissing) as caught:
            machine.server().ensure()
    assert f'url = "http://127.0.0.1:{port}", model = "theirs"' in caught.value.hint


def test_a_folder_that_cannot_be_written_is_an_error(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, **_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(file_lock, "try_lock", fail)
    with pytest.raises(ServerFailed, match=r"cannot be used: No space left") as caught:
        machine.server().ensure()
    monkeypatch.undo()
    assert "LCURSOR_DATA" in caught.value.hint


def test_the_server_can_be_disabled(machine: Machine) -> None:
    with pytest.raises(ServerMissing, match=r'chat\.server is "off"'):
        machine.server(server="off").ensure()


def test_a_program_that_ends_is_not_started_again_and_again(machine: Machine) -> None:
    machine.set(END="unknown model architecture: 'future'")
    server = machine.server()
    with pytest.raises(ServerEnded, match="unknown model architecture: 'future'") as caught:
        server.ensure()
    assert "server log" in caught.value.hint
    assert len(machine.commands()) == 1
    assert server.status().state == "failed"
    machine.set(END="")
    assert answers(server.ensure())


def test_a_context_that_does_not_fit_is_made_smaller(machine: Machine) -> None:
    machine.set(MOST_TOKENS=8192)
    server = machine.server()
    server.ensure()
    tried = [command[command.index("--ctx-size") + 1] for command in machine.commands()]
    assert tried == ["16384", "8192"]
    assert any(
        "ran out of memory" in words and "trying 8,192 tokens" in words for words in machine.said
    )
    assert "8,192 tokens" in server.status().lines[0]


def test_a_context_that_the_user_set_is_never_made_smaller(machine: Machine) -> None:
    machine.set(MOST_TOKENS=8192)
    with pytest.raises(OutOfMemory, match="with 16,000 tokens of context needs about") as caught:
        machine.server(context_tokens=16000).ensure()
    assert "et chat.context_tokens = 12288 (about 0.7 GiB)" in caught.value.hint
    assert len(machine.commands()) == 1


def test_invalid_models_are_rejected(machine: Machine) -> None:
    with pytest.raises(ModelMissing):
        machine.server(model=str(machine.home / "absent.gguf")).ensure()
    broken = machine.home / "broken.gguf"
    broken.write_bytes(b"GGUF, or not")
    with pytest.raises(ModelCorrupt):
        machine.server(model=str(broken)).ensure()
    with pytest.raises(ModelMissing, match="no chat model") as caught:
        machine.server(model="").ensure()
    assert "python -m lcursor models pull" in caught.value.hint
    assert machine.commands() == []
    assert machine.server().status().state == "none"


def test_other_settings_restart_a_server_unless_another_editor_uses_it(machine: Machine) -> None:
    first = machine.server(context_tokens=4096)
    first.ensure()
    pid = server_pid(machine)
    machine.server(context_tokens=2048).ensure()
    machine.server(model="").ensure()
    assert server_pid(machine) == pid  # it is large enough, or will do
    larger = machine.server(context_tokens=8192)
    larger.ensure()
    assert server_pid(machine) != pid
    code = (
        "import sys; from pathlib import Path; from lcursor.llm.server_state import ServerFolder; "
        "user = ServerFolder(Path(sys.argv[1])).join(); print('in', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(machine.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"in\n"
    try:
        with pytest.raises(ServerOccupied, match="8,192 tokens of context for another") as caught:
            machine.server(context_tokens=16384).ensure()
        assert "server restart" in caught.value.hint
        machine.server(context_tokens=16384).restart()
    finally:
        other.communicate(timeout=10)
    assert machine.commands()[-1].count("16384") == 1


def test_a_missing_model_does_not_stop_the_running_server(machine: Machine) -> None:
    target = machine.server().ensure()
    with pytest.raises(ModelError, match="nosuch"):
        machine.server(model="nosuch").ensure()
    assert answers(target)
    assert len(machine.commands()) == 1


def test_an_answer_that_is_being_written_is_not_broken_off(machine: Machine) -> None:
    busy = machine.home / "busy"
    machine.set(BUSY=busy)
    target = machine.server(context_tokens=4096).ensure()
    busy.touch()
    with pytest.raises(ServerOccupied, match="writing an answer with toy"):
        machine.server(context_tokens=8192).ensure()
    assert answers(target)
    busy.unlink()
    machine.server(context_tokens=8192).ensure()
    assert len(machine.commands()) == 2


def test_stopping_ends_one_server_and_not_the_next(machine: Machine) -> None:
    servers = [machine.server(), machine.server()]
    servers[0].ensure()
    is_over, errors = threading.Event(), []

    def insist() -> None:
        while not is_over.is_set():
            try:
                servers[1].ensure()
            except ServerEnded as error:  # while it loaded
                errors.append(error)

    insister = threading.Thread(target=insist)
    insister.start()
    try:
        for _ in range(3):
            assert servers[0].stop()
            wait_for(lambda: folder_of(machine).running(), what="it is started again")
    finally:
        is_over.set()
        insister.join(20)
    assert not insister.is_alive()


def test_stop_says_whether_one_ran(machine: Machine) -> None:
    server = machine.server()
    assert not server.stop()
    server.ensure()
    pid = server_pid(machine)
    assert server.stop()
    assert not is_running(pid)
    assert server.status().state == "none"
    assert server.log_path.read_text().startswith("--- ")


def test_a_script_that_starts_the_program_is_ended_with_it(machine: Machine) -> None:
    program = machine.program.rename(machine.home / "real")
    machine.install(f'#!/bin/sh\n"{program}" "$@"\necho over\n')
    server = machine.server()
    target = server.ensure()
    client = Client(target.url, target.key, "chat")
    pid = json.loads(b"".join(client.request("/props")))["pid"]
    client.close()
    assert pid != server_pid(machine)
    server.stop()
    # Its lock is free slightly before it is gone.
    wait_for(lambda: not is_running(pid), what="the program ends")


def test_clocks_that_are_wrong_change_nothing(machine: Machine) -> None:
    server = machine.server(idle_s=1.0)
    target = server.ensure()
    for time_s in (0, 4_000_000_000):
        for path in (machine.folder, *machine.folder.rglob("*")):
            os.utime(path, (time_s, time_s))
        assert server.ensure() == target
        assert server.status().state == "running"
    assert len(machine.commands()) == 1


@pytest.mark.linux
def test_a_users_own_variables_do_not_reach_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_API_KEY", "theirs")
    monkeypatch.setenv("LLAMA_ARG_PORT", "1")
    machine.server().ensure()
    with open(f"/proc/{server_pid(machine)}/environ", encoding="utf-8") as file:
        names = {pair.partition("=")[0] for pair in file.read().split("\0")}
    assert "FAKE_SAID" in names
    assert not {"LLAMA_API_KEY", "LLAMA_ARG_PORT"} & names
