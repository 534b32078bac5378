"""What the answers come to: rates, the gate's thresholds, tables. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evals.data import KINDS
from evals.fim import GATE, Answer

THRESHOLDS = [tenth / 10 for tenth in range(10)]
GAIN = 1.5
"""What a gate shall make of the precision of shown first lines, ..."""
SHOW = 0.5
"""... while it still shows at this share of the cuts."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of answers under one threshold; 0 where there is nothing to share."""

    cuts: int
    shown: int
    show: float
    """Share of the cuts where something is shown."""
    exact: float
    """Share of the cuts where the true text is shown."""
    passed: float
    """Share of the cuts where a text is shown with which the program passes its tests: pass@1."""
    precision: float
    """Share of what is shown that is the true text."""
    line_precision: float
    """Share of what is shown whose first line is the true one."""


def rates(answers: Sequence[Answer], gate: float = 0.0) -> Rates:
    """Count, with everything silent whose confidence is below the gate."""
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
    """Return half of Wilson's interval of 95 %, for a share of so many."""
    if not count:
        return 0.0
    z = 1.96
    inner = share * (1 - share) / count + (z / (2 * count)) ** 2
    return z * math.sqrt(inner) / (1 + z * z / count)


@dataclass(frozen=True, slots=True)
class Gate:
    """What a threshold on the confidence can do for the precision of shown first lines."""

    threshold: float
    show: float
    line_precision: float
    gain: float
    """Precision over the precision without a gate."""
    holds: bool
    """Whether it gains `GAIN` while showing at `SHOW` of the cuts."""


def best_gate(answers: Sequence[Answer]) -> Gate:
    """Find the threshold with the highest precision that still shows at `SHOW` of the cuts.

    It is chosen on the answers it is judged by, so the gain is a little too high for few answers.
    Without such a threshold the one that shows everything comes back.
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
class Shipped:
    """What the gate does as it is by default: it leaves the sure part, or a whole first line."""

    threshold: float
    show: float
    right: float
    """Share of what is shown whose first line is right so far as it goes."""
    exact: float
    """Share of the cuts where the true first line is shown."""
    open_show: float
    open_right: float
    open_exact: float
    """The same three without it."""
    gain: float
    """`right` over `open_right`."""
    holds: bool
    """Whether it gains `GAIN` while showing at `SHOW` of the cuts."""


def shipped(answers: Sequence[Answer]) -> Shipped:
    """Compare the default gate with none."""
    count = len(answers)
    shown, open_shown = (sum(bool(e.gated) for e in answers), sum(bool(e.text) for e in answers))
    right = _share(sum(each.is_gated_right for each in answers), shown)
    open_right = _share(sum(each.is_right for each in answers), open_shown)
    gain = right / open_right if open_right else 0.0
    return Shipped(
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
    """Return the answers of each kind that there is, and of all where there is more than one."""
    found: dict[str, list[Answer]] = {}
    for kind in KINDS:
        of_kind = [each for each in answers if each.kind == kind]
        if of_kind:
            found[kind] = of_kind
    return found if len(found) == 1 else {**found, "all": list(answers)}


def as_dict(answers: Sequence[Answer], facts: dict[str, Any], gate: float = 0.0) -> dict[str, Any]:
    """Return everything for JSON.

    Args:
        answers: of one run.
        facts: the machine, the model, the command, whatever a reader must know.
        gate: the threshold under which `cuts` are counted; the tables have all.
    """
    cuts, thresholds, gates, default = {}, {}, {}, {}
    for name, group in groups(answers).items():
        counted = rates(group, gate)
        cuts[name] = {
            **asdict(counted),
            "exact_margin": margin(counted.exact, counted.cuts),
            "confidence": _mean([each.confidence for each in group if each.text]),
            "read_tokens_p50": _middle(group, lambda each: each.read_tokens),
            "generated_tokens_p50": _middle(group, lambda each: each.generated_tokens),
            "first_ms_p50": _middle([e for e in group if e.first_ms], lambda each: each.first_ms),
            "total_ms_p50": _middle(group, lambda each: each.total_ms),
        }
        thresholds[name] = [{"threshold": at, **asdict(rates(group, at))} for at in THRESHOLDS]
        gates[name] = asdict(best_gate(group))
        default[name] = asdict(shipped(group))
    tables = {"cuts": cuts, "thresholds": thresholds, "best_gate": gates, "shipped_gate": default}
    return {**facts, "gate": gate, **tables}


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0


def _middle(answers: Sequence[Answer], of: Callable[[Answer], float]) -> float:
    return float(statistics.median(map(of, answers))) if answers else 0.0


def as_markdown(document: dict[str, Any]) -> str:
    """Return what `as_dict` made as tables, with what it was measured on."""
    machine = ", ".join(f"{key} {value}" for key, value in document["machine"].items())
    lines = [
        f"Machine: {machine}  ",
        f"Model: {document['model']}; {document['window']} window, "
        f"healing {_on(document['heals'])}, "
        f"splice {_on(document['splices'])}, gate {document['gate']:g}, "
        f"{document['typed']} keys typed before, seed {document['seed']}  ",
        f"Command: `{document['command']}`",
        "",
        "| cut | n | exact | pass@1 | shown | precision | first line | confidence | read | "
        "written | first text | all text |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, row in document["cuts"].items():
        passed = "–" if document.get("source") else _percent(row["passed"])
        lines.append(
            f"| {name} | {row['cuts']} | {_percent(row['exact'])} ± {100 * row['exact_margin']:.0f}"
            f" | {passed} | {_percent(row['show'])} | {_percent(row['precision'])}"
            f" | {_percent(row['line_precision'])} | {row['confidence']:.2f}"
            f" | {row['read_tokens_p50']:g} | {row['generated_tokens_p50']:g}"
            f" | {row['first_ms_p50']:.0f} ms"
            f" | {row['total_ms_p50']:.0f} ms |"
        )
    names = list(document["thresholds"])
    lines += [
        "",
        "Shown, and the precision of the first lines shown, for thresholds on the confidence:",
        "",
        "| threshold | " + " | ".join(names) + " |",
        "|--:|" + "--:|" * len(names),
    ]
    for number, at in enumerate(THRESHOLDS):
        found = [document["thresholds"][name][number] for name in names]
        cells = [f"{_percent(row['show'])}, {_percent(row['line_precision'])}" for row in found]
        lines.append(f"| {at:.1f} | " + " | ".join(cells) + " |")
    lines.append("")
    for name, row in document["best_gate"].items():
        lines.append(
            f"- Best gate for {name} that shows at {_percent(SHOW)} or more: "
            f"{row['threshold']:.2f}, shown {_percent(row['show'])}, "
            f"precision {_percent(row['line_precision'])}, {row['gain']:.2f} × ungated "
            f"(wanted {GAIN:g}: {'yes' if row['holds'] else 'no'})"
        )
    lines += [
        "",
        "The gate as it is by default (the sure part of a line, or all of it), beside none:",
        "",
        "| cut | shown | right so far as it goes | first line exact | shown without | right | "
        "exact | gain |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, row in document["shipped_gate"].items():
        shares = ("show", "right", "exact", "open_show", "open_right", "open_exact")
        shown = " | ".join(_percent(row[share]) for share in shares)
        lines.append(f"| {name} | {shown} | {row['gain']:.2f} |")
    return "\n".join(lines) + "\n"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _on(is_on: bool) -> str:
    return "on" if is_on else "off"
