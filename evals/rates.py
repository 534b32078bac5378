"""Rates of right completions: the figures of `eval fim`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.report import share
from evals.data import KINDS, Kind


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


def first_line(text: str) -> str:
    """Return a text up to the end of its first line that is not blank."""
    match = re.match(r"\s*[^\n]*", text)
    return match[0].rstrip() if match else ""


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of some answers; 0 where the denominator is 0."""

    cuts: int
    show: float
    """Share of the cuts where something was written."""
    exact: float
    """Share of the cuts where the true text was written."""
    passed: float
    """Share of the cuts where the program passes its tests with the text: pass@1."""
    line_precision: float
    """Share of the texts written whose first line is the true one."""


def rates(answers: Sequence[Answer]) -> Rates:
    """Return the rates of answers."""
    shown = [each for each in answers if each.text]
    return Rates(
        cuts=len(answers),
        show=share(len(shown), len(answers)),
        exact=share(sum(each.is_exact for each in shown), len(answers)),
        passed=share(sum(each.has_passed for each in shown), len(answers)),
        line_precision=share(sum(each.is_line_exact for each in shown), len(shown)),
    )


def margin(share: float, count: int) -> float:
    """Return half the width of Wilson's 95 % interval of a share of `count` samples."""
    if not count:
        return 0.0
    z = 1.96
    inner = share * (1 - share) / count + (z / (2 * count)) ** 2
    return z * math.sqrt(inner) / (1 + z * z / count)


def groups(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    """Group answers by kind, and add the group "all" when there is more than one kind."""
    found: dict[str, list[Answer]] = {}
    for kind in KINDS:
        of_kind = [each for each in answers if each.kind == kind]
        if of_kind:
            found[kind] = of_kind
    return found if len(found) == 1 else {**found, "all": list(answers)}
