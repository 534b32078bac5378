"""Generates suggestions: the most likely tokens, limited by the confidence gate and the rules.

Owns the recent suggestions as a source of drafts. The prompt must be in the current slot already;
the engine decides what to generate, and when.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lcursor.config import CompletionConfig
from lcursor.fim import confidence, drafts, llama, trim
from lcursor.fim.confidence import ConfidenceGate
from lcursor.fim.drafts import BranchDecoder, DraftVerifier
from lcursor.fim.families import Resolved
from lcursor.fim.result import Completion, OnText, Result, ms_since
from lcursor.fim.slots import BRANCHES, OUTPUTS, Slots
from lcursor.fim.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_ALTERNATIVES = len(BRANCHES)
MIN_PROBABILITY = 0.03
"""Minimum probability of the first token of an alternative."""
RESUMABLE = 3
"""Number of recent suggestions used for drafts: the visible one and those made in advance."""


class Generator:
    """Generates text after the current prompt.

    Args:
        guesses: maximum tokens guessed per pass.

    Attributes:
        threshold: minimum confidence of shown text, which ends where the confidence is lower.
        vocabulary: needed for token healing; set once it has been read.
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
        self._recent: deque[drafts.Generated] = deque(maxlen=RESUMABLE)
        self.guesses = guesses
        self.threshold = config.min_confidence
        self.vocabulary: Vocabulary | None = None

    def configure(self, config: CompletionConfig) -> None:
        """Apply new budgets."""
        self._config = config

    def draft(self, completion: Completion) -> list[int]:
        """Return the likely first tokens, according to recent suggestions.

        The first `guesses` of them can be evaluated in the batch of the prompt's end.
        """
        if not self.guesses:
            return []
        before = _text_before(completion)
        for generated in reversed(self._recent):
            if found := drafts.resume(generated, before, completion.forced):
                return found
        prompt, forced = completion.prompt, completion.forced
        corpus = drafts.join(prompt.after, prompt.before, *self._recent_tokens())
        found = drafts.guess(corpus, prompt.before[-drafts.MAX_MATCH :], self.guesses)
        text = self._text(found)
        is_possible = text.startswith(forced) or forced.startswith(text)
        return found if is_possible else []

    def generate(
        self,
        completion: Completion,
        on_text: OnText,
        started: float,
        draft: Sequence[int] = (),
        threshold: float | None = None,
        is_idle: bool = False,
    ) -> None:
        """Generate the most likely text after the prompt into the result of a completion.

        Args:
            completion: its prompt is in the current slot, followed by at most a draft.
            on_text: see `Engine.complete`.
            started: value of `time.perf_counter` at the start of the work.
            draft: likely first tokens.
            threshold: replaces the attribute.
            is_idle: idle work, without a time limit.
        """
        result = completion.result
        recent = self._recent_tokens()
        verifier = DraftVerifier(
            self._context, self._slots, completion.prompt, recent, self.guesses, draft
        )
        text = self._begin(completion, on_text, started, threshold, is_idle)
        logits = self._slots.current.prompt_logits
        while logits is not None and not text.add(
            *confidence.argmax_with_probability(logits, text.allowed())
        ):
            logits = verifier.read(result.tokens[-1])
        verifier.discard_draft()
        text.finish()
        result.passes = verifier.passes
        pieces = [self._model.piece(token) for token in result.tokens]
        self._recent.append(drafts.Generated(_text_before(completion), result.tokens, pieces))

    def generate_alternatives(self, completion: Completion) -> list[Result]:
        """Generate texts that branch off the result at its least certain token.

        All are generated in parallel, one token of each per pass. There may be none.
        """
        common, firsts = self._branches(completion)
        others = [replace(completion, result=Result()) for _ in firsts]
        texts = [self._begin(other, ignore_text, time.perf_counter(), 0.0) for other in others]
        decoder = BranchDecoder(self._context, self._slots, len(texts))
        unread = dict[int, int]()
        try:
            for number, (text, first) in enumerate(zip(texts, firsts, strict=True)):
                if not any(text.add(token, 1.0) for token in (*common, first)):
                    unread[number] = first
            while unread:
                logits = decoder.read(unread)
                chosen = {
                    number: confidence.argmax(row, texts[number].allowed())
                    for number, row in logits.items()
                }
                unread = {
                    number: token
                    for number, token in chosen.items()
                    if not texts[number].add(token, 1.0)
                }
        finally:
            decoder.close()
        for text in texts:
            text.finish()
        return [other.result for other in others]

    def _begin(
        self,
        completion: Completion,
        on_text: OnText,
        started: float,
        threshold: float | None,
        is_idle: bool = False,
    ) -> _Generation:
        threshold = self.threshold if threshold is None else threshold
        if completion.cursor.begins_block:
            threshold *= confidence.EMPTY_BLOCK_SHARE
        gate = ConfidenceGate(threshold)
        common = self._model, self._family, self._config, self.vocabulary
        return _Generation(*common, completion, gate, on_text, started, is_idle)

    def _recent_tokens(self) -> list[Sequence[int]]:
        return [generated.tokens for generated in self._recent]

    def _text(self, tokens: Sequence[int]) -> bytes:
        return b"".join(map(self._model.piece, tokens))

    def _branches(self, completion: Completion) -> tuple[list[int], list[int]]:
        """Return the tokens before the least certain one, evaluated, and other tokens for it."""
        result, forced = completion.result, completion.forced
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
        rest = forced[len(self._text(first[:at])) :]
        among = self.vocabulary.allowed(rest) if rest and self.vocabulary else None
        others = confidence.top_k(logits, MAX_ALTERNATIVES + 1, among)
        likely = [
            token
            for token, probability in others
            if probability >= MIN_PROBABILITY and token != first[at]
        ]
        return first[:at], likely[:MAX_ALTERNATIVES]

    def _first_line(self, tokens: list[int]) -> list[int]:
        for number, token in enumerate(tokens):
            if b"\n" in self._model.piece(token):
                return tokens[: number + 1]
        return tokens


class _Generation:
    """The state of one generated text; its user evaluates the tokens."""

    def __init__(
        self,
        model: llama.Model,
        family: Resolved,
        config: CompletionConfig,
        vocabulary: Vocabulary | None,
        completion: Completion,
        gate: ConfidenceGate,
        on_text: OnText,
        started: float,
        is_idle: bool,
    ) -> None:
        self._budget_ms = math.inf if is_idle else config.budget_ms
        self._model, self._family, self._config = model, family, config
        self._vocabulary, self._gate = vocabulary, gate
        self._cursor, self._result = completion.cursor, completion.result
        self._forced = completion.forced
        self._on_text, self._started, self._began = on_text, started, time.perf_counter()
        self._suggestion = trim.Suggestion(completion.cursor)
        self._data, self._text, self._shown = b"", "", ""
        self._result.reason = "tokens"

    def allowed(self) -> NDArray[np.int64] | None:
        """Return the tokens that match the forced text; None allows all."""
        if not self._forced or self._vocabulary is None:
            return None
        return self._vocabulary.allowed(self._forced)

    def add(self, token: int, probability: float) -> bool:
        """Add a token; return whether the text is finished, with or without it."""
        result, forced = self._result, self._forced
        if not forced and (token in self._family.stops or self._model.is_end(token)):
            result.reason = "end"
            return True
        decision = self._gate.add(probability)
        piece = self._model.piece(token)
        added = piece[min(len(piece), len(forced)) :]
        self._forced = forced[len(piece) :]
        self._data += added
        self._text = self._data.decode("utf-8", "ignore")
        if decision == "stop":
            result.reason = "unsure"
            return True
        result.tokens.append(token)
        result.logprobs.append(math.log(max(probability, 1e-9)))
        if b"\n" in added:
            self._gate.end_line(is_blank=not self._text.strip())
            decision = "show"  # the line is complete
        if decision == "show":
            self._shown = self._text
        if self._suggestion.grow(self._shown, self._text[len(self._shown) :]):
            result.first_ms = result.first_ms or ms_since(self._started)
            self._on_text(self._suggestion.text)
        if trim.ended(self._text, self._cursor):
            result.reason = "line" if self._cursor.single_line else "trimmed"
            return True
        if ms_since(self._began) > self._budget_ms:
            result.reason = "time"
            return True
        return len(result.tokens) >= self._config.max_tokens

    def finish(self) -> None:
        """Store the text to show in the result."""
        result, gate, text = self._result, self._gate, self._text
        is_cut = result.reason in {"unsure", "time", "tokens"}
        if is_cut:
            text = trim.cut(self._shown, self._cursor, text[len(self._shown) :])
        result.generated_tokens = len(result.tokens)
        result.text = self._suggestion.finish(text)
        result.replace_bytes = self._suggestion.replace_bytes
        if result.text and not result.first_ms:
            result.first_ms = ms_since(self._started)
        is_part = is_cut and result.text and "\n" not in self._shown
        if result.reason == "unsure" and not result.text:
            result.confidence = gate.line_confidence  # decided, maybe after an empty first line
        else:
            result.confidence = gate.shown_confidence if is_part else gate.confidence


def ignore_text(text: str) -> None:
    """Ignore text that is generated in advance."""


def _text_before(completion: Completion) -> bytes:
    """Return the end of the text before the next token."""
    forced = completion.forced
    text = completion.source.prefix[-drafts.MAX_SAME_BYTES - len(forced) :]
    return text.encode("utf-8", "surrogateescape").removesuffix(forced)
