"""Rules that detect a run without progress. Pure.

They compare calls, digests of results, and trees; no model judges. R1 acts on a single call, R2 to
R4 on the calls since the last warning, `Repetition` (R5) on the text that a model is writing.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lcursor.agent.records import Observation

Repeat = Literal["run", "shorten", "skip", "end"]
MAX_PERIOD = 4
CYCLES = 3
VISITS = 3
"""Number of times that the same tree is left and made again, and counts as going in circles."""
IDLE_CALLS = 12
REPETITIONS = 10
"""Number of equal pieces of text, one after the other, that end an answer."""
MIN_PROSE, MIN_CODE = 500, 2000
"""Their length in total, at least, in characters."""
WINDOW = 6000
CHUNK = 50
"""Characters at the end that must have occurred before."""
CODE_MARKS = ("```", "<parameter=", '{"')
_DURATION = re.compile(r"\b\d+(?:\.\d+)? ?m?s\b")


@dataclass(frozen=True, slots=True)
class DoneCall:
    """A call that has ended, as the rules see it."""

    key: str
    """`Call.key`."""
    digest: str
    """`digest_of` its observation."""
    before: str
    """Id of the tree before it."""
    after: str
    rows: frozenset[tuple[str, int]] = frozenset()
    """Path and row of each line that it showed."""


def digest_of(observation: Observation) -> str:
    """Return a digest of an observation that ignores durations."""
    text = f"{observation.status} {_DURATION.sub('', observation.text)}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def repeat_of(calls: Sequence[DoneCall], key: str, tree: str) -> tuple[Repeat, int]:
    """Return what to do with a call that may repeat earlier ones (R1), and the first one's index.

    Calls count as equal only with an equal tree, so tests after a change never do. The second one
    runs, and an equal result is shortened; the third one is skipped; the fourth ends the run.

    Returns:
        "run" and -1 for a new call.
    """
    same = [index for index, call in enumerate(calls) if (call.key, call.before) == (key, tree)]
    if not same:
        return "run", -1
    digest = calls[same[0]].digest
    is_equal = all(calls[index].digest == digest for index in same)
    count = len(same) if is_equal else 0
    actions: tuple[Repeat, ...] = ("run", "shorten", "skip", "end")
    return actions[min(count, 3)], same[0]


def find_circle(calls: Sequence[DoneCall]) -> str:
    """Return why the calls since the last warning make no progress, for the model; "" if they do.

    Args:
        calls: all calls since the last warning or summary, oldest first.
    """
    if period := _cycle(calls):
        return f"you have repeated the same {period} calls {CYCLES} times without a change"
    if _is_undoing(calls):
        return "you have undone your own changes repeatedly"
    if _idle(calls) >= IDLE_CALLS:
        return f"the last {IDLE_CALLS} calls showed nothing new and changed nothing"
    return ""


def _cycle(calls: Sequence[DoneCall]) -> int:
    """Return the period of a repeated sequence of calls at the end (R2); 0 for none."""
    for period in range(2, MAX_PERIOD + 1):
        last = [(call.key, call.digest) for call in calls[-period * CYCLES :]]
        trees = {tree for call in calls[-period * CYCLES :] for tree in (call.before, call.after)}
        if len(last) == period * CYCLES and len(trees) == 1 and last == last[:period] * CYCLES:
            return period
    return 0


def _is_undoing(calls: Sequence[DoneCall]) -> bool:
    """Return whether a change was made again, or the same tree again and again (R3)."""
    changes = [(call.before, call.after) for call in calls if call.before != call.after]
    made = Counter([*(before for before, _ in changes[:1]), *(after for _, after in changes)])
    return len(set(changes)) < len(changes) or max(made.values(), default=0) >= VISITS


def _idle(calls: Sequence[DoneCall]) -> int:
    """Return the number of calls at the end without new rows, results or trees (R4)."""
    rows, results, trees, count = set[tuple[str, int]](), set[tuple[str, str]](), set[str](), 0
    for call in calls:
        # A call that shows lines is new by its lines, any other by its result.
        fresh = call.rows - rows if call.rows else {(call.key, call.digest)} - results
        is_new = bool(fresh) or call.after not in trees | {call.before}
        count = 0 if is_new else count + 1
        rows |= call.rows
        results.add((call.key, call.digest))
        trees |= {call.before, call.after}
    return count


class Repetition:
    """Detects that a model writes the same text over and over (R5)."""

    def __init__(self) -> None:
        self._text, self._is_code = "", False

    def add(self, text: str) -> bool:
        """Add the next text; return whether to stop the model."""
        self._text = (self._text + text)[-WINDOW:]
        self._is_code = self._is_code or any(mark in self._text[-200:] for mark in CODE_MARKS)
        chunk = self._text[-CHUNK:]
        period = len(self._text) - CHUNK - self._text.rfind(chunk, 0, -1)
        length = max(REPETITIONS * period, MIN_CODE if self._is_code else MIN_PROSE)
        last = self._text[-length:]
        return len(last) == length and bool(chunk.strip()) and last[period:] == last[:-period]
