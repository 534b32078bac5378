"""Chats across restarts, kills, full disks and several editors."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lcursor.chat.chat_file import ChatFile
from lcursor.chat.views import markdown
from tests.fakes.chat_server import Answer, ChatServer, Hang, Wait, refuse, say
from tests.fakes.disk import full_disk
from tests.fakes.gone import gone_once
from tests.fakes.heard import config_of
from tests.unit.chat.desk import Desk, attachment, question
from tests.unit.chat.test_service import contents
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[3]


def test_a_chat_goes_on_after_a_restart_as_if_there_was_none(
    tmp_path: Path, server: ChatServer
) -> None:
    with Desk(tmp_path, config_of(server)) as desk:
        desk.open()
        first = desk.turn("One", attachments=[attachment("text", "a", "x = 1\n" * 300)])
        shown = desk.open(desk.chat)
    with Desk(tmp_path, config_of(server)) as desk:
        again = desk.open("last")
        assert {**again, "id": 0, "context_tokens": 0} == {**shown, "id": 0, "context_tokens": 0}
        assert again["used_tokens"] == first["prompt_tokens"] + first["answer_tokens"]
        second = desk.turn("Two", after=first["answer"])
    assert second["cached_tokens"] >= 0.95 * second["prompt_tokens"]
    assert contents(server.bodies[1])[:2] == contents(server.bodies[0])


def test_an_earlier_question_keeps_what_was_attached_to_it_after_a_restart(
    tmp_path: Path, server: ChatServer
) -> None:
    note, key = attachment("text", "note", "x = 1\n" * 9), "-----BEGIN PRIVATE KEY-----\nabc\n"
    chosen = attachment("selection", "a.py:1-1", "chosen", is_offered=True)
    spare = attachment("buffer", "b.py", "spare", is_offered=True)
    secret = attachment("text", "key", key)
    with Desk(tmp_path, config_of(server)) as desk:
        desk.open()
        first = desk.turn("What is @selection?", attachments=[note, chosen, spare, secret])
    assert "abc" not in desk.files()[0].read_text()
    with Desk(tmp_path, config_of(server)) as desk:
        desk.open("last")
        number = desk.do("chat.preview", **question("And @selection?", again=first["question"]))
        billed = desk.wait("chat.previewed", number)["items"]
        again = desk.turn("And @selection?", again=first["question"])
        plain = desk.turn("Plain")
    names = ["note", "a.py:1-1"]
    assert [each["name"] for each in billed if each["kind"] in {"text", "selection"}] == names
    assert [each["name"] for each in again["items"]] == names
    assert "chosen" in contents(server.bodies[1])[-1]
    assert "spare" not in contents(server.bodies[1])[-1]
    assert plain["items"] == []
    with Desk(tmp_path, config_of(server)) as desk:  # and so it goes on
        desk.open("last")
        once_more = desk.turn("What now?", again=again["question"], attachments=[note])
    assert [each["name"] for each in once_more["items"]] == ["note"]


def test_an_answer_that_the_user_changed_is_read_so(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, config_of(server)) as desk:
        desk.open()
        first = desk.turn("One")
        desk.turn("Two", after=first["answer"])
        number = desk.do("chat.amend", number=first["answer"], text="I say three")
        shown = desk.wait("chat.opened", number)["messages"]
        assert [each["text"] for each in shown] == ["One", "I say three"]
        assert (shown[1]["branch"], shown[1]["branches"]) == (2, 2)
        assert not shown[1]["is_partial"]
        desk.turn("And?", after=shown[1]["number"])
        assert contents(server.bodies[-1])[-2:] == ["I say three", "And?"]
        back = desk.do("chat.branch", number=shown[1]["number"], step=-1)
        assert len(desk.wait("chat.opened", back)["messages"]) == 4  # nothing is lost
        wrong = desk.do("chat.amend", number=first["question"], text="x")
        assert desk.wait("error", wrong)["code"] == "chat_missing"


def test_without_a_chat_the_last_one_is_a_new_one(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, config_of(server)) as desk:
        assert desk.open("last")["messages"] == []
        desk.slot.list({"id": 77, "path": str(desk.root)})
        assert desk.wait("chat.listed", 77)["chats"] == []  # nothing was said in it


def test_two_editors_have_one_chat(tmp_path: Path) -> None:
    hold = Wait()
    with ChatServer([Answer([hold, *say("First").parts]), say("Second")]) as server:
        config = config_of(server)
        with Desk(tmp_path, config) as one, Desk(tmp_path, config) as other:
            one.open()
            running = one.ask("From one")
            one.wait("chat.started", running)
            assert other.open(one.chat)["messages"][1]["why"] == ""  # it is being written
            refused = other.ask("From the other", after=1)
            assert other.wait("error", refused)["code"] == "chat_busy"
            hold.event.set()
            done = one.wait("chat.done", running)
            assert done["reason"] == "stop"
            assert other.turn("From the other", after=2)["answer"] == 4
            texts = [text for _, text in one.shown()]
            assert texts == ["From one", "First", "From the other", "Second"]


KILLED = """
    import sys, threading
    from pathlib import Path
    from tests.fakes.chat_server import Answer, ChatServer, Hang, say
    from tests.fakes.heard import config_of
    from tests.unit.chat.desk import Desk
    parts = [*say("Said ", "before", finish=None, is_done=False).parts, Hang()]
    with ChatServer([Answer(parts)]) as server, Desk(Path(sys.argv[1]), config_of(server)) as desk:
        desk.open()
        number = desk.ask("Asked before the kill")
        desk.wait("chat.delta", number)
        print(desk.chat, flush=True)
        threading.Event().wait()
"""


@pytest.mark.process
def test_a_kill_in_the_middle_of_an_answer_loses_next_to_nothing(
    tmp_path: Path, server: ChatServer
) -> None:
    script = "\n".join(line[4:] for line in KILLED.splitlines())
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    key = process.stdout.readline().strip()
    wait_for(
        lambda: any(b"Said before" in path.read_bytes() for path in tmp_path.glob("chats/*/*")),
        what="the answer on the disk while it is written",
    )
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    process.stdout.close()
    with Desk(tmp_path, config_of(server)) as desk:
        messages = desk.open(key)["messages"]
        assert [each["text"] for each in messages] == [
            "Asked before the kill",
            "Said before",
        ]
        assert messages[1]["is_partial"]
        assert messages[1]["why"] == "Neovim or its Python host ended while it was written"
        again = desk.turn("", after=2)  # the dead one does not hold the chat
        assert (again["reason"], again["question"]) == ("stop", 1)


def test_leaving_in_the_middle_of_an_answer_keeps_all_of_it(
    tmp_path: Path, server: ChatServer
) -> None:
    parts = [*say("Said before", finish=None, is_done=False).parts, Hang()]
    with ChatServer([Answer(parts)]) as slow, Desk(tmp_path, config_of(slow)) as desk:
        desk.open()
        desk.wait("chat.delta", desk.ask("Tell me"))
    with Desk(tmp_path, config_of(server)) as desk:
        messages = desk.open("last")["messages"]
        assert messages[1]["text"] == "Said before"
        assert messages[1]["is_partial"]
        assert messages[1]["why"] == "Neovim or its Python host ended while it was written"
        key = desk.chat
    bad = ChatServer([refuse(500, "oops"), Answer([Hang()])])
    with bad, Desk(tmp_path, config_of(bad)) as desk:
        desk.chat = key
        failed = desk.turn("And now?", after=2)
        stopped = desk.ask("And then?", after=failed["answer"])
        desk.wait("chat.started", stopped)
        desk.do("chat.stop", id=stopped)
        desk.wait("chat.done", stopped)
        whys = [each["why"] for each in desk.open(key)["messages"][3::2]]
        assert "oops" in whys[0]
        assert whys[1] == ""  # the user knows


def test_a_full_disk_stops_no_turn(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, config_of(server)) as desk:
        desk.open()
        first = desk.turn("One")
        with full_disk(desk.files()[0].stat().st_size + 20):
            second = desk.turn("Two", after=first["answer"])
            assert second["reason"] == "stop"
            assert desk.told("error")[0]["code"] == "chat_unsaved"
            third = desk.turn("Three", after=second["answer"])
            assert [text for role, text in desk.shown() if role == "user"] == [
                "One",
                "Two",
                "Three",
            ]
        desk.turn("Four", after=third["answer"])
        assert len(desk.told("error")) == 1
    with Desk(tmp_path, config_of(server)) as desk:
        desk.open("last")
        asked = [text for role, text in desk.shown() if role == "user"]
        assert asked == ["One", "Two", "Three", "Four"]


def test_a_damaged_chat_is_shown_with_a_word_about_it(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, config_of(server)) as desk:
        desk.open()
        desk.turn("One")
        (path,) = desk.files()
    path.write_bytes(path.read_bytes()[:-9])
    with Desk(tmp_path, config_of(server)) as desk:
        assert len(desk.open("last")["messages"]) == 2
        assert desk.wait("error", 0)["code"] == "chat_damaged"
        assert "1 damaged line" in desk.told("error")[0]["message"]


def test_a_chat_is_deleted_with_what_a_server_kept_of_it(
    tmp_path: Path, server: ChatServer
) -> None:
    with Desk(tmp_path, config_of(server), idle_s=0.01) as desk:
        desk.open()
        kept, other = desk.chat, desk.turn("Keep this")
        desk.open()
        desk.turn("Delete this")
        listed = desk.wait("chat.listed", desk.do("chat.delete"))
        assert [each["chat"] for each in listed["chats"]] == [kept]
        assert [path.stem for path in desk.files()] == [kept]
        gone = desk.do("chat.open", path=str(desk.root))
        assert desk.wait("error", gone)["code"] == "chat_missing"
        assert other["chat"] == kept


def test_a_chat_is_deleted_while_it_is_answered(tmp_path: Path) -> None:
    with ChatServer([Answer([Hang()])]) as slow, Desk(tmp_path, config_of(slow)) as desk:
        desk.open()
        number = desk.ask("Tell me")
        desk.wait("chat.started", number)
        desk.wait("chat.listed", desk.do("chat.delete"))
        assert desk.wait("chat.done", number)["reason"] == "stopped"
        assert desk.files() == []


def test_chats_are_listed_with_their_beginning(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, config_of(server)) as desk:
        desk.open()
        desk.turn("Why does\nit hang?")
        desk.wait("chat.opened", desk.do("chat.rename", title="Clock"))
        for path in (str(desk.root), ""):
            (row,) = desk.wait("chat.listed", desk.do("chat.list", path=path))["chats"]
            assert (row["title"], row["preview"], row["messages"]) == (
                "Clock", "Why does it hang?", 2,
            )  # fmt: skip
            assert row["root"] == str(desk.root)
            assert abs(row["updated_s"] - time.time()) < 60


def test_another_model_answers_from_then_on(tmp_path: Path, server: ChatServer) -> None:
    with ChatServer() as second, Desk(tmp_path, config_of(server, second)) as desk:
        assert desk.open()["models"] == ["fake", "fake2"]
        first = desk.turn("One")
        assert desk.wait("chat.opened", desk.do("chat.use", model="fake2"))["model"] == "fake2"
        desk.turn("Two", after=first["answer"])
        assert (len(server.bodies), len(second.bodies)) == (1, 1)
        assert contents(second.bodies[0])[1] == "One"  # it is told all that was said
        error = desk.wait("error", desk.do("chat.use", model="fkae2"))
        assert error["code"] == "model_unknown"
        assert error["message"] == "there is no model called 'fkae2'"
        assert error["hint"] == "Did you mean fake2 or fake?"
        assert desk.open(desk.chat)["model"] == "fake2"


def test_a_preview_has_the_servers_own_count(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, config_of(server)) as desk:
        (desk.root / "a.py").write_text("x = 1\n" * 50)
        desk.open()
        first = desk.turn("One")
        bill = desk.wait(
            "chat.previewed", desk.do("chat.preview", **question("Two @file:a.py", first["answer"]))
        )
        assert [each["kind"] for each in bill["items"]] == ["system", "history", "file", "question"]
        assert all(each["is_exact"] for each in bill["items"])
        second = desk.turn("Two @file:a.py", after=first["answer"])
        assert bill["total_tokens"] == second["prompt_tokens"]
        assert bill["limit_tokens"] == 3584
        assert second["items"][0]["is_exact"]  # counted for the bill, so known
        assert second["items"][0]["tokens"] == bill["items"][2]["tokens"]


@pytest.mark.parametrize("is_local", [True, False])
def test_the_sources_say_what_a_remote_model_does_not_get(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch, is_local: bool
) -> None:
    monkeypatch.setattr("lcursor.http.endpoint.is_local", lambda _: is_local)
    token = "glpat-" + "abcdefghijklmnopqrst"
    with Desk(tmp_path, config_of(server)) as desk:
        (desk.root / "a.py").write_text(f"A = '{token}'\nB = '{token}'\n")
        desk.open()
        asked = question(f"Is {token} right? @file:a.py")
        bill = desk.wait("chat.previewed", desk.do("chat.preview", **asked))
        done = desk.turn(asked["text"])
        notes = [each["note"] for each in (*bill["items"], *done["items"])]
        two, one = "2 secrets removed before it is sent", "1 secret removed before it is sent"
        assert [note for note in notes if "secret" in note] == ([] if is_local else [two, one, two])
        assert (token in str(server.bodies)) is is_local
        assert desk.shown()[0][1] == asked["text"]


def test_a_dropped_line_of_the_preview_is_not_sent(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, config_of(server)) as desk:
        (desk.root / "a.py").write_text("x = 1\n")
        desk.open()
        bill = desk.wait("chat.previewed", desk.do("chat.preview", **question("Two @file:a.py")))
        key = next(each["key"] for each in bill["items"] if each["kind"] == "file")
        done = desk.turn("Two @file:a.py", dropped=[key])
        assert done["items"][0]["is_left_out"]
        assert "x = 1" not in contents(server.bodies[0])[-1]


def test_a_command_is_written_out_for_the_model_alone(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, config_of(server)) as desk:
        desk.open()
        chosen = attachment("selection", "a.py:1-1", "x = 1\n")
        desk.turn("/explain", attachments=[chosen])
        assert "Explain the selection." in contents(server.bodies[0])[-1]
        assert "x = 1" in contents(server.bodies[0])[-1]
        assert desk.shown()[0] == ("user", "/explain")
        file = attachment("buffer", "a.py", "x = 1\n", is_offered=True)
        desk.turn("/explain in short", after=2, attachments=[file])
        assert "Explain a.py." in contents(server.bodies[1])[-1]
        assert "@selection" not in contents(server.bodies[1])[-1]
        done = desk.turn("/nonsense at all", after=4)
        assert "no command /nonsense" in done["items"][0]["note"]


def test_completions(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, config_of(server)) as desk:
        for word, first in (("@fi", "@file:"), ("/expl", "/explain")):
            number = desk.do("chat.complete", path=str(desk.root), word=word)
            assert desk.wait("chat.completed", number)["words"][0]["word"] == first


def test_the_local_server_is_asked(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, config_of(server)) as desk:
        told = desk.wait("server.status", desk.do("server.ask", do="status"))
        assert told["state"] in {"none", "foreign"}
        assert told["lines"]
        assert desk.wait("server.status", desk.do("server.ask", do="stop"))["pid"] == 0
        failed = desk.do("server.ask", do="start")
        assert desk.wait("error", failed)["code"] == "server_missing"


def test_the_busy_one_is_reported_once_for_turns_that_overlap(tmp_path: Path) -> None:
    hold, told = Wait(), list[bool]()
    with ChatServer([Answer([hold, *say("x").parts])]) as server:
        with Desk(tmp_path, config_of(server), on_busy=told.append) as desk:
            desk.open()
            one = desk.ask("One")
            desk.wait("chat.started", one)
            desk.open()
            two = desk.ask("Two")
            desk.wait("chat.started", two)
            hold.event.set()
            desk.wait("chat.done", one)
            desk.wait("chat.done", two)
        assert told == [True, False]


def test_a_chat_as_a_document(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, config_of(server)) as desk:
        (desk.root / "a.py").write_text("x = 1\n")
        desk.open()
        desk.turn("What is @file:a.py?")
        chat = ChatFile.open(desk.files()[0]).chat
    text = markdown(chat)
    assert text.startswith(
        "# What is @file:a.py?\n\n## You\n\nWhat is @file:a.py?\n\nAttached: a.py"
    )
    assert "## fake\n\nYou said: a.py" in text


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, config_of(server)) as desk:
        desk.open()
        extra: list[dict[str, Any]] = [attachment("text", "odd\udcff", "a\udcffb")]
        done = desk.turn("odd \udcff text", attachments=extra)
        assert done["reason"] == "stop", desk.told("error")
        assert "a\ufffdb" in contents(server.bodies[0])[-1]
        assert desk.shown()[0] == ("user", "odd \ufffd text")


def test_a_key_is_asked_for_once_and_written_nowhere(tmp_path: Path) -> None:
    with ChatServer([say("one"), say("two")], key="s3cr3t-key") as server:
        config = config_of(server)
        command = f"sh -c 'echo asked >> {tmp_path}/asked; echo s3cr3t-key'"
        model = replace(config.models[0], key_command=command)
        with Desk(tmp_path, replace(config, models=(model,))) as desk:
            desk.open()
            first = desk.turn("One")
            second = desk.turn("Two", after=first["answer"])
            assert second["reason"] == "stop", desk.told("error")
            assert (tmp_path / "asked").read_text() == "asked\n"
            assert "s3cr3t" not in str(desk.sent)
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"s3cr3t" not in path.read_bytes()


def test_a_key_that_is_denied_is_asked_for_again(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("first")
    with ChatServer([say("one"), say("three")], kind="openai", key="first") as server:
        config = config_of(server)
        model = replace(config.models[0], key_command=f"cat {key}", model="fake-chat")
        with Desk(tmp_path, replace(config, models=(model,))) as desk:
            desk.open()
            one = desk.turn("One")
            server.key = "second"
            key.write_text("second")
            two = desk.turn("Two", after=one["answer"])
            assert "key_command" in desk.wait("error", two["id"])["hint"]
            three = desk.turn("Three", after=two["answer"])
            assert three["reason"] == "stop", desk.told("error")


def test_a_server_that_was_replaced_is_found_at_the_next_question(tmp_path: Path) -> None:
    with ChatServer() as first, Desk(tmp_path, config_of(first)) as desk:
        desk.open()
        one = desk.turn("One")
        first.close()
        two = desk.turn("Two", after=one["answer"])
        assert two["reason"] == "failed"
        with ChatServer(port=first.port) as second:
            three = desk.turn("", after=two["question"])
            assert three["reason"] == "stop", desk.told("error")
            assert contents(second.bodies[0])[-1] == "Two"


def test_a_server_of_ours_that_went_before_the_question_is_reached_once_more(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = gone_once(monkeypatch)
    with Desk(tmp_path, config_of(server)) as desk:
        desk.open()
        done = desk.turn("One")
        assert (done["reason"], desk.said(done["id"])) == ("stop", "You said: One")
        assert len(desk.told("chat.started")) == 1
        assert desk.told("error") == []
        assert desk.shown() == [("user", "One"), ("assistant", "You said: One")]
    assert names == ["fake", "fake"]


@pytest.mark.parametrize(("is_ours", "times"), [(False, 1), (True, 2)])
def test_another_server_or_one_that_goes_again_is_reported(
    tmp_path: Path,
    server: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    is_ours: bool,
    times: int,
) -> None:
    names = gone_once(monkeypatch, is_ours=is_ours, times=times)
    with Desk(tmp_path, config_of(server)) as desk:
        desk.open()
        assert desk.turn("One")["reason"] == "failed"
        assert desk.told("error")[0]["code"] == "server_unreachable"
    assert len(names) == times
