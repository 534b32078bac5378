"""How completions are asked for and judged, with an engine that says what it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from evals import fim, rates
from evals.data import DATA, Cut, Task, cuts
from lcursor.config import CompletionConfig
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


class Parrot:
    """An engine that writes the same text everywhere, and less of it with a threshold."""

    threshold = 0.0

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
        bypass_cache: bool = False,
    ) -> Result:
        assert bypass_cache == (self.threshold > 0)
        if bypass_cache:  # the same place with the gate
            return Result(text=self.text[:3])
        self.asked.append((source, single_line))
        if self.text:
            on_text(self.text)
        if self.abort.is_set():
            self.stopped += 1
            raise Cancelled("a newer request came")
        return Result(text=self.text, confidence=0.5, generated_tokens=3)


def answers(engine: Parrot, cuts: list[Cut], typed: int = 3) -> list[rates.Answer]:
    return list(fim.answers(cast("Engine", engine), cuts, typed))


def judge(text: str, cut: Cut = CUT) -> rates.Answer:
    return answers(Parrot(text), [cut])[0]


def test_the_true_text_is_exact_and_passes() -> None:
    answer = judge("urn a + b")
    assert (answer.is_exact, answer.is_line_exact, answer.has_passed) == (True, True, True)
    assert 0 < answer.first_ms <= answer.total_ms
    assert (answer.confidence, answer.generated_tokens) == (0.5, 3)


def test_another_way_to_say_it_passes_without_being_exact() -> None:
    answer = judge("urn b + a")
    assert (answer.is_exact, answer.has_passed) == (False, True)


def test_a_wrong_text_does_neither() -> None:
    answer = judge("urn a - b")
    assert (answer.is_exact, answer.has_passed) == (False, False)


@pytest.mark.parametrize(
    ("text", "right", "gated_right", "gated_exact"),
    [
        ("urn a + b", True, True, False),
        ("urn a", True, True, False),
        ("urn b", False, True, False),
        ("x", False, False, False),
        ("", False, False, False),
    ],
)
def test_what_is_right_so_far_as_it_goes(
    text: str, right: bool, gated_right: bool, gated_exact: bool
) -> None:
    answer = judge(text)
    assert answer.gated == text[:3]
    found = (answer.is_right, answer.is_gated_right, answer.is_gated_exact)
    assert found == (right, gated_right, gated_exact)


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
    parrot = Parrot("urn a + b")
    answers(parrot, [CUT], typed=3)
    assert [source.prefix[len(ADD.before) :] for source, _ in parrot.asked] == [
        "    ",
        "    r",
        "    re",
        "    ret",
    ]
    assert {source.suffix for source, _ in parrot.asked} == {"\n"}
    assert all(single for _, single in parrot.asked)
    assert parrot.stopped == 3  # each request but the last gave way to the next key


def test_a_key_at_which_nothing_shows_is_no_hindrance() -> None:
    answer = answers(Parrot(""), [CUT], typed=2)[0]
    assert answer.text == ""


def test_typing_stays_in_its_line() -> None:
    assert fim.keys("x\nab", 5) == ["x\n", "x\na", "x\nab"]
    assert fim.keys("x\n", 5) == ["x\n"]
    assert fim.keys("x\nab", 0) == ["x\nab"]


def test_the_product_s_rule_says_what_is_one_line() -> None:
    parrot = Parrot("")
    spans = cuts(DATA, "span", 12, 1)
    answers(parrot, spans, typed=0)
    assert [single for _, single in parrot.asked] == [cut.single_line for cut in spans]


class Loaded(Parrot):
    """An engine as it comes from loading."""

    heals = splices = True

    def __init__(self, path: Path, family: str, config: CompletionConfig, progress: object) -> None:
        super().__init__("x")
        self.path, self.family, self.config = path, family, config
        self.idles, self.reader = 3, self

    def idle(self) -> bool:
        self.idles -= 1
        return self.idles > 0


@pytest.mark.parametrize(("heals", "splices"), [(True, True), (False, True), (True, False)])
def test_an_engine_is_loaded_with_its_switches_and_ready(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, heals: bool, splices: bool
) -> None:
    model = tmp_path / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
    model.touch()
    monkeypatch.setattr(fim, "Engine", Loaded)
    engine = fim.load(str(model), heals=heals, splices=splices)
    assert isinstance(engine, Loaded)
    assert (engine.heals, engine.splices) == (heals, splices)
    assert (engine.idles, engine.path, engine.family) == (0, model, "qwen2.5-coder")
    assert engine.config.budget_ms == fim.BUDGET_MS
