"""Open hunks after the editor ended with them: where they belong in the text as it is now."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.changes import diff, text
from lcursor.changes.history import History
from lcursor.changes.records import Check, FileChange, FileKind, digest
from lcursor.changes.undo import ResumedTurn, resume, revert
from lcursor.changes.write import write
from lcursor.errors import EditMissing
from tests.unit.edit.desk import decision, hunk_at

BASE = "".join(f"def f{number}():\n    return {number}\n\n" for number in range(6))
CHECKS = (Check("parses", True), Check("test", False, "1 failed"))
AFTER = (
    BASE.replace("return 0", "return zero\n    # more")
    .replace("    return 2\n", "")
    .replace("def f4", "# four\ndef f4")
)


class OpenTurn:
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
def turn(tmp_path: Path) -> OpenTurn:
    return OpenTurn(tmp_path)


def test_all_hunks_of_an_unchanged_text_are_offered(turn: OpenTurn) -> None:
    found = turn.resume()
    assert (found.files[0].changes, found.problems) == (turn.changes, ())
    assert turn.all_taken(found) == AFTER


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_accepted_hunk_is_not_offered_again(turn: OpenTurn, number: int) -> None:
    turn.accept(number)
    found = turn.resume()
    assert len(found.files[0].changes) == 2
    assert found.files[0].base == text.read(turn.file).digest
    assert turn.all_taken(found) == AFTER


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("is_typed", [False, True])
def test_a_rejected_hunk_is_not_offered_again(turn: OpenTurn, number: int, is_typed: bool) -> None:
    turn.refuse(number)
    if is_typed:
        turn.put("import os\n\n" + turn.file.read_text())
    (found,) = turn.resume().files
    assert [each.new for each in found.changes] == [
        each.new for at, each in enumerate(turn.changes) if at != number
    ]


def test_an_accepted_hunk_that_was_not_saved_is_offered_again(turn: OpenTurn) -> None:
    turn.accept(0, is_saved=False)
    assert turn.all_taken(turn.resume()) == AFTER


def test_hunks_move_with_what_was_typed(turn: OpenTurn) -> None:
    turn.accept(1)
    body = turn.file.read_text()
    turn.put("import os\n\n" + body.replace("return 5", "return 5 + 5"))
    found = turn.resume()
    assert turn.all_taken(found) == "import os\n\n" + AFTER.replace("return 5", "return 5 + 5")
    assert found.problems == ()


def test_checks_come_back_with_the_text_that_they_are_of(turn: OpenTurn) -> None:
    assert turn.resume().files[0].checks == CHECKS
    turn.accept(1)
    assert turn.resume().files[0].checks == CHECKS
    turn.put("import os\n\n" + turn.file.read_text())
    assert turn.resume().files[0].checks == CHECKS[1:]  # it was passed without that line


def test_a_hunk_whose_place_is_gone_is_left_out(turn: OpenTurn) -> None:
    turn.put(BASE.replace("return 0", "return 0 + 0"))
    found = turn.resume()
    assert found.problems == (f"{turn.file} was changed since: 1 hunk no longer applies",)
    assert turn.all_taken(found) == AFTER.replace("return zero\n    # more", "return 0 + 0")


def test_a_file_with_another_text_or_none_is_left_out(turn: OpenTurn) -> None:
    turn.put("nothing of it\n")
    found = turn.resume()
    assert found.files == ()
    assert "no hunk applies any more" in found.problems[0]
    turn.file.unlink()
    assert "there is no file" in turn.resume().problems[0]
    with pytest.raises(EditMissing):
        resume(turn.history, "none")


def test_the_editors_text_comes_first(turn: OpenTurn) -> None:
    lines = ["# mine", *text.from_bytes(BASE.encode()).lines]
    buffer = {"path": str(turn.file), "tick": 3, "text": "\n".join(lines)}
    found = resume(turn.history, turn.key, [buffer])  # type: ignore[list-item]
    assert found.files[0].base == digest(lines)
    assert [one.first_row for one in found.files[0].changes] == [
        one.first_row + 1 for one in turn.changes
    ]


def test_a_hunk_accepted_before_a_restart_is_undone_with_the_rest(turn: OpenTurn) -> None:
    turn.accept(1)
    turn.put("import os\n\n" + turn.file.read_text())
    (change,) = turn.resume().files
    turn.changes = change.changes
    turn.accept(0)
    history = History(turn.root, turn.data)
    assert turn.file.read_text() != "import os\n\n" + BASE
    assert revert(history, turn.key, "undo", []).problems == ()
    assert turn.file.read_text() == "import os\n\n" + BASE
    assert revert(history, turn.key, "redo", []).problems == ()
    assert "return zero" in turn.file.read_text()
    assert "return 2" not in turn.file.read_text()


class TwoTurns:
    """An agent that changed a file twice; the user may have accepted the first time."""

    def __init__(self, place: Path, base: str | None) -> None:
        self.root, self.base = place / "project", base
        self.root.mkdir()
        self.file, self.history = self.root / "a.py", History(self.root, place / "data")
        if base is not None:
            self.file.write_text(base)

    def propose(self, body: str, run: str = "r") -> str:
        """Propose a text, as a change of the first one; return the key of the turn."""
        old, new = (text.from_bytes((each or "").encode()) for each in (self.base, body))
        lines = old.lines if self.base is not None else ()
        kind: FileKind = "edit" if self.base is not None else "create"
        base = digest(lines) if self.base is not None else ""
        change = FileChange(str(self.file), kind, "", base, diff.changes(lines, new.lines))
        bases = {str(self.file): lines} if base else {}
        return self.history.begin("t", [change], bases=bases, run=run)

    def write(self, key: str) -> None:
        write(self.history.open_files(key), self.history, key)

    def taken(self, key: str) -> str:
        """The file with all open hunks of a turn made."""
        found = resume(self.history, key)
        assert found.problems == ()
        (change,) = found.files
        return text.read(self.file).changed(change.changes).encode().decode()


FIRST, SECOND, THIRD = "x = 1\ny = 1\n", "x = 2\ny = 1\n", "x = 3\ny = 1\nz = 1\n"


@pytest.mark.parametrize("base", [FIRST, None], ids=["changed", "created"])
def test_an_agent_changes_lines_again_that_the_user_accepted(
    tmp_path: Path, base: str | None
) -> None:
    turns = TwoTurns(tmp_path, base)
    first = turns.propose(SECOND)
    turns.write(first)
    second = turns.propose(THIRD)
    assert turns.taken(second) == THIRD
    turns.write(second)
    assert turns.file.read_text() == THIRD
    third = turns.propose("x = 4\n")
    assert turns.taken(third) == "x = 4\n"
    revert(turns.history, second, "undo", [])
    assert turns.file.read_text() == SECOND
    revert(turns.history, first, "undo", [])
    assert (turns.file.read_text() if base else turns.file.exists()) == (base or False)


def test_typed_text_stays_when_an_agent_continues(tmp_path: Path) -> None:
    turns = TwoTurns(tmp_path, FIRST)
    turns.write(turns.propose(SECOND))
    turns.file.write_text(f"# typed\n{SECOND}")
    assert turns.taken(turns.propose(THIRD)) == f"# typed\n{THIRD}"


def test_an_agent_continues_twice_while_the_user_types(tmp_path: Path) -> None:
    turns = TwoTurns(tmp_path, FIRST)
    turns.file.write_text(f"# one\n{FIRST}")
    for number, body in enumerate((SECOND, THIRD, "x = 4\nz = 1\n")):
        key = turns.propose(body)
        wanted = f"{turns.file.read_text().partition('x')[0]}{body}"
        assert turns.taken(key) == wanted
        turns.write(key)
        assert turns.file.read_text() == wanted
        turns.file.write_text(f"# {number}\n{wanted}")


def test_lines_that_an_agent_inserted_come_once(tmp_path: Path) -> None:
    turns = TwoTurns(tmp_path, "x = 1\n")
    turns.file.write_text("# typed\nx = 1\n")
    first = turns.propose("x = 1\ny = 2\nz = 2\n")
    assert turns.taken(first) == "# typed\nx = 1\ny = 2\nz = 2\n"
    turns.write(first)
    second = turns.propose("x = 1\ny = 2\nz = 3\n")
    assert turns.taken(second) == "# typed\nx = 1\ny = 2\nz = 3\n"


def test_the_changes_of_two_agents_add_up(tmp_path: Path) -> None:
    turns = TwoTurns(tmp_path, BASE)
    one = turns.propose(BASE.replace("return 0", "return zero"), "one")
    other = turns.propose(BASE.replace("return 5", "return five"), "other")
    turns.write(one)
    both = BASE.replace("return 0", "return zero").replace("return 5", "return five")
    assert turns.taken(other) == both


def test_what_the_user_rejected_is_not_offered_again(tmp_path: Path) -> None:
    turns = TwoTurns(tmp_path, BASE)
    made = BASE.replace("return 0", "return zero").replace("return 5", "return five")
    first = turns.propose(made)
    change, rejected = turns.history.open_files(first)[0].changes
    lines = text.from_bytes(BASE.replace("return 0", "return zero").encode()).lines
    hunk = hunk_at(list(lines), change.first_row, change.old, change.new)
    turns.history.decided(decision(first, str(turns.file), hunk, still_open=0))
    turns.history.decided(decision(first, str(turns.file), rejected=[rejected], still_open=0))
    turns.file.write_text("\n".join(lines) + "\n")
    second = turns.propose(made.replace("return 3", "return three"))
    assert turns.taken(second) == "\n".join(lines).replace("return 3", "return three") + "\n"


def test_what_the_user_did_not_accept_is_offered_again_as_a_whole(tmp_path: Path) -> None:
    turns = TwoTurns(tmp_path, FIRST)
    turns.propose(SECOND)
    assert turns.taken(turns.propose(THIRD)) == THIRD
