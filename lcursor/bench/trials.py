"""Typed lines and the screens that came of them, boiled down to numbers. Pure.

What a valid ghost is stands in `ghost_times_ms`; nothing here knows of Neovim.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lcursor.bench.report import percentile
from lcursor.errors import LcursorError

KEYS = 6
MARGIN_ROWS = 60
SHORTEST = 15

LABELS = {
    "shown": "a ghost came",
    "exact": "its first line is exactly what was taken out",
    "answered": "keys with a valid ghost",
    "p50_ms": "key to first valid ghost, p50",
    "p90_ms": "the same, p90",
    "p95_ms": "the same, p95",
    "answer_p95_ms": "the newest key that it stands behind to that ghost, p95",
    "last_key_p50_ms": "last key to first valid ghost, p50",
    "tokens_per_keystroke_median": "prompt tokens decoded for a key, median",
    "tokens_per_keystroke_mean": "the same, mean",
    "main_thread_p95_ms": "main thread for a key, p95",
}
TOTALS = {"shown": "positions", "exact": "positions", "answered": "keystrokes"}

Results = Mapping[str, tuple[str, Sequence["Trial"]]]
"""For each who typed: the name of its model, and the trials. The first is lcursor."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A line of the file whose end is gone.

    Attributes:
        row: 0-based.
        before: what of the line stands there already.
        typed: what is typed after it.
        rest: what was taken out.
    """

    row: int
    before: str
    typed: str
    rest: str

    @property
    def head(self) -> str:
        """The line when all keys are typed."""
        return self.before + self.typed


class Flush(NamedTuple):
    """A screen that was drawn."""

    at_s: float
    left: str
    """What stands left of the cursor."""
    ghost: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one spot.

    Attributes:
        final: the suggestion on the screen when all was said; empty when there was none.
        ghost_ms: for each key, the time to a valid ghost; None where none came.
        answer_ms: the same, from the newest key that stood on that screen: without the time in
            which the model still thought otherwise, and waited for what is typed.
        tokens: for each key, the tokens of the prompt that were decoded for it.
        main_ms: for each key, the time on Neovim's main thread.
    """

    spot: Spot
    final: str
    ghost_ms: list[float | None]
    answer_ms: list[float | None]
    tokens: list[int]
    main_ms: list[float]

    @property
    def is_exact(self) -> bool:
        """Whether the first line of the suggestion is what was taken out."""
        return self.final.split("\n")[0].rstrip() == self.spot.rest.rstrip()


def pick_spots(lines: Sequence[str], count: int, seed: int) -> list[Spot]:
    """Choose lines of code and columns in them; the same ones for the same seed.

    Raises:
        LcursorError: the file has too few lines that suit.
    """
    rng = random.Random(seed)
    rows = [
        row
        for row in range(MARGIN_ROWS + 1, len(lines) - MARGIN_ROWS)
        if len(text := lines[row].strip()) >= SHORTEST
        and text.isascii()
        and text.isprintable()
        and not text.startswith(("#", '"', "'", "//", "--", "/*", "*"))
    ]
    if len(rows) < count:
        raise LcursorError(
            f"the file has {len(rows)} lines of code to type in, {count} are needed",
            "Name a longer file, or fewer positions with --positions",
        )
    rng.shuffle(rows)
    return [_cut(row, lines[row], rng) for row in rows[:count]]


def _cut(row: int, line: str, rng: random.Random) -> Spot:
    indent = len(line) - len(line.lstrip())
    least = KEYS + 2
    at = indent + rng.randint(least, max(least, len(line.strip()) * 2 // 3))
    return Spot(row, line[: at - KEYS], line[at - KEYS : at], line[at:])


def ghost_times_ms(
    flushes: Sequence[Flush], sent_s: Sequence[float], base: int
) -> tuple[list[float | None], list[float | None]]:
    """Return, for each key, the time to the first valid ghost: from it, and from the newest key.

    A ghost is valid when it stands behind all that was typed so far and is the beginning of what
    the last screen shows. A key is answered by no screen that was drawn before the key stood on it.

    Args:
        flushes: every screen since the first key, the last one settled.
        sent_s: when each key was sent.
        base: characters left of the cursor before the first key.
    """
    last = flushes[-1]
    if not last.ghost.strip():
        return [None] * len(sent_s), [None] * len(sent_s)
    whole = last.left + last.ghost
    valid = [
        (flush.at_s, len(flush.left) - base)
        for flush in flushes
        if flush.ghost.strip() and whole.startswith((flush.left + flush.ghost).rstrip())
    ]
    first = [
        next(((at, typed) for at, typed in valid if at >= sent and typed >= key), None)
        for key, sent in enumerate(sent_s, 1)
    ]
    return (
        [found and 1000 * (found[0] - sent) for found, sent in zip(first, sent_s, strict=True)],
        [found and 1000 * (found[0] - sent_s[min(found[1], len(sent_s)) - 1]) for found in first],
    )


def summary(trials: Sequence[Trial]) -> dict[str, Any]:
    """Boil the trials down to the numbers of the report; a time is None where no ghost came."""
    times = [ms for trial in trials for ms in trial.ghost_ms if ms is not None]
    answers = [ms for trial in trials for ms in trial.answer_ms if ms is not None]
    last = [trial.ghost_ms[-1] for trial in trials if trial.ghost_ms[-1] is not None]
    return {
        "positions": len(trials),
        "shown": sum(bool(trial.final.strip()) for trial in trials),
        "exact": sum(trial.is_exact for trial in trials),
        "keystrokes": sum(len(trial.ghost_ms) for trial in trials),
        "answered": len(times),
        "p50_ms": round(statistics.median(times), 2) if times else None,
        "p90_ms": round(percentile(times, 90), 2) if times else None,
        "p95_ms": round(percentile(times, 95), 2) if times else None,
        "answer_p95_ms": round(percentile(answers, 95), 2) if answers else None,
        "last_key_p50_ms": round(statistics.median(last), 2) if last else None,
        "tokens_per_keystroke_median": statistics.median(
            count for trial in trials for count in trial.tokens
        ),
        "tokens_per_keystroke_mean": round(
            statistics.fmean(count for trial in trials for count in trial.tokens), 1
        ),
        "main_thread_p95_ms": round(
            percentile([ms for trial in trials for ms in trial.main_ms], 95), 2
        ),
    }


def as_dict(results: Results, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything for JSON: the first one's numbers on top, the other's under `peer`."""
    (own, *peers) = [
        {**summary(trials), "model": model, "trials": _told(trials)}
        for model, trials in results.values()
    ]
    out = {**facts, **own}
    if peers:
        out["peer"] = {"name": list(results)[1], **peers[0]}
        out["times_faster_p50"] = _ratio(peers[0]["p50_ms"], own["p50_ms"])
    return out


def _told(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    return [
        {
            "line": trial.spot.row + 1,
            "head": trial.spot.head,
            "rest": trial.spot.rest,
            "final": trial.final,
            "ghost_ms": [ms and round(ms, 1) for ms in trial.ghost_ms],
            "tokens": trial.tokens,
            "main_ms": [round(ms, 2) for ms in trial.main_ms],
        }
        for trial in trials
    ]


def as_markdown(results: Results, facts: Mapping[str, Any]) -> str:
    """Return a table with what it was measured on, and how."""
    columns = [summary(trials) for _, trials in results.values()]
    rows = [
        (label, [_cell(column, key) for column in columns], key.endswith("_ms"), key)
        for key, label in LABELS.items()
    ]
    machine = ", ".join(f"{key} {value}" for key, value in facts["machine"].items())
    models = ", ".join(f"{name}: {model}" for name, (model, _) in results.items())
    head = ["", *results, *(["ratio"] if len(columns) > 1 else [])]
    lines = [f"Machine: {machine}  ", f"Models: {models}  ", f"Command: `{facts['command']}`  "]
    lines += [f"File: {facts['file']}, a key every {facts['pace_ms']:g} ms", ""]
    lines += ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for label, cells, is_time, key in rows:
        if len(columns) > 1:
            ratio = _ratio(columns[1][key], columns[0][key]) if is_time else None
            cells.append("" if ratio is None else f"{ratio:g} ×")
        lines.append("| " + " | ".join([label, *cells]) + " |")
    return "\n".join(lines) + "\n"


def _cell(column: Mapping[str, Any], key: str) -> str:
    value = column[key]
    if value is None:
        return "none"
    if key in TOTALS:
        return f"{value} of {column[TOTALS[key]]}"
    return f"{value:.1f} ms" if key.endswith("_ms") else f"{value:g}"


def _ratio(one: float | None, other: float | None) -> float | None:
    return round(one / other, 1) if one and other else None
