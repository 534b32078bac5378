"""The figures of `bench typing`, as JSON and as tables."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.report import head, percentile, table
from bench.trials import Drawn, Jump, Spot, Trial, is_beginning, is_exact

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
    "cold_shown": "cold: a suggestion was shown",
    "cold_p50_ms": "cold: last key to the suggestion that stays, p50",
    "cold_p95_ms": "the same, p95",
    "cold_exact": "cold: its first line is exact, gate on",
    "cold_replaced_later": "cold: replaced by another text later",
    "cold_unanswered": "cold: nothing shown and still at work when time was up",
    "rested_shown": "rested: a suggestion was shown",
    "rested_p50_ms": "rested: last key to the suggestion that stays, p50",
    "rested_p95_ms": "the same, p95",
    "rested_exact": "rested: its first line is exact, gate on",
    "rested_replaced_later": "rested: replaced by another text later",
    "rested_unanswered": "rested: nothing shown and still at work when time was up",
}
TOTALS = {
    **dict.fromkeys(("shown", "exact", "exact_gate_on"), "positions"),
    "answered": "keystrokes",
    **{
        f"{mode}_{name}": f"{mode}_positions"
        for mode in ("cold", "rested")
        for name in ("shown", "exact", "replaced_later", "unanswered")
    },
}
MORE_IS_BETTER = ("shown", "exact", "exact_gate_on", "precision", "precision_gate_off")
PER_FILE = (
    *MORE_IS_BETTER,
    *("p50_ms", "answer_p95_ms"),
    *("cold_shown", "cold_p50_ms", "cold_p95_ms"),
    *("rested_shown", "rested_p50_ms", "rested_p95_ms"),
)
"""The figures of each file in the table and in JSON."""


@dataclass
class Results:
    """Everything that was typed with one plugin."""

    model: str = ""
    warm: list[Trial] = field(default_factory=list)
    cold: list[Jump] = field(default_factory=list)
    rested: list[Jump] = field(default_factory=list)

    def of_file(self, file: str) -> Results:
        """Return the results of one file."""
        return Results(
            self.model,
            [trial for trial in self.warm if trial.spot.file == file],
            [jump for jump in self.cold if jump.spot.file == file],
            [jump for jump in self.rested if jump.spot.file == file],
        )

    def numbers(self) -> dict[str, Any]:
        """Return the figures of the runs that were made."""
        return {
            **(summary(self.warm) if self.warm else {}),
            **(jump_summary(self.cold, "cold") if self.cold else {}),
            **(jump_summary(self.rested, "rested") if self.rested else {}),
        }


Plugins = Mapping[str, Results]
"""The results of each plugin by its name; the first is lcursor."""


def summary(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return the figures of a warm run; a time is None if no suggestion came."""
    times = [ms for trial in trials for ms in trial.ghost_ms if ms is not None]
    answers = [ms for trial in trials for ms in trial.answer_ms if ms is not None]
    last = [trial.ghost_ms[-1] for trial in trials if trial.ghost_ms[-1] is not None]
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
        "passes_per_changing_keystroke": round(statistics.fmean(passes), 2) if passes else None,
        "main_thread_p95_ms": round(
            percentile([ms for trial in trials for ms in trial.main_ms], 95), 2
        ),
    }


def _precision(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return the share of the suggestions shown that are a prefix of the removed text."""
    shown = [is_beginning(text, rest) for text, rest in pairs if text.strip()]
    return round(statistics.fmean(shown), 3) if shown else None


def jump_summary(jumps: Sequence[Jump], mode: str) -> dict[str, Any]:
    """Return the figures of a cold or rested run; times are of the suggestions shown."""
    stays = [(jump, stay) for jump in jumps if (stay := jump.stay())]
    times = [stay.ms for _, stay in stays]
    numbers = {
        "positions": len(jumps),
        "shown": len(stays),
        "p50_ms": round(statistics.median(times), 2) if times else None,
        "p95_ms": round(percentile(times, 95), 2) if times else None,
        "exact": sum(is_exact(stay.ghost, jump.spot.rest) for jump, stay in stays),
        "replaced_later": sum(stay.replaced_later for _, stay in stays),
        "unanswered": sum(not jump.has_answer and not jump.stay() for jump in jumps),
    }
    return {f"{mode}_{name}": value for name, value in numbers.items()}


def as_dict(plugins: Plugins, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report as JSON: our figures at top level, the other plugin's under `peer`."""
    (own, *peers) = [
        {
            **results.numbers(),
            "model": results.model,
            "trials": [_trial_dict(trial) for trial in results.warm],
            "cold_trials": [_jump_dict(jump) for jump in results.cold],
            "rested_trials": [_jump_dict(jump) for jump in results.rested],
        }
        for results in plugins.values()
    ]
    out = {**facts, **own, "files": [_file_dict(plugins, file) for file in _files(plugins)]}
    if peers:
        out["peer"] = {"name": list(plugins)[1], **peers[0]}
        out["times_faster_p50"] = _ratio(peers[0].get("p50_ms"), own.get("p50_ms"))
    return out


def from_dict(found: Mapping[str, Any]) -> dict[str, Results]:
    """Return the results that `as_dict` was given, with rounded times."""
    plugins = {"lcursor": found}
    if "peer" in found:
        plugins[found["peer"]["name"]] = found["peer"]
    return {
        name: Results(
            one["model"],
            [Trial(**{**each, "spot": Spot(**each["spot"])}) for each in one["trials"]],
            [_jump(each) for each in one["cold_trials"]],
            [_jump(each) for each in one["rested_trials"]],
        )
        for name, one in plugins.items()
    }


def _jump(found: Mapping[str, Any]) -> Jump:
    drawn = [Drawn(*each) for each in found["drawn"]]
    return Jump(**{**found, "spot": Spot(**found["spot"]), "drawn": drawn})


def _files(plugins: Plugins) -> list[str]:
    spots = [
        each.spot
        for results in plugins.values()
        for typed in (results.warm, results.cold, results.rested)
        for each in typed
    ]
    return list(dict.fromkeys(spot.file for spot in spots))


def _file_dict(plugins: Plugins, file: str) -> dict[str, Any]:
    (own, *peers) = [results.of_file(file).numbers() for results in plugins.values()]
    return {"file": file, **own, **({"peer": peers[0]} if peers else {})}


def _rounded(times_ms: Sequence[float | None]) -> list[float | None]:
    return [ms and round(ms, 2) for ms in times_ms]


def _trial_dict(trial: Trial) -> dict[str, Any]:
    return {
        **asdict(trial),
        "ghost_ms": _rounded(trial.ghost_ms),
        "answer_ms": _rounded(trial.answer_ms),
        "main_ms": _rounded(trial.main_ms),
    }


def _jump_dict(jump: Jump) -> dict[str, Any]:
    drawn = [(round(each.ms, 2), each.typed, each.ghost) for each in jump.drawn]
    return {**asdict(jump), "drawn": drawn, "end_ms": round(jump.end_ms, 2)}


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
    found = {
        file: [results.of_file(file).numbers() for results in plugins.values()] for file in files
    }
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
