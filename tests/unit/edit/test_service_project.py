"""The edit service with a whole project: a plan is shown, struck through, carried out, proposed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lcursor.config import EditConfig
from lcursor.workspace.tree import Tree
from tests.fakes.chat_server import Answer, ChatServer
from tests.fakes.gone import gone_once
from tests.fakes.heard import Told
from tests.unit.edit.desk import Desk, buffer, fenced, made, part_of, reply

ONE = "def one(x):\n    return x\n\n\ndef also(x):\n    return x + 1\n"
TWO = "from one import one\n\n\ndef two(x):\n    return one(x) * 2\n"
OLD = "def old():\n    return 0\n"


def text_of(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def key_of(listed: str, what: str) -> str:
    """Return the id that a plan's prompt gives a file or a symbol."""
    found = re.search(rf"^\s*(f[\d.]+) .*{re.escape(what)}", listed, re.M)
    assert found, listed
    return found[1]


def written(body: dict[str, Any]) -> Answer:
    """Do what is asked: `x` becomes `value`; what is new has a function."""
    part = part_of(body)
    if not part:
        return reply(fenced("def helper(value):\n    return value"))
    return reply(fenced(re.sub(r"\bx\b", "value", part)))


Steps = Callable[[str], Sequence[dict[str, str]]]


@contextmanager
def planned(folder: Path, steps: Steps, **more: Any) -> Iterator[tuple[ChatServer, Desk]]:
    """Give a server that plans, and then writes; and a desk in a project of three files."""

    def script(body: dict[str, Any]) -> Answer:
        text = text_of(body)
        if "What there is:" not in text:
            return written(body)
        plan = {"summary": "Call it value.", "steps": list(steps(text))}
        return reply(json.dumps(plan))

    with ChatServer(script) as server, Desk(folder, server, **more) as desk:
        desk.put("one.py", ONE)
        desk.put("two.py", TWO)
        desk.put("old.py", OLD)
        yield server, desk


def ask(desk: Desk, **more: Any) -> int:
    text = "Call x value in one.py and two.py, add helper.py, remove old.py"
    return desk.ask("", "", text, (0, 0), scope="project", tick=-1, lines=[], **more)


def edits(text: str) -> list[dict[str, str]]:
    return [
        {"action": "edit", "id": key_of(text, "def one"), "do": "Call x value"},
        {"action": "edit", "id": key_of(text, "def two"), "do": "Call x value"},
    ]


def all_kinds(text: str) -> list[dict[str, str]]:
    return [
        *edits(text),
        {"action": "create", "path": "helper.py", "do": "A function helper"},
        {"action": "delete", "id": key_of(text, "old.py")},
    ]


def by_name(found: Told) -> dict[str, Told]:
    return {each["name"]: each for each in found["files"]}


def test_a_plan_is_shown_and_what_is_left_of_it_is_one_turn(tmp_path: Path) -> None:
    with planned(tmp_path, all_kinds) as (server, desk):
        number = ask(desk)
        plan = desk.wait("edit.planned", number)
        assert "Call it value" in plan["summary"]
        steps = {(each["kind"], each["name"]): each for each in plan["steps"]}
        assert set(steps) == {
            ("edit", "one.py"), ("edit", "two.py"), ("create", "helper.py"), ("delete", "old.py"),
        }  # fmt: skip
        one = steps["edit", "one.py"]
        assert (one["first_row"], one["last_row"]) == (0, 2)
        assert one["path"] == str(desk.root / "one.py")
        assert len(server.bodies) == 1
        assert desk.busy[-1] is False  # nobody works while it is looked at
        desk.do("edit.run_plan", id=number, dropped=[steps["edit", "two.py"]["key"]])
        files = by_name(desk.proposed(number))
        assert set(files) == {"one.py", "helper.py", "old.py"}
        plain = ONE.removesuffix("\n")
        assert made(plain, files["one.py"]) == plain.replace(
            "one(x):\n    return x\n", "one(value):\n    return value\n"
        )
        new = files["helper.py"]
        assert (new["kind"], new["base"]) == ("create", "")
        assert new["changes"][0]["new"] == ["def helper(value):", "    return value"]
        assert files["old.py"]["kind"] == "delete"


def test_a_new_file_that_runs_by_itself_is_marked(tmp_path: Path) -> None:
    def steps(text: str) -> list[dict[str, str]]:
        return [
            *edits(text),
            {"action": "create", "path": "conftest.py", "do": "A function helper"},
            {"action": "rename", "id": key_of(text, "old.py"), "path": "noxfile.py"},
        ]

    with planned(tmp_path, steps) as (_, desk):
        number = ask(desk)
        desk.wait("edit.planned", number)
        desk.do("edit.run_plan", id=number, dropped=[])
        files = by_name(desk.proposed(number))
        marks = {name: each["is_guarded"] for name, each in files.items()}
        assert marks == {"one.py": False, "two.py": False, "conftest.py": True, "old.py": True}


def test_a_turn_of_many_files_is_written_and_taken_back_as_one(tmp_path: Path) -> None:
    with planned(tmp_path, all_kinds) as (_, desk):
        number = ask(desk)
        desk.wait("edit.planned", number)
        desk.do("edit.run_plan", id=number, dropped=[])
        found = desk.proposed(number)
        paths = [each["path"] for each in found["files"]]
        wrote = desk.do("edit.write", turn=found["turn"], paths=paths, outside=False)
        assert desk.wait("edit.written", wrote)["problem"] == ""
        assert "value" in (desk.root / "one.py").read_text()
        assert (desk.root / "helper.py").read_text() == "def helper(value):\n    return value\n"
        assert not (desk.root / "old.py").exists()
        undo = desk.do("edit.revert", do="undo", path=str(desk.root), turn="", buffers=[])
        assert desk.wait("edit.reverted", undo)["problems"] == []
        assert (desk.root / "one.py").read_text() == ONE
        assert (desk.root / "two.py").read_text() == TWO
        assert (desk.root / "old.py").read_text() == OLD
        assert not (desk.root / "helper.py").exists()
        redo = desk.do("edit.revert", do="redo", path=str(desk.root), turn="", buffers=[])
        assert desk.wait("edit.reverted", redo)["problems"] == []
        assert (desk.root / "helper.py").exists()
        assert not (desk.root / "old.py").exists()


def test_two_regions_of_one_file_are_both_changed(tmp_path: Path) -> None:
    def both(text: str) -> list[dict[str, str]]:
        return [
            {"action": "edit", "id": key_of(text, "def also"), "do": "Call x value"},
            {"action": "edit", "id": key_of(text, "def one"), "do": "Call x value"},
        ]

    with planned(tmp_path, both) as (_, desk):
        number = ask(desk)
        desk.wait("edit.planned", number)
        desk.do("edit.run_plan", id=number, dropped=[])
        (file,) = desk.proposed(number)["files"]
        plain = ONE.removesuffix("\n")
        assert made(plain, file) == re.sub(r"\bx\b", "value", plain)


def test_the_text_in_the_editor_is_what_is_planned_and_changed(tmp_path: Path) -> None:
    typed = "# typed\n\n" + ONE.removesuffix("\n")
    with planned(tmp_path, edits) as (_, desk):
        number = ask(desk, buffers=[buffer(desk.root / "one.py", typed, 12)])
        steps = desk.wait("edit.planned", number)["steps"]
        assert [each["first_row"] for each in steps if each["name"] == "one.py"] == [2]
        desk.do("edit.run_plan", id=number, dropped=[])
        file = by_name(desk.proposed(number))["one.py"]
        assert file["tick"] == 12
        assert "one(value)" in made(typed, file)


def test_a_renamed_file_that_is_also_changed(tmp_path: Path) -> None:
    def steps(text: str) -> list[dict[str, str]]:
        rename = {"action": "rename", "id": key_of(text, "one.py"), "path": "first.py"}
        return [*edits(text)[:1], rename]

    with planned(tmp_path, steps) as (_, desk):
        number = ask(desk)
        desk.wait("edit.planned", number)
        desk.do("edit.run_plan", id=number, dropped=[])
        found = desk.proposed(number)
        (file,) = found["files"]
        assert (file["kind"], file["to"]) == ("rename", str(desk.root / "first.py"))
        wrote = desk.do("edit.write", turn=found["turn"], paths=[file["path"]], outside=False)
        assert desk.wait("edit.written", wrote)["problem"] == ""
        assert "one(value)" in (desk.root / "first.py").read_text()
        assert not (desk.root / "one.py").exists()


def test_a_plan_that_is_stopped_changes_nothing(tmp_path: Path) -> None:
    with planned(tmp_path, all_kinds) as (server, desk):
        number = ask(desk)
        steps = desk.wait("edit.planned", number)["steps"]
        desk.do("edit.stop", id=number)
        assert desk.done(number)["reason"] == "stopped"
        other = ask(desk)
        desk.wait("edit.planned", other)
        desk.do("edit.run_plan", id=other, dropped=[each["key"] for each in steps])
        assert desk.done(other)["reason"] == "stopped"
        assert not desk.told("edit.proposed")
        assert len(server.bodies) == 2


def test_a_planner_of_its_own_plans_and_another_model_writes(tmp_path: Path) -> None:
    def large(body: dict[str, Any]) -> Answer:
        text = text_of(body)
        if "What there is:" in text:
            step = {"action": "edit", "id": key_of(text, "def one"), "do": "Call x value"}
            return reply(json.dumps({"summary": "Value.", "steps": [step]}))
        return reply("Replace each x by value, in the signature as well.")

    settings = EditConfig(retries=0, plan_model="fake2")
    with (
        ChatServer(written) as small,
        ChatServer(large) as planner,
        Desk(tmp_path, small, planner, edit=settings) as desk,
    ):
        desk.put("one.py", ONE)
        number = ask(desk)
        desk.wait("edit.planned", number)
        desk.do("edit.run_plan", id=number, dropped=[])
        desk.proposed(number)
        assert len(planner.bodies) == 2  # the plan, and a sketch of its step
        assert len(small.bodies) == 1
        assert "in the signature as well" in text_of(small.bodies[0])


def test_no_plan_and_an_empty_plan_are_reported(tmp_path: Path) -> None:
    with planned(tmp_path, lambda _: []) as (_, desk):
        end = desk.done(ask(desk))
        assert (end["reason"], bool(end["message"])) == ("nothing", True)
    with ChatServer(lambda _: reply("I cannot.")) as server, Desk(tmp_path, server) as desk:
        end = desk.done(ask(desk))
        assert (end["reason"], bool(end["message"])) == ("rejected", True)


def test_a_server_of_ours_that_went_before_it_was_asked_is_reached_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = gone_once(monkeypatch)
    with planned(tmp_path, all_kinds) as (_, desk):
        number = ask(desk)
        assert len(desk.wait("edit.planned", number)["steps"]) == 4
    assert names == ["fake", "fake"]


@pytest.mark.usefixtures("without_sandbox")
def test_a_rename_across_files_is_tested_once_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies, ran = list[Path](), tmp_path / "ran"
    create = Tree.create

    def counted(root: Path, folder: Path, **options: Any) -> Tree:
        copies.append(folder)
        return create(root, folder, **options)

    monkeypatch.setattr(Tree, "create", counted)
    # It passes where both files say `value` or both say `x`: not at a step in between.
    test = f"echo >> {ran}; test $(grep -c value one.py) -gt 0 -a $(grep -c value two.py) -gt 0"
    config = EditConfig(retries=2, test=test)
    with planned(tmp_path, all_kinds, edit=config) as (server, desk):
        desk.allow(test)
        number = ask(desk)
        desk.wait("edit.planned", number)
        desk.do("edit.run_plan", id=number, dropped=[])
        found = desk.proposed(number)
        assert len(server.bodies) == 4  # the plan, and each part once
        failed = [
            check["text"]
            for file in found["files"]
            for check in file["checks"]
            if check["name"] == "test" and not check["is_ok"]
        ]
        assert not failed
        assert all("test" in [c["name"] for c in file["checks"]] for file in found["files"])
    assert len(ran.read_text().splitlines()) == 1
    assert len(copies) == 1


def test_a_plan_of_one_step_is_tested_at_each_try(tmp_path: Path) -> None:
    test = "grep -q nothing one.py"
    config = EditConfig(retries=1, test=test)
    with planned(tmp_path, lambda text: edits(text)[:1], edit=config) as (server, desk):
        desk.allow(test)
        number = ask(desk)
        desk.wait("edit.planned", number)
        desk.do("edit.run_plan", id=number, dropped=[])
        (file,) = desk.proposed(number)["files"]
        assert len(server.bodies) == 3  # the plan, and two tries
        assert [each["name"] for each in file["checks"] if not each["is_ok"]] == ["test"]


def test_a_plan_that_only_deletes_is_tested(tmp_path: Path) -> None:
    test = "test ! -e old.py"

    def only_old(text: str) -> list[dict[str, str]]:
        return [{"action": "delete", "id": key_of(text, "old.py")}]

    with planned(tmp_path, only_old, edit=EditConfig(retries=0, test=test)) as (_, desk):
        desk.allow(test)
        number = ask(desk)
        desk.wait("edit.planned", number)
        desk.do("edit.run_plan", id=number, dropped=[])
        (file,) = desk.proposed(number)["files"]
        assert [(each["name"], each["is_ok"]) for each in file["checks"]] == [("test", True)]
