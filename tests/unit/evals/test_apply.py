"""The apply corpus: nothing of it is applied wrong, and the command says so."""

from __future__ import annotations

import json

import pytest

from evals import apply
from lcursor.changes.apply import resolve
from lcursor.changes.records import Change, FileChange

TASKS = apply.load()


@pytest.fixture(scope="module")
def judged() -> list[apply.Judged]:
    return list(apply.judge(TASKS))


def test_each_reply_has_the_outcome_that_is_recorded(judged: list[apply.Judged]) -> None:
    """After an intended change: `python -m lcursor eval apply --record`, and read the diff."""
    assert apply.not_applied(judged) == json.loads(apply.OUTCOMES.read_text())


def test_nothing_is_applied_wrong_and_nearly_all_is_applied(judged: list[apply.Judged]) -> None:
    document = apply.as_dict(judged)
    assert document["mistakes"] == []
    assert document["total"] >= 300
    assert document["right_share"] >= 0.98


def test_a_wrong_change_is_seen() -> None:
    task = next(task for task in TASKS if task.right is not None)
    path = next(iter(task.files))
    wrong = FileChange(path, changes=(Change(0, 1, task.files[path][:1], ("no",)),))
    assert apply._compared(task, [wrong]).outcome == "wrong"
    assert apply._compared(task, []).outcome == "rejected"


def test_a_question_that_comes_again_after_its_answer_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (task,) = [task for task in TASKS if task.name == "trap-twins:dependent"]
    (judged,) = apply.judge([task])
    assert judged.outcome == "rejected"
    monkeypatch.setattr(resolve.Ask, "chosen", lambda ask, _: ask.answers)
    (judged,) = apply.judge([task])
    assert judged.outcome == "wrong"
