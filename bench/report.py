"""Measurements and their reports: figures with limits, Markdown tables, JSON.

Used by all benches and evals: `table(["name", "p50:"], [("start", "0.3 ms")])` returns the lines

    | name | p50 |
    |---|--:|
    | start | 0.3 ms |
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from lcursor.drive.client import NeovimError
from lcursor.errors import LcursorError

Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]


@dataclass(frozen=True, slots=True)
class Figure:
    """The distribution of one measured quantity.

    Attributes:
        name: what was measured.
        unit: of every number here.
        count: number of samples.
        limit: upper bound; None if nothing is promised.
        judged: the number that the limit applies to: "p50", "p95" or "worst".
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
        """Whether the limit is kept."""
        return self.limit is None or getattr(self, self.judged) <= self.limit


def percentile(samples: Sequence[float], percent: int) -> float:
    """Return a percentile of the samples (nearest rank).

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
    """Return the figure of some samples, at least one; see `Figure`."""
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
    """Describe this machine."""
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


def run_facts(**more: object) -> dict[str, Any]:
    """Return what the head of a report says: the machine, its load and the command line."""
    return {
        "machine": {**machine(), "load": f"{os.getloadavg()[0]:.1f} at the start"},
        "command": shlex.join(["python", "-m", "lcursor", *sys.argv[1:]]),
        **more,
    }


def head(facts: Mapping[str, Any], *lines: str) -> list[str]:
    """Return the head of a report in Markdown: machine, more lines, command."""
    machine = ", ".join(f"{key} {value}" for key, value in facts["machine"].items())
    command = f"Command: `{facts['command']}`"
    return [*(f"{line}  " for line in (f"Machine: {machine}", *lines)), command, ""]


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a Markdown table.

    Args:
        columns: names; one that ends with ":" is aligned right.
        rows: the cells; bools are shown as "yes" and "**no**".
    """
    lines = [[each.removesuffix(":") for each in columns]]
    lines += [[_cell(each) for each in row] for row in rows]
    rule = "|" + "".join("--:|" if each.endswith(":") else "---|" for each in columns)
    shown = [f"| {' | '.join(cells)} |" for cells in lines]
    return [shown[0], rule, *shown[1:]]


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    return str(value)


def percent(share: float) -> str:
    """Return a share as "42 %"."""
    return f"{100 * share:.0f} %"


def emit(document: object, lines: Sequence[str], as_json: bool) -> None:
    """Print a report: one line of JSON, or lines of Markdown."""
    typer.echo(json.dumps(document) if as_json else "\n".join(lines))


def progress(line: str) -> None:
    """Print a progress line, to standard error."""
    typer.echo(line, err=True)


def measuring(what: str) -> None:
    """Print what is being measured, to standard error."""
    progress(f"measuring: {what} ...")


def check_names(names: Iterable[str], known: Iterable[str]) -> None:
    """Reject names on the command line that are not known."""
    if unknown := {*names} - {*known}:
        raise typer.BadParameter(f"unknown: {', '.join(sorted(unknown))}")


@contextmanager
def reporting_timeouts() -> Iterator[None]:
    """Turn a timeout or an error of Neovim into an error message."""
    try:
        yield
    except (TimeoutError, NeovimError) as error:
        raise LcursorError(f"the bench did not finish: {error}", "Run it again") from error


def exit_unless(holds: bool) -> None:
    """Exit with 1 if a promise is not kept."""
    if not holds:
        raise typer.Exit(1)


def figure_rows(figures: Iterable[Figure]) -> list[dict[str, Any]]:
    """Return figures for JSON."""
    return [{**asdict(each), "holds": each.holds} for each in figures]


def figure_table(figures: Iterable[Figure]) -> list[str]:
    """Return figures as a table."""
    rows = []
    for each in figures:
        has_limit = each.limit is not None
        limit = f"{each.judged} ≤ {each.limit:g} {each.unit}" if has_limit else ""
        numbers = [f"{value:.2f} {each.unit}" for value in (each.p50, each.p95, each.worst)]
        rows.append((each.name, each.count, *numbers, limit, each.holds if has_limit else ""))
    columns = ["figure", "n:", "p50:", "p95:", "worst:", "promised:", "kept"]
    return table(columns, rows)
