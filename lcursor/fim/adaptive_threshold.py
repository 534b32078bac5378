"""The confidence below which nothing is shown, moved by what this user accepts.

Pure: no files, no clock, no engine. The journal has the history, the engine asks the question.

The rule is that of Cursor's Tab: a suggestion is worth its place on the screen where one of four
like it is accepted (accept +0.75, reject -0.25, silence 0; cursor.com/blog/tab-rl). What lies just
above the threshold decides, not the average: a user who accepts all that is certain tells nothing
about what is not. So the way from the base to either bound is cut into steps, and the threshold
takes a step only on the evidence of the outcomes in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

MIN_OUTCOMES = 30
"""Accepts without which it is not lowered, and rejections without which it is not raised."""
STEPS = 5
"""Steps from the base to each of the bounds."""
TARGET = 0.25
"""Share of accepts at which showing and silence are worth the same."""
DOUBT = 12
"""Outcomes that each step is assumed to have had: half of them accepts before it is closed, none
before the one below it is opened. So chance moves nothing."""


def threshold(base: float, history: Sequence[tuple[float, bool]]) -> float:
    """Return the threshold for a user with that history.

    More rejections never lower it, more accepts never raise it. A base of 0 (show everything) or 1
    is the user's own word and stays.

    Args:
        base: the threshold of a user of whom nothing is known.
        history: confidence and whether it was accepted, of each suggestion that had an outcome.

    Returns:
        A value of [base / 2, (1 + base) / 2]; the base with fewer than `MIN_OUTCOMES` outcomes.
    """
    if not 0 < base < 1 or len(history) < MIN_OUTCOMES:
        return base
    down, up = base / 2 / STEPS, (1 - base) / 2 / STEPS
    accepts, outcomes = dict[int, int](), dict[int, int]()
    for confidence, is_accepted in history:
        width = up if confidence >= base else down
        step = math.floor((confidence - base) / width)
        outcomes[step] = outcomes.get(step, 0) + 1
        accepts[step] = accepts.get(step, 0) + is_accepted

    def share(step: int, assumed: float) -> float:
        return (accepts.get(step, 0) + assumed) / (outcomes.get(step, 0) + DOUBT)

    def is_bad(step: int) -> bool:
        return share(step, DOUBT / 2) < TARGET

    def is_good(step: int) -> bool:
        return share(step, 0) >= TARGET

    at, accepted = 0, sum(accepts.values())
    if len(history) - accepted >= MIN_OUTCOMES:
        while at < STEPS and is_bad(at):
            at += 1
    if at == 0 and accepted >= MIN_OUTCOMES:
        while at > -STEPS and is_good(at) and not is_bad(at - 1):
            at -= 1
    moved = base + at * (up if at > 0 else down)
    return min(max(moved, base / 2), (1 + base) / 2)


def thresholds(base: float, history: Iterable[tuple[str, float, bool]]) -> dict[str, float]:
    """Return the threshold of each filetype that has outcomes enough, and of all others under "".

    Args:
        base: see `threshold`.
        history: filetype, confidence, whether it was accepted.
    """
    every: list[tuple[float, bool]] = []
    by_filetype: dict[str, list[tuple[float, bool]]] = {}
    for filetype, confidence, is_accepted in history:
        every.append((confidence, is_accepted))
        by_filetype.setdefault(filetype, []).append((confidence, is_accepted))
    own = {
        name: threshold(base, one) for name, one in by_filetype.items() if len(one) >= MIN_OUTCOMES
    }
    return {**own, "": threshold(base, every)}
