"""The edit service with a scripted server on a real socket: one region, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lcursor.config import EditConfig
from lcursor.context.servers import ServerText
from lcursor.edit.region_edit import SAME_AGAIN
from lcursor.process.run import Cancel
from tests.fakes.chat_server import Abort, Answer, ChatServer, Hang, Wait, refuse, say
from tests.fakes.gone import gone_once
from tests.unit.edit.desk import Desk, buffer, fenced, made, part_of, reply
from tests.waiting import wait_for

TEXT = """\
import os


def area(w, h):
    # of a rectangle
    return w * h


def name():
    return "x"
"""
AREA = "def area(w, h):\n    # of a rectangle\n    return w * h"
NEW = "def area(width, height):\n    # of a rectangle\n    return width * height"


@contextmanager
def scripted(folder: Path, *answers: Answer, **more: Any) -> Iterator[tuple[ChatServer, Desk]]:
    """Give a server with a script, and a desk that asks it."""
    with ChatServer(answers) as server, Desk(folder, server, **more) as desk:
        yield server, desk


def sent(body: dict[str, Any]) -> str:
    return "\n".join(each["content"] for each in body["messages"])


def test_a_region_is_written_again_and_proposed(tmp_path: Path) -> None:
    with scripted(tmp_path, reply(fenced(NEW))) as (server, desk):
        number = desk.ask("a.py", TEXT, "Spell the names out", (4, 6))
        found = desk.proposed(number)
        (file,) = found["files"]
        assert made(TEXT, file) == TEXT.replace(AREA, NEW)
        assert (file["kind"], file["tick"], file["name"]) == ("edit", 7, "a.py")
        assert not file["is_outside"]
        assert {"parses"} <= {each["name"] for each in file["checks"]}
        assert all(each["is_ok"] for each in file["checks"])
        assert (found["title"], found["alternative"], found["attempts"]) == (
            "Spell the names out", 1, 1,
        )  # fmt: skip
        started = desk.told("edit.started", number)[0]
        assert (started["first_row"], started["last_row"], started["tick"]) == (3, 6, 7)
        written = [line for each in desk.told("edit.delta", number) for line in each["lines"]]
        assert written == NEW.split("\n")
        phases = desk.phases(number)
        assert [each for each in phases if each != "server"][:2] == ["context", "reading"]
        prompt = sent(server.bodies[0])
        assert part_of(server.bodies[0]) == AREA
        assert "Spell the names out" in prompt
        end = desk.done(number)
        assert end["attempts"] == 1
        assert end["prompt_tokens"] > end["answer_tokens"] > 0
        assert desk.busy[0] is True
        assert desk.busy[-1] is False


def test_bytes_that_are_not_utf_8_stay(tmp_path: Path) -> None:
    """In a text with such bytes, in a file whose name has one; a lost one fails a check."""
    text = TEXT.replace("# of a", "# caf\udce9 of a")
    good, bad = (NEW.replace("# of a", f"# {word} of a") for word in ("caf\ufffd", "\ufffd\ufffd"))
    with scripted(tmp_path, reply(fenced(good)), reply(fenced(bad))) as (server, desk):
        found = desk.proposed(desk.ask("caf\udce9.py", text, "Spell the names out", (4, 6)))
        assert "caf\udce9" in made(text, found["files"][0])
        assert "return width * height" in made(text, found["files"][0])
        assert all(each["is_ok"] for each in found["files"][0]["checks"])
        assert "caf\ufffd.py" in sent(server.bodies[0])
        found = desk.proposed(desk.ask("b.py", text, "Spell the names out", (4, 6)))
        (failed,) = [each for each in found["files"][0]["checks"] if not each["is_ok"]]
        assert "not UTF-8" in failed["text"]


@pytest.mark.parametrize(
    "code",
    [
        "<<<<<<< SEARCH\n# caf\ufffd\nx = 1\n=======\n# caf\ufffd\nx = 3\n>>>>>>> REPLACE",
        "# caf\ufffd\nx = 3\ny = '\ufffd'",
    ],
)
def test_a_pasted_reply_keeps_bytes_that_are_not_utf_8(tmp_path: Path, code: str) -> None:
    old = "# caf\udce9\nx = 1\ny = '\udcff'"
    with scripted(tmp_path) as (_, desk):
        path = desk.put("a.py", "")
        text = f"a.py\n```\n{code}\n```\n"
        number = desk.do(
            "edit.apply", path=str(path), text=text, file="", chat="", message=0,
            buffers=[buffer(path, old)],
        )  # fmt: skip
        (file,) = desk.proposed(number)["files"]
        assert made(old, file) == old.replace("x = 1", "x = 3")
        assert all(each["is_ok"] for each in file["checks"])


def test_a_cursor_without_a_selection_means_what_is_around_it(tmp_path: Path) -> None:
    with scripted(tmp_path, reply(fenced(NEW))) as (_, desk):
        found = desk.proposed(desk.ask("a.py", TEXT, "Spell the names out", (4, 4)))
        assert made(TEXT, found["files"][0]) == TEXT.replace(AREA, NEW)


def test_what_is_mentioned_is_in_the_prompt_and_what_the_editor_has_goes_first(
    tmp_path: Path,
) -> None:
    with scripted(tmp_path, reply(fenced(NEW))) as (server, desk):
        other = desk.put("b.py", "on_disk = 1\n")
        desk.put(".env", "TOKEN=abc\n")
        unnamed = desk.put("c.py", "nobody_asked = 1\n")
        found = desk.proposed(
            desk.ask(
                "a.py",
                TEXT,
                "Name them as @file:b.py does, and @file:.env says",
                (4, 6),
                buffers=[buffer(other, "in_buffer = 2"), buffer(unnamed, "nobody_asked = 2")],
            )
        )
        prompt = sent(server.bodies[0])
        assert "in_buffer = 2" in prompt
        assert "on_disk" not in prompt
        assert "nobody_asked" not in prompt
        assert "abc" not in prompt
        assert ".env" in found["note"]


class Texts:
    """A server `it` with one resource and one prompt."""

    def start(self) -> None: ...

    def resources(self) -> list[ServerText]:
        return []

    def prompts(self) -> list[ServerText]:
        return []

    def is_prompt(self, command: str) -> bool:
        return command.startswith("it:")

    def read(self, name: str, cancel: Cancel) -> str:
        return f"text of {name}"

    def prompt(self, command: str, words: str, cancel: Cancel) -> str:
        return f"Rename as the server says: {words}"


def test_an_instruction_uses_resources_and_prompts_of_servers(tmp_path: Path) -> None:
    with scripted(tmp_path, reply(fenced(NEW)), servers_of=lambda _: Texts()) as (server, desk):
        desk.proposed(desk.ask("a.py", TEXT, "/it:names long @mcp:it/style", (4, 6)))
        prompt = sent(server.bodies[0])
        assert "Rename as the server says: long" in prompt
        assert "text of it/style" in prompt


def test_a_file_of_secrets_is_never_sent(tmp_path: Path) -> None:
    with scripted(tmp_path) as (server, desk):
        number = desk.ask(".env", "TOKEN=abc", "Sort it", (0, 1))
        assert desk.done(number)["reason"] == "failed"
        (error,) = desk.told("error", number)
        assert error["code"] == "edit_rejected"
        assert error["hint"]
        assert not server.bodies


ENDS = [
    ("", "nothing"),
    ("I would not change anything here.", "nothing"),
    (fenced(AREA), "same"),
    (f"```python\n{NEW}", "rejected"),  # cut off
    (f"<think>\n```python\nno = 1\n```\n</think>\n{fenced(NEW)}", "proposed"),
    (fenced("def area(w, h):\n    # ... existing code ...\n    # rest of it"), "rejected"),
]


@pytest.mark.parametrize(("text", "reason"), ENDS, ids=[str(n) for n in range(len(ENDS))])
def test_each_reply_has_one_end(tmp_path: Path, text: str, reason: str) -> None:
    with scripted(tmp_path, reply(text) if text else say("\n")) as (_, desk):
        number = desk.ask("a.py", TEXT, "Spell the names out", (4, 6))
        end = desk.done(number)
        assert end["reason"] == reason, end
        assert not desk.told("error")
        if reason == "proposed":
            assert made(TEXT, desk.proposed(number)["files"][0]) == TEXT.replace(AREA, NEW)
        else:
            assert end["message"]
            assert not desk.told("edit.proposed")


UGLY = [
    (refuse(500, "out of order"), "server_failed"),
    (refuse(401, "Invalid API Key"), "server_denied"),
    (Answer([*say("```python\ndef ar", finish=None, is_done=False).parts, Abort()]),
     "server_garbled"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "code"), UGLY, ids=[code for _, code in UGLY])
def test_whatever_breaks_it_is_reported_once(tmp_path: Path, answer: Answer, code: str) -> None:
    with scripted(tmp_path, answer) as (_, desk):
        number = desk.ask("a.py", TEXT, "Spell the names out", (4, 6))
        assert desk.done(number)["reason"] == "failed"
        (error,) = desk.told("error")
        assert (error["code"], error["id"]) == (code, number)
        assert error["hint"]
        assert not desk.told("edit.proposed")


def test_no_server_is_reported(tmp_path: Path) -> None:
    server = ChatServer()
    with Desk(tmp_path, server) as desk:
        server.close()
        number = desk.ask("a.py", TEXT, "Spell the names out", (4, 6))
        assert desk.done(number)["reason"] == "failed"
        assert desk.told("error")[0]["code"] == "server_unreachable"


@pytest.mark.parametrize("words", ["", "```python\ndef ar"])
def test_a_stop_is_at_once(tmp_path: Path, words: str) -> None:
    parts = say(words, finish=None, is_done=False).parts if words else ()
    with scripted(tmp_path, Answer([*parts, Hang()])) as (server, desk):
        number = desk.ask("a.py", TEXT, "Spell the names out", (4, 6))
        wait_for(lambda: server.bodies)
        desk.do("edit.stop", id=number)  # the server would never end
        assert desk.done(number)["reason"] == "stopped"
        wait_for(lambda: server.gone_s)  # the server works no more
        assert not desk.told("error")


def test_two_edits_at_once(tmp_path: Path) -> None:
    hold, second = Wait(), threading.Event()

    def script(body: dict[str, Any]) -> Answer:
        if "First" in sent(body):
            second.set()
            return Answer([hold, *reply(fenced(NEW)).parts])
        return reply(fenced('def name():\n    return "y"'))

    with ChatServer(script) as server, Desk(tmp_path, server) as desk:
        server.slots = 2
        first = desk.ask("a.py", TEXT, "First", (4, 6))
        assert second.wait(10)
        other = desk.ask("a.py", TEXT, "Second", (9, 10))
        assert 'return "y"' in made(TEXT, desk.proposed(other)["files"][0])
        assert not desk.told("edit.done", first)
        hold.event.set()
        assert made(TEXT, desk.proposed(first)["files"][0]) == TEXT.replace(AREA, NEW)


def test_an_edit_says_that_it_waits_for_another(tmp_path: Path) -> None:
    hold = Wait()
    script = [Answer([hold, *reply(fenced(NEW)).parts])]
    with ChatServer(script) as server, Desk(tmp_path, server) as desk:
        first = desk.ask("a.py", TEXT, "First", (4, 6))
        wait_for(lambda: server.bodies)
        other = desk.ask("a.py", TEXT, "Second", (4, 6))
        wait_for(lambda: "queue" in phases(desk, other))
        hold.event.set()
        assert desk.proposed(first)["files"]
        assert desk.proposed(other)["files"]
        found = phases(desk, other)
        assert found[found.index("queue") + 1] == "reading"


def phases(desk: Desk, number: int) -> list[str]:
    return [str(each["phase"]) for each in desk.told("edit.progress", number)]


def test_alternatives_and_remarks(tmp_path: Path) -> None:
    other = NEW.replace("width", "breadth")
    third = NEW.replace("height", "depth")
    answers = [reply(fenced(each)) for each in (NEW, other, third)]
    with scripted(tmp_path, *answers) as (server, desk):
        first = desk.ask("a.py", TEXT, "Spell the names out", (4, 6))
        one = desk.proposed(first)
        again = desk.ask("a.py", TEXT, "Spell the names out", (4, 6), again=first)
        two = desk.proposed(again)
        assert (one["alternative"], two["alternative"]) == (1, 2)
        assert one["turn"] != two["turn"]
        assert server.bodies[1]["temperature"] > server.bodies[0]["temperature"]
        last = desk.ask(
            "a.py", TEXT, "Spell the names out", (4, 6), again=again, remark="Say depth"
        )
        assert desk.proposed(last)["alternative"] == 3
        prompt = sent(server.bodies[2])
        assert "Say depth" in prompt
        assert "def area(breadth, height)" in prompt  # what the remark is about
        assert server.bodies[2]["temperature"] == server.bodies[0]["temperature"]


def test_an_edit_that_does_half_of_its_instruction_says_so(tmp_path: Path) -> None:
    new = AREA.replace("    # of", '    """Return it."""\n    # of')
    with scripted(tmp_path, reply(fenced(new))) as (server, desk):
        number = desk.ask("a.py", TEXT, "add a docstring and accept negative sides", (4, 6))
        (file,) = desk.proposed(number)["files"]
        (remark,) = [each["text"] for each in file["checks"] if each["text"]]
        assert remark == "only comments have changed"
        assert len(server.bodies) == 1  # this costs no attempt


def test_an_alternative_that_repeats_an_earlier_one_is_not_proposed(tmp_path: Path) -> None:
    other = NEW.replace("width", "breadth")
    answers = [reply(fenced(each)) for each in (NEW, NEW, other, other, NEW, NEW)]
    with scripted(tmp_path, *answers) as (server, desk):
        where = ("a.py", TEXT, "Spell the names out", (4, 6))
        first = desk.ask(*where)
        assert desk.proposed(first)["alternative"] == 1
        again = desk.ask(*where, again=first)
        assert desk.proposed(again)["alternative"] == 2  # at the second attempt
        assert server.bodies[2]["temperature"] > server.bodies[1]["temperature"]
        assert "to be done in another way" in sent(server.bodies[2])
        end = desk.done(desk.ask(*where, again=again))
        assert (end["reason"], end["message"]) == ("same", SAME_AGAIN)
        end = desk.done(desk.ask(*where, again=again, remark="Say it otherwise"))
        assert (end["reason"], end["message"]) == ("same", SAME_AGAIN)


def test_a_candidate_that_does_not_parse_is_tried_again_with_the_error(tmp_path: Path) -> None:
    answers = [reply(fenced("def area(width, height:\n    return (")), reply(fenced(NEW))]
    with scripted(tmp_path, *answers, edit=EditConfig(retries=1)) as (server, desk):
        found = desk.proposed(desk.ask("a.py", TEXT, "Spell the names out", (4, 6)))
        assert found["attempts"] == 2
        assert made(TEXT, found["files"][0]) == TEXT.replace(AREA, NEW)
        assert "parse" in sent(server.bodies[1])


def test_an_empty_buffer_is_filled(tmp_path: Path) -> None:
    with scripted(tmp_path, reply(fenced("print('hello')"))) as (_, desk):
        found = desk.proposed(desk.ask("new.py", "", "Say hello", (0, 0)))
        assert made("", found["files"][0]).strip() == "print('hello')"


def test_an_edit_that_nobody_knows_is_not_stopped(tmp_path: Path) -> None:
    with scripted(tmp_path, reply(fenced(NEW))) as (_, desk):
        desk.do("edit.stop", id=99)
        desk.do("edit.choose", id=98, choice=0)
        assert desk.proposed(desk.ask("a.py", TEXT, "Spell the names out", (4, 6)))


def test_a_server_of_ours_that_went_before_it_was_asked_is_reached_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = gone_once(monkeypatch)
    with scripted(tmp_path, reply(fenced(NEW))) as (_, desk):
        number = desk.ask("a.py", TEXT, "Spell the names out", (4, 6))
        assert made(TEXT, desk.proposed(number)["files"][0]) == TEXT.replace(AREA, NEW)
    assert names == ["fake", "fake"]


def test_known_changes_are_proposed_where_their_lines_are_still_there(tmp_path: Path) -> None:
    with scripted(tmp_path) as (_, desk):
        other = desk.put("b.py", "from a import area\n\nprint(area(1, 2))\n")

        def change(row: int, old: str, new: str) -> dict[str, Any]:
            return {"first_row": row, "last_row": row + 1, "old": [old], "new": [new]}

        changes = [
            change(2, "print(area(1, 2))", "print(size(1, 2))"),
            change(0, "from a import area", "from a import size"),
            change(1, "gone", "size"),
        ]
        number = desk.do(
            "edit.propose",
            path=str(desk.root / "a.py"),
            title="`area` became `size`",
            files=[
                {"path": str(other), "changes": changes},
                {"path": str(desk.root / "a.py"), "changes": [change(5, "old", "new")]},
            ],
            buffers=[buffer(desk.root / "a.py", TEXT)],
        )
        (file,) = desk.proposed(number)["files"]
        assert file["path"] == str(other)
        text = other.read_text().removesuffix("\n")
        assert made(text, file) == text.replace("area", "size")
        assert desk.done(number)["reason"] == "proposed"
