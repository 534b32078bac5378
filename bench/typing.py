"""`bench typing`: the time from a key to the suggestion, at the ends of real lines.

`typing_run.py` types, `trials.py` computes times, `typing_report.py` makes the tables.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from bench.plugin import Plugin
from bench.report import Json, emit, progress, reporting_timeouts, run_facts
from bench.trials import pick_spots, read_lines, spread
from bench.typing_report import Results, as_dict, as_markdown
from bench.typing_run import Plan, default_files, measure
from lcursor.cli.editor import find_neovim


def command(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Files to type into; default: two of CPython and one of Neovim."),
    ] = None,
    positions: Annotated[
        int, typer.Option(min=1, help="Number of line ends to type, over all files.")
    ] = 24,
    seed: Annotated[int, typer.Option(help="Seed for the choice of lines.")] = 1,
    warm: Annotated[
        bool, typer.Option(help="Type six keys with the text around the cursor evaluated.")
    ] = True,
    cold: Annotated[
        bool, typer.Option(help="Type three keys right after a jump of 60 rows or more.")
    ] = False,
    rested: Annotated[
        bool, typer.Option(help="Type three keys after a jump and 3 s in Normal mode.")
    ] = False,
    gate_off: Annotated[
        bool, typer.Option(help="Ask again at each warm position with the confidence gate off.")
    ] = True,
    pace_ms: Annotated[
        float, typer.Option(min=20, help="Time between two keys in the warm run.")
    ] = 120,
    model: Annotated[str, typer.Option(help="A name of `models list`, or a path.")] = "",
    limit_minutes: Annotated[
        float, typer.Option(min=0, help="Start no further file after this time; 0: no limit.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Type the ends of real lines and time each key to its first valid suggestion.

    Each file is opened again for each run. The warm run visits its lines from top to bottom, the
    cold and the rested one jump about. A cold time goes from the last key to the first suggestion
    that is only extended until it is complete and one second has passed.
    """
    if not (warm or cold or rested):
        raise typer.BadParameter("nothing is left to do", param_hint="--no-warm")
    neovim = find_neovim()
    sources = files or default_files(neovim)
    names = [f"{path.resolve().parent.name}/{path.name}" for path in sources]
    spots = [
        pick_spots(read_lines(path), count, seed, name)
        for path, name, count in zip(sources, names, spread(positions, len(sources)), strict=True)
    ]
    plan = Plan(warm, cold, rested, gate_off, pace_ms)
    plugin, results = Plugin(model), Results()
    facts = run_facts(file=", ".join(names), seed=seed, pace_ms=pace_ms)
    began_s = time.monotonic()
    for path, chosen in zip(sources, spots, strict=True):
        if not chosen:
            continue
        with reporting_timeouts():
            measure(plugin, neovim, path, chosen, plan, results)
        if limit_minutes and time.monotonic() - began_s > 60 * limit_minutes:
            progress(f"time is up after {path.name}")
            break
    emit(as_dict(results, facts), as_markdown(results, facts), as_json)
