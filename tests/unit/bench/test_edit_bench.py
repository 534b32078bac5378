"""`bench edit`: its cases exist, and its promises follow from what was measured."""

from __future__ import annotations

import pytest

from bench import edit
from bench.edit import Answer, Pair
from lcursor.llm.records import Usage


@pytest.mark.parametrize("case", edit.CASES, ids=lambda case: f"{case[0]} {case[1]}")
def test_a_case_is_a_definition_of_forty_lines_and_more(case: tuple[str, str, str]) -> None:
    task = edit.task_of(*case)
    assert len(task.old) >= edit.MIN_ROWS
    assert case[1] in "".join(task.old[:2])


def answer(tokens: int, passes: int, ms: float) -> Answer:
    """Return an answer that cost so much."""
    usage = Usage(100, 0, tokens, 10.0, ms, True, 2 * tokens, tokens - passes, passes)
    return Answer(usage, f"{tokens}", ms / 1000, True)


@pytest.mark.parametrize(
    ("drafted", "plain", "fewer", "faster", "holds"),
    [
        ((300, 60, 3000), (300, 300, 9000), 5.0, 3.0, True),
        ((300, 60, 7000), (300, 300, 9000), 5.0, 1.29, False),
        ((300, 150, 3000), (300, 300, 9000), 2.0, 3.0, False),
        ((100, 20, 1000), (400, 400, 12000), 5.0, 3.0, True),  # compared by the token
    ],
)
def test_the_gains(
    drafted: tuple[int, int, float],
    plain: tuple[int, int, float],
    fewer: float,
    faster: float,
    holds: bool,
) -> None:
    found = edit.summary([Pair("a.py x", 67, answer(*drafted), answer(*plain))] * 3)
    assert (found["times_fewer_passes"], found["times_more_tokens_per_s"]) == (fewer, faster)
    assert found["holds"] is holds
