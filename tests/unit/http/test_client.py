"""One server, asked over real sockets: each fault is told by its case, and a call stops at once."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lcursor.errors import (
    Cancelled,
    ServerBusy,
    ServerDenied,
    ServerError,
    ServerFailed,
    ServerGarbled,
    ServerInsecure,
    ServerModelMissing,
    ServerSlow,
    ServerUnreachable,
)
from lcursor.http import client
from lcursor.http.client import Call, Client
from tests.fakes.model_server import ModelServer
from tests.waiting import wait_for

KEY = "sk-very-secret"
Make = Callable[..., Client]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as it:
        yield it


@pytest.fixture
def make() -> Iterator[Make]:
    """Make clients; close them afterwards."""
    with ExitStack() as stack:

        def begin(url: str, key: str = "") -> Client:
            one = Client(url, key, "completion.endpoint")
            stack.callback(one.close)
            return one

        yield begin


def ended(call: Call) -> list[bytes] | BaseException:
    """Read a call to its end on another thread; fail if it does not end."""
    found: list[list[bytes] | BaseException] = []

    def read() -> None:
        try:
            found.append(list(call))
        except Exception as error:  # noqa: BLE001 - returned
            found.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(30)
    assert found, "the call does not end"
    return found[0]


def free_port() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        port: int = it.getsockname()[1]
        return port


def test_lines_come_as_they_are_sent(server: ModelServer, make: Make) -> None:
    server.routes["/x"] = (200, "application/x-ndjson", server.drip(b'{"a": 1}\n{"b"', b": 2}\n"))
    lines = iter(make(server.url).post("/x", {"q": "é"}))
    assert [next(lines), next(lines)] == [b'{"a": 1}', b'{"b": 2}']
    assert server.asked[0][3] == {"q": "é"}


def test_a_connection_is_used_again(server: ModelServer, make: Make) -> None:
    server.json("/x", {"a": 1})
    one = make(server.url)
    for _ in range(3):
        assert list(one.ask("/x")) == [b'{"a": 1}']
    assert server.connections == 1


def test_a_call_stops_in_the_middle_of_a_stream(server: ModelServer, make: Make) -> None:
    server.routes["/x"] = (200, "text/event-stream", server.drip(b"data: {}\n\n"))
    call = make(server.url).post("/x", {})
    lines = iter(call)
    assert next(lines) == b"data: {}"
    threading.Timer(0.05, call.close).start()
    with pytest.raises(Cancelled):
        list(lines)
    wait_for(lambda: server.gone_s, what="the server sees that the connection is closed")


def test_a_call_stops_before_the_first_byte(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        call = make(f"http://127.0.0.1:{silent.getsockname()[1]}").post("/x", {})
        peer, _ = silent.accept()
        with peer:
            peer.settimeout(30)
            assert peer.recv(1 << 16)
            call.close()
            assert isinstance(ended(call), Cancelled)
            while peer.recv(1 << 16):  # the rest of the request; fails if it stays open
                pass


def test_a_call_stops_while_it_connects(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as stack:
        while True:  # until the queue of connections is full, and connecting takes for ever
            one = stack.enter_context(socket.socket())
            one.settimeout(0.1)
            try:
                one.connect(full.getsockname())
            except TimeoutError:
                break
        call = make(f"http://127.0.0.1:{full.getsockname()[1]}").post("/x", {})
        threading.Timer(0.05, call.close).start()
        assert isinstance(ended(call), Cancelled)


def test_a_call_that_has_ended_may_be_closed(server: ModelServer, make: Make) -> None:
    server.json("/x", {})
    call = make(server.url).ask("/x")
    assert list(call) == [b"{}"]
    call.close()
    call.close()


def test_a_question_with_a_body(server: ModelServer, make: Make) -> None:
    server.json("/x", {"a": 1})
    assert list(make(server.url).ask("/x", {"q": 1})) == [b'{"a": 1}']
    assert (server.asked[0][0], server.asked[0][3]) == ("POST", {"q": 1})


def test_a_kept_connection_that_the_server_closes(make: Make) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    asked: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as odd:
        one = make(f"http://127.0.0.1:{odd.getsockname()[1]}")

        def serve() -> None:
            for number, answers in enumerate((1, 1, 0)):
                peer, _ = odd.accept()
                with peer:
                    for at in range(answers + 1):
                        peer.recv(1 << 16)
                        asked.append(number)
                        if at < answers:
                            peer.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert list(one.ask("/x")) == [b"{}"]
        assert list(one.ask("/x")) == [b"{}"], "asked once more, on another connection"
        with pytest.raises(ServerUnreachable, match="without an answer"):
            list(one.ask("/x"))
        thread.join()
    assert asked == [0, 0, 1, 1, 2]


def test_what_is_released_ends_soon(
    server: ModelServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "REST_S", 0.05)
    server.routes["/x"] = (200, "text/event-stream", server.drip(b"data: {}\n\n"))
    call = make(server.url).post("/x", {})
    assert next(iter(call)) == b"data: {}"
    call.release()
    wait_for(lambda: server.gone_s, what="closed connection")


def test_what_is_released_and_ends_keeps_its_connection(server: ModelServer, make: Make) -> None:
    server.json("/x", {})
    one = make(server.url)
    for _ in range(3):
        call = one.post("/x", {})
        next(iter(call))
        call.release()
        assert call._work
        wait_for(call._work.done, what="end of the answer")
        call.release()
    assert server.connections == 1


def test_a_line_that_comes_letter_by_letter(
    server: ModelServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "SILENCE_S", 0.15)

    def drip() -> Iterator[bytes]:
        while not server.is_over.wait(0.02):
            yield b"x"

    server.routes["/x"] = (200, "text/event-stream", drip)
    with pytest.raises(ServerSlow, match="sent nothing"):
        list(make(server.url).post("/x", {}))


CASES: list[tuple[int, str, bytes, type[ServerError], str]] = [
    (401, "application/json", b'{"error": {"message": "Invalid key sk-very-secret"}}',
     ServerDenied, r"refuses access \(401: Invalid key …\)"),
    (403, "text/plain", b"no", ServerDenied, r"refuses access \(403: no\)"),
    (404, "application/json", b'{"error": "model not found"}', ServerModelMissing, "that model"),
    (404, "application/json", b'{"detail": "Not Found"}', ServerGarbled, "has no /x"),
    (500, "text/html", b"<h1>oops</h1>", ServerFailed, "status 500"),
    (429, "application/json", b'{"error": "slow down"}', ServerBusy, "429: slow down"),
    (503, "application/json", b'{"error": {"message": "Loading model", "code": 503}}',
     ServerFailed, "503: Loading model"),
    (307, "text/plain", b"", ServerGarbled, "sends us on to http://elsewhere.example/"),
    (200, "text/html; charset=utf-8", b"<html>router</html>", ServerGarbled, "text/html"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "kind", "body", "error", "words"), CASES)
def test_refusals(
    server: ModelServer,
    make: Make,
    status: int,
    kind: str,
    body: bytes,
    error: type[ServerError],
    words: str,
) -> None:
    server.routes["/x"] = (status, kind, body)
    with pytest.raises(error, match=words) as e:
        list(make(server.url, KEY).post("/x", {}))
    assert type(e.value) is error
    assert e.value.hint
    assert KEY not in str(e.value)
    assert e.value.status == (status if status != 200 else 0)
    assert [path for _, path, _, _ in server.asked] == ["/x"], "it went elsewhere"


def test_the_key_goes_to_the_server(server: ModelServer, make: Make) -> None:
    server.json("/x", {})
    list(make(server.url, KEY).ask("/x"))
    list(make(server.url).ask("/x"))
    sent = [headers.get("Authorization") for _, _, headers, _ in server.asked]
    assert sent == [f"Bearer {KEY}", None]


def test_nobody_answers(make: Make) -> None:
    with pytest.raises(ServerUnreachable, match="connection refused") as e:
        list(make(f"http://127.0.0.1:{free_port()}").ask("/x"))
    assert "completion.endpoint_url" in e.value.hint


def test_a_name_that_nobody_has(make: Make) -> None:
    with pytest.raises(ServerUnreachable, match=r"nothing answers at http://no\.such\.invalid"):
        list(make("http://no.such.invalid:1").ask("/x"))


def test_too_slow(server: ModelServer, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ANSWER_S", 0.1)
    server.routes["/x"] = (200, "application/json", server.drip(b"{"))
    with pytest.raises(ServerSlow, match="no whole answer"):
        list(make(server.url).ask("/x"))


def test_silence(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SILENCE_S", 0.1)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(ServerSlow, match="sent nothing"),
    ):
        list(make(f"http://127.0.0.1:{silent.getsockname()[1]}").post("/x", {}))


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
)
def test_a_peer_that_breaks_off(make: Make, answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as odd:
        call = make(f"http://127.0.0.1:{odd.getsockname()[1]}").post("/x", {})
        peer, _ = odd.accept()
        with peer:
            peer.sendall(answer)
            peer.shutdown(socket.SHUT_WR)
            with pytest.raises(ServerGarbled, match="broke off"):
                list(call)


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/1.1 200"])
@pytest.mark.parametrize("is_reset", [False, True])
def test_a_connection_that_closes_without_an_answer(
    make: Make, is_reset: bool, answer: bytes
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as odd:
        call = make(f"http://127.0.0.1:{odd.getsockname()[1]}").post("/x", {})
        peer, _ = odd.accept()
        peer.recv(1 << 16, socket.MSG_PEEK if is_reset else 0)  # what stays unread is a reset
        peer.sendall(answer)
        peer.close()
        with pytest.raises(ServerUnreachable, match="without an answer"):
            list(call)


def test_a_kept_connection_that_the_server_closes_after_a_refusal(make: Make) -> None:
    refusal = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"
    with socket.create_server(("127.0.0.1", 0)) as odd:
        one = make(f"http://127.0.0.1:{odd.getsockname()[1]}")

        def serve() -> None:
            peer, _ = odd.accept()
            with peer:
                peer.recv(1 << 16)
                peer.sendall(refusal)
                peer.recv(1 << 16)  # asked again on this connection
            peer, _ = odd.accept()
            with peer:
                peer.recv(1 << 16)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(ServerGarbled, match="404"):
            list(one.ask("/x"))
        assert list(one.ask("/y")) == [b"{}"]
        thread.join()


def test_a_server_that_does_not_stop(
    server: ModelServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MOST_BYTES", 100)
    server.routes["/x"] = (200, "text/event-stream", server.drip(b": x\n" * 20, every_s=0.001))
    with pytest.raises(ServerGarbled, match="does not stop"):
        list(make(server.url).post("/x", {}))


def test_no_proxy_stands_between_us_and_this_machine(
    server: ModelServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.json("/x", {"a": 1})
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert list(make(server.url).ask("/x")) == [b'{"a": 1}']
    with pytest.raises(ServerUnreachable):  # the proxy is used for what is elsewhere
        list(make("http://192.0.2.1:8").ask("/x"))


def test_a_certificate_that_nobody_vouches_for(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    command += f" -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 -out {pem} -keyout {key}"
    try:
        subprocess.run(command.split(), check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no openssl to make a certificate with")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    with ModelServer() as server:
        server.json("/x", {"a": 1})
        server.wrap(context)
        url = server.url.replace("http:", "https:")
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        with pytest.raises(ServerInsecure, match=r"self.signed") as e:
            list(make(url).ask("/x"))
        assert "SSL_CERT_FILE" in e.value.hint
        monkeypatch.setenv("SSL_CERT_FILE", os.fspath(pem))
        assert list(make(url).ask("/x")) == [b'{"a": 1}']


def test_tls_with_a_server_that_has_none(server: ModelServer, make: Make) -> None:
    with pytest.raises(ServerInsecure, match="no safe connection"):
        list(make(server.url.replace("http:", "https:")).ask("/x"))


def test_closing_ends_what_runs_and_the_thread(server: ModelServer) -> None:
    server.routes["/x"] = (200, "text/event-stream", server.drip(b"data: {}\n"))
    one = Client(server.url, "", "x")
    lines = iter(one.post("/x", {}))
    next(lines)
    one.close(timeout_s=30)
    assert not one._thread.is_alive()
    wait_for(lambda: server.gone_s, what="closed connection")
    with pytest.raises(Cancelled):
        list(lines)


def hold(one: Client) -> threading.Event:
    """Make the event loop of a client wait for the returned event."""
    holds, goes_on = threading.Event(), threading.Event()

    def wait() -> None:
        holds.set()
        goes_on.wait(30)

    one._loop.call_soon_threadsafe(wait)
    assert holds.wait(30)
    return goes_on


def test_a_call_begun_just_before_the_client_closes_ends(server: ModelServer) -> None:
    server.json("/x", {})
    one = Client(server.url, "", "x")
    goes_on = hold(one)
    call = one.post("/x", {})
    one.close(timeout_s=0)
    goes_on.set()
    assert isinstance(ended(call), Cancelled)
    one.close(timeout_s=30)
    assert server.asked == []


def test_a_call_begun_while_the_client_closes_ends(server: ModelServer) -> None:
    server.json("/x", {})
    one = Client(server.url, "", "x")
    goes_on = hold(one)
    one.close(timeout_s=0)
    call = one.post("/x", {})
    goes_on.set()
    assert isinstance(ended(call), Cancelled)
    one.close(timeout_s=30)
    assert isinstance(ended(one.ask("/x")), Cancelled)
    assert server.asked == []


def test_calls_that_race_with_closing_end(server: ModelServer) -> None:
    server.json("/x", {})
    for _ in range(5):
        one = Client(server.url, "", "x")
        calls: list[Call] = []
        closes = threading.Thread(target=one.close, args=(30,))
        for number in range(20):
            if number == 10:
                closes.start()
            calls.append(one.ask("/x"))
        closes.join()
        for call in calls:
            result = ended(call)
            assert result == [b"{}"] or isinstance(result, Cancelled), result
