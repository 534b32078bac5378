"""Runs with a server that speaks only the API of OpenAI: messages, usage, and no tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.chat_server import Answer, ChatServer, say
from tests.unit.agent.runs_over_http import Session, finish, replace, view

ODD = """\
{"arguments":{"view_range":[1,50] , "command":"view","path":"b.py"},"name":"str_replace_editor"}"""
"""A call in JSON that no library would write in this way."""
BAD = '<tool_call>\n{"name": "bash", "arguments": "ls"}\n</tool_call>'
Make = Callable[..., Session]


def counted(text: str, prompt: int, cached: int, answer: int) -> Answer:
    """Return an answer with the usage that OpenAI sends."""
    details = {"prompt_tokens_details": {"cached_tokens": cached}}
    usage = {"prompt_tokens": prompt, "completion_tokens": answer, **details}
    return say(*(text[at : at + 7] for at in range(0, len(text), 7)), usage=usage)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Make]:
    made: list[Session] = []

    def make(*texts: str) -> Session:
        script = [counted(text, 1000 + 100 * n, 90 * n, 10) for n, text in enumerate(texts)]
        server: Any = ChatServer(script, kind="openai")
        made.append(Session(tmp_path, [], server=server))
        return made[-1]

    yield make
    for each in made:
        each.close()


def conversations(it: Session) -> list[list[dict[str, str]]]:
    return [body["messages"] for body in it.server.bodies]


def test_answers_are_sent_back_as_they_came(session: Make) -> None:
    texts = (
        f"I will look.\n{view('a.py')}\n<tool_call>\n{ODD}\n</tool_call>",
        replace(),
        finish("x is 2"),
    )
    it = session(*texts)
    assert it.finish()["message"] == "x is 2"
    assert it.files()["a.py"] == "x = 2\n"
    for before, after in pairwise(conversations(it)):
        assert after[: len(before)] == before
    last = conversations(it)[-1]
    assert [each["content"] for each in last if each["role"] == "assistant"] == [*texts[:2]]
    results = last[3]["content"]  # both, in the order of the calls
    assert results.index("x = 1") < results.index("return 2")
    assert [each["role"] for each in last] == ["system", *["user", "assistant"] * 2, "user"]


def test_malformed_arguments_are_asked_for_again(session: Make) -> None:
    it = session(view(), BAD, BAD, replace(), finish())
    assert it.finish()["state"] == "done"
    _, first, second, third, _ = conversations(it)
    assert first == second  # the answer was dropped
    assert third[: len(second)] == second
    assert third[-2]["content"] == BAD
    assert "The arguments of bash are not a JSON object" in third[-1]["content"]
    assert it.files()["a.py"] == "x = 2\n"
    assert not any("grammar" in body for body in it.server.bodies)


def test_the_usage_of_tokens_is_counted(session: Make) -> None:
    it = session(view(), replace(), finish())
    it.finish()
    state = it.log.state
    assert (state.read_tokens, state.cached_tokens, state.answer_tokens) == (3030, 270, 30)
    assert state.cached_share == pytest.approx(180 / 1200)
