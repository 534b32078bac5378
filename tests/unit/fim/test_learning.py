"""The statistics of `:LCursor stats`, and the threshold that adapts to what the user accepts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor import protocol
from lcursor.fim import outcomes
from tests.unit.fim.test_outcomes import ROW


def row(**more: Any) -> Any:
    """Return a row that differs in that."""
    return replace(ROW, **more)


def test_statistics_of_no_outcomes() -> None:
    said = outcomes.stats([], {}, "/x", "it is broken")
    protocol.check("stats", dict(said), protocol.TO_LUA)
    assert (said["rows"], said["since_s"], said["problem"]) == ([], 0.0, "it is broken")
    total = said["total"]
    assert (total["shown"], total["accept_share"], total["p50_ms"]) == (0, -1.0, -1.0)


def test_outcomes_are_counted_by_filetype_and_in_all() -> None:
    rows = [
        row(filetype="lua", outcome="rejected", latency_ms=100.0),
        *[row(latency_ms=float(number)) for number in range(1, 21)],
        row(outcome="ignored", latency_ms=-1.0, source="cache", through_keys=7),
    ]
    said = outcomes.stats(rows, {"": 0.4, "lua": 0.5}, "/x")
    python, lua = said["rows"]
    assert (python["filetype"], lua["filetype"]) == ("python", "lua")
    assert (python["shown"], python["accepted"], python["ignored"]) == (21, 20, 1)
    assert (python["p50_ms"], python["p95_ms"]) == (10.0, 19.0)
    assert python["accept_share"] == 1.0
    assert python["cache_share"] == pytest.approx(1 / 21, abs=1e-4)
    assert python["through_share"] == pytest.approx(47 / 68, abs=1e-4)
    assert (python["threshold"], lua["threshold"]) == (0.4, 0.5)
    total = said["total"]
    assert (total["shown"], total["rejected"], total["p95_ms"]) == (22, 1, 20.0)
    assert total["accept_share"] == pytest.approx(20 / 21, abs=1e-4)


@pytest.mark.parametrize(
    ("outcome", "confidence", "learned"),
    [
        ("accepted", 0.5, [("python", 0.5, True)]),
        ("partial", 0.5, [("python", 0.5, True)]),
        ("typed", 0.5, [("python", 0.5, True)]),
        ("rejected", 0.5, [("python", 0.5, False)]),
        ("ignored", 0.5, []),
        ("accepted", -1.0, []),
        ("accepted", 0.0, []),
    ],
)
def test_outcomes_that_adapt_the_threshold(
    outcome: str, confidence: float, learned: list[Any]
) -> None:
    assert outcomes.history([row(outcome=outcome, confidence=confidence)]) == learned


def test_every_outcome_of_the_wire_is_counted() -> None:
    for outcome in get_args(protocol.fim.Outcome):
        total = cast("dict[str, Any]", outcomes.stats([row(outcome=outcome)], {}, "/x")["total"])
        assert total[outcome] == 1


BASE = 0.4
LOW, HIGH = 0.2, 0.7
History = list[tuple[float, bool]]


def many(confidence: float, accepts: int, rejects: int) -> History:
    """Return so many outcomes at one confidence."""
    return [(confidence, True)] * accepts + [(confidence, False)] * rejects


@pytest.mark.parametrize(
    ("history", "wanted"),
    [
        ([], BASE),
        (many(0.41, 0, 29), BASE),  # too few to say anything
        (many(0.41, 29, 0), BASE),
        (many(0.9, 500, 500), BASE),  # what is far above the threshold says nothing about it
        (many(0.9, 0, 500), BASE),
        (many(0.41, 0, 30), 0.46),  # the first step is closed
        (many(0.41, 0, 30) + many(0.47, 0, 30), 0.52),  # and the second
        (many(0.47, 0, 500), BASE),  # the first step stands before it
        (many(0.41, 10, 30), BASE),  # one of four is accepted: it is worth its place
        (many(0.41, 30, 30), 0.36),  # one step is opened, not more
        (many(0.41, 30, 30) + many(0.37, 30, 0), 0.32),
        (many(0.41, 30, 30) + many(0.37, 0, 13), BASE),  # it was opened, and that was wrong
        (many(0.41, 3, 0) + many(0.9, 100, 0), BASE),  # three are chance
    ],
)
def test_the_threshold_moves_by_steps(history: History, wanted: float) -> None:
    assert outcomes.threshold(BASE, history) == pytest.approx(wanted)


@pytest.mark.parametrize(("accepted", "wanted"), [(True, LOW), (False, HIGH)])
def test_the_threshold_has_bounds(accepted: bool, wanted: float) -> None:
    history = [(number / 1000, accepted) for number in range(1001)]
    assert outcomes.threshold(BASE, history) == pytest.approx(wanted)


@pytest.mark.parametrize("base", [0.0, 1.0])
def test_a_threshold_of_0_or_1_never_moves(base: float) -> None:
    assert outcomes.threshold(base, many(0.5, 100, 0) + many(0.0, 0, 100)) == base


HISTORIES = st.lists(
    st.tuples(
        st.sampled_from([0.05, 0.3, 0.35, 0.39, 0.4, 0.43, 0.47, 0.55, 0.69, 0.9]), st.booleans()
    ),
    max_size=60,
).flatmap(lambda some: st.integers(1, 12).map(lambda times: some * times))
BASES = st.floats(0.01, 0.99)
CONFIDENCES = st.floats(0, 1)


@given(BASES, HISTORIES)
def test_any_threshold_is_within_its_bounds(base: float, history: History) -> None:
    moved = outcomes.threshold(base, history)
    assert base / 2 <= moved <= (1 + base) / 2
    if len(history) < 30:
        assert moved == base


@given(BASES, HISTORIES, CONFIDENCES, st.integers(1, 40))
def test_rejections_never_lower_the_threshold(
    base: float, history: History, confidence: float, count: int
) -> None:
    more = history + many(confidence, 0, count)
    assert outcomes.threshold(base, more) >= outcomes.threshold(base, history)


@given(BASES, HISTORIES, CONFIDENCES, st.integers(1, 40))
def test_accepts_never_raise_the_threshold(
    base: float, history: History, confidence: float, count: int
) -> None:
    more = history + many(confidence, count, 0)
    assert outcomes.threshold(base, more) <= outcomes.threshold(base, history)


def test_a_filetype_with_enough_outcomes_has_its_own_threshold() -> None:
    history = [("lua", 0.41, False)] * 40 + [("c", 0.41, True)] * 29
    found = outcomes.thresholds(BASE, history)
    assert found["lua"] == pytest.approx(0.46)
    assert set(found) == {"lua", ""}
    assert found[""] == BASE  # 29 of 69 accepted


@pytest.mark.parametrize(
    ("decisions", "until_s"),
    [
        ("rrrr", None),
        ("rrrrr", 5 + 1800),
        ("rrrrrrr", 7 + 4 * 1800),
        ("rrrrrar", None),
        ("arrrrr", 6 + 1800),
        ("r" * 40, 40 + outcomes.MAX_HIDDEN_S),
    ],
)
def test_a_kind_of_next_edit_is_hidden_after_rejections_in_a_row(
    decisions: str, until_s: float | None
) -> None:
    rows = [
        outcomes.next_edit_row(number, "python", "rename", is_accepted=decision == "a")
        for number, decision in enumerate(decisions, 1)
    ]
    others = [
        outcomes.next_edit_row(50, "lua", "rename", is_accepted=True),
        outcomes.next_edit_row(51, "python", "repetition", is_accepted=False),
        row(filetype="python", outcome="accepted"),
    ]
    expected = {} if until_s is None else {("rename", "python"): until_s}
    assert outcomes.hidden([*rows, *others]) == expected


def test_next_edits_are_not_counted_as_suggestions() -> None:
    rows = [outcomes.next_edit_row(1, "python", "rename", is_accepted=it) for it in (True, False)]
    said = outcomes.stats(rows, {}, "/x")
    protocol.check("stats", dict(said), protocol.TO_LUA)
    assert said["total"]["shown"] == 0
    assert said["next_edits"] == [{"kind": "rename", "accepted": 1, "rejected": 1}]
    assert outcomes.history(rows) == []
