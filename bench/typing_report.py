"""The figures of `bench typing`, as JSON and as tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.report import head, percentile, table
from bench.trials import Jump, Trial, is_beginning, is_exact

LABELS = {
    "shown": "a suggestion was shown",
    "exact": "its first line is exactly what was taken out, gate off",
    "exact_gate_on": "the same, gate on",
    "precision": "shown suggestions that are what was taken out or its beginning, gate on",
    "precision_gate_off": "the same, gate off",
    "answered": "keys with a valid suggestion",
    "p50_ms": "key to first valid suggestion, p50",
    "p90_ms": "the same, p90",
    "p95_ms": "the same, p95",
    "answer_p95_ms": "from the newest key it depends on to that suggestion, p95",
    "last_key_p50_ms": "last key to first valid suggestion, p50",
    "tokens_per_keystroke_median": "prompt tokens evaluated per key, median",
    "tokens_per_keystroke_mean": "the same, mean",
    "passes_per_changing_keystroke": "decode calls per key that evaluates tokens, mean",
    "main_thread_p95_ms": "main thread per key, p95",
}
JUMP_LABELS = {
    "shown": "{}: a suggestion was shown",
    "p50_ms": "{}: last key to the suggestion that stays, p50",
    "p95_ms": "the same, p95",
    "exact": "{}: its first line is exact, gate on",
    "replaced_later": "{}: replaced by another text later",
    "unanswered": "{}: nothing shown and still at work when time was up",
}
TOTALS = {
    **dict.fromkeys(("shown", "exact", "exact_gate_on"), "positions"),
    "answered": "keystrokes",
}
"""What a count is out of, by the names of figures."""
for _mode in ("cold", "rested"):
    LABELS |= {f"{_mode}_{name}": label.format(_mode) for name, label in JUMP_LABELS.items()}
    _counts = (f"{_mode}_{name}" for name in JUMP_LABELS if not name.endswith("_ms"))
    TOTALS |= dict.fromkeys(_counts, f"{_mode}_positions")
PER_FILE = (
    *("shown", "exact", "exact_gate_on", "precision", "precision_gate_off"),
    *("p50_ms", "answer_p95_ms"),
    *("cold_shown", "cold_p50_ms", "cold_p95_ms"),
    *("rested_shown", "rested_p50_ms", "rested_p95_ms"),
)
"""The figures in the table with a row for each file."""


@dataclass
class Results:
    """Everything that was typed."""

    model: str = ""
    warm: list[Trial] = field(default_factory=list)
    cold: list[Jump] = field(default_factory=list)
    rested: list[Jump] = field(default_factory=list)

    def numbers(self, file: str = "") -> dict[str, Any]:
        """Return the figures of the runs that were made, in one file or in all."""

        def chosen(typed: Sequence[Any]) -> list[Any]:
            return [each for each in typed if file in ("", each.spot.file)]

        numbers = summary(chosen(self.warm)) if chosen(self.warm) else {}
        for mode, jumps in (("cold", chosen(self.cold)), ("rested", chosen(self.rested))):
            numbers |= jump_summary(jumps, mode) if jumps else {}
        return numbers

    def files(self) -> list[str]:
        """Return the files that were typed into, in their order."""
        spots = [each.spot for each in self.warm]
        spots += [each.spot for each in (*self.cold, *self.rested)]
        return list(dict.fromkeys(spot.file for spot in spots))


def summary(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return the figures of a warm run; a time is None if no suggestion came."""
    times = [ms for trial in trials for ms in trial.ghost_ms if ms is not None]
    answers = [ms for trial in trials for ms in trial.answer_ms if ms is not None]
    last = [ms for trial in trials if (ms := trial.ghost_ms[-1]) is not None]
    tokens = [count for trial in trials for count in trial.tokens]
    passes = [count for trial in trials for count in trial.passes if count is not None]
    gated = [(trial.final, trial.spot.rest) for trial in trials]
    ungated = [(trial.ungated, trial.spot.rest) for trial in trials if trial.ungated is not None]
    return {
        "positions": len(trials),
        "shown": sum(bool(text.strip()) for text, _ in gated),
        "exact": sum(is_exact(*each) for each in ungated) if ungated else None,
        "exact_gate_on": sum(is_exact(*each) for each in gated),
        "precision": _precision(gated),
        "precision_gate_off": _precision(ungated),
        "keystrokes": sum(len(trial.ghost_ms) for trial in trials),
        "answered": len(times),
        "p50_ms": _of(statistics.median, times),
        "p90_ms": _of(lambda samples: percentile(samples, 90), times),
        "p95_ms": _p95(times),
        "answer_p95_ms": _p95(answers),
        "last_key_p50_ms": _of(statistics.median, last),
        "tokens_per_keystroke_median": statistics.median(tokens),
        "tokens_per_keystroke_mean": round(statistics.fmean(tokens), 1),
        "passes_per_changing_keystroke": _of(statistics.fmean, passes),
        "main_thread_p95_ms": _p95([ms for trial in trials for ms in trial.main_ms]),
    }


def jump_summary(jumps: Sequence[Jump], mode: str) -> dict[str, Any]:
    """Return the figures of a cold or rested run; times are of the suggestions shown."""
    stays = [(jump, stay) for jump in jumps if (stay := jump.stay())]
    times = [stay.ms for _, stay in stays]
    numbers = {
        "positions": len(jumps),
        "shown": len(stays),
        "p50_ms": _of(statistics.median, times),
        "p95_ms": _p95(times),
        "exact": sum(is_exact(stay.ghost, jump.spot.rest) for jump, stay in stays),
        "replaced_later": sum(stay.replaced_later for _, stay in stays),
        "unanswered": sum(not jump.has_answer and not jump.stay() for jump in jumps),
    }
    return {f"{mode}_{name}": value for name, value in numbers.items()}


def _of(statistic: Callable[[Sequence[float]], float], samples: Sequence[float]) -> float | None:
    return round(statistic(samples), 2) if samples else None


def _p95(samples: Sequence[float]) -> float | None:
    return _of(lambda samples: percentile(samples, 95), samples)


def _precision(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return the share of the suggestions shown that are a prefix of the removed text."""
    shown = [is_beginning(text, rest) for text, rest in pairs if text.strip()]
    return round(statistics.fmean(shown), 3) if shown else None


def as_dict(results: Results, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report as JSON."""
    return {
        **facts,
        **results.numbers(),
        "model": results.model,
        "trials": [asdict(each) for each in results.warm],
        "cold_trials": [asdict(each) for each in results.cold],
        "rested_trials": [asdict(each) for each in results.rested],
        "files": [{"file": file, **results.numbers(file)} for file in results.files()],
    }


def as_markdown(results: Results, facts: Mapping[str, Any]) -> list[str]:
    """Return the report: a table of all figures, and one with a row for each file."""
    typed = f"Files: {facts['file']}, a key every {facts['pace_ms']:g} ms"
    numbers = results.numbers()
    rows = [(label, _cell(numbers, key)) for key, label in LABELS.items() if key in numbers]
    lines = [*head(facts, f"Model: {results.model}", typed), *table(["", "found:"], rows)]
    files = results.files()
    return [*lines, "", *_file_table(results, files)] if len(files) > 1 else lines


def _file_table(results: Results, files: Sequence[str]) -> list[str]:
    """Return a row for each file."""
    found = {file: results.numbers(file) for file in files}
    keys = [key for key in PER_FILE if any(key in numbers for numbers in found.values())]
    names = [key.removesuffix("_ms").replace("_", " ") + ":" for key in keys]
    rows = [(file, *(_cell(row, key) for key in keys)) for file, row in found.items()]
    return table(["file", *names], rows)


def _cell(numbers: Mapping[str, Any], key: str) -> str:
    value = numbers.get(key)
    if value is None:
        return "none"
    if key in TOTALS:
        return f"{value} of {numbers[TOTALS[key]]}"
    return f"{value:.1f} ms" if key.endswith("_ms") else f"{value:g}"
