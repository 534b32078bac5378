"""`python -m lcursor sandbox …`: which sandbox confines commands here."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer

from lcursor.process.sandbox import WITHOUT, Probe, probe_all

app = typer.Typer(
    help="Show which sandbox confines agents and checks.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def _options() -> None:
    """Keep `check` a command of its own."""


@app.command()
def check(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Try each level of the sandbox; exit with 1 if none works."""
    probes = probe_all()
    active = next((each.level for each in probes if each.works), "none")
    if as_json:
        levels = [dataclasses.asdict(each) for each in probes]
        typer.echo(json.dumps({"level": active, "levels": levels}, indent=1))
    else:
        for line in _lines(active, probes):
            typer.echo(line)
    if active == "none":
        raise typer.Exit(1)


def _lines(active: str, probes: list[Probe]) -> list[str]:
    found = [f"active: {active}"]
    if active == "none":
        found = [f"active: none: {WITHOUT}"]
    for each in probes:
        found.append(f"{each.level:<10}  {'works' if each.works else f'fails: {each.output}'}")
        if each.fix:
            found.append(f"{'':<10}  help: {each.fix}")
    return found
