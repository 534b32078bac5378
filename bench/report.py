"""Figures and how they are shown: as a table for people, as JSON for programs. Pure."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that was measured often enough.

    Attributes:
        name: what it is.
        unit: of every number here.
        count: how many samples.
        limit: what it must not pass; None where there is no promise.
        judged: which of the numbers the limit is for.
    """

    name: str
    unit: str
    count: int
    p50: float
    p95: float
    worst: float
    limit: float | None
    judged: str

    @property
    def holds(self) -> bool:
        """Whether the promise is kept."""
        return self.limit is None or getattr(self, self.judged) <= self.limit


def percentile(samples: Sequence[float], percent: int) -> float:
    """Return the smallest sample that so many percent of all do not pass (nearest rank).

    Args:
        samples: at least one, in any order.
        percent: above 0, at most 100.
    """
    ordered = sorted(samples)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def figure(
    name: str,
    samples: Sequence[float],
    *,
    limit: float | None = None,
    judged: str = "p95",
    unit: str = "ms",
) -> Figure:
    """Boil samples down.

    Args:
        name: what they are of.
        samples: at least one.
        limit: what must not be passed.
        judged: "p50", "p95" or "worst".
        unit: of the samples.
    """
    ordered = sorted(samples)
    return Figure(
        name,
        unit,
        len(ordered),
        statistics.median(ordered),
        percentile(ordered, 95),
        ordered[-1],
        limit,
        judged,
    )


def machine() -> dict[str, str]:
    """Return what a reader must know of this machine to believe a number."""
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in _lines(Path("/proc/cpuinfo"))
            if line.startswith("model name")
        ),
        platform.processor() or platform.machine(),
    )
    cores = sum(line.startswith("processor") for line in _lines(Path("/proc/cpuinfo")))
    return {
        "cpu": cpu,
        "cores": str(cores or 1),
        "system": platform.system() + " " + platform.machine(),
        "python": platform.python_version(),
    }


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def as_dict(figures: Iterable[Figure], facts: dict[str, str]) -> dict[str, Any]:
    """Return everything for JSON."""
    rows = [{**asdict(each), "holds": each.holds} for each in figures]
    return {"machine": facts, "figures": rows}


def as_markdown(figures: Iterable[Figure], facts: dict[str, str], command: str) -> str:
    """Return a table with what it was measured on."""
    lines = [f"Machine: {', '.join(f'{key} {value}' for key, value in facts.items())}  "]
    lines += [f"Command: `{command}`", ""]
    lines.append("| figure | n | p50 | p95 | worst | promised | kept |")
    lines.append("|---|--:|--:|--:|--:|--:|---|")
    for each in figures:
        promise = f"{each.judged} ≤ {each.limit:g} {each.unit}" if each.limit is not None else ""
        kept = "" if each.limit is None else "yes" if each.holds else "**no**"
        values = (each.p50, each.p95, each.worst)
        numbers = " | ".join(f"{value:.2f} {each.unit}" for value in values)
        lines.append(f"| {each.name} | {each.count} | {numbers} | {promise} | {kept} |")
    return "\n".join(lines) + "\n"
