"""Calls of tools in streams and requests, in the forms of several servers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lcursor.llm import providers
from lcursor.llm.apis import anthropic
from lcursor.llm.apis.api import Quirk
from lcursor.llm.records import (
    CallText,
    Message,
    Returned,
    SamplingParams,
    Served,
    Text,
    ToolRequest,
    ToolSpec,
)
from lcursor.llm.streaming import ResponseReader
from lcursor.llm.tool_calls import arguments_of, as_text, openai_rows
from tests.fakes.chat_server import say_anthropic

TOOL = ToolSpec("view", "View a file.", {"type": "object", "properties": {}, "required": []})
ONE = ToolRequest("call_a", "view", '{"path": "a.py"}')
TWO = ToolRequest("call_b", "view", '{"path": "b.py"}')
TALK = [
    Message("system", "rules"),
    Message("user", "task"),
    Message("assistant", "I look.", (ONE, TWO)),
    Message("tool", "x = 1", call_id="call_a"),
    Message("tool", "y = 2", call_id="call_b"),
    Message("user", "go on"),
]


def chunk(*calls: Mapping[str, Any], **delta: Any) -> dict[str, Any]:
    fields = {**delta, **({"tool_calls": list(calls)} if calls else {})}
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def part(index: int | None, key: str | None, name: str | None, arguments: object) -> dict[str, Any]:
    row = {"index": index, "id": key, "function": {"name": name, "arguments": arguments}}
    return {field: value for field, value in row.items() if value is not None}


STREAMS: dict[str, list[dict[str, Any]]] = {
    "OpenAI, vLLM and llama-server: a name, then pieces of the arguments": [
        chunk(role="assistant", content=None),
        chunk(content="I look."),
        chunk(part(0, "call_a", "view", "")),
        chunk(part(0, None, None, '{"pa')),
        chunk(part(0, None, None, 'th": "a.py"}')),
        chunk(part(1, "call_b", "view", "")),
        chunk(part(1, None, None, '{"path": "b.py"}')),
    ],
    "two calls whose pieces alternate": [
        chunk(content="I look."),
        chunk(part(0, "call_a", "view", '{"path": '), part(1, "call_b", "view", '{"path": ')),
        chunk(part(1, None, None, '"b.py"}'), part(0, None, None, '"a.py"}')),
    ],
    "Gemini: whole calls, all with number 0": [
        chunk(part(0, "call_a", "view", '{"path": "a.py"}'), content="I look."),
        chunk(part(0, "call_b", "view", '{"path": "b.py"}')),
    ],
    "Mistral: whole calls in one object, without numbers": [
        chunk(content="I look."),
        chunk(
            part(None, "call_a", "view", '{"path": "a.py"}'),
            part(None, "call_b", "view", '{"path": "b.py"}'),
        ),
    ],
    "DeepSeek: the name is repeated as an empty text": [
        chunk(content="I look."),
        chunk(part(0, "call_a", "view", "")),
        chunk(part(0, "", "", '{"path": "a.py"}')),
        chunk(part(1, "call_b", "view", '{"path": "b.py"}')),
    ],
}


def read(rows: Sequence[Mapping[str, Any]]) -> tuple[str, list[ToolRequest], str]:
    """Return text, calls, and what is shown of them while they are written."""
    reader = ResponseReader("server")
    events = [event for row in rows for event in reader.feed(row)] + reader.finish()
    text = "".join(event.text for event in events if isinstance(event, Text))
    shown = "".join(event.text for event in events if isinstance(event, CallText))
    return text, [event for event in events if isinstance(event, ToolRequest)], shown


@pytest.mark.parametrize("form", STREAMS)
def test_calls_are_collected_from_any_stream(form: str) -> None:
    text, calls, shown = read(STREAMS[form])
    assert (text, calls) == ("I look.", [ONE, TWO])
    assert shown.count("view") == 2


def test_what_a_server_wants_back_goes_back() -> None:
    signed = {**part(0, "call_a", "view", '{"path": "a.py"}'), "extra_content": {"google": "sig"}}
    rows = [chunk(reasoning_content="I "), chunk(reasoning_content="think."), chunk(signed)]
    reader = ResponseReader("server")
    events = [event for row in rows for event in reader.feed(row)] + reader.finish()
    call, returned = events[-2:]
    assert isinstance(call, ToolRequest)
    assert isinstance(returned, Returned)
    message = Message("assistant", "", (call,), extra=returned.fields)
    row = openai_rows([message])[0]
    assert row["reasoning_content"] == "I think."
    assert row["tool_calls"][0]["extra_content"] == {"google": "sig"}
    assert "sig" not in as_text([message])[0].text


def test_calls_of_ollama_are_whole_and_have_no_id() -> None:
    function = {"name": "view", "arguments": {"path": "a.py"}}
    message = {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}
    rows = [{"message": message, "done": False}, {"message": {"content": ""}, "done": True}]
    _, calls, _ = read(rows)
    assert [(call.name, arguments_of(call)) for call in calls] == [("view", {"path": "a.py"})]
    assert calls[0].id


@pytest.mark.parametrize(
    "parts",
    [None, "text", [None], [{}], [{"function": None}], [{"function": {"name": 3}}]],
    ids=str,
)
def test_other_values_are_no_error(parts: object) -> None:
    _, calls, _ = read([{"choices": [{"delta": {"tool_calls": parts}}]}])
    assert all(call.name == "" for call in calls)


@pytest.mark.parametrize("arguments", ['{"path": "a', "[1]", "3", "[" * 100_000])
def test_arguments_that_are_no_object(arguments: str) -> None:
    assert arguments_of(ToolRequest("a", "view", arguments)) is None


def request(kind: Any, quirks: frozenset[Quirk] = frozenset()) -> dict[str, Any]:
    sampling = SamplingParams(tools=(TOOL,))
    return providers.chat_request(Served(kind, "m", 0), "/v1", TALK, sampling, quirks)[1]


def test_a_request_to_openai() -> None:
    body = request("openai")
    assert body["tools"][0]["function"]["name"] == "view"
    assert body["messages"][2:5] == [
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {
                    "id": each.id,
                    "type": "function",
                    "function": {"name": "view", "arguments": each.arguments},
                }
                for each in (ONE, TWO)
            ],
        },
        {"role": "tool", "tool_call_id": "call_a", "content": "x = 1"},
        {"role": "tool", "tool_call_id": "call_b", "content": "y = 2"},
    ]


def test_a_request_to_anthropic() -> None:
    body = request("anthropic")
    assert [each["name"] for each in body["tools"]] == ["view"]
    assert body["tools"][0]["input_schema"] == TOOL.parameters
    asked, answered, results = body["messages"]
    assert asked == {"role": "user", "content": [{"type": "text", "text": "task"}]}
    assert answered["content"][0] == {"type": "text", "text": "I look."}
    assert answered["content"][1] == {
        "type": "tool_use",
        "id": "call_a",
        "name": "view",
        "input": {"path": "a.py"},
    }
    assert [each["type"] for each in results["content"]] == ["tool_result", "tool_result", "text"]
    assert results["content"][0]["tool_use_id"] == "call_a"
    assert [*results["content"][2]] == ["type", "text", "cache_control"]


def test_calls_and_reasoning_of_anthropic() -> None:
    rows = [
        json.loads(line.partition(b"data: ")[2])
        for line in say_anthropic(
            "I look.", calls=[("view", {"path": "a.py"}), ("view", {})], thinking="I think"
        ).parts
        if isinstance(line, bytes)
    ]
    translate = anthropic.Translator().chunk
    text, calls, _ = read([translate(row) for row in rows])
    assert text == "I look."
    assert [(call.id, arguments_of(call)) for call in calls] == [
        ("toolu_0", {"path": "a.py"}),
        ("toolu_1", {}),
    ]
    reader, translate = ResponseReader("server"), anthropic.Translator().chunk
    events = [event for row in rows for event in reader.feed(translate(row))] + reader.finish()
    returned = events[-1]
    assert isinstance(returned, Returned)
    message = Message("assistant", text, tuple(calls), extra=returned.fields)
    [row] = anthropic.rows([message])
    assert row["content"][0] == {"type": "thinking", "thinking": "Ithink", "signature": "signed"}
    assert [each["type"] for each in row["content"]] == ["thinking", "text", "tool_use", "tool_use"]


def test_a_request_to_ollama() -> None:
    body = request("ollama")
    assert body["tools"][0]["function"]["name"] == "view"
    assert body["messages"][2]["tool_calls"][0]["function"]["arguments"] == {"path": "a.py"}
    assert body["messages"][3] == {"role": "tool", "content": "x = 1", "tool_name": "view"}


@pytest.mark.parametrize("kind", ["openai", "ollama", "llama.cpp"])
def test_a_server_without_tools_gets_them_as_text(kind: Any) -> None:
    body = request(kind, frozenset({"no_tools"}))
    assert "tools" not in body
    assert "tool_calls" not in json.dumps(body)
    assert [each["role"] for each in body["messages"]] == ["system", "user", "assistant", "user"]
    assert '"name": "view"' in body["messages"][0]["content"]
    assert "x = 1" in body["messages"][3]["content"]
    assert "y = 2" in body["messages"][3]["content"]
    assert "go on" in body["messages"][3]["content"]


def test_a_talk_as_text_has_all_that_it_had() -> None:
    text = "\n".join(message.text for message in as_text(TALK))
    for each in ("rules", "task", "I look.", "a.py", "b.py", "x = 1", "y = 2", "go on"):
        assert each in text


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("registry.ollama.ai/library/gemma3:1b does not support tools", ""),
        ('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser', ""),
        ("tools param requires --jinja flag", ""),
        ("Unrecognized request argument supplied: tools", "tools"),
        ("Extra inputs are not permitted", "tools"),
        ("No endpoints found that support tool use", ""),
    ],
)
def test_servers_that_reject_tools_are_recognized(words: str, field: str) -> None:
    assert providers.quirk_of(words, field) == "no_tools"
