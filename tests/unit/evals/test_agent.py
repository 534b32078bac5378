"""The eval of agents: its tasks, how a result is judged, and the report."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from evals import agent, agent_tasks
from evals.agent import Result
from evals.agent_tasks import LANGUAGES, Change, Task

TASKS = agent_tasks.load()
TASK = next(each for each in TASKS if each.name == "shop-take")
HELD_OUT = agent_tasks.load(agent_tasks.HELD_OUT)
MISSING = {"lua": "lua is not here", "node": "node is not here"}


def test_there_are_24_tasks_in_three_projects() -> None:
    assert len({each.name for each in TASKS}) == len(TASKS) == 24
    assert {each.project.name for each in TASKS} == {"shop", "notes", "trips"}


def test_16_tasks_in_three_languages_are_held_out() -> None:
    assert len({each.name for each in HELD_OUT + TASKS}) == 16 + 24
    assert [sum(each.language == some for each in HELD_OUT) for some in LANGUAGES.values()] == [
        6,
        5,
        5,
    ]
    assert {each.tests for each in HELD_OUT} == {"fail", "pass"}
    changes = [each for task in HELD_OUT for each in task.solution]
    assert not any(each.file.startswith("tests/") for each in changes)


def first(language: str) -> Task:
    """Return the first held-out task in a language."""
    wanted = LANGUAGES[language]
    if not wanted.is_here:
        pytest.skip(MISSING[wanted.runs[0]])
    return next(each for each in HELD_OUT if each.language == wanted)


@pytest.mark.parametrize("language", LANGUAGES)
def test_tasks_are_checked_in_their_language(language: str) -> None:
    assert agent_tasks.is_sound(first(language))


def test_a_wrong_check_is_found() -> None:
    assert not agent_tasks.is_sound(dataclasses.replace(TASK, check=""))
    assert not agent_tasks.is_sound(dataclasses.replace(TASK, check="raise ValueError"))


def test_tests_that_do_not_fail_at_first_are_found() -> None:
    assert not agent_tasks.is_sound(dataclasses.replace(first("python"), tests="pass"))


def test_tests_count_and_may_not_be_changed(tmp_path: Path) -> None:
    task, folder = dataclasses.replace(first("python"), check="pass"), tmp_path / "project"
    agent_tasks.make_project(task, folder)
    assert not agent_tasks.is_done(task, folder)
    assert agent_tasks.is_done(dataclasses.replace(task, tests=""), folder)
    path = next(folder.glob("tests/test_*.py"))
    agent_tasks.change(folder, task.solution)
    (folder / "tests/test_more.py").write_text("")
    assert agent_tasks.is_done(task, folder)
    path.write_text(path.read_text() + "\n")
    assert not agent_tasks.is_done(task, folder)
    path.unlink()
    assert not agent_tasks.is_done(task, folder)


def test_tasks_without_their_program_are_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    agent.command(tasks=agent_tasks.HELD_OUT, only_check=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("0 tasks are right")
    assert f"- skipped: {HELD_OUT[0].name}, python3 is not here" in lines
    assert len(lines) == 17


def test_a_change_must_fit_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n")
    for old in ("x = 1", "y"):
        with pytest.raises(ValueError, match=r"a\.py"):
            agent_tasks.change(tmp_path, [Change("a.py", old, "z")])


def result(task: Task, **fields: object) -> Result:
    given = {"agent": "lcursor", "is_solved": False, "end": "done", "cause": "", "steps": 4,
             "malformed": 1, "read_tokens": 100, "answer_tokens": 20, "seconds": 0.0}  # fmt: skip
    return Result(task.name, **{**given, **fields})  # type: ignore[arg-type]


def solve(task: Task, folder: Path) -> Result:
    agent_tasks.change(folder, task.solution)
    return result(task)


def edit_elsewhere(task: Task, folder: Path) -> Result:
    (folder / "README.md").write_text("?")
    return result(task)


def edit_wrongly(task: Task, folder: Path) -> Result:
    (folder / "shop/stock.py").write_text("")
    return result(task)


def edit_nothing(task: Task, folder: Path) -> Result:
    return result(task)


def test_a_result_is_judged_by_the_files() -> None:
    agents = (solve, edit_elsewhere, edit_wrongly, edit_nothing)
    found = [agent.measure(TASK, each) for each in agents]
    assert [each.is_solved for each in found] == [True, False, False, False]
    assert [each.cause for each in found] == ["", "wrong place", "wrong change", "no change"]


def test_the_report_of_tasks() -> None:
    found = [
        result(TASKS[0], is_solved=True),
        result(TASKS[1], cause="no change", malformed=0, steps=6, seconds=3.0),
        result(TASKS[0], agent="mini-swe-agent", cause="wrong place", end="LimitsExceeded"),
    ]
    facts = {"machine": {}, "command": "c", "model": "small"}
    document = agent.as_dict(found, 2)
    assert (document["tasks"], document["solved"], document["baseline"]) == (2, 1, 0)
    assert document["valid"] == 0.9
    assert document["agents"][0]["steps"] == 5
    assert document["agents"][0]["seconds"] == 1.5
    assert document["unsolved"][1] == {
        "agent": "mini-swe-agent", "task": TASKS[0].name, "cause": "wrong place",
        "end": "LimitsExceeded",
    }  # fmt: skip
    alone = agent.as_dict(found[:2], 2, {"a": "b is not here"})
    assert (alone["baseline"], len(alone["agents"])) == (None, 1)
    assert "- skipped: a, b is not here" in agent.as_markdown({**facts, **alone})
    lines = agent.as_markdown({**facts, **document})
    assert "Model: small  " in lines
    assert f"- not solved: {TASKS[1].name}, lcursor: no change, done" in lines
