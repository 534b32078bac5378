"""Every form in which servers answer, read into the same events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcursor.errors import ServerFailed, ServerGarbled
from lcursor.http.sse import LineSplitter, objects
from lcursor.llm.records import Event, Progress, Reasoning, Text, Usage
from lcursor.llm.streaming import ResponseReader
from tests.fakes.chat_server import delta
from tests.fakes.loopback import sse


def read(body: bytes, cut: int = 0) -> tuple[list[Event], ResponseReader]:
    """Read a whole stream, cut into pieces of some size."""
    cutter, lines, reader = LineSplitter(), [], ResponseReader("it")
    size = cut or len(body) or 1
    for at in range(0, len(body), size):
        lines += cutter.feed(body[at : at + size])
    told: list[Event] = []
    for found in objects([*lines, bytes(cutter.rest)], "it"):
        told += reader.feed(found)
    return told + reader.finish(), reader


def texts(found: list[Event]) -> tuple[str, str]:
    thought = "".join(one.text for one in found if isinstance(one, Reasoning))
    return thought, "".join(one.text for one in found if isinstance(one, Text))


def chunk(**fields: Any) -> dict[str, Any]:
    return delta(**fields)


STREAMS: dict[str, tuple[bytes, str, str]] = {
    "plain": (sse(chunk(content="a"), chunk(content="b"), delta("stop")), "", "ab"),
    "role alone, null and empty content": (
        sse(chunk(role="assistant", content=None), chunk(content=""), chunk(content="a")), "", "a"),
    "llama.cpp and DeepSeek": (sse(chunk(reasoning_content="r"), chunk(content="a")), "r", "a"),
    "vLLM and OpenRouter": (sse(chunk(reasoning="r"), chunk(content="a")), "r", "a"),
    "the same in two fields": (
        sse(chunk(reasoning="r", reasoning_content="r"), chunk(content="a")), "r", "a"),
    "tags": (sse(chunk(content="<th"), chunk(content="ink>r</think>\na")), "r", "a"),
    "a tag that is none": (sse(chunk(content="<th"), chunk(content="ing>")), "", "<thing>"),
    "Mistral's parts": (
        sse(chunk(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "r"}]}]),
            chunk(content=[{"type": "text", "text": "a"}, None, {"type": "image"}])), "r", "a"),
    "a whole answer, not streamed": (
        json.dumps({"choices": [{"message": {"content": "a", "reasoning_content": "r"},
                                 "finish_reason": "stop"}]}).encode(), "r", "a"),
    "choices without anything": (sse({"choices": []}, {"choices": [{}]}, {"choices": [None]},
                                     {"choices": [{"delta": None}]}, chunk(content="a")), "", "a"),
    "fields of wrong types": (
        sse({"choices": "x"}, {"choices": [{"delta": "x"}]}, chunk(content=3), chunk(content={}),
            {"choices": [{"delta": {"tool_calls": 3}}], "usage": "x", "timings": []},
            chunk(content="a")), "", "a"),
    "a refusal": (sse(chunk(refusal="I cannot")), "", "I cannot"),
    "CRLF": (sse(chunk(content="a"), chunk(content="b")).replace(b"\n", b"\r\n"), "", "ab"),
    "comments, names and numbers of events": (
        b": hi\n\nevent: message\nid: 3\nretry: 5\n" + sse(chunk(content="a")) + b":\n\n", "", "a"),
    "no blank after the colon": (sse(chunk(content="a")).replace(b"data: ", b"data:"), "", "a"),
    "an object over several lines": (
        b'data: {"choices": [{"delta":\ndata:  {"content": "a"}}]}\n\n', "", "a"),
    "an empty event": (b"data:\n\ndata: \n\n" + sse(chunk(content="a")), "", "a"),
    "[DONE] and more": (sse(chunk(content="a")) + b"data: [DONE]\n\ngarbage", "", "a"),
    "[DONE] without its empty line": (sse(chunk(content="a")) + b"data:[DONE]", "", "a"),
    "no newline at the end": (sse(chunk(content="a")).rstrip(), "", "a"),
    "letters of all kinds": (sse(chunk(content="é\u2028漢🐍\x85\x00")), "", "é\u2028漢🐍\x85\x00"),
    "a huge line": (sse(chunk(content="x" * 1_000_000)), "", "x" * 1_000_000),
    "Ollama": (
        b'{"message": {"content": "", "thinking": "r"}, "done": false}\n'
        b'{"message": {"content": "a"}, "done": false}\n'
        b'{"message": {"content": ""}, "done": true, "done_reason": "stop"}\n', "r", "a"),
    "nothing": (b"", "", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_each_form_of_stream_is_read(name: str) -> None:
    body, thought, answer = STREAMS[name]
    assert texts(read(body)[0]) == (thought, answer)
    cut = 4096 if len(body) > 10_000 else 7
    assert texts(read(body, cut)[0]) == (thought, answer), "cut into pieces"


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("stop", "stop"), ("eos", "stop"), ("eos_token", "stop"), ("tool_calls", "stop"),
        ("function_call", "stop"), ("whatever", "stop"), ("length", "length"),
        ("max_tokens", "length"), ("model_length", "length"), (None, None), ("", None), (7, None),
    ],
)  # fmt: skip
def test_the_reason_for_the_end_of_a_stream(reason: Any, end: str | None) -> None:
    assert read(sse(chunk(content="a"), delta(reason)))[1].reason == end


@pytest.mark.parametrize("reason", ["content_filter", "sensitive", "error"])
def test_an_answer_that_is_cut_off(reason: str) -> None:
    with pytest.raises(ServerFailed, match=f"cut the answer off \\({reason}\\)"):
        read(sse(chunk(content="a"), delta(reason)))


ERRORS: list[tuple[bytes, str]] = [
    (sse({"error": {"message": "boom", "code": 500}}), "boom"),
    (sse({"error": "boom"}), "boom"),
    (sse({"error": {"code": 5}}), '"code": 5'),
    (sse({"object": "error", "message": "boom", "code": 400}), "boom"),
    (sse({"type": "error", "error": {"message": "boom"}}), "boom"),
    (b'event: error\ndata: {"error": {"message": "boom"}}\n\n', "boom"),
    (b'error: {"message": "boom"}\n\n', "boom"),
    (b'{"error": "boom"}\n', "boom"),
]


@pytest.mark.parametrize(("body", "words"), ERRORS)
def test_errors_in_a_stream_that_began_well(body: bytes, words: str) -> None:
    with pytest.raises(ServerFailed, match=words):
        read(sse(chunk(content="a")) + body)


@pytest.mark.parametrize(
    "body", [b"data: {oops\n\n", b"<html>\n", b"data: 3\n\n", b"data: [1]\n\n", b"\x00\xff\n"]
)
def test_a_body_that_is_no_stream_is_an_error(body: bytes) -> None:
    with pytest.raises(ServerGarbled):
        read(body)


LLAMA = {"cache_n": 90, "prompt_n": 10, "prompt_ms": 5.5, "predicted_n": 7, "predicted_ms": 20.0}
USAGES: list[tuple[dict[str, Any], Usage]] = [
    ({"timings": LLAMA}, Usage(100, 90, 7, 5.5, 20.0, is_exact=True, passes=7)),
    ({"timings": {**LLAMA, "cache_n": None}}, Usage(10, 0, 7, 5.5, 20.0, is_exact=True, passes=7)),
    ({"timings": {**LLAMA, "draft_n": 12, "draft_n_accepted": 5}},
     Usage(100, 90, 7, 5.5, 20.0, True, draft_tokens=12, accepted_tokens=5, passes=2)),
    ({"usage": {"prompt_tokens": 5, "completion_tokens": 3}}, Usage(5, 0, 3, is_exact=True)),
    ({"usage": {"prompt_tokens": 5, "completion_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 4}}}, Usage(5, 4, 3, is_exact=True)),
    ({"usage": {"prompt_tokens": 5, "prompt_cache_hit_tokens": 2,
                "prompt_tokens_details": None}}, Usage(5, 2, 0, is_exact=True)),
    ({"usage": {"prompt_tokens": 5, "cached_tokens": 2}}, Usage(5, 2, 0, is_exact=True)),
    ({"choices": [{"delta": {}, "usage": {"prompt_tokens": 5}}]}, Usage(5, 0, 0, is_exact=True)),
    ({"usage": {"prompt_tokens": 5}, "timings": LLAMA},
     Usage(100, 90, 7, 5.5, 20.0, True, passes=7)),
    ({"usage": None}, Usage(44, 0, 2)),
    ({"usage": {"prompt_tokens": True}}, Usage(44, 0, 2)),
    ({"usage": {"prompt_tokens": 1e99}}, Usage(44, 0, 2)),
    ({"done": True, "prompt_eval_count": 9, "eval_count": 3, "prompt_eval_duration": 2_000_000,
      "eval_duration": 4_000_000}, Usage(9, 0, 3, 2.0, 4.0, is_exact=True)),
]  # fmt: skip


@pytest.mark.parametrize(("last", "usage"), USAGES)
def test_the_usage_of_each_server(last: dict[str, Any], usage: Usage) -> None:
    _, reader = read(sse(chunk(content="abcd"), chunk(content="e"), last))
    assert reader.usage(44) == usage


def test_progress_of_reading_the_prompt_is_reported() -> None:
    rows = [
        {"prompt_progress": {"total": 9, "cache": 3, "processed": done, "time_ms": done}}
        for done in (3, 9)
    ]
    found, _ = read(sse(*({**delta(), **row} for row in rows), {"prompt_progress": {}}))
    assert found == [Progress(9, 3, 3, 3), Progress(9, 3, 9, 9), Progress(0, 0, 0, 0)]


FIELDS = st.sampled_from(
    ["choices", "delta", "content", "message", "usage", "timings", "done", "prompt_tokens", "text",
     "prompt_progress", "finish_reason", "reasoning", "tool_calls", "function", "name", "thinking"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # says something of the machine alone
@given(st.lists(st.dictionaries(FIELDS, JSON, max_size=4), max_size=4))
def test_any_object_is_read_or_rejected(found: list[dict[str, Any]]) -> None:
    reader = ResponseReader("it")
    try:
        for one in found:
            reader.feed(one)
    except ServerFailed:
        return
    reader.finish()
    assert reader.usage(0).prompt_tokens >= 0


def test_tokens_of_parts_of_a_character() -> None:
    """The rows of a llama-server; it sends no tokens for the first parts of a character."""
    timings = {"cache_n": 3, "prompt_n": 1, "predicted_n": 5}
    rows: list[dict[str, Any]] = [
        {"content": "Hi", "tokens": [10], "stop": False, "tokens_predicted": 1},
        {"content": "🌟", "tokens": [14], "stop": False, "tokens_predicted": 4},
        {"content": "", "tokens": [2], "stop": False, "tokens_predicted": 5, "timings": timings},
        {"content": "", "tokens": [], "stop": True, "stop_type": "eos", "tokens_predicted": 5},
    ]
    reader = ResponseReader("it")
    found = [event for row in rows for event in reader.feed(row)]
    assert found == [Text("Hi", (10,)), Text("🌟", (14,), unsent=2), Text("", (2,))]
    assert reader.reason == "stop"
    assert reader.usage(0) == Usage(4, 3, 5, is_exact=True, passes=5)
    other = ResponseReader("it")
    assert other.feed({**rows[3], "stop_type": "limit"}) == []
    assert other.reason == "length"
