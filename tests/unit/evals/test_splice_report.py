"""What `eval splice` makes of its cases."""

from __future__ import annotations

import pytest

from evals import splice as report
from evals.splice import Case

FACTS = {"machine": {"cpu": "none"}, "model": "none", "command": "none", "seed": 1}


def case(exact: list[float], factor: float, language: str = "c", file: str = "file") -> Case:
    spliced = {2: [value * factor for value in exact], 16: [value * factor for value in exact]}
    return Case(language, f"{language}/{file}", 3, "x", exact, spliced, [3] * 18)


def test_each_token_counts_the_same() -> None:
    found = report.compare([case([4.0], 1.0), case([1.0, 1.0, 1.0], 2.0)], 2)
    assert (found.positions, found.tokens) == (2, 4)
    assert found.exact == pytest.approx(7 / 4)
    assert found.spliced == pytest.approx(10 / 4)
    assert found.ratio == pytest.approx(10 / 7)
    assert not found.holds


@pytest.mark.parametrize(
    ("factor", "typed", "holds"),
    [
        (0.9, 2, True),
        (1.019, 2, True),
        (1.03, 2, False),
        (1.03, 8, False),
        (1.03, 16, True),
        (1.05, 16, False),
    ],
)
def test_late_splices_may_cost_more(factor: float, typed: int, holds: bool) -> None:
    cases = [case([2.0, 1.0], factor)]
    cases[0].spliced[8] = cases[0].spliced[2]
    assert report.compare(cases, typed).holds is holds


def test_the_interval_holds_the_ratio_and_shrinks_with_more() -> None:
    sums = [(1.0, 1.0 + 0.2 * (number % 3)) for number in range(12)]
    low, high = report.interval(sums)
    assert low < 1.2 < high
    more_low, more_high = report.interval(sums * 8)
    assert low < more_low < 1.2 < more_high < high
    assert report.interval(sums) == (low, high)
    assert report.interval([(2.0, 3.0)] * 5) == (1.5, 1.5)


def test_places_of_one_file_are_drawn_together() -> None:
    factors = [1.0, 1.2, 1.4, 1.0, 1.2, 1.4]
    apart = report.compare([case([1.0], f, file=str(n)) for n, f in enumerate(factors)], 2)
    together = report.compare([case([1.0], f) for f in factors], 2)
    assert apart.ratio == together.ratio == pytest.approx(1.2)
    assert apart.low < 1.2 < apart.high
    assert together.low == together.high == together.ratio


def test_nothing_to_pay_is_no_ratio() -> None:
    assert report.compare([case([0.0], 1.0)], 2).ratio == 1


def test_the_document_has_every_language_and_all() -> None:
    document = report.as_dict([case([2.0], 1.01), case([1.0], 1.1, "lua")], FACTS)
    rows = {(row["typed"], row["language"]): row for row in document["comparisons"]}
    assert set(rows) == {(typed, name) for typed in (2, 16) for name in ("all", "c", "lua")}
    assert rows[2, "lua"]["ratio"] == pytest.approx(1.1)
    assert document["files"] == {"c": ["c/file"], "lua": ["lua/file"]}
    assert document["key_tokens"] == {"p50": 3, "p95": 3}
    assert document["holds"] is False
    text = "\n".join(report.as_markdown(document))
    assert "| 16 | all | 2 | 2 | 1.500 | 1.560 | 1.040 |" in text
    assert "≤ 1.02 | **no** |" in text
    assert "- lua: lua/file" in text
