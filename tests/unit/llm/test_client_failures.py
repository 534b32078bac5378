"""Failures between the chat slot and its server: each is reported, and received text is kept."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from lcursor.errors import (
    ContextFull,
    LcursorError,
    ServerBusy,
    ServerDenied,
    ServerError,
    ServerFailed,
    ServerGarbled,
    ServerModelMissing,
    ServerUnreachable,
)
from lcursor.llm.client import ChatClient, Stream
from lcursor.llm.records import Event, Message, ServedModel, Text
from tests.fakes.chat_server import (
    Abort,
    Answer,
    ChatServer,
    delta,
    refuse,
    say,
)
from tests.fakes.loopback import sse

Make = Callable[..., ChatClient]
MESSAGES = [Message("user", "Hello?")]
KEY = "sk-very-secret"
A = sse(delta(content="a"))


@pytest.fixture
def make() -> Iterator[Make]:
    """Make clients of an address; close them afterwards."""
    with ExitStack() as stack:

        def begin(url: str, **fields: Any) -> ChatClient:
            fields.setdefault("setting", "models.big.")
            client = ChatClient(ServedModel("big", url, **fields))
            stack.callback(client.close)
            return client

        yield begin


def broken(stream: Stream) -> tuple[str, LcursorError]:
    """Return what came of an answer, and what ended it."""
    found: list[Event] = []
    try:
        for event in stream:
            found.append(event)
    except LcursorError as e:
        return "".join(one.text for one in found if isinstance(one, Text)), e
    raise AssertionError(f"it ended well: {found}")


def free_port() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        port: int = it.getsockname()[1]
        return port


# No server.


def test_a_missing_server_is_reported(make: Make) -> None:
    said, error = broken(make(f"http://127.0.0.1:{free_port()}").stream(MESSAGES))
    assert type(error) is ServerUnreachable
    assert "connection refused" in error.message
    assert error.hint == "Start the server, or correct models.big.url"
    assert said == ""


def test_the_hint_for_the_local_server_names_no_setting(make: Make) -> None:
    client = make(f"http://127.0.0.1:{free_port()}", setting="chat")
    assert ":LCursor server restart" in broken(client.stream(MESSAGES))[1].hint


@pytest.mark.parametrize("is_there", [True, False])
def test_a_socket_without_a_server(make: Make, tmp_path: Path, is_there: bool) -> None:
    path = tmp_path / "x.sock"
    if is_there:  # what a killed server leaves
        with socket.socket(socket.AF_UNIX) as it:
            it.bind(str(path))
    _, error = broken(make(f"unix://{path}").stream(MESSAGES))
    assert type(error) is ServerUnreachable
    assert ("connection refused" if is_there else "no such socket") in error.message


# Refusals.

STATUSES: list[tuple[Answer, type[LcursorError], str, str]] = [
    (refuse(401, f"Invalid key {KEY}"), ServerDenied, r"401: Invalid key …", "big.key_env"),
    (refuse(403, "no"), ServerDenied, "403: no", "big.key_env"),
    (refuse(404, "The model `x` does not exist"), ServerModelMissing, "404", "big.model"),
    (refuse(404, "Not Found"), ServerGarbled, "has no /v1/chat/completions", "big.url"),
    (refuse(429, "slow down", {"Retry-After": "20"}), ServerBusy, "429: slow down", "in 20 s"),
    (refuse(429, "slow down"), ServerBusy, "429: slow down", "later"),
    (refuse(429, "no", {"Retry-After": "soon"}), ServerBusy, "429", "later"),
    (refuse(503, "full", {"Retry-After": "5"}), ServerBusy, "503: full", "in 5 s"),
    (refuse(503, "Loading model"), ServerFailed, "503: Loading model", "log"),
    (refuse(500, "oops"), ServerFailed, "500: oops", "log"),
    (refuse(400, "bad"), ServerFailed, "400: bad", "log"),
    (Answer([b"<h1>Bad Gateway</h1>"], 502, "text/html"), ServerFailed, "502", "log"),
    (Answer([], 500), ServerFailed, "500", "log"),
    (refuse(402, "Insufficient balance"), ServerFailed, "402: Insufficient balance", "log"),
]


@pytest.mark.parametrize(("answer", "kind", "words", "hint"), STATUSES)
def test_the_error_of_each_http_status(
    make: Make, answer: Answer, kind: type[LcursorError], words: str, hint: str
) -> None:
    with ChatServer([answer], kind="openai") as server:
        said, error = broken(make(server.url, key=KEY).stream(MESSAGES))
        assert type(error) is kind
        assert words in error.message
        assert hint in error.hint
        assert KEY not in str(error)
        assert said == ""
        assert len(server.bodies) == 1, "it is not asked again"


def test_a_date_in_retry_after_is_read(make: Make) -> None:
    at = formatdate(time.time() + 90, usegmt=True)
    with ChatServer([refuse(429, "slow down", {"Retry-After": at})]) as server:
        _, error = broken(make(server.url).stream(MESSAGES))
    assert isinstance(error, ServerBusy)
    assert 80 < error.retry_s <= 91


def test_a_prompt_too_long_for_another_server_is_an_error(make: Make) -> None:
    words = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"
    answer = refuse(400, words, code="context_length_exceeded")
    with ChatServer([answer], kind="openai") as server:
        client = make(server.url)
        _, error = broken(client.stream(MESSAGES))
        assert isinstance(error, ContextFull)
        assert (error.prompt_tokens, error.context_tokens) == (9000, 8192)
        assert client.served is not None
        assert client.served.context_tokens == 8192, "now it is known"


def test_a_context_that_others_fill_during_an_answer_is_an_error(make: Make) -> None:
    late = sse({"error": {"message": "Context size has been exceeded.", "code": 500}})
    with ChatServer([Answer([A, late])]) as server:
        said, error = broken(make(server.url).stream(MESSAGES))
        assert (said, type(error)) == ("a", ContextFull)
        ours = ChatClient(ServedModel("m", server.url, setting="chat"))
        said, error = broken(ours.stream(MESSAGES))
        ours.close()
    assert (said, type(error)) == ("a", ServerBusy)


# In the middle of an answer.

STREAMS: dict[str, tuple[list[Any], type[LcursorError], str]] = {
    "the server dies": ([A, Abort()], ServerGarbled, "incomplete"),
    "it ends without an end": ([A], ServerGarbled, "incomplete"),
    "an error": ([A, sse({"error": {"message": "boom"}})], ServerFailed, "boom"),
    "an error that repeats the key": ([A, sse({"error": f"bad {KEY}"})], ServerFailed, "bad …"),
    "half an object": ([A, b'data: {"choices": [{"de'], ServerGarbled, "invalid JSON"),
    "broken JSON": ([A, b"data: {oops}\n\n"], ServerGarbled, "invalid JSON"),
    "no JSON at all": ([A, b"<html>\n\n"], ServerGarbled, "invalid JSON"),
    "a list": ([A, b"data: [1]\n\n"], ServerGarbled, "invalid JSON"),
    "the filter of a host": (
        [A, sse(delta("content_filter"))], ServerFailed, "cut the answer off"),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_an_answer_that_broke_off_keeps_its_text(make: Make, name: str) -> None:
    parts, kind, words = STREAMS[name]
    with ChatServer([Answer(parts)]) as server:
        said, error = broken(make(server.url, key=KEY).stream(MESSAGES))
        assert said == "a"
        assert type(error) is kind
        assert words in error.message
        assert error.hint
        assert KEY not in str(error)
        assert len(server.bodies) == 1, "it is not asked again"


def test_the_local_server_is_not_called_by_its_address(make: Make) -> None:
    with ChatServer([Answer([A, Abort()])]) as server:
        said, error = broken(make(server.url, setting="chat").stream(MESSAGES))
    assert (said, error.message) == ("a", "the local server sent an incomplete response")
    assert ":LCursor server" in error.hint


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([], "an empty answer"),
        ([b"data: [DONE]\n\n"], "an empty answer"),
        ([b"\n\n"], "an empty answer"),
    ],
)
def test_an_empty_answer_is_an_error(make: Make, parts: list[bytes], words: str) -> None:
    with ChatServer([Answer(parts)]) as server:
        said, error = broken(make(server.url).stream(MESSAGES))
    assert (said, type(error)) == ("", ServerGarbled)
    assert words in error.message


@pytest.mark.parametrize("rest", [[Abort()], [sse({"error": "late"})], [b"data: {oops\n\n"]])
def test_data_after_the_end_is_ignored(make: Make, rest: list[Any]) -> None:
    parts = [A, sse(delta("stop")), 0.05, *rest]
    with ChatServer([Answer(parts)]) as server:
        *_, last = make(server.url).stream(MESSAGES)
    assert getattr(last, "reason", "") == "stop"


def test_a_server_that_is_killed_and_started_again(make: Make) -> None:
    with ChatServer([say("a")]) as server:
        client, port = make(server.url), server.port
        list(client.stream(MESSAGES))
    assert type(broken(client.stream(MESSAGES))[1]) is ServerUnreachable
    assert client.served is None, "another may answer there next time"
    with ChatServer([say("b")], port=port, context_tokens=77):
        assert Text("b") in list(client.stream(MESSAGES)), "a dead connection is not used again"
        assert client.served is not None
        assert client.served.context_tokens == 77


# Long answers.


def test_a_long_answer_is_read_to_its_end(make: Make) -> None:
    # More than the 16 MB that suit a completion.
    words = ["x" * 100_000] * 180
    with ChatServer([say(*words)]) as server:
        found = list(make(server.url).stream(MESSAGES))
    assert sum(len(one.text) for one in found if isinstance(one, Text)) == 18_000_000


# Proxies.


def test_servers_on_this_machine_are_reached_without_a_proxy(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with ChatServer() as server, ChatServer(socket_path=tmp_path / "s") as other:
        for url in (server.url, other.url):
            assert list(make(url).stream(MESSAGES))
    _, error = broken(make("http://192.0.2.1:8").stream(MESSAGES))
    assert isinstance(error, ServerUnreachable), "what is elsewhere goes through it"


def test_other_servers_are_reached_through_the_proxy(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatServer(kind="openai") as proxy:
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        with contextlib.suppress(ServerError):
            make("http://models.example").probe()
        assert proxy.asked[0][1] == "http://models.example/props"


def test_a_key_is_in_no_error_and_no_representation(make: Make) -> None:
    with ChatServer([refuse(400, f"Bad {KEY} here")], key=KEY) as server:
        client = make(server.url, key=KEY)
        _, error = broken(client.stream(MESSAGES))
        shown = f"{error!s} {error!r} {error.args} {client.target!r} {client!r} {vars(error)}"
    assert KEY not in shown
