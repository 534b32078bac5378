"""Rates of right completions, and what a confidence gate gains: figures of `eval fim`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from evals.data import KINDS, Kind
from lcursor.config import CompletionConfig

GATE = CompletionConfig().min_confidence
"""The default confidence threshold."""

THRESHOLDS = [tenth / 10 for tenth in range(10)]
GAIN = 1.5
"""How much a gate should multiply the precision of the first lines shown, ..."""
SHOW = 0.5
"""... while it shows something at this share of the cuts."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the engine wrote at a cut, and whether it is right."""

    kind: Kind
    task: str
    text: str
    rest: str
    is_exact: bool
    """It is the true text, ignoring trailing white space."""
    is_line_exact: bool
    """Its first line is the true first line."""
    has_passed: bool
    """The program passes its tests with it; False if nothing was written or there are no tests."""
    confidence: float
    read_tokens: int
    generated_tokens: int
    first_ms: float
    """From the last key to the first text; 0 if there was none."""
    total_ms: float
    """From the last key to the whole text."""
    reason: str = ""
    logprobs: list[float] = field(default_factory=list)
    """Of each generated token, in nats."""
    gated: str = ""
    """The text with the default confidence threshold."""

    @property
    def is_right(self) -> bool:
        """Whether the first line is a prefix of the true first line."""
        return bool(self.text) and first_line(self.rest).startswith(first_line(self.text))

    @property
    def is_gated_right(self) -> bool:
        """The same for `gated`."""
        return bool(self.gated) and first_line(self.rest).startswith(first_line(self.gated))

    @property
    def is_gated_exact(self) -> bool:
        """Whether the first line of `gated` is the true first line."""
        return bool(self.gated) and first_line(self.rest) == first_line(self.gated)


def first_line(text: str) -> str:
    """Return a text up to the end of its first line that is not blank."""
    match = re.match(r"\s*[^\n]*", text)
    return match[0].rstrip() if match else ""


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of some answers with one threshold; 0 where the denominator is 0."""

    cuts: int
    shown: int
    show: float
    """Share of the cuts where a suggestion is shown."""
    exact: float
    """Share of the cuts where the true text is shown."""
    passed: float
    """Share of the cuts where the program passes its tests with the text shown: pass@1."""
    precision: float
    """Share of the suggestions shown that are the true text."""
    line_precision: float
    """Share of the suggestions shown whose first line is the true one."""


def rates(answers: Sequence[Answer], gate: float = 0.0) -> Rates:
    """Return the rates when nothing below the gate is shown."""
    shown = [each for each in answers if each.text and each.confidence >= gate]
    exact = sum(each.is_exact for each in shown)
    return Rates(
        cuts=len(answers),
        shown=len(shown),
        show=_share(len(shown), len(answers)),
        exact=_share(exact, len(answers)),
        passed=_share(sum(each.has_passed for each in shown), len(answers)),
        precision=_share(exact, len(shown)),
        line_precision=_share(sum(each.is_line_exact for each in shown), len(shown)),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def margin(share: float, count: int) -> float:
    """Return half the width of Wilson's 95 % interval of a share of `count` samples."""
    if not count:
        return 0.0
    z = 1.96
    inner = share * (1 - share) / count + (z / (2 * count)) ** 2
    return z * math.sqrt(inner) / (1 + z * z / count)


@dataclass(frozen=True, slots=True)
class Gate:
    """A confidence threshold and the precision of the first lines shown with it."""

    threshold: float
    show: float
    line_precision: float
    gain: float
    """Precision with the gate, divided by the precision without."""
    holds: bool
    """Whether it gains `GAIN` while showing at `SHOW` of the cuts."""


def best_gate(answers: Sequence[Answer]) -> Gate:
    """Find the threshold with the highest precision that shows something at `SHOW` of the cuts.

    It is chosen on the answers that it is judged by, so the gain is slightly too high when they are
    few. Returns the threshold 0 when no other one shows enough.
    """
    open_ = rates(answers)
    wanted = (each.confidence for each in answers if each.text)
    candidates = [(0.0, open_)] + [(at, rates(answers, at)) for at in sorted(set(wanted))]
    allowed = [pair for pair in candidates if pair[1].show >= SHOW] or candidates[:1]
    threshold, found = max(allowed, key=lambda pair: pair[1].line_precision)
    gain = found.line_precision / open_.line_precision if open_.line_precision else 0.0
    return Gate(
        threshold=threshold,
        show=found.show,
        line_precision=found.line_precision,
        gain=gain,
        holds=gain >= GAIN and found.show >= SHOW,
    )


@dataclass(frozen=True, slots=True)
class DefaultGate:
    """What the default gate does, which shows the certain part of a line or all of it."""

    threshold: float
    show: float
    right: float
    """Share of the suggestions shown that are a prefix of the true first line."""
    exact: float
    """Share of the cuts where the true first line is shown."""
    open_show: float
    open_right: float
    open_exact: float
    """The same three without a gate."""
    gain: float
    """`right` over `open_right`."""
    holds: bool
    """Whether it gains `GAIN` while showing at `SHOW` of the cuts."""


def default_gate(answers: Sequence[Answer]) -> DefaultGate:
    """Compare the default gate with no gate."""
    count = len(answers)
    shown, open_shown = (sum(bool(e.gated) for e in answers), sum(bool(e.text) for e in answers))
    right = _share(sum(each.is_gated_right for each in answers), shown)
    open_right = _share(sum(each.is_right for each in answers), open_shown)
    gain = right / open_right if open_right else 0.0
    return DefaultGate(
        threshold=GATE,
        show=_share(shown, count),
        right=right,
        exact=_share(sum(each.is_gated_exact for each in answers), count),
        open_show=_share(open_shown, count),
        open_right=open_right,
        open_exact=_share(sum(each.is_line_exact for each in answers), count),
        gain=gain,
        holds=gain >= GAIN and _share(shown, count) >= SHOW,
    )


def groups(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    """Group answers by kind, and add the group "all" when there is more than one kind."""
    found: dict[str, list[Answer]] = {}
    for kind in KINDS:
        of_kind = [each for each in answers if each.kind == kind]
        if of_kind:
            found[kind] = of_kind
    return found if len(found) == 1 else {**found, "all": list(answers)}
