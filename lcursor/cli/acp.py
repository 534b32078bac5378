"""`python -m lcursor acp`: the agent for another editor, on standard input and output."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer


def acp(
    model: Annotated[
        str, typer.Option(help="A name of `models list`, or the path of a GGUF file.")
    ] = "",
    mode: Annotated[str, typer.Option(help="Mode of new sessions: plan, ask or auto.")] = "auto",
    test: Annotated[
        str, typer.Option(metavar="COMMAND", help="Tests that must pass at the end.")
    ] = "",
    lint: Annotated[
        str, typer.Option(metavar="COMMAND", help="Linter; {path} is the changed file.")
    ] = "",
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="COMMAND", help="Runs without approval. Repeatable."),
    ] = None,
    readable: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="A folder or file that commands may read. Repeatable."),
    ] = None,
    url: Annotated[
        str, typer.Option(help="A server to ask instead of the local one.", show_default=False)
    ] = "",
    key_env: Annotated[
        str, typer.Option(help="Environment variable with the API key of that server.")
    ] = "",
    secret: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Never read these files. Repeatable."),
    ] = None,
) -> None:
    """Be the agent of another editor, by the Agent Client Protocol.

    The agent works on a copy of the project. The editor shows each change, and it is written once
    you allow it.
    """
    from lcursor.acp.server.editor import OtherEditor
    from lcursor.acp.server.sessions import MODES, Server
    from lcursor.agent.standalone import open_service
    from lcursor.config import AgentConfig, ChatConfig, Config, EditConfig, ModelConfig

    if mode not in MODES:
        raise typer.BadParameter("mode is plan, ask or auto")
    chat = ChatConfig(model=model)
    if url:
        server = ModelConfig(name="server", url=url, model=model, key_env=key_env)
        chat = ChatConfig(model="server", models=(server,), server="off")
    config = Config(
        chat=chat,
        edit=EditConfig(test=test, lint=lint),
        agent=AgentConfig(
            allow=tuple(allow or ()),
            readable=tuple(str(each.expanduser().absolute()) for each in readable or ()),
        ),
    )
    received, sent = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no message
    served = Server(OtherEditor(received, sent), mode, secret or [])
    with open_service(config, served.emit, secret or [], _warn) as served.opened:
        served.serve()


def _warn(text: str) -> None:
    typer.echo(text, err=True)
