"""The chat slot with a scripted server on a real socket."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lcursor.chat import prompt, turn
from lcursor.chat.chat_file import ChatFile, MakeOps
from lcursor.chat.conversation import Op
from lcursor.errors import Cancelled
from lcursor.llm.pool import Connection, ModelPool
from tests.fakes.chat_server import Abort, Answer, ChatServer, Hang, Wait, delta, refuse, say
from tests.fakes.heard import config_of
from tests.fakes.loopback import sse
from tests.unit.chat.desk import Desk, attachment, question
from tests.waiting import wait_for


def scripted(tmp_path: Path, *answers: Answer, **more: Any) -> tuple[ChatServer, Desk]:
    """Return a server with a script, and a desk with a chat on it."""
    server = ChatServer(answers)
    desk = Desk(tmp_path, config_of(server, **more))
    desk.open()
    return server, desk


def contents(body: dict[str, Any]) -> list[str]:
    return [each["content"] for each in body["messages"]]


def test_a_question_is_answered(desk: Desk) -> None:
    done = desk.turn("What is this?")
    assert (done["question"], done["answer"], done["reason"]) == (1, 2, "stop")
    assert desk.said(done["id"]) == "You said: What is this?"
    assert desk.phases(done["id"]) == ["context", "server", "reading", "writing"]
    assert done["title"] == "What is this?"
    assert done["is_exact"]
    assert done["prompt_tokens"] > done["answer_tokens"] > 0
    assert done["context_tokens"] == 4096
    assert desk.shown() == [("user", "What is this?"), ("assistant", "You said: What is this?")]


def test_a_second_turn_finds_its_prompt_in_the_cache(desk: Desk, server: ChatServer) -> None:
    text = "x = 1\n" * 1200
    first = desk.turn("Look.", attachments=[attachment("text", "a.txt", text)])
    second = desk.turn("And now?", after=first["answer"], path=str(desk.root / "other.py"))
    assert second["cached_tokens"] >= 0.95 * second["prompt_tokens"]
    one, two = contents(server.bodies[0]), contents(server.bodies[1])
    assert two[: len(one)] == one
    assert two[len(one)] == "You said: " + one[-1][:200]


def test_what_is_attached_is_in_the_message_and_in_the_sources(
    desk: Desk, server: ChatServer
) -> None:
    (desk.root / "b.py").write_text("def b():\n    return 2\n")
    (desk.root / ".env").write_text("TOKEN=abc\n")
    done = desk.turn("What does @file:b.py do, and @file:.env, and @file:none.py?")
    items = {each["name"]: each for each in done["items"]}
    assert not items["b.py"]["is_left_out"]
    assert items[".env"]["is_left_out"]
    assert items["none.py"]["note"]
    sent = contents(server.bodies[0])[-1]
    assert "return 2" in sent
    assert "abc" not in sent
    opened = desk.open(desk.chat)
    assert opened["messages"][0]["text"].startswith("What does @file:b.py do")
    assert {each["name"] for each in opened["messages"][0]["items"]} == set(items)


def test_what_the_chat_has_already_is_not_attached_again(desk: Desk, server: ChatServer) -> None:
    path = desk.root / "b.py"
    path.write_text("one = 1\n")
    first = desk.turn("See @file:b.py")
    second = desk.turn("Again @file:b.py", after=first["answer"])
    assert second["items"][0]["is_left_out"]
    assert "one = 1" not in contents(server.bodies[1])[-1]
    path.write_text("two = 2\n")
    third = desk.turn("Now @file:b.py", after=second["answer"])
    assert not third["items"][0]["is_left_out"]
    assert "two = 2" in contents(server.bodies[2])[-1]
    assert contents(server.bodies[2])[:-1][: len(contents(server.bodies[1]))] == contents(
        server.bodies[1]
    )


def test_what_is_nearly_a_command_is_not_sent(desk: Desk, server: ChatServer) -> None:
    error = desk.wait("error", desk.ask("/explian @file:a.py"))
    assert (error["code"], error["level"]) == ("command_unknown", "warn")
    assert error["message"] == "there is no command /explian; did you mean /explain?"
    assert desk.shown() == []
    desk.turn("\\/explian as it is")  # and the chat is free
    assert [contents(body)[-1] for body in server.bodies] == ["\\/explian as it is"]


def test_rules_are_attached_once(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, config_of(server, rule_files=True)) as desk:
        (desk.root / "AGENTS.md").write_text("Use tabs.\n")
        desk.open()
        first = desk.turn("One?", path=str(desk.root / "a.py"))
        desk.turn("Two?", after=first["answer"], path=str(desk.root / "a.py"))
    assert "Use tabs." in contents(server.bodies[0])[-1]
    assert contents(server.bodies[0])[0] == prompt.SYSTEM
    assert contents(server.bodies[1])[-1] == "Two?"


def test_another_question_in_an_earlier_place_is_a_branch(desk: Desk, server: ChatServer) -> None:
    first = desk.turn("One")
    desk.turn("Two", after=first["answer"])
    desk.turn("Instead of two", after=first["answer"])
    assert "Two" not in contents(server.bodies[2])
    assert [text for role, text in desk.shown() if role == "user"] == ["One", "Instead of two"]
    message = desk.open(desk.chat)["messages"][2]
    assert (message["branch"], message["branches"]) == (2, 2)
    back = desk.do("chat.branch", number=message["number"], step=-1)
    shown = desk.wait("chat.opened", back)["messages"]
    assert [each["text"] for each in shown if each["role"] == "user"] == ["One", "Two"]
    assert len(shown) == 4


def test_an_answer_is_written_again_next_to_the_old_one(desk: Desk, server: ChatServer) -> None:
    first = desk.turn("One")
    again = desk.turn("", after=first["answer"])
    assert again["question"] == first["question"]
    assert again["answer"] != first["answer"]
    assert contents(server.bodies[0]) == contents(server.bodies[1])
    message = desk.open(desk.chat)["messages"][1]
    assert (message["branch"], message["branches"]) == (2, 2)


def test_reasoning_is_shown_and_kept_and_not_sent_back(tmp_path: Path) -> None:
    server, desk = scripted(tmp_path, say("Four", reasoning=["Two and", " two"]))
    with server, desk:
        done = desk.turn("2+2?")
        thought = [each["reasoning"] for each in desk.told("chat.delta", done["id"])]
        assert "".join(thought) == "Two and two"
        assert desk.open(desk.chat)["messages"][1]["reasoning"] == "Two and two"
        desk.turn("Sure?", after=done["answer"])
        assert "Two and two" not in "".join(contents(server.bodies[1]))


def test_stop_is_at_once_and_keeps_what_was_said(tmp_path: Path) -> None:
    hold = Wait()
    parts = [*say("So far", finish=None, is_done=False).parts, hold]
    server, desk = scripted(tmp_path, Answer(parts), say("again"))
    with server, desk:
        number = desk.ask("Tell me")
        desk.wait("chat.delta", number)
        desk.do("chat.stop", id=number)
        assert desk.wait("chat.done", number)["reason"] == "stopped"
        wait_for(lambda: server.gone_s)  # the server is told by the closed connection
        assert not hold.event.is_set()  # and had not ended its answer
        message = desk.open(desk.chat)["messages"][1]
        assert (message["text"], message["is_partial"]) == ("So far", True)
        assert not desk.told("error")
        after = desk.turn("Go on", after=message["number"])
        assert after["reason"] == "stop"
        assert contents(server.bodies[1])[2] == "So far"


def test_a_stop_while_an_answer_begins_leaves_one_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, other, goes_on = threading.Event(), threading.Event(), threading.Event()
    change = ChatFile.change

    def slow(stored: ChatFile, make: MakeOps, *, fsync: bool = True) -> list[Op]:
        done = change(stored, make, fsync=fsync)
        if any(op["op"] == "answer" for op in done):
            if threading.current_thread().name == "lcursor-chat-turn":
                begun.set()
                goes_on.wait(30)
            else:
                other.set()
        return done

    monkeypatch.setattr(ChatFile, "change", slow)
    server, desk = scripted(tmp_path, Answer([Hang()]))
    with server, desk:
        number = desk.ask("Tell me")
        assert begun.wait(30)
        running = desk.slot._turns.find(number)
        assert running is not None
        desk.do("chat.stop", id=number)
        wait_for(lambda: running._is_finishing)  # on another thread
        other.wait(0.5)  # which has to wait, and not begin an answer of its own
        goes_on.set()
        assert desk.wait("chat.done", number)["reason"] == "stopped"
        running._thread.join(30)
        assert desk.shown() == [("user", "Tell me"), ("assistant", "")]
        ops = [json.loads(line)["op"] for line in desk.files()[0].read_bytes().splitlines()]
        assert (ops.count("answer"), ops[-1]) == (1, "end")
        running._add("text", "too late")
        assert not desk.told("chat.delta", number)


def test_stop_counts_also_before_the_server_says_anything(tmp_path: Path) -> None:
    server, desk = scripted(tmp_path, Answer([Hang()]))
    with server, desk:
        number = desk.ask("Tell me")
        wait_for(lambda: server.bodies)
        desk.do("chat.stop", id=number)
        assert desk.wait("chat.done", number)["reason"] == "stopped"
        assert desk.shown() == [("user", "Tell me"), ("assistant", "")]


def test_stop_right_behind_the_question(desk: Desk) -> None:
    number = desk.ask("Tell me")
    desk.do("chat.stop", id=number)
    assert desk.wait("chat.done", number)["reason"] == "stopped"
    assert desk.shown()[0] == ("user", "Tell me")
    assert desk.turn("Again")["reason"] == "stop"


UGLY = [
    (Answer([*say("Half", finish=None, is_done=False).parts, Abort()]), "Half", "server_garbled"),
    (
        Answer([*say("Half", finish=None, is_done=False).parts], is_whole=False),
        "Half",
        "server_garbled",
    ),
    (Answer([sse(delta(content="Half")), b"data: {broken\n\n"]), "Half", "server_garbled"),
    (
        Answer([sse(delta(content="Half"), {"error": {"message": "no slot", "code": 500}})]),
        "Half",
        "server_failed",
    ),
    (refuse(500, "out of order"), "", "server_failed"),
    (refuse(401, "Invalid API Key"), "", "server_denied"),
    (refuse(429, "slow down"), "", "server_busy"),
    (Answer([], 404, "application/json"), "", "server_garbled"),
]


@pytest.mark.parametrize(("answer", "said", "code"), UGLY)
def test_whatever_breaks_the_answer_is_reported_and_what_came_is_kept(
    tmp_path: Path, answer: Answer, said: str, code: str
) -> None:
    server, desk = scripted(tmp_path, answer, say("Whole"))
    with server, desk:
        done = desk.turn("Tell me")
        assert done["reason"] == "failed"
        error = desk.wait("error", done["id"])
        assert error["code"] == code
        assert error["hint"]
        message = desk.open(desk.chat)["messages"][1]
        assert (message["text"], message["is_partial"]) == (said, True)
        again = desk.turn("", after=message["number"])  # retried by hand
        assert (again["reason"], desk.said(again["id"])) == ("stop", "Whole")
        assert len(server.bodies) == 2  # and never by itself


def test_no_server_at_all_is_reported_and_the_question_is_kept(tmp_path: Path) -> None:
    server = ChatServer()
    config = config_of(server)
    server.close()
    with Desk(tmp_path, config) as desk:
        desk.open()
        done = desk.turn("Is anybody there?")
        assert done["reason"] == "failed"
        assert desk.wait("error", done["id"])["code"] == "server_unreachable"
        assert desk.shown() == [("user", "Is anybody there?"), ("assistant", "")]


def test_the_local_server_that_is_off_and_no_other_is_reported(tmp_path: Path) -> None:
    from lcursor.config import ChatConfig

    with Desk(tmp_path, ChatConfig(server="off")) as desk:
        desk.open()
        done = desk.turn("Is anybody there?")
        assert done["reason"] == "failed"
        error = desk.wait("error", done["id"])
        assert "chat.server" in error["hint"]
        assert desk.shown()[0] == ("user", "Is anybody there?")


def test_a_missing_key_is_reported_by_its_name(tmp_path: Path, server: ChatServer) -> None:
    from dataclasses import replace

    config = config_of(server)
    model = replace(config.models[0], key_env="LCURSOR_NO_SUCH_KEY")
    with Desk(tmp_path, replace(config, models=(model,))) as desk:
        desk.open()
        done = desk.turn("Hello")
        assert desk.wait("error", done["id"])["code"] == "key_missing"


def test_two_questions_at_once_in_one_chat_are_rejected_and_the_second_is_not_lost_silently(
    tmp_path: Path,
) -> None:
    hold = Wait()
    server, desk = scripted(tmp_path, Answer([hold, *say("Done").parts]))
    with server, desk:
        first = desk.ask("One")
        second = desk.ask("Two")
        assert desk.wait("error", second)["code"] == "chat_busy"
        hold.event.set()
        assert desk.wait("chat.done", first)["reason"] == "stop"


def test_two_chats_at_once(tmp_path: Path) -> None:
    hold = Wait()
    server, desk = scripted(tmp_path, Answer([hold, *say("Slow").parts]), say("Quick"))
    server.slots = 2
    with server, desk:
        slow, first = desk.ask("One"), desk.chat
        desk.wait("chat.started", slow)
        desk.open()
        assert desk.chat != first
        wait_for(lambda: server.bodies)
        assert desk.turn("Two")["reason"] == "stop"
        hold.event.set()
        assert desk.wait("chat.done", slow)["chat"] == first
        assert desk.said(slow) == "Slow"


def test_a_chat_says_that_it_waits_for_another(tmp_path: Path) -> None:
    hold = Wait()
    server, desk = scripted(tmp_path, Answer([hold, *say("Slow").parts]), say("Quick"))
    with server, desk:
        slow = desk.ask("One")
        desk.wait("chat.started", slow)
        wait_for(lambda: server.bodies)
        desk.open()
        second = desk.ask("Two")
        wait_for(lambda: "queue" in desk.phases(second))
        hold.event.set()
        assert desk.wait("chat.done", second)["reason"] == "stop"
        phases = [each["phase"] for each in desk.told("chat.progress", second)]
        assert phases[phases.index("queue") :] == ["queue", "reading", "writing"]
        assert desk.wait("chat.done", slow)["reason"] == "stop"


def test_an_open_chat_answers_questions_about_it_while_a_turn_runs(tmp_path: Path) -> None:
    hold = Wait()
    parts = [*say("So far", finish=None, is_done=False).parts, hold, *say("!").parts]
    server, desk = scripted(tmp_path, Answer(parts))
    with server, desk:
        number = desk.ask("Tell")
        desk.wait("chat.delta", number)
        renamed = desk.wait("chat.opened", desk.do("chat.rename", title="  My   chat "))
        assert renamed["title"] == "My chat"
        bill = desk.wait("chat.previewed", desk.do("chat.preview", **question("More?", 2)))
        assert bill["total_tokens"] > 0
        hold.event.set()
        assert desk.wait("chat.done", number)["title"] == "My chat"


def test_no_piece_of_an_answer_is_lost(tmp_path: Path) -> None:
    words = [f"w{number} " for number in range(300)]
    server, desk = scripted(tmp_path, say(*words))
    with server, desk:
        done = desk.turn("Tell me a lot")
        assert desk.said(done["id"]) == "".join(words)
        assert desk.shown()[1][1] == "".join(words)


def test_an_answer_reaches_the_disk_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lcursor.chat.turn.STORE_S", 0.05)
    hold = Wait()
    parts = [*say("On its way", finish=None, is_done=False).parts, hold]
    server, desk = scripted(tmp_path, Answer(parts))
    with server, desk:
        desk.ask("Tell me")
        wait_for(lambda: any(b"On its way" in path.read_bytes() for path in desk.files()))
        hold.event.set()


def test_progress_reports_how_long_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "PROGRESS_S", 0.0)
    rows = [{"total": 1000, "cache": 200, "processed": 600, "time_ms": 2000}]
    server, desk = scripted(tmp_path, say("x", progress=rows))
    with server, desk:
        done = desk.turn("Read")
        guess, told = [each for each in desk.told("chat.progress", done["id"]) if each["total"]]
        assert (guess["phase"], guess["done"], guess["seconds_left"]) == ("reading", 0, -1.0)
        assert (told["phase"], told["done"], told["cached"]) == ("reading", 600, 200)
        assert told["seconds_left"] == pytest.approx(2.0)


def test_a_length_that_is_reached_is_reported(tmp_path: Path) -> None:
    server, desk = scripted(tmp_path, say("and so", finish="length"), max_tokens=7)
    with server, desk:
        done = desk.turn("Tell")
        assert done["reason"] == "length"
        assert server.bodies[0]["max_tokens"] == 7
        answer = desk.open(desk.chat)["messages"][1]
        assert not answer["is_partial"]
        assert answer["why"] == "it reached the limit of its length"


def test_a_question_that_was_stopped_early_is_answered_again_with_its_context(
    desk: Desk, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.root / "b.py").write_text("one = 1\n")

    def stop(*_: object, **__: object) -> None:
        raise Cancelled("stopped")

    with monkeypatch.context() as patch:
        patch.setattr("lcursor.chat.attachments.Gatherer.gather", stop)
        first = desk.turn(
            "See @file:b.py", attachments=[attachment("selection", "a.py:1", "two = 2")]
        )
    assert first["reason"] == "stopped"
    again = desk.turn("", after=first["question"])
    assert {each["kind"] for each in again["items"]} == {"file", "selection"}
    sent = contents(server.bodies[-1])[-1]
    assert "one = 1" in sent
    assert "two = 2" in sent


def test_an_answer_is_not_doubled_if_another_request_ends_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = ModelPool.connect

    def own(pool: ModelPool, *given: Any) -> Connection:
        return replace(connect(pool, *given), server="run")  # as of our own server

    monkeypatch.setattr(ModelPool, "connect", own)
    server, desk = scripted(tmp_path, Answer([sse(delta(content="one ")), Wait()]))
    with server, desk:
        number = desk.ask("Count.")
        wait_for(lambda: desk.said(number), what="the first word")
        known = desk.slot._models.known("fake")
        assert known
        known.client.close()
        assert desk.wait("chat.done", number)["reason"] == "failed"
        assert desk.said(number) == "one "
        assert len(server.bodies) == 1
