"""The client's end, against workers that behave oddly."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from lcursor.errors import Cancelled, IndexAway, IndexRejected, LcursorError
from lcursor.index import launch, protocol
from lcursor.index.client import Client
from tests.waiting import wait_for

Say = Callable[[dict[str, Any]], None]
STATUS = {"version": protocol.VERSION, "pid": 1}


class FakeWorker:
    """Answers what it is told to; `status` by itself."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.heard: list[dict[str, Any]] = []
        self.answers: dict[str, Callable[[dict[str, Any], Say], None]] = {
            "status": lambda question, say: say({"id": question["id"], "ok": STATUS}),
            "subscribe": lambda question, say: say({"id": question["id"], "ok": {}}),
        }
        self.connections: list[socket.socket] = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        def say(message: dict[str, Any]) -> None:
            connection.sendall(json.dumps(message).encode() + b"\n")

        # The client may be gone in the middle of anything.
        with suppress(OSError), connection, connection.makefile("rb") as file:
            for line in file:
                question = json.loads(line)
                self.heard.append(question)
                if answer := self.answers.get(question["do"]):
                    answer(question, say)

    def drop(self) -> None:
        """End the connections there are, as a worker that dies; not those made because of it."""
        connections, self.connections = self.connections, []
        for connection in connections:
            with suppress(OSError):  # its other end may have closed it
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self.drop()


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWorker]:
    fake = FakeWorker(tmp_path / "s")
    monkeypatch.setattr(launch, "addresses", lambda root: [tmp_path / "gone", fake.path])
    yield fake
    fake.close()


@pytest.fixture
def client(worker: FakeWorker, tmp_path: Path) -> Iterator[Client]:
    with Client.connect(tmp_path, start=False) as client:
        yield client


def test_a_request_without_an_answer_times_out(client: Client) -> None:
    with pytest.raises(IndexAway, match="did not answer a search within"):
        client.call("search", text="x", timeout_s=0.05)
    assert client.call("status") == STATUS  # it is not lost


def test_a_canceled_request_waits_for_no_answer(worker: FakeWorker, client: Client) -> None:
    is_asked = threading.Event()
    worker.answers["search"] = lambda question, say: is_asked.set()
    with pytest.raises(Cancelled):
        client.call("search", text="x", cancel=is_asked.is_set)
    assert client.call("status", cancel=lambda: False) == STATUS
    with pytest.raises(IndexAway, match="did not answer a search within"):
        client.call("search", text="x", timeout_s=0.05, cancel=lambda: False)


def test_answers_may_come_in_any_order(worker: FakeWorker, client: Client) -> None:
    waiting: list[int] = []

    def later(question: dict[str, Any], say: Say) -> None:
        waiting.append(question["id"])
        if len(waiting) == 2:
            for number in reversed(waiting):
                say({"id": number, "ok": {"number": number}})

    worker.answers["why"] = later
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(client.call("why", path="a")["number"]))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert sorted(found) == sorted(waiting)
    assert len(set(found)) == 2


def test_a_failed_request_raises_its_error(worker: FakeWorker, client: Client) -> None:
    words = {"code": "index_rejected", "message": "not indexed", "hint": "index it"}
    worker.answers["search"] = lambda question, say: say({"id": question["id"], "error": words})
    with pytest.raises(IndexRejected) as failure:
        client.search("x")
    assert failure.value.hint == "index it"


def test_a_new_connection_gets_buffers_secrets_and_subscription(
    worker: FakeWorker, client: Client
) -> None:
    client.call("subscribe")
    client.notify("buffer", path="a.py", text="unsaved")
    client.notify("buffer", path="b.py", text="unsaved")
    client.notify("buffer", path="b.py", text=None)
    client.notify("recent", paths=["a.py"])
    client.notify("secrets", globs=["*.old"])
    client.notify("secrets", globs=["*.vault"])
    assert client.call("status") == STATUS
    worker.heard.clear()
    worker.drop()
    assert client.call("status") == STATUS
    told = {(one["do"], one.get("path")) for one in worker.heard if one["do"] != "status"}
    assert told == {("secrets", None), ("subscribe", None), ("recent", None), ("buffer", "a.py")}
    first = next(one for one in worker.heard if one["do"] != "status")
    assert first["globs"] == ["*.vault"]  # before anything else can be asked


def test_a_request_that_killed_two_workers_is_not_sent_again(
    worker: FakeWorker, client: Client
) -> None:
    worker.answers["search"] = lambda question, say: worker.drop()
    with pytest.raises(IndexAway, match="ended"):
        client.search("poison")
    assert [one["do"] for one in worker.heard].count("search") == 2


def test_a_listener_is_called_on_another_thread(worker: FakeWorker, client: Client) -> None:
    events: SimpleQueue[tuple[dict[str, Any], bool]] = SimpleQueue()

    def listen(event: dict[str, Any]) -> None:
        events.put((event, threading.current_thread() is threading.main_thread()))

    def answer(question: dict[str, Any], say: Say) -> None:
        say({"event": "state", "n": 1})
        say({"id": question["id"], "ok": {}})
        say({"event": "state", "n": 2})

    worker.answers["subscribe"] = answer
    client.listen(listen)
    for number in (1, 2):
        assert events.get(timeout=5) == ({"event": "state", "n": number}, False)
    worker.drop()
    assert events.get(timeout=5) == ({"event": "gone"}, False)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_listener_that_fails_does_not_cut_off_the_next_question(
    worker: FakeWorker, client: Client
) -> None:
    def listen(event: dict[str, Any]) -> None:
        raise RuntimeError("a bug of the listener")

    client.listen(listen)
    worker.answers["why"] = lambda question, say: say({"event": "state"})
    with pytest.raises(IndexAway, match="ended"):  # twice: the event comes each time
        client.call("why", path="a")
    wait_for(lambda: not client.is_connected, what="the connection counts as lost")
    wait_for(lambda: "lcursor-index" not in {one.name for one in threading.enumerate()})
    assert client.call("status") == STATUS


@pytest.mark.parametrize("line", [b"nonsense\n", b"[]\n", b"\xff\n", b'{"id":'])
def test_invalid_answers_close_the_connection(
    worker: FakeWorker, client: Client, line: bytes
) -> None:
    def answer(question: dict[str, Any], say: Say) -> None:
        connection = worker.connections[-1]
        connection.sendall(line)
        connection.shutdown(socket.SHUT_WR)

    worker.answers["search"] = answer
    with pytest.raises(IndexAway):
        client.search("x")


def test_no_message_is_longer_than_the_worker_takes(client: Client) -> None:
    with pytest.raises(LcursorError, match="too long"):
        client.call("search", text="x" * protocol.MAX_BYTES)
    assert client.call("status") == STATUS


def test_a_closed_client_sends_nothing(client: Client) -> None:
    client.close()
    client.notify("typing")
    with pytest.raises(IndexAway, match="closed"):
        client.call("status")


def test_without_a_worker_there_is_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "addresses", lambda root: [tmp_path / "gone"])
    with pytest.raises(IndexAway) as failure:
        Client.connect(tmp_path, start=False)
    assert "LCursor index" in failure.value.hint


def test_the_error_says_why_a_worker_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("LCURSOR_DATA", raising=False)
    command = (sys.executable, "-c", "raise SystemExit('it is broken')")
    monkeypatch.setattr(launch, "COMMAND", command)
    with pytest.raises(IndexAway, match="it is broken"):
        Client.connect(tmp_path)
