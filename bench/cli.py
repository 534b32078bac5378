"""`python -m lcursor bench`: measure the speed of each part, and check what is promised of it."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from bench import (
    agent_loop,
    agent_model,
    agent_screen,
    agent_tools,
    agent_tree,
    chat,
    edit,
    edit_screen,
    editor,
    gpu,
    index,
    next_edit,
    sandbox,
    typing,
)


class _Group(TyperGroup):
    """Runs `bench promises [NAMES]` for `bench [NAMES]`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = ["promises", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Group,
    help="Measure speed, on a machine that does nothing else.",
    add_completion=False,
    rich_markup_mode=None,
)
app.command("promises")(editor.command)
app.command("typing")(typing.command)
app.command("index")(index.command)
app.command("chat")(chat.command)
app.command("edit")(edit.command)
app.command("edit-screen")(edit_screen.command)
app.command("agent-model")(agent_model.command)
app.command("agent-screen")(agent_screen.command)
app.command("next")(next_edit.command)
app.command("tree")(agent_tree.command)
app.command("agent-loop")(agent_loop.command)
app.command("agent-tools")(agent_tools.command)
app.command("sandbox")(sandbox.command)
app.command("gpu")(gpu.command)
