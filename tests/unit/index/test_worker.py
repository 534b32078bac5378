"""The worker as a process: one of them, whatever happens to it."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lcursor import system
from lcursor.errors import IndexAway, IndexFailed, IndexRejected, LcursorError, MessageInvalid
from lcursor.index import embed, launch, protocol
from lcursor.index.client import Client
from lcursor.index.project import Project
from lcursor.index.store import Store
from lcursor.index.worker import Server
from lcursor.process.supervise import Child
from lcursor.project import secrets
from lcursor.project.root import begun_path, data_folder
from tests.unit.index.workers import FILES, connect, end, filled, is_free, paths
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(300),  # many processes one after the other, on a busy machine
    pytest.mark.usefixtures("home"),
]


def test_words_are_found_at_once_without_an_embedder(root: Path) -> None:
    with connect(root) as client:
        assert client.call("status")["phase"] == "idle"
        with pytest.raises(IndexRejected, match="not indexed"):
            client.search("needle7")
        client.call("begin")
        wait_for(lambda: client.search("needle"))
        state = filled(client)
        assert paths(client, "needle7")[0] == "f7.py"
        assert client.call("symbols", name="f7", limit=2)["symbols"] == [
            {
                "path": "f7.py",
                "language": "python",
                "name": "f7",
                "kind": "function",
                "first_row": 0,
                "end_row": 2,
                "scope": "",
            }
        ]
        assert client.call("similar", text="needle", texts=["f7"]) == {"scores": []}
        assert state["embedder"] == ""
        assert "no embedder" in state["embedder_note"]
        assert (state["chunks"], state["by_language"]) == (FILES, {"python": FILES})
        assert state["watching"] == "watching"
        assert 0 < state["memory_bytes"] < 400 << 20
        used = client.call("retrieve", text="needle7", tokens=300)["used"]
        assert used[0]["path"] == "f7.py"


def test_two_editors_share_a_worker_and_see_only_their_own_buffers(root: Path) -> None:
    with connect(root) as one, connect(root) as other:
        one.call("begin")
        assert filled(one)["pid"] == filled(other)["pid"]
        assert one.call("status")["clients"] == 2
        one.call("buffer", path="f7.py", text="def unsaved_thing():\n    pass\n")
        assert paths(one, "unsaved_thing") == ["f7.py"]
        assert paths(other, "unsaved_thing") == []
        assert paths(other, "needle7")[0] == "f7.py"
        one.call("buffer", path="f7.py", text=None)
        assert paths(one, "unsaved_thing") == []
        (root / ".lcursorignore").write_text("private.py\n")
        (root / "private.py").write_text("x = 1\n")
        for path, is_taken in (("new.py", True), (".env", False), ("private.py", False)):
            said = one.call("buffer", path=path, text="unsaved_thing = 1\n")
            assert said == {"is_taken": is_taken}, path
        assert paths(one, "unsaved_thing") == ["new.py"]


@pytest.mark.skipif(
    not Path("/proc/self/autogroup").exists(), reason="the kernel does not weigh sessions"
)
def test_a_worker_has_a_low_priority(root: Path) -> None:
    with connect(root) as client:
        pid = client.call("status")["pid"]
        assert Path(f"/proc/{pid}/autogroup").read_text().split()[-1] == "10"


def test_workers_that_are_started_at_once_become_one(root: Path) -> None:
    pids: list[int] = []

    def ask() -> None:
        with connect(root) as client:
            pids.append(client.call("status")["pid"])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(pids) == 4
    assert len(set(pids)) == 1


def test_another_worker_gets_what_the_first_one_knew(root: Path) -> None:
    with connect(root) as client:
        client.call("begin")
        pid = filled(client)["pid"]
        client.call("buffer", path="f7.py", text="unsaved_thing = 1\n")
        events: list[dict[str, Any]] = []
        client.listen(events.append)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: {"event": "gone"} in events)
        assert paths(client, "unsaved_thing") == ["f7.py"]
        assert client.call("status")["pid"] != pid
        assert filled(client)["generation"] > 0
        events.clear()
        (root / "f3.py").write_text("fresh_words = 1\n")
        wait_for(lambda: any(event["event"] == "state" for event in events))


def test_a_project_is_indexed_although_its_workers_are_killed(root: Path) -> None:
    dice = random.Random(4)
    pids = set()
    with connect(root) as client:
        client.call("begin")
        for _ in range(4):
            time.sleep(dice.random() * 0.3)
            pid = client.call("status")["pid"]
            pids.add(pid)
            os.kill(pid, signal.SIGKILL)
            client.notify("typing")  # into the void
        assert len(pids) == 4
        state = filled(client)
        assert (state["chunks"], state["symbols"]) == (FILES, FILES * 41)
        assert state["remarks"] == []
        client.call("stop")
    wait_for(lambda: is_free(root))
    store = Store(data_folder(root))
    reader = store.reader()
    found = [each.text for path in reader.files() for each in reader.chunks_of(path)]
    assert len(found) == len(set(found)) == FILES
    store.close()
    reader.close()


def test_saved_files_are_found_within_a_moment(root: Path) -> None:
    with connect(root) as client:
        client.call("begin")
        filled(client)
        wait_for(lambda: client.call("status")["watching"])
        for name, word in (("f1.py", "watched"), ("f2.py", "noticed"), ("f3.py", "seen")):
            (root / name).write_text(f"{word} = 1\n")
            found = partial(paths, client, word)
            wait_for(found)
            assert found() == [name]
        for name, word in (("f4.py", "told"), ("f5.py", "said")):
            (root / name).write_text(f"{word} = 1\n")
            client.notify("changed", paths=[name])
            wait_for(partial(paths, client, word))


def test_a_stale_socket_and_a_stale_lock_are_no_obstacle(root: Path, home: Path) -> None:
    launch.make_folder(root)
    address = launch.socket_path(root)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(address))
    process = launch.worker_process(root)
    process.lock_path.touch()
    process.write_state({"pid": 1, "socket": str(home / "nowhere.sock")})
    with connect(root) as client:
        assert client.call("status")["phase"] == "idle"


def test_an_editor_with_another_environment_finds_the_worker(
    root: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(root) as one:
        monkeypatch.delenv("XDG_RUNTIME_DIR")  # as over ssh, say
        with connect(root) as other:
            assert one.call("status")["pid"] == other.call("status")["pid"]


def test_a_worker_of_another_machine_with_this_home_is_named_at_once(root: Path) -> None:
    process = launch.worker_process(root)
    launch.make_folder(root)
    lock = process.try_lock()
    assert lock is not None
    try:
        process.write_state({"host": "desk", "socket": "/no/such/socket"})
        with pytest.raises(IndexAway, match="runs on desk"):
            connect(root)
    finally:
        os.close(lock)
    with connect(root):
        assert process.read_state()["host"] == system.host_name()


def test_a_home_directory_is_indexed_only_after_a_confirmation(home: Path) -> None:
    (home / "notes.txt").write_text("needle\n")
    try:
        with connect(home) as client:
            with pytest.raises(IndexRejected, match="home directory") as refused:
                client.call("begin")
            assert refused.value.hint
            state = client.call("status")
            assert (state["is_home"], state["is_begun"], state["phase"]) == (True, False, "idle")
            assert client.call("report")["is_home"]
            client.call("begin", confirmed=True)
            wait_for(lambda: paths(client, "needle") == ["notes.txt"])
            client.call("stop")
        wait_for(lambda: is_free(home))
        with connect(home) as client:  # it was asked once
            wait_for(lambda: paths(client, "needle") == ["notes.txt"])
    finally:
        end(home)


def test_a_begun_project_is_resumed(root: Path) -> None:
    with connect(root) as client:
        client.call("begin")
        filled(client)
        client.call("stop")
    wait_for(lambda: is_free(root))
    (root / "f5.py").write_text("changed_meanwhile = 1\n")
    with connect(root) as client:
        assert paths(client, "needle7")[0] == "f7.py"  # with the first question
        wait_for(lambda: paths(client, "changed_meanwhile") == ["f5.py"])


def test_the_index_can_be_rebuilt(root: Path) -> None:
    with connect(root) as client:
        client.call("begin")
        filled(client)
        (data_folder(root) / "vectors.cache").write_text("old")
        client.call("begin", rebuild=True)
        filled(client)
        assert not (data_folder(root) / "vectors.cache").exists()
        assert paths(client, "needle7")[0] == "f7.py"


def test_the_report_of_a_project_and_the_reason_for_a_file(root: Path) -> None:
    (root / ".lcursorignore").write_text("f1.py\n")
    (root / ".env").write_text("A=1\n")
    with connect(root) as client:
        report = client.call("report")
        assert report["files"] >= FILES - 1
        assert report["languages"]["python"]["files"] == FILES - 1
        assert not report["is_begun"]
        assert client.call("why", path="f1.py")["reason"]
        assert client.call("why", path=".env")["reason"]
        assert client.call("why", path="f2.py") == {
            "path": "f2.py",
            "reason": "",
            "is_indexed": False,
        }
        client.call("begin")
        wait_for(lambda: client.call("why", path=str(root / "f2.py"))["is_indexed"])


def indexed(client: Client) -> set[str]:
    return {hit.path for hit in client.search("needle", limit=1000)}


def test_secret_files_are_removed_and_stay_out(root: Path) -> None:
    (root / "keep").mkdir()
    (root / "keep/a.vault").write_text("needle = 'mine'\n")
    with connect(root) as one, connect(root) as other:
        one.call("begin")
        wait_for(lambda: indexed(one) >= {"f1.py", "f7.py", "keep/a.vault"})
        other.call("buffer", path="f7.py", text="needle = 'unsaved'\n")
        one.call("secrets", globs=["f7.py", "KEEP/*"])
        wait_for(lambda: not indexed(other) & {"f7.py", "keep/a.vault"})
        assert one.call("why", path="f7.py") == {
            "path": "f7.py",
            "reason": "a pattern of privacy.exclude names it: f7.py",
            "is_indexed": False,
        }
        assert one.call("buffer", path="f7.py", text="needle\n") == {"is_taken": False}
        other.call("secrets", globs=["f1.py"])  # who says less takes nothing back
        one.call("secrets", globs=[])
        (root / "keep/b.vault").write_text("needle = 'new'\n")
        one.notify("changed", paths=["keep/b.vault", "f7.py"])
        (root / "late.py").write_text("needle = 'late'\n")
        wait_for(lambda: "late.py" in indexed(one) and "f1.py" not in indexed(one))
        assert not indexed(one) & {"f7.py", "keep/a.vault", "keep/b.vault"}
        ignored = one.call("report")["ignored"]
        assert ignored["a pattern of privacy.exclude names it"] == 4
        one.call("stop")
    wait_for(lambda: is_free(root))
    (root / "f7.py").write_text("needle = 'changed'\n")
    with connect(root) as client:  # of somebody who has no such pattern
        client.call("begin")
        wait_for(lambda: client.call("status")["phase"] == "ready")
        assert not indexed(client) & {"f1.py", "f7.py", "keep/a.vault", "keep/b.vault"}
        client.notify("secrets", globs=["f2.py"])
        client.call("begin", rebuild=True)  # only what is said now holds
        wait_for(lambda: indexed(client) >= {"f1.py", "f7.py", "keep/b.vault"})
        wait_for(lambda: client.call("status")["phase"] == "ready")
        assert "f2.py" not in indexed(client)


def test_secrets_that_cannot_be_stored_are_reported_and_retried(root: Path) -> None:
    said: list[str] = []
    project = Project(root, "none", on_remark=said.append)
    project._write_begun(False)

    def full(*_: object) -> None:
        raise IndexFailed("the disk is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(project, "_write_begun", full)
        project.add_secrets(["*.vault"])
    assert said == ["privacy.exclude cannot be stored: the disk is full"]
    assert (project.secret_globs.globs, secrets.load(root).globs) == (("*.vault",), ())
    project.add_secrets(["*.vault"])
    assert secrets.load(root).globs == ("*.vault",)
    project.close()


def test_nothing_secret_is_read_in_the_first_place(root: Path) -> None:
    with connect(root) as client:
        client.call("secrets", globs=["f1*.py", "[z-a]"])
        assert client.call("report")["languages"]["python"]["files"] == FILES - 11
        assert not begun_path(root).exists()
        client.call("begin")
        wait_for(lambda: client.call("status")["phase"] == "ready")
        assert client.call("status")["files"] == FILES - 11
        assert json.loads(begun_path(root).read_bytes())["secrets"] == ["[z-a]", "f1*.py"]


def test_a_worker_without_clients_exits(root: Path) -> None:
    # In its own session, whose priority it lowers.
    command = [*launch.COMMAND, str(root), "--idle-s", "0.3"]
    process = subprocess.Popen(command, start_new_session=True)
    assert process.wait(60) == 0
    assert launch.worker_process(root).lock_path.exists(), "it was the worker"
    assert not launch.socket_path(root).exists()
    with pytest.raises(IndexAway, match="no index worker"):
        Client.connect(root, start=False)


@pytest.mark.parametrize("is_lock_lost", [False, True])
def test_a_worker_runs_while_it_has_a_client_and_the_lock(
    root: Path, tmp_path: Path, is_lock_lost: bool
) -> None:
    looks: list[int] = []
    is_over = threading.Event()

    def holds_lock() -> bool:
        looks.append(len(looks))
        return not is_over.is_set()

    async def serve() -> None:
        address = tmp_path / "s"
        server = Server(root, "none", idle_s=0.01, can_be_found=holds_lock)
        server._alone_s = math.inf  # until the first client has left
        serving = asyncio.create_task(server.serve(address))

        async def until(condition: Callable[[], object]) -> None:
            while not condition():
                assert not serving.done()
                await asyncio.sleep(0.001)

        await until(address.exists)
        _, writer = await asyncio.open_unix_connection(str(address))
        await until(lambda: server._sessions)
        server._alone_s = 0.0
        before = len(looks)
        await until(lambda: len(looks) > before + 3)
        if is_lock_lost:
            is_over.set()
            await serving
            writer.close()
        else:
            writer.close()
            await serving

    asyncio.run(asyncio.wait_for(serve(), 60))
    assert not (tmp_path / "s").exists()


def test_a_signal_ends_a_worker_without_an_error(root: Path) -> None:
    with connect(root) as client:
        client.call("begin")
        os.kill(client.call("status")["pid"], signal.SIGTERM)
        wait_for(lambda: not client.is_connected)
    wait_for(lambda: is_free(root))
    assert not launch.socket_path(root).exists()
    [header] = launch.worker_process(root).log_path.read_text().splitlines()
    assert header.startswith("---")


def test_a_worker_of_another_version_is_replaced(root: Path) -> None:
    with connect(root) as client:
        pid = client.call("status")["pid"]
    real = launch.start
    with pytest.MonkeyPatch.context() as patch:

        def start(*args: Any) -> Child | None:
            patch.undo()  # the plugin was updated: what is started now is of the new version
            return real(*args)

        patch.setattr(protocol, "VERSION", protocol.VERSION + 1)
        patch.setattr(launch, "start", start)
        with connect(root) as client:
            assert client.call("status")["pid"] != pid


def test_a_worker_with_another_embedder_is_replaced_unless_it_is_in_use(root: Path) -> None:
    def pid(embedder: str) -> int:
        with Client.connect(root, embedder=embedder) as client:
            state = client.call("status")
            assert state["wanted_embedder"] == wanted
            return int(state["pid"])

    wanted = "none"
    with connect(root) as client:
        first = client.call("status")["pid"]
        assert pid("jina-v2-code") == pid("") == first
    wanted = embed.DEFAULT
    second = pid(embed.DEFAULT)
    assert second != first
    assert pid(embed.DEFAULT) == pid("") == second


def test_an_embedder_that_is_downloaded_later_is_found(root: Path) -> None:
    def note(client: Client) -> str:
        return str(client.call("status")["embedder_note"])

    spec = embed.find(embed.DEFAULT)
    with Client(root, embedder=spec.name) as client:
        client.call("begin")
        filled(client)
        assert "not on this machine" in note(client)
        for each in spec.files():
            each.parent.mkdir(parents=True, exist_ok=True)
            each.write_text("no network")
        client.listen(lambda event: None)  # as another editor does
        wait_for(lambda: "cannot be loaded" in note(client))


def test_invalid_messages_get_errors_and_affect_no_other_client(root: Path) -> None:
    with connect(root) as good:
        address = launch.socket_path(root)
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(address))
            sock.sendall(b'nonsense\n{"id": 5, "do": "dance"}\n{"id": 6, "do": "status"}\n')
            file = sock.makefile("rb")
            said = [json.loads(file.readline()) for _ in range(3)]
            assert sorted(each["id"] for each in said) == [-1, 5, 6]
            sock.sendall(b"x" * (protocol.MAX_BYTES + 100))  # a line without end
            with suppress(OSError):
                sock.sendall(b"x" * (1 << 20))
            with suppress(ConnectionResetError):
                assert file.readline() == b""
            file.close()
        with pytest.raises(MessageInvalid):
            good.call("search")
        assert good.call("status")["phase"] == "idle"


def test_an_index_that_cannot_be_created_is_an_error(root: Path, home: Path) -> None:
    (home / "data").write_text("no folder")
    with pytest.raises(LcursorError, match="cannot be created"):
        connect(root)
