"""`python -m lcursor acp`: the agent for another editor, on standard input and output."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from lcursor.cli import options


def acp(
    model: options.Model = "",
    mode: Annotated[str, typer.Option(help="Mode of new sessions: plan, ask or auto.")] = "auto",
    test: options.Test = "",
    lint: options.Lint = "",
    allow: options.Allow = None,
    readable: options.Readable = None,
    url: options.Url = "",
    key_env: options.KeyEnv = "",
    secret: options.Secret = None,
) -> None:
    """Be the agent of another editor, by the Agent Client Protocol.

    The agent works on a copy of the project. The editor shows each change, and it is written once
    you allow it.
    """
    from lcursor.acp.server.editor import OtherEditor
    from lcursor.acp.server.sessions import MODES, Server
    from lcursor.agent.standalone import open_service
    from lcursor.config import AgentConfig, Config, EditConfig

    if mode not in MODES:
        raise typer.BadParameter("mode is plan, ask or auto")
    config = Config(
        chat=options.chat_settings(model, url, key_env),
        edit=EditConfig(test=test, lint=lint),
        agent=AgentConfig(
            allow=tuple(allow or ()),
            readable=options.absolute(readable),
        ),
    )
    received, sent = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no message
    served = Server(OtherEditor(received, sent), mode, secret or [])
    with open_service(config, served.emit, secret or [], _warn) as served.opened:
        served.serve()


def _warn(text: str) -> None:
    typer.echo(text, err=True)
