"""`python -m lcursor bench`: the promises of speed, measured here and now."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lcursor.bench.report import Figure

Names = Annotated[
    list[str] | None,
    typer.Argument(help="start, keystroke, draw, host, cancel; all when none is named."),
]


def bench(
    names: Names = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Measure; exits with 1 when a promise is not kept. Keep the machine quiet meanwhile."""
    from lcursor.bench import editor, engine, report
    from lcursor.cli.editor import find_neovim

    neovim = find_neovim()
    runs: dict[str, Callable[[], list[Figure]]] = {
        "start": lambda: [editor.startup(neovim)],
        "keystroke": lambda: [editor.keystrokes(neovim, host) for host in ("real", "slow", "dead")],
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
