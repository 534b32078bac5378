"""What is written behind a prompt, by a model that says what the test wants."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lcursor.config import CompletionConfig
from lcursor.fim import trim
from lcursor.fim.generation import Generator
from lcursor.fim.prompt import Prompt, Source
from lcursor.fim.result import Completion, Result

END, MIDDLE, SIZE = 0, 1, 64


class ScriptedModel:
    """A model, a context and the seats of one prompt: it says the same tokens whatever is read."""

    def __init__(self, *script: tuple[str, float]) -> None:
        self.pieces, self.script = [b"", b""], list[tuple[int, float]]()
        for text, share in script:
            self.script.append((self.token(text) if text else END, share))
        self.current = self
        self.shadow = SimpleNamespace(tail=[MIDDLE])
        self.row, self.batches = 0, list[int]()
        self.is_forgotten = 0

    def token(self, text: str) -> int:
        if text.encode() not in self.pieces:
            self.pieces.append(text.encode())
        return self.pieces.index(text.encode())

    def piece(self, token: int) -> bytes:
        return self.pieces[token]

    def is_end(self, token: int) -> bool:
        return token == END

    @property
    def prompt_logits(self) -> Any:
        return self._logits(0)

    def append(self, tokens: list[int]) -> None:
        self.batches.append(len(tokens))
        self.shadow.tail += tokens

    def logits(self, row: int) -> Any:
        count = self.batches[-1] if self.batches else len(self.shadow.tail) - 1 - self.row
        return self._logits(len(self.shadow.tail) - 1 - count + row + bool(self.batches))

    def truncate_tail(self, keep: int) -> None:
        self.is_forgotten += len(self.shadow.tail) - keep
        if self.batches:
            self.batches[-1] -= len(self.shadow.tail) - keep
        del self.shadow.tail[keep:]

    def _logits(self, number: int) -> Any:
        token, share = self.script[number] if number < len(self.script) else (END, 1.0)
        logits = np.full(SIZE, np.log(max(1 - share, 1e-9) / (SIZE - 1)), np.float32)
        logits[token] = np.log(share)
        return logits


def completion(prefix: str, before: tuple[int, ...] = ()) -> Completion:
    cursor = trim.cursor_context(prefix, "", single_line=False, max_lines=12, path="a.py")
    built = Prompt(before, None, (), (MIDDLE,), "", "")
    return Completion(Source(prefix, "", 0, "a.py"), False, built, b"", cursor, Result(), built)


def generator(model: Any, guesses: int = 0, **settings: Any) -> Generator:
    config = CompletionConfig(**settings)
    return Generator(model, model, model, SimpleNamespace(stops=()), config, guesses)  # type: ignore[arg-type]


def generate(generator: Generator, where: Completion, **options: Any) -> tuple[Result, list[str]]:
    told = list[str]()
    generator.generate(where, told.append, 0.0, **options)
    return where.result, told


@pytest.mark.parametrize(
    ("script", "text", "reason"),
    [
        ([("a", 0.9), (" +", 0.9), (" b", 0.9), ("", 0.9)], "a + b", "end"),
        ([("counter", 0.9), (" +", 0.9), (" b", 0.1)], "counter", "unsure"),
        ([("counter", 0.9), (" +", 0.1)], "counter", "unsure"),  # the last token ends the name
        ([("counter", 0.9), ("(", 0.1)], "", "unsure"),
        ([("counter", 0.9), ("ed", 0.1)], "", "unsure"),
        ([("count", 0.9), (" +", 0.4), (" b", 0.9), ("", 0.9)], "count + b", "end"),
        ([("find", 0.9), ("(a", 0.9), (") ", 0.9), ("+ ", 0.9), ("x", 0.1)], "find(a)", "unsure"),
    ],
)
def test_a_text_that_becomes_unsure_ends_where_it_makes_sense(
    script: list[tuple[str, float]], text: str, reason: str
) -> None:
    result, told = generate(
        generator(ScriptedModel(*script)), completion("    return "), threshold=0.5
    )
    assert (result.text, result.reason) == (text, reason)
    assert all(text.startswith(part) for part in told)


@pytest.mark.parametrize(
    ("script", "confidence"),
    [
        ([("\n", 0.99), ("    x", 0.2)], 0.2),  # the rest of the line is empty
        ([("counter", 0.9), ("ed", 0.1)], 0.09),
        ([("counter", 0.9), (" +", 0.1)], 0.9),  # "counter" is shown
    ],
)
def test_the_confidence_is_that_of_the_line_that_decided(
    script: list[tuple[str, float]], confidence: float
) -> None:
    result, _ = generate(
        generator(ScriptedModel(*script)), completion("    return "), threshold=0.5
    )
    assert result.reason == "unsure"
    assert result.confidence == pytest.approx(confidence, abs=0.01)


@pytest.mark.parametrize(
    ("prefix", "text"),
    [
        ("def f(a):\n    ", "a += 1\n    return b"),
        ("x = 1\ndef f(a):", "\n    a += 1"),
        ("a = ", ""),
    ],
)
def test_less_is_needed_in_an_empty_block(prefix: str, text: str) -> None:
    lines = [("\n    ", 0.9)] if prefix.endswith(":") else []
    model = ScriptedModel(*lines, ("a += 1", 0.1), ("\n    ", 0.9), ("return b", 0.1), ("", 0.9))
    result, _ = generate(generator(model), completion(prefix), threshold=0.4)
    assert result.text.startswith(text)
    assert bool(result.text) == bool(text)


def test_a_budget_of_tokens_cuts_as_well() -> None:
    model = ScriptedModel(("find(a)", 0.9), (" +", 0.9), (" b", 0.9))
    result, _ = generate(generator(model, max_tokens=2), completion("    return "))
    assert (result.text, result.reason, result.passes) == ("find(a)", "tokens", 1)


LINE = [("find", 0.9), ("(a", 0.9), (",", 0.9), (" b", 0.9), (")", 0.9), ("", 0.9)]


def test_the_rest_of_the_last_suggestion_is_the_draft() -> None:
    model = ScriptedModel(*LINE)
    engine = generator(model, guesses=3)
    generate(engine, completion("y = "))
    ids = [model.token(text) for text, _ in LINE[:-1]]
    assert engine.draft(completion("y = ")) == ids
    assert engine.draft(completion("y = find(x, ")) == []
    assert engine.draft(completion("y = find(x, b")) == ids[4:]


@pytest.mark.parametrize(
    ("forced", "is_possible"), [(b"", True), (b"f", True), (b"foo(bar", True), (b"g", False)]
)
def test_a_draft_agrees_with_the_forced_text(forced: bytes, is_possible: bool) -> None:
    model = ScriptedModel()
    before = tuple(model.token(text) for text in ("x", "y", "fo", "o(", "x", "y"))
    engine = generator(model, guesses=2)
    found = engine.draft(replace(completion("xy", before), forced=forced))
    assert found == ([*before[2:4]] if is_possible else [])


def test_a_draft_that_was_read_with_the_prompt_costs_no_pass() -> None:
    model = ScriptedModel(*LINE)
    ids = [model.token(text) for text, _ in LINE[:-1]]
    model.shadow.tail += ids[:3]
    result, _ = generate(generator(model, guesses=3), completion("y = "), draft=ids)
    assert result.text == "find(a, b)"
    assert model.batches == [2]  # the rest of the draft in one
    assert result.passes == 1
    assert model.is_forgotten == 0


def test_a_draft_that_is_wrong_is_taken_back() -> None:
    model = ScriptedModel(*LINE)
    wrong = [model.token(text) for text in ("find", "(x", ")")]
    model.shadow.tail += wrong
    result, _ = generate(generator(model, guesses=3), completion("y = "), draft=wrong)
    assert result.text == "find(a, b)"
    assert model.is_forgotten == 2
