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
MORE_IS_BETTER = ("shown", "exact", "exact_gate_on", "precision", "precision_gate_off")
PER_FILE = (
    *MORE_IS_BETTER,
    *("p50_ms", "answer_p95_ms"),
    *("cold_shown", "cold_p50_ms", "cold_p95_ms"),
    *("rested_shown", "rested_p50_ms", "rested_p95_ms"),
)
"""The figures in the table with a row for each file."""


@dataclass
class Results:
    """Everything that was typed with one plugin."""

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


Plugins = Mapping[str, Results]
"""The results of each plugin by its name; the first is lcursor."""


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


def as_dict(plugins: Plugins, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report as JSON: our figures at top level, the other plugin's under `peer`."""
    (own, *peers) = [
        {
            **results.numbers(),
            "model": results.model,
            "trials": [asdict(each) for each in results.warm],
            "cold_trials": [asdict(each) for each in results.cold],
            "rested_trials": [asdict(each) for each in results.rested],
        }
        for results in plugins.values()
    ]
    out = {**facts, **own, "files": []}
    for file in _files(plugins):
        (numbers, *others) = [results.numbers(file) for results in plugins.values()]
        out["files"].append({"file": file, **numbers, **({"peer": others[0]} if others else {})})
    if peers:
        out["peer"] = {"name": list(plugins)[1], **peers[0]}
        out["times_faster_p50"] = _ratio(peers[0].get("p50_ms"), own.get("p50_ms"))
    return out


def _files(plugins: Plugins) -> list[str]:
    return list(
        dict.fromkeys(
            each.spot.file
            for results in plugins.values()
            for typed in (results.warm, results.cold, results.rested)
            for each in typed
        )
    )


def as_markdown(plugins: Plugins, facts: Mapping[str, Any]) -> list[str]:
    """Return the report: a table of all figures, and one with a row for each file."""
    models = ", ".join(f"{name}: {results.model}" for name, results in plugins.items())
    typed = f"Files: {facts['file']}, a key every {facts['pace_ms']:g} ms"
    lines = [*head(facts, f"Models: {models}", typed), *_table(plugins)]
    files = _files(plugins)
    return [*lines, "", *_file_table(plugins, files)] if len(files) > 1 else lines


def _table(plugins: Plugins) -> list[str]:
    columns = [results.numbers() for results in plugins.values()]
    rows = []
    for key, label in LABELS.items():
        if not any(key in column for column in columns):
            continue
        cells = [_cell(column, key) for column in columns]
        if len(columns) > 1:
            own, other = (column.get(key) for column in columns[:2])
            ratio = None
            if key.endswith("_ms"):
                ratio = _ratio(other, own)
            elif key in MORE_IS_BETTER:
                ratio = _ratio(own, other)
            cells.append("" if ratio is None else f"{ratio:g} ×")
        rows.append((label, *cells))
    ratio_column = ["ratio:"] if len(columns) > 1 else []
    return table(["", *(f"{name}:" for name in plugins), *ratio_column], rows)


def _file_table(plugins: Plugins, files: Sequence[str]) -> list[str]:
    """Return a row for each file; a cell has the values of the plugins in their order."""
    found = {file: [results.numbers(file) for results in plugins.values()] for file in files}
    keys = [key for key in PER_FILE if any(key in row for each in found.values() for row in each)]
    names = [key.removesuffix("_ms").replace("_", " ") + ":" for key in keys]
    rows = [
        (file, *(" / ".join(_cell(column, key) for column in columns) for key in keys))
        for file, columns in found.items()
    ]
    return table([" / ".join(plugins), *names], rows)


def _cell(column: Mapping[str, Any], key: str) -> str:
    value = column.get(key)
    if value is None:
        return "none"
    if key in TOTALS:
        return f"{value} of {column[TOTALS[key]]}"
    return f"{value:.1f} ms" if key.endswith("_ms") else f"{value:g}"


def _ratio(one: float | None, other: float | None) -> float | None:
    return round(one / other, 2 if one < 10 * other else 1) if one and other else None
