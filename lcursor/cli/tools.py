"""The developer tools `bench` and `eval`: available only in a checkout of the repository."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import typer

from lcursor.errors import LcursorError

ROOT = Path(__file__).resolve().parents[2]
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


def add_to(app: typer.Typer) -> None:
    """Add both commands; their options are parsed by the tools themselves."""
    for command in (bench, eval_):
        app.command(command.__name__.rstrip("_"), context_settings=PASS_ON, add_help_option=False)(
            command
        )


def bench(context: typer.Context) -> None:
    """Measure speed (in a checkout). Keep the machine quiet meanwhile."""
    _run("bench", context)


def eval_(context: typer.Context) -> None:
    """Judge the answers of a model (in a checkout)."""
    _run("evals", context)


def _run(package: str, context: typer.Context) -> None:
    if not (ROOT / package / "cli.py").is_file():
        raise LcursorError(
            f"'{context.info_name}' is a developer tool, and is not installed",
            "Run it from a checkout of lcursor",
        )
    sys.path.insert(0, str(ROOT))  # the current folder may have a package of that name
    tool = typer.main.get_command(import_module(f"{package}.cli").app)
    with tool.make_context(context.info_name, context.args, parent=context.parent) as inner:
        tool.invoke(inner)
