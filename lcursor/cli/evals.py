"""`python -m lcursor eval …`: how often the completions are right, by true texts and by tests."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lcursor.evals.fim import Answer

app = typer.Typer(
    help="Judge the completions by true texts and by tests that are run.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

LINE_EVERY_S = 5.0


@app.callback()
def _group() -> None:
    """Stay a group while there is one command."""


@app.command()
def fim(
    n: Annotated[int, typer.Option("--n", min=1, help="Cuts of each kind.")] = 200,
    cut: Annotated[str, typer.Option(help="char, word, span, or all.")] = "all",
    model: Annotated[str, typer.Option(help="A name of `models list`, or a path.")] = "",
    seed: Annotated[int, typer.Option(help="Of the choice of tasks and places.")] = 1,
    gate: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Show nothing below this confidence.")
    ] = 0.0,
    typed: Annotated[
        int, typer.Option(min=0, help="Keys typed before the one that is judged.")
    ] = 3,
    no_heal: Annotated[bool, typer.Option("--no-heal", help="Without token healing.")] = False,
    no_splice: Annotated[
        bool, typer.Option("--no-splice", help="Read the suffix anew at each key.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="The folder of the benchmark.")] = None,
    cases: Annotated[
        Path | None, typer.Option(help="Write each answer to it, as JSON Lines.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Complete HumanEval infilling at random places: exact match, pass@1, what a gate gains.

    The programs run in a sandbox without network, files or processes of their own.
    """
    from lcursor.bench.report import machine
    from lcursor.evals import fim as judge
    from lcursor.evals import report
    from lcursor.evals.data import DATA, KINDS, cuts

    kinds = [kind for kind in KINDS if cut in (kind, "all")]
    if not kinds:
        raise typer.BadParameter(f"unknown cut: {cut}; one of {', '.join(KINDS)}, all")
    chosen = [
        each  # neighbours of one program share what the engine has read
        for kind in kinds
        for each in sorted(cuts(data or DATA, kind, n, seed), key=lambda each: each.task.name)
    ]
    facts: dict[str, Any] = {
        "machine": {**machine(), "load": f"{os.getloadavg()[0]:.1f} at the start"},
        "command": shlex.join(["python", "-m", "lcursor", *sys.argv[1:]]),
        "seed": seed,
        "typed": typed,
        "heals": not no_heal,
        "splices": not no_splice,
    }
    engine = judge.load(model, heals=not no_heal, splices=not no_splice)
    try:
        facts["model"] = f"{engine.model.path.name} ({engine.model.description})"
        found = _watched(judge.answers(engine, chosen, typed), len(chosen))
        answers = list(_written(found, cases) if cases else found)
    finally:
        engine.close()
    document = report.as_dict(answers, facts, gate)
    typer.echo(json.dumps(document) if as_json else report.as_markdown(document))


def _watched(answers: Iterator[Answer], count: int) -> Iterator[Answer]:
    """Say on standard error how far it is."""
    began_s = spoke_s = time.monotonic()
    exact = passed = 0
    for number, answer in enumerate(answers, start=1):
        exact, passed = exact + answer.is_exact, passed + answer.has_passed
        now_s = time.monotonic()
        if now_s - spoke_s >= LINE_EVERY_S or number == count:
            spoke_s = now_s
            left_s = (now_s - began_s) / number * (count - number)
            typer.echo(
                f"{answer.kind}: {number} of {count}, exact {100 * exact / number:.0f} %, "
                f"passed {100 * passed / number:.0f} %, {left_s:.0f} s left",
                err=True,
            )
        yield answer


def _written(answers: Iterator[Answer], path: Path) -> Iterator[Answer]:
    """Write each answer as it comes, so that a run that is stopped leaves what it had."""
    from lcursor.errors import LcursorError

    try:
        file = path.open("w", encoding="utf-8", buffering=1)
    except OSError as error:
        raise LcursorError(f"{path} cannot be written ({error.strerror})") from error
    with file:
        for answer in answers:
            file.write(json.dumps(asdict(answer)) + "\n")
            yield answer
