"""`python -m lcursor server …`: the local chat server, which all editors share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lcursor.llm.server import LocalServer

app = typer.Typer(
    help="Show, start or stop the local chat server.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Model = Annotated[
    str, typer.Option(help="A name of `models list`, or a GGUF file.", show_default=False)
]
Tokens = Annotated[int, typer.Option("--context", min=0, help="Context in tokens; 0 is what fits.")]
Completion = Annotated[
    str, typer.Option(help="Completion model to reserve memory for; empty for none.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]
COMPLETION = "qwen2.5-coder-0.5b"


@app.command()
def status(as_json: Json = False) -> None:
    """Show the state of the server."""
    _print(_server(), as_json)


@app.command()
def start(
    model: Model = "",
    tokens: Tokens = 0,
    completion: Completion = COMPLETION,
    as_json: Json = False,
) -> None:
    """Start the server; it stops minutes after the last editor has left."""
    server = _server(model, tokens, completion)
    server.ensure()
    _print(server, as_json)


@app.command()
def restart(
    model: Model = "",
    tokens: Tokens = 0,
    completion: Completion = COMPLETION,
    as_json: Json = False,
) -> None:
    """Restart the server, even if other editors use it."""
    server = _server(model, tokens, completion)
    server.restart()
    _print(server, as_json)


@app.command()
def stop() -> None:
    """Stop the server, even if other editors use it."""
    typer.echo(
        "The local server has ended" if _server().stop() else "The local server does not run"
    )


@app.command()
def log(
    lines: Annotated[int, typer.Option("-n", min=1, help="Number of lines.")] = 40,
) -> None:
    """Print the last lines of the server's log."""
    from lcursor.errors import LcursorError

    path = _server().log_path
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise LcursorError(
            f"the server has no log ({path})", "Start it: python -m lcursor server start"
        ) from error
    for line in text.splitlines()[-lines:]:
        typer.echo(line)


def _server(model: str = "", tokens: int = 0, completion: str = "") -> LocalServer:
    from lcursor.config import ChatConfig
    from lcursor.llm.server import LocalServer
    from lcursor.llm.server_state import default_folder

    config = ChatConfig(model=model, context_tokens=tokens)
    return LocalServer(
        config, default_folder(), lambda words: typer.echo(words, err=True), completion
    )


def _print(server: LocalServer, as_json: bool) -> None:
    from dataclasses import asdict

    found = server.status()
    if as_json:
        typer.echo(json.dumps(asdict(found)))
        return
    for line in found.lines:
        typer.echo(line)
