"""`python -m lcursor mcp`: an MCP server for other agents, on standard input and output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def mcp(
    path: Annotated[
        Path | None,
        typer.Argument(help="A file or folder of the project; default: the current folder."),
    ] = None,
    propose: Annotated[
        bool, typer.Option("--propose", help="Let the agent show hunks in the editor.")
    ] = False,
    editor: Annotated[
        str, typer.Option(metavar="SOCKET", help="v:servername of a Neovim; default: find it.")
    ] = "",
    secret: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Never read these files. Repeatable."),
    ] = None,
) -> None:
    """Serve the index and the open editor to another agent (MCP).

    The tools only read. With --propose the agent can also propose changes, which you accept or
    reject as hunks.
    """
    from lcursor.context.codebase import IndexSearch
    from lcursor.errors import LcursorError
    from lcursor.installer.process import ROOT
    from lcursor.mcp.server.editor import RunningEditor
    from lcursor.mcp.server.tools import ProjectTools
    from lcursor.project.root import is_begun, root_of

    try:
        from lcursor.mcp.server import protocol
    except ImportError as error:
        raise LcursorError(
            f"the package for this is not installed ({error.name})",
            f"Run {sys.executable} {ROOT}/lcursor/install.py --venv {sys.prefix} --with mcp",
        ) from error
    root = root_of((path or Path.cwd()).absolute())
    codebase = IndexSearch.open(root, start=is_begun(root), secrets=secret or [])
    tools = ProjectTools(root, codebase, RunningEditor(root, editor), secret or [])
    protocol.make(tools, may_propose=propose).run()
