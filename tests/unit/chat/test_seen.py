"""What the model had read is got back from the chat as it is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.context.items import Seen
from lcursor.errors import ChatMissing
from tests.fakes.chat_server import ChatServer
from tests.fakes.heard import config_of
from tests.unit.chat.desk import Desk, attachment

TEXT = "def one():\n    return 1\n"
DOCUMENT = "# How\n\n```python\nx = 1\n```\n\na.py:\n```python\nno such text\n```"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with ChatServer() as server, Desk(tmp_path, config_of(server)) as it:
        it.open()
        yield it


def files(found: list[Seen] | tuple[Seen, ...]) -> list[tuple[str, int, tuple[str, ...], int]]:
    return [(Path(s.path).name, s.first_row, s.lines, s.message) for s in found if s.path]


def test_attached_text_is_known_to_the_letter_after_a_restart(desk: Desk, tmp_path: Path) -> None:
    for name, text in (("a.py", TEXT), ("doc.md", DOCUMENT), ("crlf.py", "x = 1\r\ny = 2\r\n")):
        (desk.root / name).write_bytes(text.encode())
    piece = attachment("selection", "a.py:2-2", "    return 1", path=str(desk.root / "a.py"))
    piece["first_row"] = 1
    first = desk.turn("See @file:doc.md and @file:crlf.py", attachments=[piece])
    (desk.root / "a.py").write_text("changed = 1\n")
    second = desk.turn("And @file:a.py?", after=first["answer"])
    wanted = [
        ("a.py", 1, ("    return 1",), first["question"]),
        ("crlf.py", 0, ("x = 1", "y = 2"), first["question"]),
        ("doc.md", 0, tuple(DOCUMENT.split("\n")), first["question"]),
    ]
    key = desk.chat
    with ChatServer() as server, Desk(tmp_path, config_of(server)) as later:
        before = later.slot.read_before(key, first["answer"])
        assert sorted(files(list(before))) == wanted
        now = files(list(later.slot.read_before(key, 0)))
        assert now[0] == ("a.py", 0, ("changed = 1",), second["question"])
        assert sorted(now[1:]) == wanted
        said = [each for each in later.slot.read_before(key, 0) if not each.path]
        assert [each.message for each in said] == [3, 2, 1]
        assert said[1].lines[0].startswith("You said: ")


def test_another_branch_is_not_what_was_read(desk: Desk) -> None:
    for name in ("a.py", "b.py"):
        (desk.root / name).write_text(TEXT)
    one = desk.turn("See @file:a.py")
    two = desk.turn("See @file:b.py", again=one["question"])
    assert [each[0] for each in files(list(desk.slot.read_before(desk.chat, one["answer"])))] == [
        "a.py"
    ]
    assert [each[0] for each in files(list(desk.slot.read_before(desk.chat, two["answer"])))] == [
        "b.py"
    ]


def test_what_was_left_out_was_not_read(desk: Desk) -> None:
    (desk.root / ".env").write_text("TOKEN=abc\n")
    (desk.root / "a.py").write_text(TEXT)
    first = desk.turn("See @file:.env and @file:a.py")
    desk.turn("Again @file:a.py", after=first["answer"])  # unchanged: it is there already
    assert files(list(desk.slot.read_before(desk.chat, 0))) == [
        ("a.py", 0, tuple(TEXT.splitlines()), first["question"])
    ]


def test_a_chat_that_is_not_there(desk: Desk) -> None:
    with pytest.raises(ChatMissing):
        desk.slot.read_before("nowhere", 0)
