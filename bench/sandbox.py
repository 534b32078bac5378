"""`bench sandbox`: what each level of the sandbox costs a command, and how soon a stop ends all."""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from bench.report import Json, Promise, Report, measuring, ms_since
from lcursor.errors import Cancelled, LcursorError
from lcursor.process.sandbox import LEVELS, Confinement, Sandbox, probe

ROUNDS, STOPS = 60, 20
COST_MS = {"bubblewrap": 25.0, "unshare": 45.0, "landlock": 45.0}
STOP_MS = 500.0
NUMBER = "86399.{:03}"
"""Seconds to sleep; tells the processes of a round from others."""
STUBBORN = """
trap '' TERM HUP INT
for i in 1 2 3 4 5 6 7 8; do (trap '' TERM HUP; setsid sleep {0} >/dev/null 2>&1 </dev/null &); done
touch ready
sleep {0}
"""
"""Starts daemons that ignore signals, and does not end."""


def command(
    rounds: Annotated[int, typer.Option(help="Commands at each level.")] = ROUNDS,
    as_json: Json = False,
) -> None:
    """Measure the sandbox; exits with 1 when a promise is not kept."""
    report = Report(promises={"orphans": Promise("processes left after a stop", at_most=0)})
    report.numbers["orphans"] = 0
    with tempfile.TemporaryDirectory(prefix="lcursor-bench-") as name:
        confinement = Confinement(Path(name), Path(name))
        for level in LEVELS:
            found = probe(level)
            if not found.works:
                raise LcursorError(f"{level} does not work here: {found.output}", found.fix)
            measuring(level)
            sandbox = Sandbox(level)
            samples = [_cost_ms(sandbox, confinement) for _ in range(rounds)]
            report.add(f"{level}: true", samples, limit=COST_MS[level], judged="p50")
            samples = []
            for number in range(STOPS):
                took_ms, left = _stop(sandbox, confinement, NUMBER.format(number))
                samples.append(took_ms)
                report.numbers["orphans"] += left
            report.add(f"{level}: stop", samples, limit=STOP_MS, judged="worst")
    report.finish(as_json)


def _cost_ms(sandbox: Sandbox, confinement: Confinement) -> float:
    began_s = time.perf_counter()
    output = sandbox.run(["true"], confinement, max_s=60, max_bytes=1000)
    took_ms = ms_since(began_s)
    if output.failure:
        raise LcursorError(f"{sandbox.level}: {output.failure}")
    return took_ms


def _stop(sandbox: Sandbox, confinement: Confinement, seconds: str) -> tuple[float, int]:
    """Stop a command; return how long that took, and how many of its processes run afterwards."""
    ready = confinement.tree / "ready"
    asked_s = 0.0

    def cancel() -> bool:
        nonlocal asked_s
        if ready.exists() and not asked_s:
            asked_s = time.perf_counter()
            return False  # so that the wait for the next poll counts
        return bool(asked_s)

    with contextlib.suppress(Cancelled):
        words = ["sh", "-c", STUBBORN.format(seconds)]
        sandbox.run(words, confinement, max_s=60, max_bytes=1000, cancel=cancel)
    took_ms = ms_since(asked_s)
    ready.unlink()
    return took_ms, _count(seconds)


def _count(seconds: str) -> int:
    """Return how many processes sleep so long."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            count += seconds.encode() in path.read_bytes().split(b"\0")
    return count
