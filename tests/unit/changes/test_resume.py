"""Open hunks after the editor ended with them: where they belong in the text as it is now."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.changes import diff, text
from lcursor.changes.history import History
from lcursor.changes.records import Check, FileChange, digest
from lcursor.changes.undo import ResumedTurn, resume, revert
from lcursor.errors import EditMissing
from tests.unit.edit.desk import decision, hunk_at

BASE = "".join(f"def f{number}():\n    return {number}\n\n" for number in range(6))
CHECKS = (Check("parses", True), Check("test", False, "1 failed"))
AFTER = (
    BASE.replace("return 0", "return zero\n    # more")
    .replace("    return 2\n", "")
    .replace("def f4", "# four\ndef f4")
)


class Desk:
    """A file, a turn of three hunks for it, and its history."""

    def __init__(self, place: Path) -> None:
        self.root = place / "project"
        self.root.mkdir()
        self.file = self.root / "a.py"
        self.data = place / "data"
        self.history = History(self.root, self.data)
        self.put(BASE)
        lines, after = (text.from_bytes(one.encode()).lines for one in (BASE, AFTER))
        self.changes = diff.changes(lines, after)
        assert len(self.changes) == 3
        change = FileChange(str(self.file), "edit", "", digest(lines), self.changes, CHECKS)
        self.key = self.history.begin("t", [change], bases={str(self.file): lines})

    def put(self, body: str) -> None:
        self.file.write_text(body)

    def accept(self, number: int, *, is_saved: bool = True) -> None:
        """Take a hunk, as the editor tells it."""
        change = self.changes[number]
        lines = list(text.read(self.file).lines)
        row = "\n".join(lines).split("\n".join(change.old) or "def f4")[0].count("\n")
        lines[row : row + len(change.old)] = change.new
        hunk = hunk_at(lines, row, change.old, change.new)
        self.history.decided(decision(self.key, str(self.file), hunk, still_open=2))
        if is_saved:
            self.put("\n".join(lines) + "\n")

    def refuse(self, number: int) -> None:
        """Refuse a hunk, as the editor tells it."""
        change = self.changes[number]
        said = decision(self.key, str(self.file), rejected=[change], still_open=2)
        self.history.decided(said)

    def resume(self) -> ResumedTurn:
        return resume(History(self.root, self.data), self.key)  # as after a restart

    def all_taken(self, found: ResumedTurn) -> str:
        """The file with all open hunks made."""
        (change,) = found.files
        return text.read(self.file).changed(change.changes).encode().decode()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_all_hunks_of_an_unchanged_text_are_offered(desk: Desk) -> None:
    found = desk.resume()
    assert (found.files[0].changes, found.problems) == (desk.changes, ())
    assert desk.all_taken(found) == AFTER


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_accepted_hunk_is_not_offered_again(desk: Desk, number: int) -> None:
    desk.accept(number)
    found = desk.resume()
    assert len(found.files[0].changes) == 2
    assert found.files[0].base == text.read(desk.file).digest
    assert desk.all_taken(found) == AFTER


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("is_typed", [False, True])
def test_a_rejected_hunk_is_not_offered_again(desk: Desk, number: int, is_typed: bool) -> None:
    desk.refuse(number)
    if is_typed:
        desk.put("import os\n\n" + desk.file.read_text())
    (found,) = desk.resume().files
    assert [each.new for each in found.changes] == [
        each.new for at, each in enumerate(desk.changes) if at != number
    ]


def test_an_accepted_hunk_that_was_not_saved_is_offered_again(desk: Desk) -> None:
    desk.accept(0, is_saved=False)
    assert desk.all_taken(desk.resume()) == AFTER


def test_hunks_move_with_what_was_typed(desk: Desk) -> None:
    desk.accept(1)
    body = desk.file.read_text()
    desk.put("import os\n\n" + body.replace("return 5", "return 5 + 5"))
    found = desk.resume()
    assert desk.all_taken(found) == "import os\n\n" + AFTER.replace("return 5", "return 5 + 5")
    assert found.problems == ()


def test_checks_come_back_with_the_text_that_they_are_of(desk: Desk) -> None:
    assert desk.resume().files[0].checks == CHECKS
    desk.accept(1)
    assert desk.resume().files[0].checks == CHECKS
    desk.put("import os\n\n" + desk.file.read_text())
    assert desk.resume().files[0].checks == CHECKS[1:]  # it was passed without that line


def test_a_hunk_whose_place_is_gone_is_left_out(desk: Desk) -> None:
    desk.put(BASE.replace("return 0", "return 0 + 0"))
    found = desk.resume()
    assert found.problems == (f"{desk.file} was changed since: 1 hunk no longer applies",)
    assert desk.all_taken(found) == AFTER.replace("return zero\n    # more", "return 0 + 0")


def test_a_file_with_another_text_or_none_is_left_out(desk: Desk) -> None:
    desk.put("nothing of it\n")
    found = desk.resume()
    assert found.files == ()
    assert "no hunk applies any more" in found.problems[0]
    desk.file.unlink()
    assert "there is no file" in desk.resume().problems[0]
    with pytest.raises(EditMissing):
        resume(desk.history, "none")


def test_the_editors_text_comes_first(desk: Desk) -> None:
    lines = ["# mine", *text.from_bytes(BASE.encode()).lines]
    buffer = {"path": str(desk.file), "tick": 3, "text": "\n".join(lines)}
    found = resume(desk.history, desk.key, [buffer])  # type: ignore[list-item]
    assert found.files[0].base == digest(lines)
    assert [one.first_row for one in found.files[0].changes] == [
        one.first_row + 1 for one in desk.changes
    ]


def test_a_hunk_accepted_before_a_restart_is_undone_with_the_rest(desk: Desk) -> None:
    desk.accept(1)
    desk.put("import os\n\n" + desk.file.read_text())
    (change,) = desk.resume().files
    desk.changes = change.changes
    desk.accept(0)
    history = History(desk.root, desk.data)
    assert desk.file.read_text() != "import os\n\n" + BASE
    assert revert(history, desk.key, "undo", []).problems == ()
    assert desk.file.read_text() == "import os\n\n" + BASE
    assert revert(history, desk.key, "redo", []).problems == ()
    assert "return zero" in desk.file.read_text()
    assert "return 2" not in desk.file.read_text()
