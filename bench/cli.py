"""`python -m lcursor bench`: measure the speed of each part, and check what is promised of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bench import chat, edit, edit_screen, editor, engine, gpu, index, typing
from bench.report import (
    Figure,
    Json,
    check_names,
    emit,
    exit_unless,
    figure_rows,
    figure_table,
    head,
    measuring,
    run_facts,
)
from lcursor.cli.editor import find_neovim


class _Group(TyperGroup):
    """Runs `bench promises [NAMES]` for `bench [NAMES]`."""

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
def promises(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="start, keystroke, draw, host, cancel; all when none is named."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure all but typing; exits with 1 when a promise is not kept. The default."""
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
    check_names(names or (), runs)
    facts = run_facts()
    figures = []
    for name in names or runs:
        measuring(name)
        figures += runs[name]()
    document = {**facts, "figures": figure_rows(figures)}
    emit(document, [*head(facts), *figure_table(figures)], as_json)
    exit_unless(all(each.holds for each in figures))


app.command("typing")(typing.command)
app.command("index")(index.command)
app.command("chat")(chat.command)
app.command("edit")(edit.command)
app.command("edit-screen")(edit_screen.command)
app.command("gpu")(gpu.command)
