"""What is on the screen, in the messages of a chat: once, and again only where it changed."""

from __future__ import annotations

from typing import Any

import pytest

from lcursor.chat import prompt
from lcursor.chat.attachments import REPEATED
from lcursor.config import ChatConfig, ModelConfig
from lcursor.llm.pool import ModelPool
from tests.fakes.chat_server import ChatServer
from tests.unit.chat.desk import Desk, attachment

CODE = "def a(x):\n    return x\n\n\ndef b(y):\n    return y"


def screen(desk: Desk, text: str = CODE, row: int = 0, cursor: int = 1) -> list[dict[str, Any]]:
    """Return what the editor offers."""
    name = f"a.py:{row + 1}-{row + 1 + text.count(chr(10))} (cursor in line {cursor})"
    path = str(desk.root / "a.py")
    return [attachment("screen", name, text, path=path, first_row=row, is_offered=True)]


def last_sent(server: ChatServer) -> str:
    """Return the question as the model read it."""
    text: str = server.bodies[-1]["messages"][-1]["content"]
    return text


def test_a_model_reads_what_one_sees(desk: Desk, server: ChatServer) -> None:
    done = desk.turn("What is this?", attachments=screen(desk, cursor=2))

    sent = last_sent(server)
    assert sent.startswith("On the screen, a.py:1-6 (cursor in line 2):\n```")
    assert CODE in sent
    assert sent.endswith("What is this?")
    (item,) = done["items"]
    assert (item["kind"], item["key"], item["is_left_out"]) == ("screen", "screen", False)


def test_small_talk_is_about_no_code(desk: Desk, server: ChatServer) -> None:
    desk.turn("Hi there!", attachments=screen(desk))
    assert last_sent(server) == "Hi there!"


def test_what_was_seen_before_is_not_said_again(desk: Desk, server: ChatServer) -> None:
    first = desk.turn("What is this?", attachments=screen(desk))
    part = "\n".join(CODE.split("\n")[4:])

    second = desk.turn("And b?", after=first["answer"], attachments=screen(desk, part, 4, 5))

    assert [each["note"] for each in second["items"]] == [REPEATED]
    assert "return y" not in last_sent(server)
    assert "cursor in line 5" in last_sent(server)

    changed = part.replace("y", "z")
    desk.turn("And now?", after=second["answer"], attachments=screen(desk, changed, 4, 5))
    assert "return z" in last_sent(server)


def test_a_question_that_is_asked_again_is_about_what_one_saw_then(
    desk: Desk, server: ChatServer
) -> None:
    first = desk.turn("What is this?", attachments=screen(desk))

    other = screen(desk, "other = 1", 90)
    desk.turn("What is that?", again=first["question"], attachments=other)

    assert "return y" in last_sent(server)
    assert "other = 1" not in last_sent(server)


@pytest.mark.parametrize(
    ("name", "question", "may"),
    [
        ("", "why?", True),
        ("here", "why?", True),
        ("there", "why?", False),
        ("here", "thanks, great", False),
    ],
)
def test_what_one_sees_stays_on_the_machine_unless_it_is_mentioned(
    name: str, question: str, may: bool
) -> None:
    config = ChatConfig(
        models=(
            ModelConfig(name="here", url="http://127.0.0.1:8012"),
            ModelConfig(name="there", url="https://api.example.com"),
        )
    )
    assert ModelPool(config).may_see(name, question) is may


@pytest.mark.parametrize("mention", ["", "@screen "])
def test_what_one_saw_does_not_reach_another_machine_later(
    desk: Desk, server: ChatServer, monkeypatch: pytest.MonkeyPatch, mention: str
) -> None:
    first = desk.turn(f"{mention}What is this?", attachments=screen(desk))
    assert CODE in last_sent(server)
    monkeypatch.setattr("lcursor.http.endpoint.is_local", lambda _: False)
    desk.turn("And in general?", after=first["answer"])
    sent = [each["content"] for each in server.bodies[-1]["messages"]]
    assert (CODE in sent[1]) == bool(mention)
    assert (prompt.NOT_SENT in sent[1]) != bool(mention)
    assert sent[1].endswith("What is this?")
