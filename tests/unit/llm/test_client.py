"""The client of the chat slot against a scripted server: answers, counts, slots, and stopping."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from lcursor.errors import Cancelled
from lcursor.llm import tokens
from lcursor.llm.client import ChatClient
from lcursor.llm.records import (
    Event,
    Finished,
    Message,
    Progress,
    Reasoning,
    SamplingParams,
    ServedModel,
    Text,
    Usage,
)
from tests.fakes.chat_server import (
    Answer,
    ChatServer,
    Hang,
    Part,
    Wait,
    delta,
    refuse,
    say,
    say_ollama,
)
from tests.fakes.loopback import sse
from tests.waiting import wait_for

Make = Callable[..., ChatClient]
MESSAGES = [Message("system", "You help."), Message("user", "Hello?")]


@pytest.fixture
def make() -> Iterator[Make]:
    """Make clients; close them afterwards."""
    with ExitStack() as stack:

        def begin(server: ChatServer, **fields: Any) -> ChatClient:
            client = ChatClient(ServedModel("big", server.url, setting="models.big.", **fields))
            stack.callback(client.close)
            return client

        yield begin


def text(found: list[Event]) -> str:
    return "".join(one.text for one in found if isinstance(one, Text))


def test_an_answer_of_a_llama_server(make: Make) -> None:
    timings = {"cache_n": 5, "prompt_n": 2, "prompt_ms": 3, "predicted_n": 2, "predicted_ms": 4}
    progress = [{"total": 7, "cache": 5, "processed": 7, "time_ms": 3}]
    script = [say("Hel", "lo", reasoning=["hm"], timings=timings, progress=progress)]
    with ChatServer(script) as server:
        found = list(make(server).stream(MESSAGES, SamplingParams(9, 0.0)))
    assert found == [
        Progress(7, 5, 7, 3),
        Reasoning("hm"),
        Text("Hel"),
        Text("lo"),
        Finished("stop", Usage(7, 5, 2, 3, 4, is_exact=True, passes=2)),
    ]
    (body,) = server.bodies
    assert body["messages"][1] == {"role": "user", "content": "Hello?"}
    assert (body["max_tokens"], body["return_progress"]) == (9, True)


def test_the_usage_is_known_while_an_answer_is_written(make: Make) -> None:
    rows = [
        {**delta(content=str(n)), "timings": {"cache_n": 1, "prompt_n": 2, "predicted_n": n}}
        for n in (1, 2, 3)
    ]
    with ChatServer([Answer([*map(sse, rows), Hang()])]) as server:
        stream = make(server).stream(MESSAGES, SamplingParams(has_counts=True))
        assert stream.usage().answer_tokens == 0
        for event in stream:
            if event == Text("2"):
                assert stream.usage() == Usage(3, 1, 2, is_exact=True, passes=2)
                break
        stream.close()
        assert server.bodies[0]["timings_per_token"] is True


def test_an_answer_of_ollama(make: Make) -> None:
    script = [say_ollama("Hel", "lo", thinking=["hm"], reason="length")]
    with ChatServer(script, kind="ollama", context_tokens=777) as server:
        found = list(make(server).stream(MESSAGES))
    assert found == [
        Reasoning("hm"),
        Text("Hel"),
        Text("lo"),
        Finished("length", Usage(9, 0, 2, 2.0, 4.0, is_exact=True)),
    ]
    assert server.bodies[0]["options"]["num_ctx"] == 777


def test_usage_that_the_server_does_not_report_is_estimated(make: Make) -> None:
    with ChatServer([say("Hel", "lo", every_s=0.01)], kind="openai") as server:
        *_, last = make(server).stream(MESSAGES)
    assert isinstance(last, Finished)
    assert not last.usage.is_exact
    assert last.usage.prompt_tokens == tokens.estimate(MESSAGES)
    assert last.usage.answer_tokens == 2
    assert last.usage.prompt_ms >= 15, "two pauses before the first word"
    assert last.usage.answer_ms > 0


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("finish", ["stop", "length", None])
def test_the_reason_for_the_end_of_an_answer(make: Make, finish: str | None, is_done: bool) -> None:
    if finish is None and not is_done:
        return  # it broke off; see test_client_failures
    with ChatServer([say("a", finish=finish, is_done=is_done)]) as server:
        *_, last = make(server).stream(MESSAGES)
    assert isinstance(last, Finished)
    assert last.reason == (finish or "stop")


def test_an_end_that_does_not_come_is_not_waited_for(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lcursor.http.client.DRAIN_S", 3600.0)
    parts: list[Part] = [sse(delta(content="a")), sse(delta("stop")), b"data: [DONE]\n\n", Hang()]
    with ChatServer([Answer(parts)]) as server:
        *_, last = make(server).stream(MESSAGES)
        assert isinstance(last, Finished)
        assert not server.gone_s, "it may still come"


def test_counts_that_do_not_come_are_not_waited_for(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lcursor.http.client.DRAIN_S", 0.05)
    with ChatServer([Answer([sse(delta(content="a"), delta("length")), Hang()])]) as server:
        *_, last = make(server).stream(MESSAGES)
        wait_for(lambda: server.gone_s, what="closed connection")
    assert isinstance(last, Finished)
    assert last.reason == "length"


def test_events_come_as_they_are_sent(make: Make) -> None:
    gate = Wait()
    parts: list[Part] = [sse(delta(content="a")), gate, sse(delta(content="b"), delta("stop"))]
    with ChatServer([Answer(parts)]) as server:
        found = iter(make(server).stream(MESSAGES))
        assert next(found) == Text("a")
        gate.event.set()
        assert next(found) == Text("b")


# Stopping.


def stop(client: ChatClient, server: ChatServer, after: int = 0) -> None:
    """Stop an answer on another thread after some events; see that both ends know."""
    stream = client.stream(MESSAGES)
    found: list[Event] = []

    def close() -> None:
        wait_for(lambda: server.running > 0 and len(found) >= after)
        stream.close()

    thread = threading.Thread(target=close)
    thread.start()
    with pytest.raises(Cancelled):
        found.extend(stream)
    thread.join()
    wait_for(lambda: server.gone_s, what="closed connection")


@pytest.mark.parametrize(
    ("answer", "after"),
    [
        (Answer([Hang()]), 0),
        (Answer([sse(delta(content="a")), Hang()]), 1),
        (say(*"abcdefgh" * 4000, every_s=0.005), 3),
    ],
    ids=["before the first word", "in a silence", "in the middle"],
)
def test_stopping_reaches_the_server(make: Make, answer: Answer, after: int) -> None:
    with ChatServer([answer]) as server:
        stop(make(server), server, after)


def test_a_stopped_stream_asks_nothing(make: Make) -> None:
    with ChatServer() as server:
        stream = make(server).stream(MESSAGES)
        stream.close()
        with pytest.raises(Cancelled):
            list(stream)
        assert server.bodies == []


def test_stopping_what_has_ended_changes_nothing(make: Make) -> None:
    with ChatServer([say("a")]) as server:
        stream = make(server).stream(MESSAGES)
        found = list(stream)
        stream.close()
        assert isinstance(found[-1], Finished)


def test_a_caller_who_stops_reading_stops_the_server(make: Make) -> None:
    with ChatServer([say(*"abcdefgh" * 400, every_s=0.005)]) as server:
        for event in make(server).stream(MESSAGES):
            if isinstance(event, Text):
                break
        wait_for(lambda: server.gone_s, what="closed connection")


# Counting and keeping.


def test_tokens_are_counted_by_a_llama_server(make: Make) -> None:
    with ChatServer() as server:
        client = make(server)
        rows = [{"role": one.role, "content": one.text} for one in MESSAGES]
        for _ in range(2):
            assert client.count(MESSAGES) == (server.tokens(server.template(rows)), True)
            assert client.count("abcdefgh") == (2, True)
        assert server.paths().count("/tokenize") == 2, "counts are remembered"
        assert client.count("abcdefgh", may_ask=False) == (2, True)
        assert client.count("another", may_ask=False) == (tokens.estimate("another"), False)
        assert server.paths().count("/tokenize") == 2


def test_tokens_are_counted_by_a_vllm(make: Make) -> None:
    with ChatServer(kind="openai") as server:
        server.extra["/v1/models"] = (200, {"data": [{"id": "m", "max_model_len": 100}]})
        server.extra["/tokenize"] = (200, {"count": 12, "max_model_len": 100})
        client = make(server)
        assert client.count(MESSAGES) == (12, True)
        assert client.count("a") == (12, True)


@pytest.mark.parametrize("kind", ["ollama", "openai"])
def test_tokens_of_other_servers_are_estimated(make: Make, kind: Any) -> None:
    with ChatServer(kind=kind) as server:
        client = make(server)
        assert client.count(MESSAGES) == (tokens.estimate(MESSAGES), False)
        assert client.count("a" * 32) == (10, False)


def test_a_server_that_cannot_count_is_asked_once(make: Make) -> None:
    with ChatServer() as server:
        server.extra["/apply-template"] = (404, {"error": {"message": "File Not Found"}})
        client = make(server)
        for _ in range(3):
            assert client.count(MESSAGES)[1] is False
        assert server.paths().count("/apply-template") == 1


def test_without_a_server_tokens_are_estimated(make: Make) -> None:
    with ChatServer() as server:
        client = make(server)
    assert client.count(MESSAGES) == (tokens.estimate(MESSAGES), False)
    assert client.save_slot("a") is False


@pytest.mark.parametrize(
    ("said", "count"), [("", 0), ("a", 1), ("a" * 32, 10), ("漢" * 16, 15), ("é", 1)]
)
def test_the_estimated_number_of_tokens(said: str, count: int) -> None:
    assert tokens.estimate(said) == count
    assert tokens.estimate([Message("user", said)] * 2) == 2 * (count + 4)


def test_slots_are_kept_and_read_back(make: Make) -> None:
    with ChatServer() as server:
        client = make(server)
        list(client.stream(MESSAGES))
        assert client.save_slot("chat-1")
        server.cached = ""
        assert client.restore_slot("chat-1")
        *_, last = client.stream(MESSAGES)
        assert isinstance(last, Finished)
        assert last.usage.cached_tokens > 0
        assert client.restore_slot("chat-2") is False


def test_the_slot_used_last_is_saved_and_the_one_used_first_replaced(make: Make) -> None:
    rows = [
        {"id": 0, "id_task": 7, "is_processing": False},
        {"id": 1, "id_task": 9, "is_processing": True},
        {"id": 2, "id_task": 8, "is_processing": False},
        {"id": 3, "is_processing": False},
    ]
    with ChatServer() as server:
        server.extra["/slots"] = (200, rows)
        client = make(server)
        assert client.save_slot("chat-1")
        assert client.restore_slot("chat-1")
        assert [path for _, path, _ in server.asked][-4:] == [
            "/slots", "/slots/2?action=save", "/slots", "/slots/3?action=restore",
        ]  # fmt: skip
        server.extra["/slots"] = (501, {"error": {"message": "This server does not support it"}})
        assert not client.save_slot("chat-2")


# Quirks.

QUIRKS: list[tuple[str, dict[str, Any], str]] = [
    ("Unsupported parameter: 'max_tokens' is not supported with this model. Use "
     "'max_completion_tokens' instead.", {"param": "max_tokens"}, "max_tokens"),
    ("'temperature' does not support 0.2 with this model.", {}, "temperature"),
    ("stream_options: extra inputs are not permitted", {}, "stream_options"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "more", "field"), QUIRKS)
def test_a_field_that_a_server_does_not_know_is_left_out(
    make: Make, words: str, more: dict[str, Any], field: str
) -> None:
    def script(body: dict[str, Any]) -> Answer:
        return refuse(400, words, **more) if field in body else say("ok")

    with ChatServer(script, kind="openai") as server:
        client = make(server)
        for _ in range(2):
            assert text(list(client.stream(MESSAGES, SamplingParams(max_tokens=5)))) == "ok"
        assert [field in body for body in server.bodies] == [True, False, False], "it remembers"


def test_a_model_without_a_system_role(make: Make) -> None:
    def script(body: dict[str, Any]) -> Answer:
        if body["messages"][0]["role"] == "system":
            return refuse(500, "System role not supported")
        return say("ok")

    with ChatServer(script) as server:
        assert text(list(make(server).stream(MESSAGES))) == "ok"
    assert server.bodies[1]["messages"] == [{"role": "user", "content": "You help.\n\nHello?"}]
