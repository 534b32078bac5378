"""`bench typing`: the time from a key to the suggestion, at the ends of real lines.

`typing_run.py` types, `trials.py` computes times, `typing_report.py` makes the tables.
"""

from __future__ import annotations

import json
import time
from asyncio import base_events
from pathlib import Path
from typing import Annotated

import typer

from bench.peer import Lcursor, LlamaVim
from bench.report import Json, emit, progress, reporting_timeouts, run_facts
from bench.trials import pick_spots, spread
from bench.typing_indexing import WhileIndexing
from bench.typing_report import Results, as_dict, as_markdown, from_dict
from bench.typing_run import Plan, Typist, default_files, measure, read_lines
from lcursor.cli.editor import find_neovim


def command(
    context: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Where to type; two of CPython's library and one of Neovim's runtime if none."
        ),
    ] = None,
    positions: Annotated[
        int, typer.Option(min=1, help="How many line ends to type, over all files.")
    ] = 24,
    seed: Annotated[int, typer.Option(help="For the choice of lines.")] = 1,
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
        float, typer.Option(min=20, help="From one key to the next in the warm run.")
    ] = 120,
    model: Annotated[
        str, typer.Option(help="Another model: a name of `models list`, or a path.")
    ] = "",
    peer: Annotated[
        str, typer.Option(metavar="llama.vim=DIR", help="Type the same into a checkout of it, too.")
    ] = "",
    server: Annotated[
        str, typer.Option(metavar="URL", help="The peer's llama-server.")
    ] = "http://127.0.0.1:8012",
    indexing: Annotated[
        bool,
        typer.Option(help="Type the same again while the standard library is being indexed."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the JSON there as well, after each file.")
    ] = None,
    limit_minutes: Annotated[
        float, typer.Option(min=0, help="Begin no further file after that time; 0: no limit.")
    ] = 0,
    markdown: Annotated[
        Path | None, typer.Option(help="Only print the table of JSON that was written before.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Type the ends of real lines and time each key to its first valid suggestion.

    Each file is opened again for each run. The warm run visits its lines from top to bottom, the
    cold and the rested one jump about. A cold time goes from the last key to the first suggestion
    that is only extended until it is complete and one second has passed.
    """
    if markdown:
        found = json.loads(markdown.read_text(encoding="utf-8"))
        emit(found, as_markdown(from_dict(found), found), as_json=False)
        return
    if not (warm or cold or rested):
        raise typer.BadParameter("nothing is left to do", param_hint="--no-warm")
    typists: dict[str, Typist] = {"lcursor": Lcursor(model)}
    if peer:
        name, _, folder = peer.partition("=")
        if name != "llama.vim" or not folder:
            raise typer.BadParameter("expected llama.vim=DIR", param_hint="--peer")
        typists[name] = LlamaVim(Path(folder), server)
    if indexing:
        indexing_typist = WhileIndexing(model, Path(base_events.__file__).parents[1])
        typists["while indexing"] = context.with_resource(indexing_typist)
    neovim = find_neovim()
    sources = files or default_files(neovim)
    names = [f"{path.resolve().parent.name}/{path.name}" for path in sources]
    spots = [
        pick_spots(read_lines(path), count, seed, name)
        for path, name, count in zip(sources, names, spread(positions, len(sources)), strict=True)
    ]
    plan = Plan(warm, cold, rested, gate_off, pace_ms)
    results = {name: Results() for name in typists}
    facts = run_facts(file=", ".join(names), seed=seed, pace_ms=pace_ms)
    began_s = time.monotonic()
    for path, chosen in zip(sources, spots, strict=True):
        if not chosen:
            continue
        with reporting_timeouts():
            measure(typists, neovim, path, chosen, plan, results)
        if out:
            out.write_text(json.dumps(as_dict(results, facts)), encoding="utf-8")
        if limit_minutes and time.monotonic() - began_s > 60 * limit_minutes:
            progress(f"time is up after {path.name}")
            break
    emit(as_dict(results, facts), as_markdown(results, facts), as_json)
