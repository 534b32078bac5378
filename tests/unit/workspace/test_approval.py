"""Without a sandbox, commands run only if the user allowed them: once in a project, for each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from lcursor.config import EditConfig
from lcursor.workspace.approval import ALWAYS, CHANGED, NEVER, NOT_NOW
from tests.fakes.chat_server import ChatServer
from tests.fakes.heard import Told
from tests.unit.edit.desk import Desk, fenced, reply

pytestmark = pytest.mark.usefixtures("without_sandbox")

TEXT = "def one(x):\n    return x"
NEW = reply(fenced("def one(x):\n    return x + 1"))


@contextmanager
def desk_of(place: Path, config: EditConfig) -> Iterator[Desk]:
    """Give a desk whose model writes the same for each edit."""
    with ChatServer(lambda _: NEW) as server, Desk(place, server, edit=config) as desk:
        desk.put("a.py", TEXT + "\n")
        yield desk


def counting(place: Path, name: str = "ran") -> EditConfig:
    """Return settings whose test leaves a line in a file outside of the project."""
    return EditConfig(retries=0, test=f"echo test >> {place / name}")


def runs(place: Path, name: str = "ran") -> int:
    file = place / name
    return len(file.read_text().splitlines()) if file.exists() else 0


def edit(desk: Desk, answer: str = "") -> Told:
    """Have an edit made, and answer its question, where it has to ask one."""
    number = desk.ask("a.py", TEXT, "add one", (0, 1))
    if answer:
        question = desk.wait("edit.question", number)
        names = [each["name"] for each in question["choices"]]
        desk.do("edit.choose", id=number, choice=names.index(answer))
    proposed = desk.proposed(number)
    assert len(desk.told("edit.question", number)) == bool(answer)
    return proposed


def checks(proposed: Told) -> set[str]:
    return {check["name"] for file in proposed["files"] for check in file["checks"]}


def test_nothing_runs_before_the_answer_which_is_remembered(tmp_path: Path) -> None:
    with desk_of(tmp_path, counting(tmp_path)) as desk:
        number = desk.ask("a.py", TEXT, "add one", (0, 1))
        question = desk.wait("edit.question", number)
        assert runs(tmp_path) == 0
        first = question["choices"][0]
        assert first["name"] == NOT_NOW  # a stray key runs nothing
        assert any(f"echo test >> {tmp_path}" in line for line in first["lines"])
        assert any("rights" in line for line in first["lines"])
        desk.do("edit.choose", id=number, choice=1)
        found = desk.proposed(number)
        assert "test" in checks(found)
        assert (runs(tmp_path), found["note"]) == (1, "")
        edit(desk)
        assert runs(tmp_path) == 2
    with desk_of(tmp_path, counting(tmp_path)) as desk:  # another Neovim
        edit(desk)
        assert runs(tmp_path) == 3


def test_a_changed_command_asks_again(tmp_path: Path) -> None:
    with desk_of(tmp_path, counting(tmp_path)) as desk:
        edit(desk, ALWAYS)
    with desk_of(tmp_path, counting(tmp_path, "other")) as desk:
        edit(desk, ALWAYS)
    assert (runs(tmp_path), runs(tmp_path, "other")) == (1, 1)


def test_another_project_asks_again(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    for place in (here, there):
        with ChatServer(lambda _: NEW) as server:
            config = counting(tmp_path)
            with Desk(place, server, edit=config, folder=tmp_path / "edits") as desk:
                desk.put("a.py", TEXT + "\n")
                edit(desk, ALWAYS)


def test_a_no_skips_the_checks_and_the_edit_says_so(tmp_path: Path) -> None:
    with desk_of(tmp_path, counting(tmp_path)) as desk:
        for answer in (NEVER, ""):
            found = edit(desk, answer)
            assert "test" not in checks(found)
            assert "edit.test" in found["note"]
            assert "not allowed" in found["note"]
    assert runs(tmp_path) == 0


def test_not_this_time_is_asked_again(tmp_path: Path) -> None:
    with desk_of(tmp_path, counting(tmp_path)) as desk:
        assert "not allowed" in edit(desk, NOT_NOW)["note"]
        number = desk.ask("a.py", TEXT, "add one", (0, 1))
        desk.wait("edit.question", number)
        desk.do("edit.choose", id=number, choice=-1)  # it was closed
        assert "not allowed" in desk.proposed(number)["note"]
        assert runs(tmp_path) == 0
        edit(desk, ALWAYS)
    assert runs(tmp_path) == 1


def test_only_the_command_without_an_answer_is_asked_about(tmp_path: Path) -> None:
    config = counting(tmp_path)
    with desk_of(tmp_path, config) as desk:
        edit(desk, ALWAYS)
    with desk_of(tmp_path, replace(config, lint=f"echo >> {tmp_path}/lint")) as desk:
        number = desk.ask("a.py", TEXT, "add one", (0, 1))
        lines = desk.wait("edit.question", number)["choices"][0]["lines"]
        assert [line for line in lines if line.startswith("edit.")] == [
            f"edit.lint: echo >> {tmp_path}/lint"
        ]
        desk.do("edit.choose", id=number, choice=2)
        found = desk.proposed(number)
        assert checks(found) >= {"test"}
        assert "lint" not in checks(found)


def test_an_edit_that_waits_for_the_answer_can_be_stopped(tmp_path: Path) -> None:
    with desk_of(tmp_path, counting(tmp_path)) as desk:
        first = desk.ask("a.py", TEXT, "add one", (0, 1))
        desk.wait("edit.question", first)
        second = desk.ask("a.py", TEXT, "add one", (0, 1))  # waits until the first has its answer
        for number in (second, first):
            desk.do("edit.stop", id=number)
            assert desk.done(number)["reason"] == "stopped"
    assert runs(tmp_path) == 0


def test_an_edit_without_commands_asks_nothing(tmp_path: Path) -> None:
    with desk_of(tmp_path, EditConfig(retries=0)) as desk:
        assert edit(desk)["note"] == ""


def test_a_damaged_file_of_answers_asks_again(tmp_path: Path) -> None:
    with desk_of(tmp_path, counting(tmp_path)) as desk:
        edit(desk, ALWAYS)
        (file,) = tmp_path.rglob("commands.json")
        assert file.stat().st_mode & 0o077 == 0
        for text in ("[]", "{", f'{{"echo test >> {tmp_path}/ran": "yes"}}'):
            file.write_text(text)
            edit(desk, NOT_NOW)
    assert runs(tmp_path) == 1


@pytest.mark.parametrize("name", ["Makefile", "tools/check.sh"])
def test_a_changed_file_that_decides_what_a_command_does_asks_again(
    name: str, tmp_path: Path
) -> None:
    config = EditConfig(retries=0, test="./tools/check.sh || true")
    with desk_of(tmp_path, config) as desk:
        file = desk.root / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("first\n")
        edit(desk, ALWAYS)
        desk.put("b.py", "other = 1\n")  # an ordinary file
        edit(desk)
        file.write_text("second\n")
        number = desk.ask("a.py", TEXT, "add one", (0, 1))
        lines = desk.wait("edit.question", number)["choices"][0]["lines"]
        assert lines[:2] == [f"edit.test: {config.test}", f"({CHANGED})"]
        desk.do("edit.choose", id=number, choice=1)
        assert "test" in checks(desk.proposed(number))
        edit(desk)
        file.write_text("first\n")
        edit(desk, NEVER)
        file.write_text("third\n")
        edit(desk)  # a rejection stays


def test_an_edit_of_such_a_file_is_not_checked(tmp_path: Path) -> None:
    with desk_of(tmp_path, counting(tmp_path)) as desk:
        desk.put("conftest.py", TEXT + "\n")
        desk.allow(counting(tmp_path).test)
        number = desk.ask("conftest.py", TEXT, "add one", (0, 1))
        found = desk.proposed(number)
    assert "conftest.py decides what they do" in found["note"]
    assert runs(tmp_path) == 0


def test_an_approval_of_an_earlier_version_is_asked_for_again_but_a_rejection_stays(
    tmp_path: Path,
) -> None:
    config = counting(tmp_path)
    with desk_of(tmp_path, config) as desk:
        edit(desk, ALWAYS)
        (file,) = tmp_path.rglob("commands.json")
        file.write_text(json.dumps({config.test: True}))
        edit(desk, NOT_NOW)
        file.write_text(json.dumps({config.test: False}))
        assert "not allowed" in edit(desk)["note"]
    assert runs(tmp_path) == 1
