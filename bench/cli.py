"""`python -m lcursor bench`: the promises of speed, measured here and now."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from bench.report import Figure

Names = Annotated[
    list[str] | None,
    typer.Argument(help="start, keystroke, draw, host, cancel; all when none is named."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


class _Group(TyperGroup):
    """Takes `bench [NAMES]` for `bench promises [NAMES]`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = ["promises", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Group,
    help="Measure speed. Keep the machine quiet meanwhile.",
    add_completion=False,
    rich_markup_mode=None,
)


@app.command()
def promises(names: Names = None, as_json: Json = False) -> None:
    """Measure all but typing; exits with 1 when a promise is not kept. The default."""
    from bench import editor, engine, report
    from lcursor.cli.editor import find_neovim

    neovim = find_neovim()
    runs: dict[str, Callable[[], list[Figure]]] = {
        "start": lambda: [editor.startup(neovim)],
        "keystroke": lambda: [
            *(editor.keystrokes(neovim, host) for host in ("real", "slow", "dead")),
            editor.keystrokes(neovim, "real", "vim.b.lcursor set", editor.BUFFER_SETTINGS),
            editor.keystrokes(neovim, "real", "20 decided edits", editor.DECIDED_EDITS),
        ],
        "draw": lambda: [editor.draws(neovim)],
        "host": lambda: editor.host_starts(neovim),
        "cancel": lambda: [engine.stops()],
    }
    unknown = set(names or ()) - set(runs)
    if unknown:
        raise typer.BadParameter(f"unknown: {', '.join(sorted(unknown))}")
    figures = []
    for name in names or runs:
        if not as_json:
            typer.echo(f"measuring: {name} ...", err=True)
        figures += runs[name]()
    facts = report.machine()
    if as_json:
        typer.echo(json.dumps(report.as_dict(figures, facts), indent=1))
    else:
        command = "python -m lcursor bench " + " ".join(names or ())
        typer.echo(report.as_markdown(figures, facts, command.strip()))
    if not all(each.holds for each in figures):
        raise typer.Exit(1)


@app.command()
def typing(
    context: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Where to type; two of CPython's library and one of Neovim's runtime if none."
        ),
    ] = None,
    positions: Annotated[
        int, typer.Option(min=1, help="How many lines to end anew, of all files together.")
    ] = 24,
    seed: Annotated[int, typer.Option(help="Another one chooses other lines.")] = 1,
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

    Each file is opened anew for each run. The warm run visits its lines from top to bottom, the
    cold and the rested one jump about. A cold time goes from the last key to the first suggestion
    that is only extended until it is complete and one second has passed.
    """
    import shlex
    import sys
    import time
    from asyncio import base_events

    from bench import report, trials, typing_report
    from bench import typing as bench
    from bench.peer import Lcursor, LlamaVim
    from lcursor.cli.editor import find_neovim
    from lcursor.errors import LcursorError

    if markdown:
        found = json.loads(markdown.read_text(encoding="utf-8"))
        typer.echo(typing_report.as_markdown(typing_report.from_dict(found), found))
        return
    if not (warm or cold or rested):
        raise typer.BadParameter("nothing is left to do", param_hint="--no-warm")
    typists: dict[str, bench.Typist] = {"lcursor": Lcursor(model)}
    if peer:
        name, _, folder = peer.partition("=")
        if name != "llama.vim" or not folder:
            raise typer.BadParameter("expected llama.vim=DIR", param_hint="--peer")
        typists[name] = LlamaVim(Path(folder), server)
    if indexing:
        from bench.beside_index import BesideIndex

        beside = BesideIndex(model, Path(base_events.__file__).parents[1])
        typists["while indexing"] = context.with_resource(beside)
    neovim = find_neovim()
    sources = files or bench.default_files(neovim)
    names = [f"{path.resolve().parent.name}/{path.name}" for path in sources]
    spots = [
        trials.pick_spots(bench.read_lines(path), count, seed, name)
        for path, name, count in zip(
            sources, names, trials.spread(positions, len(sources)), strict=True
        )
    ]
    plan = bench.Plan(warm, cold, rested, gate_off, pace_ms)
    results = {name: typing_report.Results() for name in typists}
    facts = {
        "machine": report.machine(),
        "command": shlex.join(["python", "-m", "lcursor", *sys.argv[1:]]),
        "file": ", ".join(names),
        "seed": seed,
        "pace_ms": pace_ms,
    }
    began_s = time.monotonic()
    for path, chosen in zip(sources, spots, strict=True):
        if not chosen:
            continue
        try:
            bench.measure(
                typists,
                neovim,
                path,
                chosen,
                plan,
                results,
                told=lambda line: typer.echo(line, err=True),
            )
        except TimeoutError as error:
            raise LcursorError(f"the bench did not finish: {error}", "Run it again") from error
        if out:
            out.write_text(json.dumps(typing_report.as_dict(results, facts)), encoding="utf-8")
        if limit_minutes and time.monotonic() - began_s > 60 * limit_minutes:
            typer.echo(f"time is up after {path.name}", err=True)
            break
    if as_json:
        typer.echo(json.dumps(typing_report.as_dict(results, facts)))
    else:
        typer.echo(typing_report.as_markdown(results, facts))


@app.command()
def index(
    path: Annotated[
        Path | None, typer.Argument(help="A project; Python's standard library if none.")
    ] = None,
    embed_s: Annotated[
        float, typer.Option(min=0, help="Seconds of making vectors; 0 measures words alone.")
    ] = 60,
    embedder: Annotated[str, typer.Option(help="A name of `models list`.")] = "",
    seed: Annotated[int, typer.Option(help="Of the choice of queries.")] = 1,
    as_json: Json = False,
) -> None:
    """Index a copy of a project and measure reading, queries, saves, a branch switch and memory.

    Exits with 1 when a promise is not kept.
    """
    import os
    import shlex
    import sys

    from bench import index as bench
    from bench import report

    source = path or Path(os.__file__).parent
    machine = {**report.machine(), "load": f"{os.getloadavg()[0]:.1f} at the start"}
    found = bench.measure(
        source.resolve(),
        embed_s=embed_s,
        seed=seed,
        embedder=embedder,
        say=lambda line: typer.echo(f"measuring: {line} ...", err=True),
    )
    command = shlex.join(["python", "-m", "lcursor", *sys.argv[1:]])
    if as_json:
        typer.echo(json.dumps({**found.as_dict(machine), "command": command}))
    else:
        typer.echo(report.as_markdown(found.figures, {**machine, **found.facts}, command))
    if not all(each.holds for each in found.figures):
        raise typer.Exit(1)


@app.command()
def chat(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="overhead, stop, turns, screen, ghost; all when none is named."),
    ] = None,
    model: Annotated[
        str, typer.Option(help="Of the chat: a name of `models list`, or a path; the small one.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Measure the chat: beside the bare server, stopped, taken up again, streamed into Neovim.

    Exits with 1 when a promise is not kept. The last line of --json is one object.
    """
    import os
    import shlex
    import sys

    from bench import chat as bench
    from bench import report
    from lcursor.cli.editor import find_neovim
    from lcursor.drive.client import NeovimError
    from lcursor.errors import LcursorError

    unknown = set(names or ()) - set(bench.PARTS)
    if unknown:
        raise typer.BadParameter(f"unknown: {', '.join(sorted(unknown))}")
    machine = {**report.machine(), "load": f"{os.getloadavg()[0]:.1f} at the start"}
    command = shlex.join(["python", "-m", "lcursor", *sys.argv[1:]])
    facts = {"machine": ", ".join(machine.values()), "command": command}
    try:
        found = bench.measure(
            find_neovim,
            names or bench.PARTS,
            model,
            facts,
            lambda line: typer.echo(f"measuring: {line} ...", err=True),
        )
    except (TimeoutError, NeovimError) as error:
        raise LcursorError(f"the bench did not finish: {error}", "Run it again") from error
    if as_json:
        typer.echo(json.dumps(found.as_dict()))
    else:
        typer.echo(found.as_markdown(machine, command))
    if not all(found.kept.values()):
        raise typer.Exit(1)


@app.command()
def edit(
    model: Annotated[
        str, typer.Option(help="A name of `models list`, or a path; the small one.")
    ] = "",
    only: Annotated[int, typer.Option(min=0, help="As many of the edits; 0 is all of them.")] = 0,
    as_json: Json = False,
) -> None:
    """Rewrite functions with the original as a draft and without, on two servers in turn.

    Exits with 1 when a promise is not kept.
    """
    import os
    import shlex
    import sys

    from bench import edit as bench
    from bench import report

    found = bench.measure(
        model,
        bench.CASES[: only or None],
        {
            **report.machine(),
            "load": f"{os.getloadavg()[0]:.1f} at the start",
            "command": shlex.join(["python", "-m", "lcursor", *sys.argv[1:]]),
        },
        lambda line: typer.echo(f"measuring: {line} ...", err=True),
    )
    typer.echo(json.dumps(found.as_dict()) if as_json else found.as_markdown())
    if not found.holds:
        raise typer.Exit(1)


@app.command("edit-screen")
def edit_screen(
    names: Annotated[
        list[str] | None, typer.Argument(help="draw, take, use, ask; all when none is named.")
    ] = None,
    suffixes: Annotated[
        str, typer.Option(help="Of files: lua has a parser, py the rules of 'syntax', txt neither.")
    ] = "lua,txt",
    rounds: Annotated[int, typer.Option(min=1, help="How often each.")] = 8,
    as_json: Json = False,
) -> None:
    """Draw, go through and take changes of 500 lines in a real Neovim, with no model.

    Exits with 1 when a promise is not kept.
    """
    import os
    import shlex
    import sys

    from bench import edit_screen as bench
    from bench import report
    from lcursor.cli.editor import find_neovim
    from lcursor.drive.client import NeovimError
    from lcursor.errors import LcursorError

    unknown = set(names or ()) - set(bench.PARTS)
    if unknown:
        raise typer.BadParameter(f"unknown: {', '.join(sorted(unknown))}")
    facts = {**report.machine(), "load": f"{os.getloadavg()[0]:.1f} at the start"}
    command = shlex.join(["python", "-m", "lcursor", *sys.argv[1:]])
    try:
        figures = bench.measure(
            find_neovim(),
            names or bench.PARTS,
            [each for each in suffixes.split(",") if each],
            rounds,
            lambda line: typer.echo(f"measuring: {line} ...", err=True),
        )
    except (TimeoutError, NeovimError) as error:
        raise LcursorError(f"the bench did not finish: {error}", "Run it again") from error
    if as_json:
        typer.echo(json.dumps({**report.as_dict(figures, facts), "command": command}))
    else:
        typer.echo(report.as_markdown(figures, facts, command))
    if not all(each.holds for each in figures):
        raise typer.Exit(1)


@app.command()
def gpu(
    shape: Annotated[
        str, typer.Option(help="1.5b, 7b, 30b-a3b or all; tiny shows that it works.")
    ] = "1.5b",
    cpu: Annotated[bool, typer.Option("--cpu", help="Use the CPU, and no GPU.")] = False,
    rounds: Annotated[
        int, typer.Option(min=0, help="More rounds, more samples; 0 is what suits.")
    ] = 0,
    kv_type: Annotated[str, typer.Option(help="Type of the KV cache: f16 or q8_0.")] = "f16",
    folder: Annotated[
        Path | None, typer.Option(help="Where files with random weights are kept.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure what a model of a shape costs: its steps, a keystroke, a whole line.

    Without the model itself, a file of its shape with random weights is written: timing only.
    Exits with 1 when a promise is not kept.
    """
    import shlex
    import sys
    from dataclasses import asdict
    from importlib.metadata import version

    from bench import gpu as bench
    from bench import report, weights
    from bench.shapes import SHAPES, TINY
    from lcursor.catalog import hardware
    from lcursor.fim import placement

    known = {**SHAPES, TINY.name: TINY}
    if shape not in (*known, "all"):
        raise typer.BadParameter(f"unknown shape: {shape}; one of {', '.join(known)}, all")
    if kv_type not in placement.CELL_BYTES:
        raise typer.BadParameter(f"unknown type: {kv_type}; one of f16, q8_0")
    bench.check_gpu(cpu)
    place = folder or weights.folder_default()
    chosen = list(SHAPES.values()) if shape == "all" else [known[shape]]
    for each in chosen:
        typer.echo(bench.needs(each, place, cpu), err=True)
    facts = {
        **report.machine(),
        "gpu": "not used" if cpu else hardware.detect().describe(),
        "llama-cpp-python": version("llama-cpp-python"),
    }
    command = shlex.join(["python", "-m", "lcursor", *sys.argv[1:]])
    runs = []
    for each in chosen:
        runs.append(
            bench.measure(
                each, place, cpu, rounds, lambda line: typer.echo(line, err=True), kv_type
            )
        )
        if not as_json:
            typer.echo(bench.as_markdown(runs[-1], facts, command))
    if as_json:
        document = {"machine": facts, "command": command, "shapes": [asdict(run) for run in runs]}
        typer.echo(json.dumps(document))
    if not all(figure.holds for run in runs for figure in run.figures):
        raise typer.Exit(1)
