"""Answers with calls as four APIs stream them, and what goes back with the results.

The streams are in tests/recorded/exchanges; each says where its shapes come from.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from lcursor.agent.dialects.api import Api
from lcursor.agent.records import Answer, Known
from lcursor.errors import ServerFailed, ServerGarbled
from lcursor.llm import providers
from lcursor.llm.apis.responses import Translator
from lcursor.llm.client import ChatClient
from lcursor.llm.records import (
    Event,
    Finished,
    Message,
    Reasoning,
    Returned,
    SamplingParams,
    Served,
    ServedModel,
    Text,
    ToolRequest,
    ToolSpec,
)
from lcursor.llm.streaming import ResponseReader
from lcursor.llm.tool_calls import arguments_of
from lcursor.project import redaction
from tests.fakes.chat_server import EXCHANGES, ChatServer, recorded

NAMES = sorted(path.stem for path in EXCHANGES.glob("*.sse"))
APIS = ("openai", "anthropic", "gemini", "responses")
TOOL = ToolSpec("view", "View a file.", {"type": "object", "properties": {}, "required": []})
ASKED = [Message("user", "What is in it?")]
TEXT, THOUGHT = "I look at it.", "The file may help."
ENDS = {
    "openai": b'"finish_reason":"tool_calls"',
    "anthropic": b'"stop_reason":"tool_use"',
    "gemini": b'"finishReason":"STOP"',
    "responses": b'"type":"response.completed"',
}
"""The end of an answer in a stream."""


def ask(name: str, events: int | None = None) -> tuple[list[Event], Exception | None]:
    """Return the events of a recorded stream, and the error that ended it."""
    kind: Any = name.partition("-")[0]
    found: list[Event] = []
    with ChatServer([recorded(name, events)], kind=kind) as server:
        client = ChatClient(ServedModel("big", server.url, "m", kind))
        try:
            for event in client.stream(ASKED, SamplingParams(tools=(TOOL,))):
                found.append(event)
        except (ServerFailed, ServerGarbled) as error:
            return found, error
        finally:
            client.close()
    return found, None


def text_of(events: Sequence[Event], kind: type[Text | Reasoning] = Text) -> str:
    return "".join(each.text for each in events if isinstance(each, kind))


def calls_of(events: Sequence[Event]) -> list[ToolRequest]:
    return [each for each in events if isinstance(each, ToolRequest)]


def request_after(name: str, results: Sequence[str]) -> list[Any]:
    """Return the messages of the request with the results of a recorded answer's calls."""
    events, _ = ask(name)
    calls = calls_of(events)
    extra = next((each.fields for each in events if isinstance(each, Returned)), {})
    answer = Message("assistant", text_of(events), tuple(calls), extra=extra)
    pairs = zip(calls, results, strict=True)
    told = [Message("tool", text, call_id=call.id) for call, text in pairs]
    return rows(name.partition("-")[0], [*ASKED, answer, *told])


def rows(kind: str, talk: Sequence[Message]) -> list[Any]:
    sampling = SamplingParams(tools=(TOOL,))
    body = providers.chat_request(Served(kind, "m", 0), "/v1", talk, sampling, set())[1]
    field = {"gemini": "contents", "responses": "input"}.get(kind, "messages")
    found: list[Any] = body[field]
    return found


def test_each_api_has_each_recording() -> None:
    for name in ("whole", "parallel", "malformed", "too-long", "blocked", "error"):
        assert {f"{api}-{name}" for api in APIS} <= set(NAMES)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("name", "files"), [("whole", ["a.py"]), ("parallel", ["a.py", "b.py"])], ids=str
)
def test_calls_arrive_as_meant(api: str, name: str, files: list[str]) -> None:
    events, error = ask(f"{api}-{name}")
    assert error is None
    assert text_of(events) == TEXT
    assert text_of(events, Reasoning) == ("" if api == "openai" else THOUGHT)
    found = [(call.id, call.name, arguments_of(call)) for call in calls_of(events)]
    keys = ["call_a", "call_b"]
    assert found == [(key, "view", {"path": file}) for key, file in zip(keys, files, strict=False)]
    end = events[-1]
    assert isinstance(end, Finished)
    assert end.reason == "stop"
    counts = (end.usage.prompt_tokens, end.usage.cached_tokens, end.usage.answer_tokens)
    assert (counts, end.usage.is_exact) == ((120, 96, 21), True)


def test_calls_of_items_without_numbers() -> None:
    assert calls_of(ask("responses-unnumbered")[0]) == calls_of(ask("responses-parallel")[0])


@pytest.mark.parametrize("api", APIS)
def test_a_malformed_call_becomes_a_problem_for_the_model(api: str) -> None:
    events, error = ask(f"{api}-malformed")
    assert error is None
    answer = Answer(text_of(events), "stop", 0, 0, 0, tuple(calls_of(events)))
    reply = Api().parse(answer, (), Known())
    assert "are not a JSON object" in reply.problem
    assert not reply.calls
    # The call and the answer to it go back, and can be sent.
    assert len(request_after(f"{api}-malformed", ["It is malformed."])) >= 3


@pytest.mark.parametrize("api", APIS)
def test_an_answer_that_is_too_long_says_so(api: str) -> None:
    events, error = ask(f"{api}-too-long")
    assert error is None
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "length"
    assert all(arguments_of(call) is None for call in calls_of(events))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("openai-blocked", "cut the answer off (content_filter)"),
        ("anthropic-blocked", "cut the answer off (refusal)"),
        ("gemini-blocked", "cut the answer off (SAFETY)"),
        ("gemini-blocked-prompt", "cut the answer off (the prompt is blocked: PROHIBITED_CONTENT)"),
        ("responses-blocked", "cut the answer off (content_filter)"),
        ("openai-error", "The server had an error while processing your request"),
        ("anthropic-error", "Overloaded"),
        ("gemini-error", "The model is overloaded. Please try again later"),
        ("responses-error", "The server had an error while processing your request"),
        ("responses-failed", "The model failed to generate a response"),
    ],
)
def test_errors_in_a_stream_are_reported(name: str, words: str) -> None:
    events, error = ask(name)
    assert isinstance(error, ServerFailed)
    assert words in error.message
    assert not calls_of(events)


@pytest.mark.parametrize("api", APIS)
def test_no_call_of_a_stream_that_was_cut_is_run(api: str) -> None:
    parts = [part for part in recorded(f"{api}-parallel").parts if isinstance(part, bytes)]
    end = next(at for at, part in enumerate(parts) if ENDS[api] in part)
    for count in range(len(parts)):
        events, error = ask(f"{api}-parallel", count)
        if count <= end:
            assert isinstance(error, ServerGarbled), count
            assert not calls_of(events)
        else:
            assert error is None, count
            assert len(calls_of(events)) == 2


def test_what_goes_back_to_openai() -> None:
    call = {"type": "function", "function": {"name": "view", "arguments": '{"path": "a.py"}'}}
    assert request_after("openai-whole", ["x = 1"])[1:] == [
        {"role": "assistant", "content": TEXT, "tool_calls": [{"id": "call_a", **call}]},
        {"role": "tool", "tool_call_id": "call_a", "content": "x = 1"},
    ]


def test_what_goes_back_to_anthropic() -> None:
    thought = {"type": "thinking", "thinking": THOUGHT, "signature": "c2lnbmVkLWE="}
    call = {"type": "tool_use", "id": "call_a", "name": "view", "input": {"path": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": "call_a", "content": "x = 1"}
    assert request_after("anthropic-whole", ["x = 1"])[1:] == [
        {"role": "assistant", "content": [thought, {"type": "text", "text": TEXT}, call]},
        {"role": "user", "content": [{**result, "cache_control": {"type": "ephemeral"}}]},
    ]


def test_what_goes_back_to_gemini() -> None:
    first = {"id": "call_a", "name": "view", "args": {"path": "a.py"}}
    second = {"id": "call_b", "name": "view", "args": {"path": "b.py"}}
    parts = [
        {"text": THOUGHT, "thought": True},
        {"text": TEXT},
        {"functionCall": first, "thoughtSignature": "c2lnbmVkLWE="},
        {"functionCall": second},
        {"text": ""},
    ]
    results = [
        {"functionResponse": {"id": key, "name": "view", "response": {"output": text}}}
        for key, text in (("call_a", "x = 1"), ("call_b", "y = 2"))
    ]
    assert request_after("gemini-parallel", ["x = 1", "y = 2"])[1:] == [
        {"role": "model", "parts": parts},
        {"role": "user", "parts": results},
    ]


def test_a_gemini_whose_calls_have_no_ids() -> None:
    _, answer, told = request_after("gemini-without-ids", ["x = 1", "y = 2"])
    assert all("id" not in part.get("functionCall", {}) for part in answer["parts"])
    assert told["parts"] == [
        {"functionResponse": {"name": "view", "response": {"output": "x = 1"}}},
        {"functionResponse": {"name": "view", "response": {"output": "y = 2"}}},
    ]


def test_signed_parts_of_gemini_are_never_joined() -> None:
    _, answer, _ = request_after("gemini-signed-text", ["x = 1"])
    assert answer["parts"][:2] == [
        {"text": TEXT},
        {"text": "", "thoughtSignature": "c2lnbmVkLWI="},
    ]


def test_what_goes_back_to_responses() -> None:
    _, thought, said, first, second, *told = request_after("responses-parallel", ["x = 1", "y = 2"])
    assert (thought["type"], thought["encrypted_content"]) == ("reasoning", "c2VjcmV0LWE=")
    assert (said["type"], said["phase"]) == ("message", "commentary")
    assert [each["call_id"] for each in (first, second)] == ["call_a", "call_b"]
    assert first["arguments"] == '{"path": "a.py"}'
    assert told == [
        {"type": "function_call_output", "call_id": "call_a", "output": "x = 1"},
        {"type": "function_call_output", "call_id": "call_b", "output": "y = 2"},
    ]


def test_a_failure_without_a_reason_is_a_failure() -> None:
    event = {"type": "response.failed", "response": {"status": "failed", "error": None}}
    with pytest.raises(ServerFailed, match="no reason given"):
        ResponseReader("server").feed(Translator().chunk(event))


def test_an_empty_answer_is_not_sent_to_gemini() -> None:
    talk = [*ASKED, Message("assistant", ""), Message("user", "Well?")]
    assert [row["role"] for row in rows("gemini", talk)] == ["user", "user"]


def test_signatures_are_not_taken_for_secrets() -> None:
    random = Random(7)
    for size in range(100, 4000, 30):
        data = random.randbytes(size)
        for text in (base64.b64encode(data), base64.urlsafe_b64encode(b"\x80" + data)):
            assert redaction.redact_all({"thoughtSignature": text.decode()})[1] == 0


@pytest.mark.parametrize("kind", APIS)
@pytest.mark.parametrize("other", APIS)
def test_another_api_gets_no_part_that_is_only_meant_for_one(kind: str, other: str) -> None:
    events, _ = ask(f"{other}-whole")
    extra = next((each.fields for each in events if isinstance(each, Returned)), {})
    answer = Message("assistant", TEXT, tuple(calls_of(events)), extra=extra)
    talk = [*ASKED, answer, Message("tool", "x = 1", call_id="call_a")]
    plain = [*ASKED, Message("assistant", TEXT, answer.calls), talk[2]]
    if kind != other:
        assert rows(kind, talk) == rows(kind, plain)
    if kind == "gemini":
        part = rows(kind, plain)[1]["parts"][1]
        assert part["thoughtSignature"] == "skip_thought_signature_validator"
