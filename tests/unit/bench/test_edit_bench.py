"""The bench of edits: its cases are there, and what it says follows from what was measured."""

from __future__ import annotations

import pytest

from bench import edit
from bench.edit import Answer, Case, Findings, Pair
from lcursor.errors import LcursorError
from lcursor.llm.records import Usage


@pytest.mark.parametrize("case", edit.CASES, ids=lambda case: f"{case.file} {case.name}")
def test_a_case_is_a_definition_of_forty_lines_and_more(case: Case) -> None:
    task = edit.task_of(case)
    assert len(task.old) >= edit.MIN_ROWS
    assert case.name in task.old[0] + task.old[1]


def test_there_are_enough_of_them() -> None:
    assert len({(case.file, case.name) for case in edit.CASES}) >= 8


def test_a_case_that_is_gone_says_what_to_do() -> None:
    with pytest.raises(LcursorError, match=r"no Nothing of 40 lines") as found:
        edit.task_of(Case("lane.py", "Nothing", "do"))
    assert "CASES" in found.value.hint


def answer(tokens: int, passes: int, ms: float) -> Answer:
    """Return an answer that cost so much."""
    usage = Usage(100, 0, tokens, 10.0, ms, True, 2 * tokens, tokens - passes, passes)
    return Answer(usage, f"{tokens}", ms / 1000, True)


def pair(drafted: Answer, plain: Answer) -> Pair:
    """Return an edit that both made."""
    return Pair(edit.CASES[0], 67, drafted, plain)


def test_promises_are_kept_or_not() -> None:
    good = Findings({}, [pair(answer(300, 60, 3000.0), answer(300, 300, 9000.0))] * 3)
    assert (round(good.fewer, 3), round(good.faster, 3)) == (5.0, 3.0)
    assert good.holds
    slow = Findings({}, [pair(answer(300, 60, 7000.0), answer(300, 300, 9000.0))])
    assert not slow.holds
    many = Findings({}, [pair(answer(300, 150, 3000.0), answer(300, 300, 9000.0))])
    assert not many.holds


def test_answers_of_another_length_are_compared_by_the_token() -> None:
    found = Findings({}, [pair(answer(100, 20, 1000.0), answer(400, 400, 12000.0))])
    assert (round(found.fewer, 3), round(found.faster, 3)) == (5.0, 3.0)
    assert found.as_dict()["same_answers"] == 0


FACTS = {"model": "toy", "machine": {"cpu": "abacus"}, "command": "bench"}


def test_it_is_shown_as_a_table_and_as_json() -> None:
    found = Findings(FACTS, [pair(answer(300, 60, 3000.0), answer(300, 300, 9000.0))])
    text = "\n".join(found.as_markdown())
    assert "Model: toy" in text
    assert "| 67 | 300 | 60 | 300 | 5.0 × | 100.0 | 33.3 | 3.00 × | 40% | yes |" in text
    told = found.as_dict()
    assert told["times_fewer_passes"] == 5.0
    assert told["times_more_tokens_per_s"] == 3.0
    assert told["pairs"][0]["plain"]["passes"] == 300


def test_nothing_measured_holds_nothing() -> None:
    assert not Findings({}).holds
    assert "0 of 0" in Findings(FACTS).as_markdown()[-1]
