"""The rates, gates and tables of `eval fim`."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals import fim, rates
from evals.data import Kind
from evals.rates import Answer


def answer(
    confidence: float, is_right: bool, *, text: str = "x", kind: Kind = "char", passed: bool = True
) -> Answer:
    return Answer(
        kind=kind,
        task="t",
        text=text,
        rest="x",
        is_exact=is_right,
        is_line_exact=is_right,
        has_passed=passed and bool(text),
        confidence=confidence,
        read_tokens=5,
        generated_tokens=2,
        first_ms=10.0,
        total_ms=20.0,
    )


FOUR = [answer(0.9, True), answer(0.8, True), answer(0.3, False), answer(0.2, False, text="")]
FACTS = {
    "machine": {"cpu": "abacus"},
    "model": "m.gguf",
    "command": "python -m lcursor eval fim",
    "seed": 1,
    "typed": 3,
    "heals": True,
    "window": "full",
    "splices": False,
}


def test_rates_are_shares() -> None:
    found = rates.rates(FOUR)
    assert (found.cuts, found.shown) == (4, 3)
    assert (found.show, found.exact, found.passed) == (0.75, 0.5, 0.75)
    assert found.precision == found.line_precision == pytest.approx(2 / 3)


def test_a_gate_makes_silent() -> None:
    found = rates.rates(FOUR, gate=0.85)
    assert (found.show, found.exact, found.precision, found.passed) == (0.25, 0.25, 1.0, 0.25)
    assert rates.rates(FOUR, gate=0.8).shown == 2  # the threshold itself is shown


def test_nothing_shown_divides_by_nothing() -> None:
    assert rates.rates(FOUR, gate=1.0).precision == 0
    assert rates.rates([]).show == 0
    assert rates.best_gate([]).gain == 0


def test_the_best_gate_shows_half() -> None:
    found = rates.best_gate(FOUR)
    assert (found.threshold, found.show, found.line_precision) == (0.8, 0.5, 1.0)
    assert found.gain == pytest.approx(1.5)
    assert found.holds


def test_a_gate_that_shows_too_little_is_none() -> None:
    quiet = [answer(0.9, True), *[answer(0.1, False)] * 3]
    found = rates.best_gate(quiet)
    assert (found.threshold, found.show, found.holds) == (0.0, 1.0, False)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.booleans()), max_size=40))
def test_a_best_gate_is_never_worse_than_none(rows: list[tuple[float, bool, bool]]) -> None:
    answers = [answer(at, right, text="x" if some else "") for at, right, some in rows]
    found, open_ = rates.best_gate(answers), rates.rates(answers)
    assert found.line_precision >= open_.line_precision
    assert found.show >= min(rates.SHOW, open_.show)


@pytest.mark.parametrize(
    ("share", "count", "wanted"), [(0.5, 100, 0.0961), (0.0, 10, 0.1388), (0.4, 0, 0.0)]
)
def test_the_margin_is_wilsons(share: float, count: int, wanted: float) -> None:
    assert rates.margin(share, count) == pytest.approx(wanted, abs=1e-3)


def test_kinds_are_counted_apart_and_together() -> None:
    both = [*FOUR, answer(0.7, False, kind="span")]
    assert {name: len(group) for name, group in rates.groups(both).items()} == {
        "char": 4,
        "span": 1,
        "all": 5,
    }
    assert list(rates.groups(FOUR)) == ["char"]


def test_the_document_has_what_the_table_shows() -> None:
    document = json.loads(json.dumps(fim.as_dict(FOUR, FACTS, gate=0.85)))
    assert document["cuts"]["char"]["exact"] == 0.25
    assert document["thresholds"]["char"][0]["show"] == 0.75  # the tables know no gate
    assert document["best_gate"]["char"]["holds"] is True
    table = "\n".join(fim.as_markdown(document))
    assert "abacus" in table
    assert "healing on, splice off, gate 0.85, 3 keys" in table
    assert "| char | 4 | 25 % ± " in table
    assert "| – |" not in table
    of_source = "\n".join(fim.as_markdown({**document, "source": "steps.py"}))
    assert re.search(r"\| char \| 4 \| 25 % ± \d+ \| – \| ", of_source)  # no test judges it
    assert "| 0.8 | 50 %, 100 % |" in table
    assert "0.80, shown 50 %, precision 100 %, 1.50 × ungated (wanted 1.5: yes)" in table


def test_the_default_gate_is_compared_with_none() -> None:
    """Of four cuts three are shown without it, one of them right; with it two, both right."""

    def both(text: str, gated: str) -> Answer:
        return replace(answer(0.5, text == "x = 1"), text=text, gated=gated, rest="x = 1")

    answers = [both("x = 1", "x = 1"), both("x + 2", "x "), both("y", ""), both("", "")]
    found = rates.default_gate(answers)
    assert found.open_show == 0.75
    assert found.open_right == pytest.approx(1 / 3)
    assert (found.show, found.right, found.exact, found.open_exact) == (0.5, 1.0, 0.25, 0.25)
    assert found.gain == pytest.approx(3.0)
    assert found.holds
    quiet = rates.default_gate([both("x = 1", "x = 1"), *[both("y", "")] * 2])
    assert quiet.gain == pytest.approx(3.0)
    assert not quiet.holds  # shows too little
