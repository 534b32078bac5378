"""Writes a suggestion: the likeliest tokens, as far as the judge and the rules let them stand.

Owns what was written last, as a source of guesses. The prompt must stand in the current seat; whose
it is and what else is done with it is the engine's matter.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from lcursor.config import CompletionConfig
from lcursor.fim import llama, prompt, trim
from lcursor.fim.families import Resolved
from lcursor.fim.judge import Judge, Verdict, sure_part
from lcursor.fim.result import OnText, Result
from lcursor.fim.seats import OUTPUTS, Seats
from lcursor.fim.vocabulary import Vocabulary
from lcursor.fim.writer import Writer

ALTERNATIVES = 2
LEAST_SHARE = 0.03
"""Probability of a token below which no alternative begins with it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was written, so that it can be gone on with."""

    source: prompt.Source
    single_line: bool
    built: prompt.Prompt
    heal: bytes
    facts: trim.Around
    result: Result


class Author:
    """Writes behind the current prompt.

    Args:
        model: reads tokens back.
        context: gives the logits.
        seats: has the prompt.
        family: knows the tokens that end a text.
        config: budgets.
        guesses: most tokens guessed a pass.
    """

    def __init__(
        self,
        model: llama.Model,
        context: llama.Context,
        seats: Seats,
        family: Resolved,
        config: CompletionConfig,
        guesses: int,
    ) -> None:
        self._model, self._context, self._seats = model, context, seats
        self._family, self._config = family, config
        self._last_tokens: list[int] = []
        self.guesses = guesses
        self.threshold = 0.0
        """Confidence below which nothing is shown; a text is cut where it falls below it."""
        self.vocabulary: Vocabulary | None = None
        """Heals the token at the cursor, once it is there."""

    def configure(self, config: CompletionConfig) -> None:
        """Apply other budgets."""
        self._config = config

    def write(
        self,
        place: Place,
        on_text: OnText,
        started: float,
        forced: Sequence[int] = (),
        threshold: float | None = None,
    ) -> None:
        """Write the most likely text behind the prompt into the place's result.

        Args:
            place: its prompt stands in the current seat, and nothing behind it.
            on_text: see `complete`.
            started: when the work began.
            forced: tokens to begin with.
            threshold: least confidence; the engine's own where none is given.
        """
        facts, heal, result = place.facts, place.heal, place.result
        suggestion, data, text, sure = trim.Suggestion(facts), b"", "", ""
        verdict: Verdict = "sure"
        judge = Judge(self.threshold if threshold is None else threshold)
        most = self.guesses
        writer = Writer(self._context, self._seats, place.built, self._last_tokens, most, forced)
        began = time.perf_counter()
        result.reason = "tokens"
        logits = self._seats.current.first_logits
        for number in range(self._config.max_tokens):
            if logits is None:
                break
            among = self.vocabulary.allowed(heal) if heal and self.vocabulary else None
            token, share = llama.most_likely(logits, among)
            if number < len(forced):
                token, share = forced[number], 1.0
            if not heal and (token in self._family.stops or self._model.is_end(token)):
                result.reason = "end"
                break
            verdict = judge.verdict(share)
            if verdict == "no":
                result.reason = "unsure"
                break
            result.tokens.append(token)
            result.logprobs.append(math.log(max(share, 1e-9)))
            piece = self._model.piece(token)
            taken = min(len(piece), len(heal))
            heal = heal[taken:]
            data += piece[taken:]
            text = data.decode("utf-8", "ignore")
            if b"\n" in piece[taken:]:
                judge.newline()
                verdict = "sure"  # a line that is whole may stand
            if verdict == "sure":
                sure = text
            if suggestion.grow(sure):
                result.first_ms = result.first_ms or ms_since(started)
                on_text(suggestion.text)
            if trim.ended(text, facts):
                result.reason = "line" if facts.single_line else "trimmed"
                break
            if ms_since(began) > self._config.budget_ms:
                result.reason = "time"
                break
            logits = writer.read(token)
        writer.drop()
        is_cut = verdict != "sure" and result.reason in {"unsure", "time", "tokens"}
        text = sure_part(sure) if is_cut else text
        result.generated_tokens, result.passes = len(result.tokens), writer.passes
        result.text = suggestion.finish(text)
        is_part = is_cut and result.text
        result.confidence = judge.sure_confidence if is_part else judge.confidence
        result.replaces = suggestion.replaces
        self._last_tokens = result.tokens

    def branches(self, place: Place) -> list[list[int]]:
        """Return the beginnings of the alternatives: tokens up to the branch, and another one."""
        result, heal = place.result, place.heal
        first = self._first_line(result.tokens)
        if not first:
            return []
        at = min(range(len(first)), key=lambda number: result.logprobs[number])
        logits = self._seats.current.first_logits
        for start in range(0, at, OUTPUTS):
            self._seats.write(first[start : min(start + OUTPUTS, at)])
            logits = self._context.logits()
        if logits is None:
            return []
        rest = heal[len(b"".join(map(self._model.piece, first[:at]))) :]
        among = self.vocabulary.allowed(rest) if rest and self.vocabulary else None
        others = llama.most_likely_ones(logits, ALTERNATIVES + 1, among)
        likely = [token for token, share in others if share >= LEAST_SHARE and token != first[at]]
        return [[*first[:at], token] for token in likely[:ALTERNATIVES]]

    def _first_line(self, tokens: list[int]) -> list[int]:
        for number, token in enumerate(tokens):
            if b"\n" in self._model.piece(token):
                return tokens[: number + 1]
        return tokens


def ms_since(start: float) -> float:
    """Return the milliseconds since a reading of `time.perf_counter`."""
    return (time.perf_counter() - start) * 1000
