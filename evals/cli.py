"""`python -m lcursor eval`: measure the quality of completions, search, edits and agents."""

from __future__ import annotations

import typer

from evals import (
    agent,
    apply,
    choose,
    context,
    edit,
    fim,
    kills,
    merges,
    queries,
    search,
    splice,
    summaries,
    tool_calls,
)
from evals.escapes import command as escapes
from evals.keys import command as keys
from evals.keys import lines
from evals.next_edit import command as next_edit
from evals.next_edit import scan

app = typer.Typer(
    help="Measure the quality of completions, search, edits and agents.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
app.command("fim")(fim.command)
app.command("keys")(keys.command)
app.command("lines")(lines.command)
app.command("splice")(splice.command)
app.command("context")(context.command)
app.command("search")(search.command)
app.command("queries")(queries.command)
app.command("edit")(edit.command)
app.command("apply")(apply.command)
app.command("merges")(merges.command)
app.command("calls")(tool_calls.command)
app.command("summaries")(summaries.command)
app.command("sandbox")(escapes.command)
app.command("agent")(agent.command)
app.command("choose")(choose.command)
app.command("next")(next_edit.command)
app.command("scan")(scan.command)
app.command("kills")(kills.command)
