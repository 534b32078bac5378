"""Saved states: when they are written, when they are read back, when they go."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lcursor.chat.conversation import Conversation
from lcursor.chat.kv_states import branch_of, names_of, server_of
from lcursor.llm import slots
from lcursor.llm.connection import Connection
from lcursor.llm.records import Served
from lcursor.llm.slot_states import IDLE_S, SlotStates, file_name
from tests.unit.chat.test_summary import chat_of

CLOSE_S = 30.0


class Client:
    """Stands where a server's client stands; its server keeps states as files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.said = folder, list[tuple[str, str]]()
        self.works = True

    def save_slot(self, filename: str) -> bool:
        self.said.append(("save", filename))
        (self.folder / filename).write_text("state" if self.works else "half of a sta")
        return self.works

    def restore_slot(self, filename: str) -> bool:
        self.said.append(("restore", filename))
        return self.works and (self.folder / filename).exists()


class Later(threading.Timer):
    """A timer whose time passes when the test says so."""

    def start(self) -> None:
        """Wait for `pass_`."""

    def pass_(self) -> None:
        if not self.finished.is_set():
            self.function(*self.args)


class Desk:
    """A server's folder of states."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client = Client(folder)
        self.timers: list[Later] = []
        self.warmth = self.made()

    def made(self, is_asleep: bool = False, awake_s: float = 0.0) -> SlotStates:
        def later(wait_s: float, work: Callable[[], None]) -> Later:
            assert wait_s == IDLE_S
            self.timers.append(Later(wait_s, work))
            return self.timers[-1]

        return SlotStates(
            lambda name: self.folder / name, IDLE_S, lambda _: is_asleep, awake_s, later
        )

    def idle(self) -> list[str]:
        """Have nothing happen for long enough; return the files that are there then."""
        for timer in self.timers:
            timer.pass_()
        self.timers.clear()
        return self.files()

    def connection(self, server: str, can_save_slots: bool = True) -> Connection:
        served = Served("llama.cpp", "m", 4096, can_save_slots=can_save_slots)
        return Connection("m", self.client, served, server)  # type: ignore[arg-type]

    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("*.kv"))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def schedule(
    states: SlotStates, connection: Connection, chat: Conversation, last: int, read: int
) -> None:
    states.schedule_save(connection, names_of(chat, last, "m")[0], read)


def restore(states: SlotStates, connection: Connection, chat: Conversation, last: int) -> bool:
    return states.restore(connection, names_of(chat, last, "m"), server_of(chat, last))


def written_by(server: str, key: str = "k") -> Conversation:
    """Return a chat of two turns that a server answered."""
    chat = chat_of(9, 9)
    chat.key = key
    for number in (2, 4):
        chat.apply({"op": "end", "number": number, "reason": "stop", "server": server})
    return chat


def test_a_state_is_saved_when_nothing_happens_and_brought_to_another_run(desk: Desk) -> None:
    chat = written_by("run 1")
    schedule(desk.warmth, desk.connection("run 1"), chat, 4, 600)
    assert desk.files() == []
    assert desk.idle() == [file_name("k", 0, "m")]
    assert not restore(desk.warmth, desk.connection("run 1"), chat, 4)  # it still has it
    assert restore(desk.warmth, desk.connection("run 2"), chat, 4)
    assert [do for do, _ in desk.client.said] == ["save", "restore"]


def test_a_turn_in_between_puts_the_saving_off(desk: Desk) -> None:
    schedule(desk.warmth, desk.connection("run 1"), written_by("run 1"), 4, 600)
    desk.warmth.cancel_save()
    schedule(desk.warmth, desk.connection("run 1"), written_by("run 1", "other"), 4, 600)
    assert desk.idle() == [file_name("other", 0, "m")]


@pytest.mark.parametrize(("is_asleep", "awake_s", "is_brought"), [
    (False, 0.0, False), (True, 0.0, True), (True, 60.0, False),
])  # fmt: skip
def test_a_state_is_brought_to_a_server_that_slept(
    desk: Desk, is_asleep: bool, awake_s: float, is_brought: bool
) -> None:
    desk.warmth = desk.made(is_asleep, awake_s)
    chat, connection = written_by("run 1"), desk.connection("run 1")
    schedule(desk.warmth, connection, chat, 4, 600)
    desk.idle()
    assert restore(desk.warmth, connection, chat, 4) is is_brought


def test_little_that_is_new_is_not_worth_a_file(desk: Desk) -> None:
    chat, connection = written_by("run 1"), desk.connection("run 1")
    for read in (600, 900, 1200):
        schedule(desk.warmth, connection, chat, 4, read)
        desk.idle()
    assert len(desk.client.said) == 2


def test_a_state_that_was_saved_is_not_saved_again_at_the_end(desk: Desk) -> None:
    schedule(desk.warmth, desk.connection("run 1"), written_by("run 1"), 4, 600)
    desk.idle()
    desk.warmth.close(CLOSE_S)
    desk.idle()
    assert len(desk.client.said) == 1


def test_leaving_saves_what_would_be_saved_later(desk: Desk) -> None:
    schedule(desk.warmth, desk.connection("run 1"), written_by("run 1"), 4, 600)
    desk.warmth.close(CLOSE_S)
    assert desk.files() == [file_name("k", 0, "m")]


def test_a_server_that_keeps_nothing_is_asked_for_nothing(desk: Desk) -> None:
    chat = written_by("run 1")
    connection = desk.connection("run 2", can_save_slots=False)
    schedule(desk.warmth, connection, chat, 4, 600)
    assert not restore(desk.warmth, connection, chat, 4)
    assert not desk.client.said


def test_without_a_file_or_without_an_answer_nothing_is_brought(desk: Desk) -> None:
    assert not restore(desk.warmth, desk.connection("run 2"), written_by("run 1"), 4)
    assert not restore(desk.warmth, desk.connection("run 2"), chat_of(9), 2)
    assert not desk.client.said


def test_states_go_with_their_chat(desk: Desk) -> None:
    for key in ("k", "other"):
        schedule(desk.warmth, desk.connection("run 1"), written_by("run 1", key), 4, 600)
        desk.idle()
    assert len(desk.files()) == 2
    desk.warmth.erase("k")
    assert desk.files() == [file_name("other", 0, "m")]


def test_a_name_says_nothing_about_the_chat_and_differs_by_branch_and_model() -> None:
    names = {file_name(key, at, m) for key in ("k", "l") for at in (0, 3) for m in ("m", "n")}
    assert len(names) == 8
    assert len(file_name("secret-title", 0, "m")) < 60
    assert "secret" not in file_name("secret-title", 0, "m")


def test_a_branch_is_named_by_where_it_begins() -> None:
    chat = chat_of(9, 9)
    assert branch_of(chat, 4) == 0
    chat.apply({"op": "say", "number": 5, "parent": 2, "text": "instead"})
    assert branch_of(chat, 5) == 5
    assert branch_of(chat, 4) == 3
    assert branch_of(chat, 2) == 0


def test_a_state_has_its_name_when_it_is_whole(desk: Desk) -> None:
    name = file_name("k", 0, "m")
    (desk.folder / slots.part(name)).write_text("half of a sta")  # its server was ended
    assert not restore(desk.warmth, desk.connection("run 2"), written_by("run 1"), 4)
    assert desk.client.said == []
    schedule(desk.warmth, desk.connection("run 2"), written_by("run 2"), 4, 600)
    assert desk.idle() == [name]
    assert desk.client.said == [("save", slots.part(name))]
    assert [path.read_text() for path in desk.folder.iterdir()] == ["state"]


def test_a_state_that_could_not_be_written_leaves_the_one_before(desk: Desk) -> None:
    chat, connection = written_by("run 1"), desk.connection("run 1")
    schedule(desk.warmth, connection, chat, 4, 600)
    desk.warmth.close(CLOSE_S)
    (name,) = desk.files()
    desk.client.works = False
    schedule(desk.warmth, connection, chat, 4, 1800)
    desk.warmth.close(CLOSE_S)
    assert [path.name for path in desk.folder.iterdir()] == [name]
    assert (desk.folder / name).read_text() == "state"


def test_a_state_that_a_server_cannot_read_is_tried_once(desk: Desk) -> None:
    chat = written_by("run 1")
    schedule(desk.warmth, desk.connection("run 1"), chat, 4, 600)
    desk.warmth.close(CLOSE_S)
    assert len(desk.files()) == 1
    desk.client.works = False
    assert not restore(desk.warmth, desk.connection("run 2"), chat, 4)
    assert desk.files() == []
    desk.client.works = True
    schedule(desk.warmth, desk.connection("run 2"), chat, 4, 600)
    desk.warmth.close(CLOSE_S)
    assert len(desk.files()) == 1


def test_on_a_full_disk_nothing_is_saved(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lcursor.llm.slot_states.MIN_FREE_BYTES", 1 << 62)
    schedule(desk.warmth, desk.connection("run 1"), written_by("run 1"), 4, 600)
    desk.warmth.close(CLOSE_S)
    assert not desk.client.said
