"""One server, asked over real sockets: each fault is told by its case, and a call stops at once."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import threading
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
from lcursor.http import client, endpoint
from lcursor.http.client import Call, Client, Limits
from lcursor.project import redaction
from tests.fakes.model_server import ModelServer
from tests.unit.http.conftest import Make, ended, free_port
from tests.waiting import wait_for

KEY = "sk-very-secret"


def test_lines_come_as_they_are_sent(server: ModelServer, make: Make) -> None:
    server.routes["/x"] = (200, "application/x-ndjson", server.drip(b'{"a": 1}\n{"b"', b": 2}\n"))
    lines = iter(make(server.url).stream("/x", {"q": "é"}))
    assert [next(lines), next(lines)] == [b'{"a": 1}', b'{"b": 2}']
    assert server.asked[0][3] == {"q": "é"}


def test_a_connection_is_used_again(server: ModelServer, make: Make) -> None:
    server.json("/x", {"a": 1})
    one = make(server.url)
    for _ in range(3):
        assert list(one.request("/x")) == [b'{"a": 1}']
    assert server.connections == 1


def test_a_call_stops_in_the_middle_of_a_stream(server: ModelServer, make: Make) -> None:
    server.routes["/x"] = (200, "text/event-stream", server.drip(b"data: {}\n\n"))
    call = make(server.url).stream("/x", {})
    lines = iter(call)
    assert next(lines) == b"data: {}"
    threading.Timer(0.05, call.close).start()
    with pytest.raises(Cancelled):
        list(lines)
    wait_for(lambda: server.gone_s, what="the server sees that the connection is closed")


def test_a_call_stops_before_the_first_byte(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        call = make(f"http://127.0.0.1:{silent.getsockname()[1]}").stream("/x", {})
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
        call = make(f"http://127.0.0.1:{full.getsockname()[1]}").stream("/x", {})
        threading.Timer(0.05, call.close).start()
        assert isinstance(ended(call), Cancelled)


def test_a_call_that_has_ended_may_be_closed(server: ModelServer, make: Make) -> None:
    server.json("/x", {})
    call = make(server.url).request("/x")
    assert list(call) == [b"{}"]
    call.close()
    call.close()


def test_a_question_with_a_body(server: ModelServer, make: Make) -> None:
    server.json("/x", {"a": 1})
    assert list(make(server.url).request("/x", {"q": 1})) == [b'{"a": 1}']
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
        assert list(one.request("/x")) == [b"{}"]
        assert list(one.request("/x")) == [b"{}"], "asked once more, on another connection"
        with pytest.raises(ServerUnreachable, match="without a response"):
            list(one.request("/x"))
        thread.join()
    assert asked == [0, 0, 1, 1, 2]


def test_what_is_drained_ends_soon(
    server: ModelServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "DRAIN_S", 0.05)
    server.routes["/x"] = (200, "text/event-stream", server.drip(b"data: {}\n\n"))
    call = make(server.url).stream("/x", {})
    assert next(iter(call)) == b"data: {}"
    call.drain()
    wait_for(lambda: server.gone_s, what="closed connection")


def test_what_is_drained_and_ends_keeps_its_connection(server: ModelServer, make: Make) -> None:
    server.json("/x", {})
    one = make(server.url)
    for _ in range(3):
        call = one.stream("/x", {})
        next(iter(call))
        call.drain()
        assert call._future
        wait_for(call._future.done, what="end of the answer")
        call.drain()
    assert server.connections == 1


CASES: list[tuple[int, str, bytes, type[ServerError], str]] = [
    (401, "application/json", b'{"error": {"message": "Invalid key sk-very-secret"}}',
     ServerDenied, r"denies access \(401: Invalid key …\)"),
    (400, "application/json", b'{"error": {"code": 400, "message": "API key not valid. Please pass '
     b'a valid API key.", "status": "INVALID_ARGUMENT"}}', ServerDenied, "API key not valid"),
    (403, "text/plain", b"no", ServerDenied, r"denies access \(403: no\)"),
    (404, "application/json", b'{"error": "model not found"}', ServerModelMissing, "that model"),
    (404, "application/json", b'{"detail": "Not Found"}', ServerGarbled, "has no /x"),
    (500, "text/html", b"<h1>oops</h1>", ServerFailed, "status 500"),
    (429, "application/json", b'{"error": "slow down"}', ServerBusy, "429: slow down"),
    (503, "application/json", b'{"error": {"message": "Loading model", "code": 503}}',
     ServerFailed, "503: Loading model"),
    (307, "text/plain", b"", ServerGarbled, "redirects to http://elsewhere.example/"),
    (200, "text/html; charset=utf-8", b"<html>router</html>", ServerGarbled, "text/html"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "kind", "body", "error", "words"), CASES)
def test_rejections(
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
        list(make(server.url, KEY).stream("/x", {}))
    assert type(e.value) is error
    assert e.value.hint
    assert KEY not in str(e.value)
    assert e.value.status == (status if status != 200 else 0)
    assert [path for _, path, _, _ in server.asked] == ["/x"], "it went elsewhere"


def test_the_key_goes_to_the_server(server: ModelServer, make: Make) -> None:
    server.json("/x", {})
    list(make(server.url, KEY).request("/x"))
    list(make(server.url).request("/x"))
    sent = [headers.get("Authorization") for _, _, headers, _ in server.asked]
    assert sent == [f"Bearer {KEY}", None]


def test_nobody_answers(make: Make) -> None:
    with pytest.raises(ServerUnreachable, match="connection refused") as e:
        list(make(f"http://127.0.0.1:{free_port()}").request("/x"))
    assert "models.x.url" in e.value.hint


def test_a_name_that_nobody_has(make: Make) -> None:
    with pytest.raises(ServerUnreachable, match=r"nothing answers at http://no\.such\.invalid"):
        list(make("http://no.such.invalid:1").request("/x"))


def test_too_slow(server: ModelServer, make: Make) -> None:
    server.routes["/x"] = (200, "application/json", server.drip(b"{"))
    with pytest.raises(ServerSlow, match="no complete response"):
        list(make(server.url, limits=Limits(answer_s=0.1)).request("/x"))


def test_silence(make: Make) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(ServerSlow, match="sent nothing"),
    ):
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        list(make(url, limits=Limits(silence_s=0.1)).stream("/x", {}))


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
)
def test_a_peer_that_breaks_off(make: Make, answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as odd:
        call = make(f"http://127.0.0.1:{odd.getsockname()[1]}").stream("/x", {})
        peer, _ = odd.accept()
        with peer:
            peer.sendall(answer)
            peer.shutdown(socket.SHUT_WR)
            with pytest.raises(ServerGarbled, match="incomplete response"):
                list(call)


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/1.1 200"])
@pytest.mark.parametrize("is_reset", [False, True])
def test_a_connection_that_closes_without_an_answer(
    make: Make, is_reset: bool, answer: bytes
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as odd:
        call = make(f"http://127.0.0.1:{odd.getsockname()[1]}").stream("/x", {})
        peer, _ = odd.accept()
        peer.recv(1 << 16, socket.MSG_PEEK if is_reset else 0)  # what stays unread is a reset
        peer.sendall(answer)
        peer.close()
        with pytest.raises(ServerUnreachable, match="without a response"):
            list(call)


def test_a_kept_connection_that_the_server_closes_after_a_rejection(make: Make) -> None:
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
            list(one.request("/x"))
        assert list(one.request("/y")) == [b"{}"]
        thread.join()


@pytest.mark.parametrize("line", [b": x\n" * 20, b"x" * 20])
def test_a_server_that_does_not_stop(
    server: ModelServer, make: Make, monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    monkeypatch.setattr(client, "MAX_LINE_BYTES", 10)
    server.routes["/x"] = (200, "text/event-stream", server.drip(line, every_s=0.001))
    with pytest.raises(ServerGarbled, match="too long a response"):
        list(make(server.url, limits=Limits(max_bytes=100)).stream("/x", {}))


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
            list(make(url).request("/x"))
        assert "SSL_CERT_FILE" in e.value.hint
        monkeypatch.setenv("SSL_CERT_FILE", os.fspath(pem))
        assert list(make(url).request("/x")) == [b'{"a": 1}']


def test_tls_with_a_server_that_has_none(server: ModelServer, make: Make) -> None:
    with pytest.raises(ServerInsecure, match="no secure connection"):
        list(make(server.url.replace("http:", "https:")).request("/x"))


def test_closing_ends_what_runs(server: ModelServer) -> None:
    server.routes["/x"] = (200, "text/event-stream", server.drip(b"data: {}\n"))
    one = Client(server.url, "", "x")
    lines = iter(one.stream("/x", {}))
    next(lines)
    one.close()
    with pytest.raises(Cancelled):
        list(lines)
    wait_for(lambda: server.gone_s, what="closed connection")
    assert isinstance(ended(one.request("/x")), Cancelled)


def test_all_clients_share_one_thread(server: ModelServer, make: Make) -> None:
    server.json("/x", {})
    for _ in range(3):
        list(make(server.url).request("/x"))
    assert [each.name for each in threading.enumerate()].count("lcursor-http") == 1


def test_a_client_that_closes_leaves_the_others_alone(server: ModelServer, make: Make) -> None:
    server.routes["/x"] = (200, "text/event-stream", server.drip(b"data: {}\n"))
    server.json("/y", {})
    one, other = make(server.url), make(server.url)
    lines = iter(other.stream("/x", {}))
    next(lines)
    list(one.request("/y"))
    one.close()
    assert next(lines) == b": still here"
    assert list(other.request("/y")) == [b"{}"]


def hold() -> threading.Event:
    """Make the event loop of all clients wait for the returned event."""
    holds, goes_on = threading.Event(), threading.Event()

    def wait() -> None:
        holds.set()
        goes_on.wait(30)

    client._event_loop().call_soon_threadsafe(wait)
    assert holds.wait(30)
    return goes_on


def test_a_call_started_just_before_the_client_closes_ends(server: ModelServer) -> None:
    server.json("/x", {})
    one = Client(server.url, "", "x")
    goes_on = hold()
    call = one.stream("/x", {})
    one.close()
    goes_on.set()
    assert isinstance(ended(call), Cancelled)
    assert isinstance(ended(one.request("/x")), Cancelled)
    assert server.asked == []


def test_calls_that_race_with_closing_end(server: ModelServer) -> None:
    server.json("/x", {})
    for _ in range(5):
        one = Client(server.url, "", "x")
        calls: list[Call] = []
        closes = threading.Thread(target=one.close)
        for number in range(20):
            if number == 10:
                closes.start()
            calls.append(one.request("/x"))
        closes.join()
        for call in calls:
            result = ended(call)
            assert result == [b"{}"] or isinstance(result, Cancelled), result


@pytest.mark.parametrize("is_local", [True, False])
def test_another_machine_gets_no_secret_values(
    server: ModelServer, make: Make, monkeypatch: pytest.MonkeyPatch, is_local: bool
) -> None:
    monkeypatch.setattr(endpoint, "is_local", lambda _: is_local)
    server.json("/ask", {})
    token = "glpat-" + "abcdefghijklmnopqrst"
    body = {"prompt": f"TOKEN={token}", "messages": [{"content": token}]}
    one = make(server.url)
    for call in (one.request("/ask", body), one.stream("/ask", body)):
        assert ended(call) == [b"{}"]
    for *_, sent in server.asked:
        assert (sent == body) is is_local
        assert (token in str(sent)) is is_local
        assert is_local or sent["prompt"] == f"TOKEN={redaction.PLACEHOLDER}"


@pytest.mark.parametrize("is_local", [True, False])
def test_bytes_that_are_not_utf_8_do_not_hinder_a_request(
    server: ModelServer, make: Make, monkeypatch: pytest.MonkeyPatch, is_local: bool
) -> None:
    monkeypatch.setattr(endpoint, "is_local", lambda _: is_local)
    server.json("/ask", {})
    call = make(server.url).stream(
        "/ask", {"caf\udce9.py": ["é \U0001f600", {"text": "\udcff\udcfe"}]}
    )
    assert ended(call) == [b"{}"]
    assert server.asked[0][3] == {"caf\ufffd.py": ["é \U0001f600", {"text": "\ufffd\ufffd"}]}
