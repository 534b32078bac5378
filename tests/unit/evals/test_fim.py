"""How completions are asked for and judged, with an engine that says what it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from evals import fim, rates
from evals.data import DATA, Cut, Task, cuts
from lcursor.errors import Cancelled
from lcursor.fim.engine import Engine, Result
from lcursor.fim.prompt import Source

ADD = Task(
    name="add",
    entry_point="add",
    before="def add(a, b):\n",
    masked="    return a + b\n",
    after="",
    test="def check(candidate):\n    assert candidate(2, 3) == 5\n",
)
CUT = Cut("char", ADD, ADD.before + "    ret", "urn a + b", "\n")


class FixedEngine:
    """An engine that writes the same text everywhere."""

    model = SimpleNamespace(path=Path("none.gguf"), description="none")

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked: list[tuple[Source, bool]] = []
        self.abort = threading.Event()
        self.stopped = 0

    def complete(
        self,
        source: Source,
        on_text: Callable[[str], None],
        *,
        single_line: bool = False,
    ) -> Result:
        self.asked.append((source, single_line))
        if self.text:
            on_text(self.text)
        if self.abort.is_set():
            self.stopped += 1
            raise Cancelled("a newer request came")
        return Result(text=self.text, confidence=0.5, generated_tokens=3)

    def close(self) -> None: ...


def answers(engine: FixedEngine, cuts: list[Cut], typed: int = 3) -> list[rates.Answer]:
    return list(fim.answers(cast("Engine", engine), cuts, typed))


def judge(text: str, cut: Cut = CUT) -> rates.Answer:
    return answers(FixedEngine(text), [cut])[0]


def test_the_true_text_is_exact_and_passes() -> None:
    answer = judge("urn a + b")
    assert (answer.is_exact, answer.is_line_exact, answer.has_passed) == (True, True, True)
    assert 0 < answer.first_ms <= answer.total_ms
    assert (answer.confidence, answer.generated_tokens) == (0.5, 3)


def test_another_way_to_say_it_passes_without_being_exact() -> None:
    answer = judge("urn b + a")
    assert (answer.is_exact, answer.has_passed) == (False, True)
    answer = judge("urn a - b")
    assert (answer.is_exact, answer.has_passed) == (False, False)


def test_silence_is_never_right() -> None:
    """Nor does it pass where the program would do without."""
    lucky = Cut("char", ADD, ADD.before + "    return a + b", "  # the sum", "\n")
    answer = judge("", lucky)
    assert (answer.is_exact, answer.is_line_exact, answer.has_passed) == (False, False, False)
    assert answer.first_ms == 0


def test_white_space_at_the_end_does_not_count() -> None:
    assert judge("urn a + b  \n").is_exact


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nb\n", "a"),
        ("\n    a  \nb", "\n    a"),
        ("\n\n  a", "\n\n  a"),
        ("a", "a"),
        ("", ""),
    ],
)
def test_the_first_line_is_the_first_that_shows(text: str, line: str) -> None:
    assert rates.first_line(text) == line


def test_a_first_line_can_be_right_alone() -> None:
    span = Cut("span", ADD, "def add(a, b):", "\n    c = a + b\n    return c", "\n")
    answer = judge("\n    c = a + b\n    return b", span)
    assert (answer.is_line_exact, answer.is_exact) == (True, False)


def test_keys_are_typed_up_to_the_cut() -> None:
    engine = FixedEngine("urn a + b")
    answers(engine, [CUT], typed=3)
    assert [source.prefix[len(ADD.before) :] for source, _ in engine.asked] == [
        "    ",
        "    r",
        "    re",
        "    ret",
    ]
    assert {source.suffix for source, _ in engine.asked} == {"\n"}
    assert all(single for _, single in engine.asked)
    assert engine.stopped == 3  # each request but the last gave way to the next key


def test_typing_stays_in_its_line() -> None:
    assert fim.keys("x\nab", 5) == ["x\n", "x\na", "x\nab"]
    assert fim.keys("x\n", 5) == ["x\n"]
    assert fim.keys("x\nab", 0) == ["x\nab"]


def test_the_rule_of_the_product_decides_what_is_one_line() -> None:
    engine = FixedEngine("")
    spans = cuts(DATA, "span", 12, 1)
    answers(engine, spans, typed=0)
    assert [single for _, single in engine.asked] == [cut.single_line for cut in spans]


def test_rates_are_shares_of_all_cuts() -> None:
    right, wrong, none = judge("urn a + b"), judge("urn a - b"), judge("")
    found = rates.rates([right, right, wrong, none])
    assert (found.cuts, found.show, found.exact, found.passed) == (4, 0.75, 0.5, 0.5)
    assert found.line_precision == pytest.approx(2 / 3)
    assert rates.rates([]).exact == 0


@pytest.mark.parametrize(
    ("share", "count", "wanted"), [(0.5, 100, 0.0961), (0.0, 10, 0.1388), (0.4, 0, 0.0)]
)
def test_the_margin_is_wilsons(share: float, count: int, wanted: float) -> None:
    assert rates.margin(share, count) == pytest.approx(wanted, abs=1e-3)
