"""`python -m lcursor bench`: measure the speed of each part, and check what is promised of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bench import (
    agent_loop,
    agent_model,
    agent_screen,
    agent_tools,
    chat,
    edit,
    edit_screen,
    editor,
    gpu,
    index,
    slots,
    typing,
)


class _Group(TyperGroup):
    """Runs `bench promises [NAMES]` for `bench [NAMES]`, also after `--busy N`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = 2 if args[:1] == ["--busy"] else 0
        if len(args) == at or (args[at] not in self.commands and args[at] != "--help"):
            args = [*args[:at], "promises", *args[at:]]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Group,
    help="Measure speed, on a machine that does nothing else, or while others are busy (--busy).",
    add_completion=False,
    rich_markup_mode=None,
)


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep processes busy that are none of ours, as a build in another terminal does."""
    started = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
        for _ in range(count)
    ]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


@app.callback()
def _busy(
    ctx: typer.Context,
    busy: Annotated[int, typer.Option(help="Measure while so many processes are busy.")] = 0,
) -> None:
    ctx.with_resource(busy_processes(busy))


app.command("promises")(editor.command)
app.command("typing")(typing.command)
app.command("index")(index.command)
app.command("chat")(chat.command)
app.command("edit")(edit.command)
app.command("edit-screen")(edit_screen.command)
app.command("agent-model")(agent_model.command)
app.command("agent-screen")(agent_screen.command)
app.command("agent-loop")(agent_loop.command)
app.command("agent-tools")(agent_tools.command)
app.command("slots")(slots.command)
app.command("gpu")(gpu.command)
app.command("gpu-all")(gpu.all_command)
