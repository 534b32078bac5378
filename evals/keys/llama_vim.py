"""The rules of llama.vim on the same clock, model and texts, for comparison.

From its source (ggml-org/llama.vim, a1c8e6e of 2026-01-31) and that of `/infill` in llama.cpp: up
to 256 lines before and 64 after the cursor within a batch of 1,024 tokens, of which a quarter is
for the suffix; the typed part of the line is in front of the suffix, so that each key evaluates the
suffix again; one request at a time, which is never cancelled; the samplers top_k, top_p and infill;
the end at a line with less indentation, or at the first line break after 250 ms; answers are cached
and found again while they are typed; a second request, as if the answer had been accepted, with
1,000 ms. Other files are left out in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from evals.keys.insertions import Insertion
from evals.keys.recorded import Clock, Context
from evals.keys.typist import Choice, View
from lcursor.fim.families import Resolved

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lcursor.fim import llama

LINES_BEFORE, LINES_AFTER = 256, 64
BATCH = 1024
TOKENS, TOP_K, TOP_P, EOG_WEIGHT = 128, 40, 0.9, 3
FIRST_S, SECOND_S, POLL_S = 0.25, 1.0, 0.1
MAX_RIGHT, MAX_TYPED = 8, 128


class LlamaVim:
    """llama.vim with a server; see `typist.Completer`."""

    def __init__(
        self, model: llama.Model, context: Context, family: Resolved, clock: Clock
    ) -> None:
        self._model, self._context, self._family, self._clock = model, context, family, clock
        self._slot: list[int] = []
        self._insertion: Insertion
        self._at = -1
        self._answers: dict[int, str] = {}
        self._accepted = set[tuple[int, str]]()
        self._wanted: tuple[int, str] | None = None
        self._number, self._shown, self._since_s = 0, (-1, ""), 0.0

    def begin(self, insertion: Insertion) -> None:
        """Begin with a text: the cursor is there, in Normal mode."""
        self._insertion, self._at = insertion, -1
        self._answers, self._accepted, self._wanted = {}, set(), None

    def changed(self, at: int) -> None:
        """React to a key in Insert mode."""
        self._at = at
        if not self._show():
            right = self._insertion.after.partition("\n")[0]
            if len(right) <= MAX_RIGHT and at not in self._answers:
                self._wanted = (at, "")

    def accepted(self, at: int, choice: Choice) -> None:
        """React to the acceptance of the suggestion, or a part."""
        self.changed(at)

    def end(self) -> None:
        """Leave Insert mode."""
        self._at, self._wanted = -1, None

    def view(self) -> View | None:
        """Return what is on the screen."""
        _, rest = self._find()
        return View(self._number, rest, self._since_s, "end") if rest.strip() else None

    def work(self) -> None:
        """Do one step of work, or advance the clock to its next event."""
        if self._wanted is None:
            return void(self._clock.advance(max(self._clock.next_s - self._clock.now_s, 0.0)))
        (at, accepted), self._wanted = self._wanted, None
        insertion = self._insertion
        text = self._complete(at, accepted)
        if insertion is not self._insertion or self._at < 0:
            return None
        if not accepted:
            self._answers[at] = text
            self._show()
        elif insertion.text.startswith(accepted, at):
            self._answers.setdefault(at + len(accepted), text)
        return None

    def _show(self) -> bool:
        """Show a cached answer; ask for what comes after it."""
        start, rest = self._find()
        if not rest.strip():
            return False
        if self._shown != (start, self._answers[start]):
            self._shown, self._since_s = (start, self._answers[start]), self._clock.now_s
            self._number += 1
        if (self._at, rest) not in self._accepted:
            self._accepted.add((self._at, rest))
            self._wanted = (self._at, rest)
        return True

    def _find(self) -> tuple[int, str]:
        """Return the longest rest of an answer that fits here, and where it was asked for."""
        best = (-1, "")
        if self._at < 0:
            return best
        for start in range(max(self._at - MAX_TYPED, 0), self._at + 1):
            answer, typed = self._answers.get(start, ""), self._insertion.text[start : self._at]
            if answer.startswith(typed) and len(answer) - len(typed) > len(best[1]):
                best = (start, answer[len(typed) :])
        return best

    def _complete(self, at: int, accepted: str) -> str:
        insertion = self._insertion
        lines = (insertion.before + insertion.text[:at] + accepted).split("\n")
        line, right = lines[-1], insertion.after
        indent = len(line) - len(line.lstrip())
        blank = line if not line.strip() else ""
        if blank:
            line, indent = "", 0
        prefix = "\n".join(lines[-1 - LINES_BEFORE : -1]) + "\n"
        suffix = "\n".join(right.split("\n")[: LINES_AFTER + 1]) + "\n"
        self._evaluate(self._prompt(prefix, line, suffix))
        text = self._generate(indent, SECOND_S if accepted else FIRST_S).rstrip("\n")
        lead = len(text) - len(text.lstrip(" \t"))
        text = text[min(lead, len(blank)) :]
        return "" if self._repeats(text, line, right) else text

    def _prompt(self, prefix: str, line: str, suffix: str) -> list[int]:
        ids, tokenize = self._family.ids, self._model.tokenize
        typed, after = tokenize(line), tokenize(suffix)
        before = tokenize(prefix)[-3 * (BATCH // 4) :]
        after = after[: max(BATCH // 4 - 2 - len(typed), 0)]
        head = [ids["repo"], *tokenize("myproject\n"), ids["file"], *tokenize("filename\n")]
        return [*head, ids["pre"], *before, *typed, ids["suf"], *after, ids["mid"]]

    def _evaluate(self, prompt: Sequence[int]) -> None:
        same = 0
        limit = min(len(self._slot), len(prompt) - 1)
        while same < limit and self._slot[same] == prompt[same]:
            same += 1
        self._context.remove(0, same)
        for start in range(same, len(prompt), self._context.batch_tokens):
            part = prompt[start : start + self._context.batch_tokens]
            self._context.decode(part, start, 0)
        self._slot = list(prompt)

    def _generate(self, indent: int, limit_s: float) -> str:
        data, began_s = b"", self._clock.now_s
        for _ in range(TOKENS):
            token = self._sample(self._context.logits())
            if token is None:
                break
            data += self._model.piece(token)
            text = data.decode("utf-8", "ignore")
            *_, last = text.split("\n")
            is_line = "\n" in text and bool(last.strip())
            if is_line and len(last) - len(last.lstrip()) < indent:
                return text[: -len(last)]
            if "\n" in text and self._clock.now_s - began_s > limit_s:
                break
            self._context.decode([token], len(self._slot), 0)
            self._slot.append(token)
        return data.decode("utf-8", "ignore")

    def _sample(self, logits: NDArray[np.float32]) -> int | None:
        """Return the most likely token after the samplers; None is the end."""
        ids = np.argpartition(logits, -TOP_K)[-TOP_K:]
        ids = ids[np.argsort(logits[ids])[::-1]]
        shares = np.exp(logits[ids] - logits[ids[0]])
        shares /= shares.sum()
        count = int(np.searchsorted(np.cumsum(shares), TOP_P)) + 1
        ids, shares = ids[:count], shares[:count]
        ends = np.array([self._is_end(int(token)) for token in ids])
        if EOG_WEIGHT * shares[ends].sum() * len(ids) > shares[~ends].sum():
            return None
        return int(ids[~ends][0])

    def _is_end(self, token: int) -> bool:
        return token in self._family.stops or self._model.is_end(token)

    def _repeats(self, text: str, line: str, right: str) -> bool:
        """Return whether an answer repeats the text that follows."""
        lines, below = text.split("\n"), right.split("\n")
        if len(lines) > 1 and not lines[0] and lines[1:] == below[1 : len(lines)]:
            return True
        if len(lines) == 1 and lines[0] == below[0]:
            return True
        following = [number for number in range(1, len(below)) if below[number].strip()]
        if not following or line + lines[0] != below[following[0]]:
            return False
        rest = below[following[0] + 1 :]
        if len(lines) == 1:
            return True
        if len(lines) == 2:
            return bool(rest) and rest[0].startswith(lines[1])
        return lines[1:] == rest[: len(lines) - 1]


def void(_value: object) -> None:
    """Ignore a value."""
