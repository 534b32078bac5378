"""Chats on disk: several writers, kills, full disks, damage."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from lcursor.chat import archive
from lcursor.chat.archive import Archive
from lcursor.chat.chat_file import ChatFile
from lcursor.chat.conversation import Conversation, Op
from lcursor.errors import ChatBusy, ChatFailed, ChatMissing, ChatUnsaved, LcursorError
from lcursor.storage import stored
from lcursor.storage.log_file import LogFile
from tests.fakes.disk import full_disk

ROOT = "/home/me/project"
KIND = {"kind": "file", "name": "a.py"}


def say(chat: Conversation, text: str = "") -> list[Op]:
    number = chat.next_number
    return [
        {"op": "say", "number": number, "parent": chat.last, "text": text or f"question {number}"}
    ]


class Desk:
    """An archive in a folder, and what was complained about."""

    def __init__(self, folder: Path) -> None:
        self.archive = Archive(folder)
        self.errors: list[LcursorError] = []

    def new(self, root: str = ROOT) -> ChatFile:
        key = archive.new_key()
        chat = Conversation(key=key, root=root)
        return ChatFile(self.archive.path(key, root), chat, self.errors.append)

    def open(self, key: str) -> ChatFile:
        return ChatFile.open(self.archive.find(key), self.errors.append)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "data" / "chats")


def texts(chat: Conversation) -> list[str]:
    return [each.text for each in chat.branch()]


def test_a_chat_is_there_again(desk: Desk) -> None:
    chat = desk.new()
    assert not chat.path.exists()  # nothing was said yet
    chat.change(say)
    chat.change(lambda it: [{"op": "answer", "number": 2, "parent": 1}])
    chat.change(lambda it: [{"op": "more", "number": 2, "text": "é\ud800\n"}], fsync=False)
    again = desk.open(chat.chat.key)
    assert again.chat == chat.chat
    assert again.chat.root == ROOT
    assert not again.note


def test_only_the_user_can_read_it(desk: Desk) -> None:
    chat = desk.new()
    chat.change(say)
    chat.lock_turn()
    assert stat.S_IMODE(chat.path.stat().st_mode) == 0o600
    for folder in (chat.path.parent, desk.archive.folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    chat.unlock_turn()
    assert os.listdir(chat.path.parent) == [chat.path.name]


def test_two_editors_have_the_same_chat(desk: Desk) -> None:
    one = desk.new()
    one.change(lambda it: say(it, "from one"))
    other = desk.open(one.chat.key)
    other.change(lambda it: say(it, "from the other"))
    one.change(lambda it: say(it, "one again"))
    other.refresh()
    assert texts(one.chat) == texts(other.chat) == ["from one", "from the other", "one again"]


def test_many_writers_lose_nothing(desk: Desk) -> None:
    first = desk.new()
    first.change(say)
    chats = [desk.open(first.chat.key) for _ in range(4)]

    def write(chat: ChatFile, name: int) -> None:
        for number in range(20):
            text = f"{name}.{number}"
            chat.change(partial(say, text=text), fsync=False)

    threads = [threading.Thread(target=write, args=(chat, name)) for name, chat in enumerate(chats)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    found = texts(desk.open(first.chat.key).chat)
    assert sorted(found[1:]) == sorted(f"{name}.{n}" for name in range(4) for n in range(20))


def test_one_answer_at_a_time_also_with_two_editors(desk: Desk) -> None:
    one = desk.new()
    one.change(say)
    other = desk.open(one.chat.key)
    one.lock_turn()
    with pytest.raises(ChatBusy, match="another Neovim"):
        other.lock_turn()
    with pytest.raises(ChatBusy, match="in this chat"):
        one.lock_turn()
    other.change(lambda it: [{"op": "title", "title": "but a new title may be given"}])
    one.unlock_turn()
    other.lock_turn()


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from lcursor.chat.conversation import Conversation
    from lcursor.chat.chat_file import ChatFile
    path = Path(sys.argv[1])
    chat = ChatFile(path, Conversation(key=path.stem, root="/p"))
    chat.lock_turn()
    chat.change(lambda it: [{"op": "say", "number": 1, "parent": 0, "text": "asked"}])
    chat.change(lambda it: [{"op": "answer", "number": 2, "parent": 1}], fsync=False)
    more = {"op": "more", "number": 2, "text": "word "}
    for _ in range(3):
        chat.change(lambda it: [more], fsync=False)
    with open(path, "ab") as file:
        file.write(b'{"n":7,"op":"more","number":2,"te')
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.process
def test_a_kill_takes_nothing_that_was_written(desk: Desk) -> None:
    key = archive.new_key()
    path = desk.archive.path(key, "/p")
    script = textwrap.dedent(KILLED)
    ended = subprocess.run([sys.executable, "-c", script, str(path)], timeout=30)
    assert ended.returncode == -signal.SIGKILL
    chat = desk.open(key)
    assert texts(chat.chat) == ["asked", "word word word "]
    assert chat.chat.messages[2].is_partial
    assert "1 damaged" in chat.note
    chat.lock_turn()  # the dead one does not hold it any more
    chat.change(lambda it: say(it, "and on"))
    assert texts(desk.open(key).chat)[-1] == "and on"


def test_a_full_disk_is_reported_once_and_all_is_written_later(desk: Desk) -> None:
    chat = desk.new()
    chat.change(say)
    size = chat.path.stat().st_size
    chat.lock_turn()
    with full_disk(size + 30):
        chat.change(lambda it: say(it, "x" * 100))
        chat.change(lambda it: say(it, "y" * 100))
        assert [type(each) for each in desk.errors] == [ChatUnsaved]
        assert str(chat.path) in desk.errors[0].message
        assert desk.errors[0].hint
        assert chat.path.stat().st_size == size  # no half of a line
        chat.unlock_turn()
        with pytest.raises(ChatBusy):  # the numbers are taken
            desk.open(chat.chat.key).lock_turn()
        desk.open(chat.chat.key).change(lambda it: [])
    chat.change(lambda it: say(it, "room again"))
    assert chat.is_saved
    again = desk.open(chat.chat.key)
    assert again.chat == chat.chat
    assert texts(again.chat) == ["question 1", "x" * 100, "y" * 100, "room again"]
    again.lock_turn()
    assert len(desk.errors) == 1


def test_what_another_editor_wrote_while_the_disk_was_full_stays(desk: Desk) -> None:
    chat = desk.new()
    chat.change(say)
    other = desk.open(chat.chat.key)
    chat.lock_turn()
    with full_disk(chat.path.stat().st_size + 5):
        chat.change(lambda it: say(it, "unsaved"))
    other.change(lambda it: [{"op": "title", "title": "theirs"}])
    chat.change(lambda it: say(it, "on"))
    again = desk.open(chat.chat.key)
    assert again.chat == chat.chat
    assert (again.chat.title, texts(again.chat)[1:]) == ("theirs", ["unsaved", "on"])


def test_nothing_is_written_to_a_file_that_cannot_be_read(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = desk.new()
    chat.change(say)
    desk.open(chat.chat.key).change(lambda it: [{"op": "title", "title": "theirs"}])
    with monkeypatch.context() as patch:
        patch.setattr(LogFile, "read_new", Mock(side_effect=OSError(5, "I/O error")))
        chat.change(lambda it: say(it, "unsaved"))
    assert not chat.is_saved
    chat.change(lambda it: say(it, "on"))
    assert chat.chat.title == "theirs"
    assert texts(desk.open(chat.chat.key).chat)[1:] == ["unsaved", "on"]


def test_a_folder_that_cannot_be_made_leaves_the_chat_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    desk = Desk(tmp_path / "file" / "chats")
    chat = desk.new()
    chat.lock_turn()
    chat.change(say)
    chat.change(say)
    chat.unlock_turn()
    assert texts(chat.chat) == ["question 1", "question 2"]
    assert [type(each) for each in desk.errors] == [ChatUnsaved]


def test_closing_writes_what_waits(desk: Desk) -> None:
    chat = desk.new()
    chat.change(say)
    with full_disk(chat.path.stat().st_size + 5):
        chat.change(lambda it: say(it, "late"))
    chat.close()
    assert texts(desk.open(chat.chat.key).chat)[-1] == "late"


WHOLE = json.dumps(
    {
        "n": 1,
        "op": "whole",
        "version": 1,
        "chat": {
            **{"key": "k", "root": ROOT, "title": "", "model": "", "summaries": [], "edits": []},
            "said": [
                {
                    **{"number": 1, "parent": 0, "role": "user", "items": [{"key": "a", **KIND}]},
                    **{"text": "one, as version 0.1 kept it", "attachments": [], "cost": {}},
                }
            ],
            "shown": [[0, 1]],
        },
    }
).encode()
DAMAGE = [
    (lambda rows: [rows[0], rows[1][:20], *rows[2:]], ["two", "three"]),
    (lambda rows: [rows[0], b"\x00\xff\xfe", *rows[1:]], ["one", "two", "three"]),
    (lambda rows: rows[1:], ["one", "two", "three"]),
    (lambda rows: [*rows[:2], rows[3]], ["one", "three"]),
    (lambda rows: [rows[0], rows[1], *rows[1:]], ["one", "two", "three"]),
    (lambda rows: [WHOLE, *rows[2:]], ["one, as version 0.1 kept it", "two", "three"]),
    (lambda rows: [*rows, b'{"n":99,"op":"of the future"}'], ["one", "two", "three"]),
    (lambda rows: [*rows, b'["no table"]', b"7"], ["one", "two", "three"]),
    (lambda rows: [*rows, b'{"n":98,"op":"add","number":7}'], ["one", "two", "three"]),
    (lambda rows: [*rows, b'{"n":98,"op":"bring","number":7}'], ["one", "two", "three"]),
    (lambda rows: [*rows, b'{"n":98,"op":"title","version":"2"}'], ["one", "two", "three"]),
    (lambda rows: [*rows, b'{"n":98,"op":"edit"}', b'{"n":99,"op":[]}'], ["one", "two", "three"]),
    (
        lambda rows: [*rows, b'{"n":98,"op":"attach","number":1,"sent":"","items":["x"]}'],
        ["one", "two", "three"],
    ),
]


@pytest.mark.parametrize(("damage", "left"), DAMAGE)
def test_damage_costs_what_is_damaged_and_no_more(
    desk: Desk, damage: object, left: list[str]
) -> None:
    chat = desk.new()
    for text in ("one", "two", "three"):
        chat.change(partial(say, text=text))
    rows = chat.path.read_bytes().splitlines()
    chat.path.write_bytes(b"\n".join(damage(rows)) + b"\n")  # type: ignore[operator]
    again = desk.open(chat.chat.key)
    assert texts(again.chat) == left
    again.change(lambda it: say(it, "four"))
    assert texts(desk.open(chat.chat.key).chat) == [*left, "four"]


def test_a_file_of_a_newer_version_is_left_alone(desk: Desk) -> None:
    chat = desk.new()
    chat.change(say)
    first, *others = chat.path.read_bytes().splitlines(keepends=True)
    newer = stored.encode_line({**stored.decode_line(first.rstrip()), "version": 2})
    data = b"".join([newer, *others])
    chat.path.write_bytes(data)
    with pytest.raises(ChatFailed, match="newer lcursor"):
        desk.open(chat.chat.key)
    assert chat.path.read_bytes() == data
    rows, note = desk.archive.rows()
    assert not rows
    assert "1 chats in" in note


def test_a_chat_that_was_deleted_elsewhere_is_not_continued(desk: Desk) -> None:
    chat = desk.new()
    chat.change(lambda it: say(it, "before"))
    desk.archive.delete(chat.chat.key)
    chat.change(lambda it: [{"op": "title", "title": "t"}])
    assert texts(desk.open(chat.chat.key).chat) == []
    assert desk.archive.rows() == ([], "")


def test_chats_are_listed_by_project_the_newest_first(desk: Desk) -> None:
    first, second, other = desk.new(), desk.new(), desk.new("/other/project")
    for number, chat in enumerate((first, second, other)):
        chat.change(lambda it: say(it, "Why?"))
        os.utime(chat.path, (10**9 + number, 10**9 + number))
    rows, note = desk.archive.rows(ROOT)
    assert [row["chat"] for row in rows] == [second.chat.key, first.chat.key]
    assert (rows[0]["title"], rows[0]["preview"], rows[0]["messages"]) == ("Why?", "Why?", 1)
    assert not note
    assert desk.archive.rows()[0][0]["chat"] == other.chat.key
    assert desk.archive.newest(ROOT) == second.chat.key
    assert desk.archive.newest("/nowhere") == ""
    os.utime(first.path, ns=(2 * 10**18, 2 * 10**18))  # also when the clock was wrong
    assert desk.archive.newest(ROOT) == first.chat.key


def test_a_deleted_chat_is_gone(desk: Desk) -> None:
    chat = desk.new()
    chat.change(say)
    desk.archive.delete(chat.chat.key)
    assert not list(desk.archive.folder.rglob("*"))
    with pytest.raises(ChatMissing):
        desk.archive.find(chat.chat.key)
    with pytest.raises(ChatMissing):
        desk.archive.find("../../etc/passwd")


def test_an_error_in_the_middle_leaves_what_came_before_it(desk: Desk) -> None:
    chat = desk.new()
    with pytest.raises(KeyError):
        chat.change(lambda it: [*say(it), {"op": "show", "number": 7}])
    assert texts(desk.open(chat.chat.key).chat) == ["question 1"]
    assert len(chat.path.read_bytes().splitlines()) == 2
