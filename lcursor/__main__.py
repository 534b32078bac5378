"""The command line `python -m lcursor`; its commands are in `lcursor/cli/`.

Exit status: 0 success, 1 an error with one line on standard error, 2 a wrong command line, 130
interrupted.
"""

from __future__ import annotations

import sys
from typing import Annotated

try:
    import typer
except ImportError:  # a half-made environment, or the wrong Python
    sys.exit(
        f"lcursor: the package typer is missing from {sys.executable}. "
        "Run :LCursor install in Neovim, or make demo in the repository"
    )

from lcursor import __version__
from lcursor.cli import acp, agent, chat, doctor, editor, index, mcp, models, sandbox, server, tools
from lcursor.errors import LcursorError

app = typer.Typer(
    name="python -m lcursor",
    help="The commands of lcursor outside Neovim.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(models.app, name="models")
app.add_typer(server.app, name="server")
app.add_typer(sandbox.app, name="sandbox")
doctor.add_to(app)
app.command("index")(index.index)
app.command("search")(index.search)
app.command("chat")(chat.chat)
app.command("agent")(agent.agent)
app.command("acp")(acp.acp)
app.command("mcp")(mcp.mcp)
app.command("demo")(editor.demo)
app.command("try")(editor.try_out)
tools.add_to(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lcursor {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Parse the options before a command."""


def main() -> None:
    """Run the command line."""
    try:
        app()
    except LcursorError as e:
        print(f"lcursor: {e}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
