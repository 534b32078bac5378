"""Runs whose server has tools: calls and results in the protocol's own roles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.chat_server import Answer, ChatServer, delta, refuse, say, say_anthropic
from tests.fakes.loopback import sse
from tests.unit.agent.runs_over_http import FILES, Session, finish, replace, view

pytestmark = pytest.mark.sandbox

EDIT = {"command": "str_replace", "path": "a.py", "old_str": "1", "new_str": "2"}
VIEW = {"command": "view", "path": "a.py"}
TOUCH = {"command": "touch c"}
Call = tuple[str, object]


def calls(*made: Call, text: str = "", reason: str = "tool_calls") -> Answer:
    """Return an answer that calls tools, as OpenAI streams it: the arguments in pieces."""
    rows = [delta(role="assistant", content=text or None)]
    for number, (name, arguments) in enumerate(made):
        head = {"index": number, "id": f"call_{number}", "type": "function"}
        rows.append(delta(tool_calls=[{**head, "function": {"name": name, "arguments": ""}}]))
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        for at in range(0, len(written), 9):
            piece = {"index": number, "function": {"arguments": written[at : at + 9]}}
            rows.append(delta(tool_calls=[piece]))
    rows.append(delta(reason))
    return Answer([*(sse(row) for row in rows), b"data: [DONE]\n\n"])


def calls_of_gemini(*made: Call) -> Answer:
    """Return the same as Gemini streams it: whole calls, of which the first is signed."""
    parts: list[dict[str, Any]] = [{"functionCall": {"name": n, "args": a}} for n, a in made]
    parts[0]["thoughtSignature"] = "signed"
    row = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    return Answer([sse(row)])


def calls_of_responses(*made: Call) -> Answer:
    """Return the same as OpenAI's Responses API streams it, after encrypted reasoning."""
    items: list[dict[str, Any]] = [{"type": "reasoning", "id": "rs_0", "encrypted_content": "?"}]
    for at, (name, arguments) in enumerate(made):
        item = {"type": "function_call", "id": f"fc_{at}", "call_id": f"call_{at}", "name": name}
        items.append({**item, "arguments": json.dumps(arguments)})
    rows: list[dict[str, Any]] = []
    for item in items:
        rows.append({"type": "response.output_item.added", "item": item})
        rows.append({"type": "response.output_item.done", "item": item})
    rows.append({"type": "response.completed", "response": {"status": "completed"}})
    return Answer([sse(row) for row in rows])


FORMS: dict[str, tuple[Callable[..., Answer], str]] = {
    "anthropic": (lambda *made: say_anthropic(calls=made, thinking="Hm"), "messages"),
    "gemini": (calls_of_gemini, "contents"),
    "responses": (calls_of_responses, "input"),
}
"""The calls of an answer in each API, and the field of a request with the conversation."""
DONE = calls(("finish", {"summary": "x is 2"}))
Make = Callable[..., Session]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Make]:
    made: list[Session] = []

    def make(*script: Answer, api: Any = "openai") -> Session:
        server: Any = ChatServer(script, kind=api)
        made.append(Session(tmp_path, [], server=server, api=api))
        return made[-1]

    yield make
    for each in made:
        each.close()


def conversations(it: Session) -> list[list[dict[str, Any]]]:
    return [body["messages"] for body in it.server.bodies]


def roles(messages: Sequence[dict[str, Any]]) -> list[str]:
    return [message["role"] for message in messages]


def test_an_edit_by_calls(session: Make) -> None:
    both = calls(("str_replace_editor", VIEW), ("bash", {"command": "ls"}), text="I look.")
    it = session(both, calls(("str_replace_editor", EDIT)), DONE)
    done = it.finish()
    assert (done["state"], done["message"]) == ("done", "x is 2")
    assert it.files() == {**FILES, "a.py": "x = 2\n"}
    assert it.all("agent.started")[0]["dialect"] == "api"
    for before, after in pairwise(conversations(it)):
        assert after[: len(before)] == before  # so that a provider's cache is used
    last = conversations(it)[-1]
    assert roles(last) == ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]
    assert last[2]["content"] == "I look."
    assert [each["id"] for each in last[2]["tool_calls"]] == ["call_0", "call_1"]
    assert [each["tool_call_id"] for each in last[3:5]] == ["call_0", "call_1"]
    assert "x = 1" in last[3]["content"]
    assert "b.py" in last[4]["content"]
    told = "".join(each["text"] for each in it.all("agent.delta"))
    assert told.startswith("I look.\n\n<tool_call>\nstr_replace_editor {")
    tools = it.server.bodies[0]["tools"]
    assert {"bash", "str_replace_editor", "finish"} <= {each["function"]["name"] for each in tools}
    assert all(body["tools"] == tools for body in it.server.bodies)
    assert "str_replace_editor" not in last[0]["content"]  # they are listed once


@pytest.mark.parametrize("api", FORMS)
def test_an_edit_by_calls_in_other_apis(session: Make, api: str) -> None:
    answer, field = FORMS[api]
    both = answer(("str_replace_editor", VIEW), ("bash", {"command": "ls"}))
    edit = answer(("str_replace_editor", EDIT))
    it = session(both, edit, answer(("finish", {"summary": "x is 2"})), api=api)
    done = it.finish()
    assert (done["state"], done["message"]) == ("done", "x is 2")
    assert it.files() == {**FILES, "a.py": "x = 2\n"}
    sent = [json.dumps(body[field]) for body in it.server.bodies]
    mark = ', "cache_control": {"type": "ephemeral"}'  # it moves to the end
    for before, after in pairwise(each.replace(mark, "") for each in sent):
        assert after.startswith(before.removesuffix("]"))
    kept = {"anthropic": '"signature": "signed"', "gemini": '"thoughtSignature": "signed"'}
    assert sent[-1].count(kept.get(api, '"encrypted_content": "?"')) == 2
    assert "x = 1" in sent[-1]
    assert "b.py" in sent[-1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("str_replace_editor", '{"command": "view", "pa'), "not a JSON object"),
        (("no_such_tool", {}), "There is no tool 'no_such_tool'"),
        (("bash", {}), "bash needs command"),
        (("bash", {"command": "ls", "x": 1}), "bash has no argument 'x'"),
    ],
)
def test_a_malformed_call_is_asked_for_again(session: Make, call: Call, words: str) -> None:
    it = session(calls(call), calls(call), calls(("bash", TOUCH)), DONE)
    assert it.finish()["state"] == "done"
    first, second, third, _ = conversations(it)
    assert first == second  # the answer was dropped
    assert roles(third[len(second) :]) == ["assistant", "tool"]
    assert words in third[-1]["content"]
    assert "c" in it.files()


def test_each_call_of_a_malformed_answer_gets_a_result(session: Make) -> None:
    bad = calls(("bash", {}), ("str_replace_editor", VIEW))
    it = session(bad, bad, DONE)
    assert it.finish()["state"] == "done"
    assert roles(conversations(it)[-1][-3:]) == ["assistant", "tool", "tool"]


def test_a_call_that_was_cut_off_is_not_carried_out(session: Make) -> None:
    cut = calls(("str_replace_editor", json.dumps(EDIT)[:-9]), reason="length")
    it = session(cut, calls(("bash", TOUCH)), DONE)
    assert it.finish()["state"] == "done"
    assert "cut off" in conversations(it)[1][-1]["content"]
    assert "c" in it.files()


def test_a_server_that_rejects_tools_is_asked_in_text(session: Make) -> None:
    rejects = refuse(400, "this model does not support tools")
    it = session(rejects, say(view()), say(replace()), say(finish("x is 2")))
    done = it.finish()
    assert (done["state"], done["message"]) == ("done", "x is 2")
    bodies = it.server.bodies
    assert "tools" in bodies[0]
    assert all("tools" not in body for body in bodies[1:])
    assert "str_replace_editor" in bodies[1]["messages"][0]["content"]
    assert it.files()["a.py"] == "x = 2\n"


def test_a_run_is_continued_with_its_calls(session: Make, tmp_path: Path) -> None:
    it = session(calls(("bash", TOUCH)), refuse(401, "no"), DONE)
    assert it.finish()["state"] == "failed"
    it.service.close()
    it.pool.close()
    it.open()
    it.resume(2)
    assert it.wait("agent.done", 2)["state"] == "done"
    assert roles(conversations(it)[-1])[:4] == ["system", "user", "assistant", "tool"]
    assert "c" in it.files()


@pytest.mark.parametrize("text", ["Now undo it.", ""])
def test_a_run_that_was_done_is_continued_with_its_last_result(session: Make, text: str) -> None:
    it = session(calls(("bash", TOUCH)), DONE, DONE)
    assert it.finish()["state"] == "done"
    it.resume(2, text=text)
    assert it.wait("agent.done", 2)["state"] == "done"
    asked = conversations(it)[-1]
    assert roles(asked)[-2:] == (["tool", "user"] if text else ["assistant", "tool"])
    assert (asked[-1]["content"] == f"The user says: {text}") == bool(text)
