"""The edit service after a proposal: decided, written, taken back, had again after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor.changes import diff
from lcursor.changes.records import FileChange, digest
from tests.fakes.chat_server import ChatServer
from tests.fakes.heard import Told
from tests.unit.edit.desk import Desk, buffer, fenced, hunk_at, hunk_of, made, reply

TEXT = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
NEW = "def one():\n    return 100"
WANTED = TEXT.replace("return 1\n", "return 100\n")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda _: reply(fenced(NEW))) as fake:
        yield fake


@pytest.fixture
def desk(tmp_path: Path, server: ChatServer) -> Iterator[Desk]:
    with Desk(tmp_path, server) as it:
        yield it


def proposed(desk: Desk, name: str = "a.py", text: str = TEXT, **more: Any) -> Told:
    """Have a change proposed for a file that is on disk."""
    desk.put(name, text)
    lines = text.removesuffix("\n")
    return desk.proposed(desk.ask(name, lines, "Return more", (0, 2), **more))


def decided(desk: Desk, found: Told, **more: Any) -> None:
    """Say what the user took."""
    (file,) = found["files"]
    fields = {"accepted": [hunk_of(file)], "rejected": [], "open": 0, "is_undone": False, **more}
    desk.do("edit.decided", turn=found["turn"], path=file["path"], **fields)


def turns(desk: Desk) -> Told:
    """Ask what turns there are."""
    return desk.wait("edit.turned", desk.do("edit.turns", path=str(desk.root)))


def test_a_turn_is_open_until_all_of_it_is_decided(desk: Desk) -> None:
    found = proposed(desk)
    (row,) = turns(desk)["turns"]
    assert (row["turn"], row["state"], row["open"]) == (found["turn"], "open", 1)
    assert (row["title"], row["paths"]) == ("Return more", [str(desk.root / "a.py")])
    decided(desk, found)
    answer = turns(desk)
    assert (answer["turns"][0]["state"], answer["undo"]) == ("done", found["turn"])


def test_a_file_that_is_not_open_is_written_and_taken_back(desk: Desk) -> None:
    path = desk.root / "a.py"
    found = proposed(desk)
    wrote = desk.wait(
        "edit.written", desk.do("edit.write", turn=found["turn"], paths=[str(path)], outside=False)
    )
    assert (wrote["paths"], wrote["problem"]) == ([str(path)], "")
    assert path.read_text() == WANTED
    undo = desk.do("edit.revert", do="undo", path=str(desk.root), turn="", buffers=[])
    back = desk.wait("edit.reverted", undo)
    assert (back["turn"], back["paths"], back["problems"]) == (found["turn"], [str(path)], [])
    assert path.read_text() == TEXT
    assert turns(desk)["redo"] == found["turn"]
    redo = desk.do("edit.revert", do="redo", path=str(desk.root), turn="", buffers=[])
    desk.wait("edit.reverted", redo)
    assert path.read_text() == WANTED


def test_what_was_typed_since_stays_when_a_turn_is_taken_back(desk: Desk) -> None:
    path = desk.root / "a.py"
    found = proposed(desk)
    desk.wait(
        "edit.written", desk.do("edit.write", turn=found["turn"], paths=[str(path)], outside=False)
    )
    path.write_text("# typed\n" + path.read_text() + "# typed, too\n")
    desk.wait(
        "edit.reverted", desk.do("edit.revert", do="undo", path=str(desk.root), turn="", buffers=[])
    )
    assert path.read_text() == f"# typed\n{TEXT}# typed, too\n"


def test_a_turn_that_was_accepted_in_a_buffer_is_taken_back_there(desk: Desk) -> None:
    found = proposed(desk)
    decided(desk, found)
    path = desk.root / "a.py"
    number = desk.do(
        "edit.revert", do="undo", path=str(path), turn="",
        buffers=[buffer(path, WANTED.removesuffix("\n"), 12)],
    )  # fmt: skip
    back = desk.wait("edit.reverted", number)
    (file,) = back["files"]
    assert file["tick"] == 12
    assert made(WANTED.removesuffix("\n"), file) == TEXT.removesuffix("\n")
    assert path.read_text() == TEXT  # that is the editor's to write


def test_a_file_that_was_changed_since_is_not_written(desk: Desk) -> None:
    path = desk.root / "a.py"
    found = proposed(desk)
    path.write_text(TEXT + "more = 1\n")
    wrote = desk.wait(
        "edit.written", desk.do("edit.write", turn=found["turn"], paths=[str(path)], outside=False)
    )
    assert wrote["paths"] == []
    assert wrote["problem"]
    assert path.read_text() == TEXT + "more = 1\n"


def two_hunks(desk: Desk) -> tuple[str, str]:
    """Have the first of two proposed hunks accepted; return the key, and the text with both."""
    path = desk.put("a.py", TEXT)
    old, new = TEXT.splitlines(), WANTED.replace("return 2", "return 200").splitlines()
    changes = diff.changes(old, new)
    change = FileChange(str(path), base=digest(old), changes=changes)
    key = desk.slot.record(desk.root, "Return more", [change], {str(path): tuple(old)})
    hunk = hunk_at(WANTED.splitlines(), 1, changes[0].old, changes[0].new)
    desk.do(
        "edit.decided", turn=key, path=str(path), accepted=[hunk], rejected=[], open=1,
        is_undone=False,
    )  # fmt: skip
    return key, "\n".join(new) + "\n"


@pytest.mark.parametrize("typed", ["", "# typed\n"])
def test_the_rest_of_a_file_is_written_after_some_of_it_was_saved(desk: Desk, typed: str) -> None:
    key, after = two_hunks(desk)
    path = desk.put("a.py", typed + WANTED)
    wrote = desk.do("edit.write", turn=key, paths=[str(path)], outside=False)
    assert desk.wait("edit.written", wrote)["problem"] == ""
    assert path.read_text() == typed + after
    for do, text in (("undo", TEXT), ("redo", after)):
        number = desk.do("edit.revert", do=do, path=str(desk.root), turn="", buffers=[])
        assert desk.wait("edit.reverted", number)["problems"] == []
        assert path.read_text() == typed + text


def test_the_rest_of_a_file_is_not_written_if_a_hunk_has_no_place(desk: Desk) -> None:
    key, _ = two_hunks(desk)
    mine = WANTED.replace("return 2", "return 3")
    path = desk.put("a.py", mine)
    wrote = desk.do("edit.write", turn=key, paths=[str(path)], outside=False)
    assert "has changed" in desk.wait("edit.written", wrote)["problem"]
    assert path.read_text() == mine
    assert turns(desk)["turns"][0]["open"] == 1


def test_nothing_to_undo_is_reported(desk: Desk) -> None:
    for do in ("undo", "redo"):
        number = desk.do("edit.revert", do=do, path=str(desk.root), turn="", buffers=[])
        error = desk.wait("error", number)
        assert error["code"] == "edit_missing"
        assert error["hint"]


def test_open_hunks_are_had_again_after_a_restart(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, server) as desk:
        found = proposed(desk)
    with Desk(tmp_path, server) as later:
        number = later.do("edit.resume", turn=found["turn"], path=str(later.root), buffers=[])
        again = later.wait("edit.proposed", number)
        assert again["turn"] == found["turn"]
        assert again["title"] == found["title"]
        (file,) = again["files"]
        text = TEXT.removesuffix("\n")
        assert made(text, file) == WANTED.removesuffix("\n")
        assert file["checks"] == found["files"][0]["checks"] != []
        decided(later, again)
        assert turns(later)["turns"][0]["state"] == "done"


def test_open_hunks_follow_what_was_changed_meanwhile(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, server) as desk:
        found = proposed(desk)
    path = desk.put("a.py", f"# typed\n{TEXT}")
    with Desk(tmp_path, server) as later:
        number = later.do("edit.resume", turn=found["turn"], path=str(later.root), buffers=[])
        (file,) = later.wait("edit.proposed", number)["files"]
        assert made(f"# typed\n{TEXT}".removesuffix("\n"), file)
        wrote = later.do("edit.write", turn=found["turn"], paths=[str(path)], outside=False)
        assert later.wait("edit.written", wrote)["problem"] == ""
        assert path.read_text() == f"# typed\n{WANTED}"


def test_a_turn_that_nobody_knows_is_reported(desk: Desk) -> None:
    key = "20200101-000000-00000000"
    number = desk.do("edit.resume", turn=key, path=str(desk.root), buffers=[])
    assert desk.wait("error", number)["code"] == "edit_missing"
    wrote = desk.do("edit.write", turn="none", paths=[str(desk.root / "a.py")], outside=False)
    assert desk.wait("edit.written", wrote)["problem"]


def test_what_came_out_of_a_chat_is_noted_there(desk: Desk) -> None:
    path = desk.put("a.py", TEXT)
    number = desk.do(
        "edit.apply", path=str(path), text=fenced(TEXT.replace("return 1\n", "return 7\n")),
        file="a.py", chat="some-chat", message=0,
        buffers=[buffer(path, TEXT.removesuffix("\n"))],
    )  # fmt: skip
    found = desk.proposed(number)
    assert found["chat"] == "some-chat"
    decided(desk, found)
    turns(desk)  # it is done after what was decided
    ((chat, (edit,)),) = desk.edited
    assert chat == "some-chat"
    assert (edit["name"], edit["first_row"], edit["rows"]) == ("a.py", 1, 1)
    assert "accepted" in edit["what"]
    decided(desk, found, is_undone=True)
    turns(desk)
    assert "undone" in desk.edited[-1][1][0]["what"]


def test_a_ledger_that_cannot_be_written_is_reported_and_edits_go_on(
    tmp_path: Path, server: ChatServer
) -> None:
    folder = tmp_path / "edits"
    folder.write_text("a file is in the way")
    with Desk(tmp_path, server, folder=folder) as desk:
        found = proposed(desk)
        assert made(TEXT.removesuffix("\n"), found["files"][0])
        assert desk.told("error")[0]["code"] == "edit_unsaved"
        decided(desk, found)
        assert turns(desk)["undo"] == found["turn"]


@pytest.mark.parametrize(("name", "is_resumed"), [("lib/b.py", False), ("../b.py", True)])
def test_a_file_of_another_project_is_decided_after_a_restart(
    tmp_path: Path, server: ChatServer, name: str, is_resumed: bool
) -> None:
    with Desk(tmp_path, server) as desk:
        (desk.root / "lib/.git").mkdir(parents=True)
        path = desk.put(name, "b = 1\n").resolve()
        changes = diff.changes(("b = 1",), ("b = 2",))
        change = FileChange(str(path), base=digest(("b = 1",)), changes=changes)
        key = desk.slot.record(desk.root, "Add one", [change], {str(path): ("b = 1",)})
    with Desk(tmp_path, server) as desk:
        if is_resumed:
            number = desk.do("edit.resume", turn=key, path=str(desk.root), buffers=[])
            desk.wait("edit.proposed", number)
        hunk = hunk_at(["b = 2"], 0, ["b = 1"], ["b = 2"])
        desk.do(
            "edit.decided", turn=key, path=str(path), accepted=[hunk], rejected=[], open=0,
            is_undone=False,
        )  # fmt: skip
        answer = turns(desk)
        assert (answer["turns"][0]["state"], answer["undo"]) == ("done", key)
        assert desk.told("error") == []


def test_changes_of_an_agent_are_shown_after_a_restart(tmp_path: Path, server: ChatServer) -> None:
    with Desk(tmp_path, server) as desk:
        path = desk.put("a.py", TEXT)
        new = TEXT.replace("return 1", "return 7").splitlines()
        lines = tuple(TEXT.splitlines())
        change = FileChange(
            str(path), base=digest(lines), changes=diff.changes(lines, new), is_guarded=True
        )
        key = desk.slot.record(desk.root, "Make it\nfast", [change], {str(path): lines})
    with Desk(tmp_path, server) as desk:
        number = desk.do("edit.resume", turn=key, path=str(desk.root), buffers=[])
        found = desk.wait("edit.proposed", number)
        assert (found["title"], found["turn"]) == ("Make it fast", key)
        assert made(TEXT.removesuffix("\n"), found["files"][0]) == "\n".join(new)
        assert found["files"][0]["is_guarded"]
