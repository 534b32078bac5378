"""`python -m lcursor eval`: measure the quality of completions, search, edits and agents."""

from __future__ import annotations

import typer

from evals import (
    agent,
    apply,
    edit,
    fim,
    foreign,
    kills,
    queries,
    search,
    unneeded,
)
from evals.escapes import command as escapes
from evals.keys import command as keys
from evals.keys import lines
from evals.next_edit import command as next_edit

app = typer.Typer(
    help="Measure the quality of completions, search, edits and agents.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
app.command("fim")(fim.command)
app.command("keys")(keys.command)
app.command("lines")(lines.command)
app.command("search")(search.command)
app.command("queries")(queries.command)
app.command("edit")(edit.command)
app.command("apply")(apply.command)
app.command("sandbox")(escapes.command)
app.command("agent")(agent.command)
app.command("next")(next_edit.command)
app.command("unneeded")(unneeded.command)
app.command("kills")(kills.command)
app.command("foreign")(foreign.command)
