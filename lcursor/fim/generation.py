"""Writes a suggestion: the likeliest tokens, as far as the judge and the rules let them stand.

Owns what was written of late, as a source of guesses. The prompt must stand in the current seat;
whose it is and what else is done with it is the engine's matter.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lcursor.config import CompletionConfig
from lcursor.fim import drafts, likelihood, llama, prompt, trim
from lcursor.fim.confidence import ConfidenceGate, Decision
from lcursor.fim.families import Resolved
from lcursor.fim.result import OnText, Result
from lcursor.fim.slots import BRANCHES, OUTPUTS, Slots
from lcursor.fim.vocabulary import Vocabulary
from lcursor.fim.writer import BranchDecoder, DraftVerifier

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ALTERNATIVES = len(BRANCHES)
MIN_SHARE = 0.03
"""Probability of a token below which no alternative begins with it."""
RESUMABLE = 3
"""Suggestions of late that guesses come from: the visible one and what was written ahead."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was written, so that it can be gone on with."""

    source: prompt.Source
    single_line: bool
    built: prompt.Prompt
    """The prompt that the text is written behind."""
    heal: bytes
    cursor: trim.CursorContext
    result: Result
    whole: prompt.Prompt
    """The prompt of the full window; `built` itself where that could be read."""


class Generator:
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
        slots: Slots,
        family: Resolved,
        config: CompletionConfig,
        guesses: int,
    ) -> None:
        self._model, self._context, self._slots = model, context, slots
        self._family, self._config = family, config
        self._written: deque[drafts.Generated] = deque(maxlen=RESUMABLE)
        self.guesses = guesses
        self.threshold = 0.0
        """Confidence below which nothing is shown; a text is cut where it falls below it."""
        self.vocabulary: Vocabulary | None = None
        """Heals the token at the cursor, once it is there."""

    def configure(self, config: CompletionConfig) -> None:
        """Apply other budgets."""
        self._config = config

    def draft(self, place: Place) -> list[int]:
        """Return the tokens that are likely to come first at a place, by what was written before.

        The first `guesses` of them can be read in the batch of the prompt's end.
        """
        if not self.guesses:
            return []
        before = _before(place)
        for written in reversed(self._written):
            if found := drafts.resume(written, before, place.heal):
                return found
        built = place.built
        corpus = drafts.join(built.after, built.before, *self._tokens_written())
        found = drafts.guess(corpus, built.before[-drafts.MAX_MATCH :], self.guesses)
        text = b"".join(map(self._model.piece, found))
        is_possible = text.startswith(place.heal) or place.heal.startswith(text)
        return found if is_possible else []

    def write(
        self,
        place: Place,
        on_text: OnText,
        started: float,
        draft: Sequence[int] = (),
        threshold: float | None = None,
    ) -> None:
        """Write the most likely text behind the prompt into the place's result.

        Args:
            place: its prompt stands in the current seat, and nothing behind it but what was read
                ahead.
            on_text: see `complete`.
            started: when the work began.
            draft: tokens that are likely to come first.
            threshold: least confidence; the engine's own where none is given.
        """
        result = place.result
        writer = DraftVerifier(
            self._context,
            self._slots,
            place.built,
            self._tokens_written(),
            self.guesses,
            draft,
        )
        text = self._begin(place, on_text, started, threshold)
        logits = self._slots.current.prompt_logits
        while logits is not None and not text.take(*text.choose(logits)):
            logits = writer.read(result.tokens[-1])
        writer.discard_draft()
        text.finish()
        result.passes = writer.passes
        pieces = [self._model.piece(token) for token in result.tokens]
        self._written.append(drafts.Generated(_before(place), result.tokens, pieces))

    def write_others(self, place: Place) -> list[Result]:
        """Write texts that part from the place's result where that was least certain.

        All at once, a token of each a pass. There may be none.

        Raises:
            Cancelled, EngineFailed, OutOfMemory: see `llama.Context.decode`.
        """
        common, firsts = self._branches(place)
        others = [replace(place, result=Result()) for _ in firsts]
        texts = [self._begin(other, ignore_text, time.perf_counter(), 0.0) for other in others]
        writer, unread = (
            BranchDecoder(self._context, self._slots, len(texts)),
            dict[int, int](),
        )
        try:
            for number, (text, first) in enumerate(zip(texts, firsts, strict=True)):
                if not any(text.take(token, 1.0) for token in (*common, first)):
                    unread[number] = first
            while unread:
                logits = writer.read(unread)
                chosen = {number: texts[number].choose_any(logits[number]) for number in logits}
                unread = {
                    number: token
                    for number, token in chosen.items()
                    if not texts[number].take(token, 1.0)
                }
        finally:
            writer.discard_draft()
        for text in texts:
            text.finish()
        return [other.result for other in others]

    def _begin(
        self, place: Place, on_text: OnText, started: float, threshold: float | None
    ) -> _Generation:
        least = self.threshold if threshold is None else threshold
        common = self._model, self._family, self._config, self.vocabulary
        return _Generation(*common, place, ConfidenceGate(least), on_text, started)

    def _tokens_written(self) -> list[Sequence[int]]:
        return [written.tokens for written in self._written]

    def _branches(self, place: Place) -> tuple[list[int], list[int]]:
        """Return the tokens up to the least certain one, which are read, and others for that."""
        result, heal = place.result, place.heal
        first = self._first_line(result.tokens)
        if not first:
            return [], []
        at = min(range(len(first)), key=lambda number: result.logprobs[number])
        logits = self._slots.current.prompt_logits
        for start in range(0, at, OUTPUTS):
            self._slots.append(first[start : min(start + OUTPUTS, at)])
            logits = self._context.logits()
        if logits is None:
            return [], []
        rest = heal[len(b"".join(map(self._model.piece, first[:at]))) :]
        among = self.vocabulary.allowed(rest) if rest and self.vocabulary else None
        others = likelihood.top_k(logits, ALTERNATIVES + 1, among)
        likely = [token for token, share in others if share >= MIN_SHARE and token != first[at]]
        return first[:at], likely[:ALTERNATIVES]

    def _first_line(self, tokens: list[int]) -> list[int]:
        for number, token in enumerate(tokens):
            if b"\n" in self._model.piece(token):
                return tokens[: number + 1]
        return tokens


class _Generation:
    """A text that is written token by token, whoever reads the tokens."""

    def __init__(
        self,
        model: llama.Model,
        family: Resolved,
        config: CompletionConfig,
        vocabulary: Vocabulary | None,
        place: Place,
        judge: ConfidenceGate,
        on_text: OnText,
        started: float,
    ) -> None:
        self._model, self._family, self._config = model, family, config
        self._vocabulary, self._judge = vocabulary, judge
        self._cursor, self._result, self._heal = place.cursor, place.result, place.heal
        self._on_text, self._started, self._began = on_text, started, time.perf_counter()
        self._suggestion = trim.Suggestion(place.cursor)
        self._data, self._text, self._sure = b"", "", ""
        self._result.reason = "tokens"

    def choose(self, logits: NDArray[np.float32]) -> tuple[int, float]:
        """Return the most likely next token and its probability."""
        return likelihood.argmax_with_probability(logits, self._allowed())

    def choose_any(self, logits: NDArray[np.float32]) -> int:
        """Return the most likely next token, however likely it is."""
        return likelihood.argmax(logits, self._allowed())

    def take(self, token: int, share: float) -> bool:
        """Add a token; return whether the text is finished, with or without it."""
        result, heal = self._result, self._heal
        if not heal and (token in self._family.stops or self._model.is_end(token)):
            result.reason = "end"
            return True
        decision: Decision = self._judge.decision(share)
        piece = self._model.piece(token)
        added = piece[min(len(piece), len(heal)) :]
        self._heal = heal[len(piece) :]
        self._data += added
        self._text = self._data.decode("utf-8", "ignore")
        if decision == "no":
            result.reason = "unsure"
            return True
        result.tokens.append(token)
        result.logprobs.append(math.log(max(share, 1e-9)))
        if b"\n" in added:
            self._judge.newline()
            decision = "sure"  # a line that is whole may stand
        if decision == "sure":
            self._sure = self._text
        if self._suggestion.grow(self._sure, self._text[len(self._sure) :]):
            result.first_ms = result.first_ms or ms_since(self._started)
            self._on_text(self._suggestion.text)
        if trim.ended(self._text, self._cursor):
            result.reason = "line" if self._cursor.single_line else "trimmed"
            return True
        if ms_since(self._began) > self._config.budget_ms:
            result.reason = "time"
            return True
        return len(result.tokens) >= self._config.max_tokens

    def finish(self) -> None:
        """Put what is worth showing into the result."""
        result, judge, text = self._result, self._judge, self._text
        is_cut = result.reason in {"unsure", "time", "tokens"}
        if is_cut:
            text = trim.cut(self._sure, self._cursor, text[len(self._sure) :])
        result.generated_tokens = len(result.tokens)
        result.text = self._suggestion.finish(text)
        result.replace_bytes = self._suggestion.replace_bytes
        if result.text and not result.first_ms:
            result.first_ms = ms_since(self._started)
        is_part = is_cut and result.text and "\n" not in self._sure
        result.confidence = judge.sure_confidence if is_part else judge.confidence

    def _allowed(self) -> NDArray[np.int64] | None:
        if not self._heal or self._vocabulary is None:
            return None
        return self._vocabulary.allowed(self._heal)


def ms_since(start: float) -> float:
    """Return the milliseconds since a reading of `time.perf_counter`."""
    return (time.perf_counter() - start) * 1000


def _before(place: Place) -> bytes:
    """Return the end of the text before the next token."""
    text = place.source.prefix[-drafts.MAX_SAME_BYTES - len(place.heal) :]
    return text.encode("utf-8", "surrogateescape").removesuffix(place.heal)


def ignore_text(text: str) -> None:
    """Do nothing with a text that is generated in advance."""
