"""The eval of agents: its tasks, how a result is judged, and the report."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from evals import agent
from evals.agent import Change, Result, Task

TASKS = agent.load()
TASK = next(each for each in TASKS if each.name == "shop-take")


def test_there_are_24_tasks_in_three_projects() -> None:
    assert len({each.name for each in TASKS}) == len(TASKS) == 24
    assert {each.project for each in TASKS} == {"shop", "notes", "trips"}


def test_a_wrong_check_is_found() -> None:
    assert not agent.is_sound(dataclasses.replace(TASK, check=""))
    assert not agent.is_sound(dataclasses.replace(TASK, check="raise ValueError"))


def test_a_change_must_fit_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n")
    for old in ("x = 1", "y"):
        with pytest.raises(ValueError, match=r"a\.py"):
            agent.change(tmp_path, [Change("a.py", old, "z")])


def result(task: Task, **fields: object) -> Result:
    given = {"agent": "lcursor", "is_solved": False, "end": "done", "cause": "", "steps": 4,
             "malformed": 1, "read_tokens": 100, "answer_tokens": 20, "seconds": 0.0}  # fmt: skip
    return Result(task.name, **{**given, **fields})  # type: ignore[arg-type]


def solve(task: Task, folder: Path) -> Result:
    agent.change(folder, task.solution)
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
    document = agent.as_dict(found, 2)
    assert (document["tasks"], document["solved"], document["baseline"]) == (2, 1, 0)
    assert document["valid"] == 0.9
    assert document["agents"][0]["steps"] == 5
    assert document["agents"][0]["seconds"] == 1.5
    assert document["unsolved"][1] == {
        "agent": "mini-swe-agent", "task": TASKS[0].name, "cause": "wrong place",
        "end": "LimitsExceeded",
    }  # fmt: skip
    alone = agent.as_dict(found[:2], 2)
    assert (alone["baseline"], len(alone["agents"])) == (None, 1)
    lines = agent.as_markdown({"machine": {}, "command": "c", "model": "small", **document})
    assert "Model: small  " in lines
    assert f"- not solved: {TASKS[1].name}, lcursor: no change, done" in lines
