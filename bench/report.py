"""The harness of all benches and evals: samples, figures with limits, reports as Markdown and JSON.

`table(["name", "p50:"], [("start", "0.3 ms")])` returns the lines

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
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
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


@dataclass(frozen=True, slots=True)
class Promise:
    """A limit for a number: at most, or at least."""

    label: str
    at_most: float | None = None
    at_least: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a value keeps the limit."""
        return (self.at_most is None or value <= self.at_most) and (
            self.at_least is None or value >= self.at_least
        )

    def limit(self) -> str:
        """Return the limit as text."""
        return f"≤ {self.at_most:g}" if self.at_most is not None else f"≥ {self.at_least:g}"


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
    p50, p95 = statistics.median(samples), percentile(samples, 95)
    return Figure(name, unit, len(samples), p50, p95, max(samples), limit, judged)


def machine() -> dict[str, str]:
    """Describe this machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.processor() or platform.machine(),
        "cores": str(sum(line.startswith("processor") for line in lines) or 1),
        "system": platform.system() + " " + platform.machine(),
        "python": platform.python_version(),
    }


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


@dataclass(slots=True)
class Report:
    """What a bench has measured.

    Attributes:
        facts: see `run_facts`.
        figures: in the order in which they were measured.
        numbers: single results by name.
        promises: limits of numbers, by the same names.
    """

    facts: dict[str, Any] = field(default_factory=run_facts)
    figures: list[Figure] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)
    promises: Mapping[str, Promise] = field(default_factory=dict)

    def add(self, name: str, samples: Sequence[float], **more: Any) -> Figure:
        """Add the figure of some samples and return it; see `figure`."""
        self.figures.append(figure(name, samples, **more))
        return self.figures[-1]

    @property
    def kept(self) -> dict[str, bool]:
        """Whether each promise is kept, of those that were measured."""
        return {
            name: promise.holds(self.numbers[name])
            for name, promise in self.promises.items()
            if name in self.numbers
        }

    @property
    def holds(self) -> bool:
        """Whether all limits and promises are kept."""
        return all(each.holds for each in self.figures) and all(self.kept.values())

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON, the numbers at top level."""
        rows = [{**asdict(each), "holds": each.holds} for each in self.figures]
        numbers = {name: round(value, 4) for name, value in self.numbers.items()}
        return {**numbers, "kept": self.kept, **self.facts, "figures": rows}

    def as_markdown(self, *lines: str) -> list[str]:
        """Return a head with more lines, a table of the figures, and one of the promises."""
        rows = [
            (self.promises[name].label, f"{self.numbers[name]:.3g}", self.promises[name].limit())
            + (holds,)
            for name, holds in self.kept.items()
        ]
        promises = ["", *table(["promise", "found:", "promised:", "kept"], rows)] if rows else []
        return [*head(self.facts, *lines), *figure_table(self.figures), *promises]

    def finish(self, as_json: bool, *lines: str) -> None:
        """Print the report; exit with 1 if a limit or a promise is not kept."""
        emit(self.as_dict(), self.as_markdown(*lines), as_json)
        exit_unless(self.holds)


def figure_table(figures: Iterable[Figure]) -> list[str]:
    """Return figures as a table."""
    rows = []
    for each in figures:
        has_limit = each.limit is not None
        limit = f"{each.judged} ≤ {each.limit:g} {each.unit}" if has_limit else ""
        numbers = [f"{value:.2f} {each.unit}" for value in (each.p50, each.p95, each.worst)]
        rows.append((each.name, each.count, *numbers, limit, each.holds if has_limit else ""))
    return table(["figure", "n:", "p50:", "p95:", "worst:", "promised:", "kept"], rows)


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


def share(part: float, whole: float) -> float:
    """Return a part as a share of the whole; 0 of nothing."""
    return part / whole if whole else 0.0


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


def ms_since(began_s: float) -> float:
    """Return the milliseconds since a time of `time.perf_counter`."""
    return (time.perf_counter() - began_s) * 1000


def sleep_until(at_s: float) -> None:
    """Sleep until a time of `time.perf_counter`."""
    time.sleep(max(0.0, at_s - time.perf_counter()))


def wait(predicate: Callable[[], object], timeout_s: float, step_s: float = 0.02) -> bool:
    """Wait until a predicate holds; return False if it does not within the time."""
    deadline_s = time.perf_counter() + timeout_s
    while not predicate():
        if time.perf_counter() > deadline_s:
            return False
        time.sleep(step_s)
    return True
