"""`python -m lcursor demo` and `try`: start a real Neovim with lcursor."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from lcursor.errors import LcursorError, NeovimMissing

Model = Annotated[str, typer.Option(help="Another model: a name of `models list`, or a path.")]


def find_neovim() -> Path:
    """Return the Neovim that the set-up found or installed.

    Raises:
        NeovimMissing: there is none.
    """
    from lcursor.install import find_neovim as find

    found = find(Path(__file__).resolve().parents[2] / ".venv")
    if found is None:
        raise NeovimMissing("no Neovim 0.11 or newer was found", "Run: make demo")
    return found


def demo(model: Model = "") -> None:
    """Type into a real file in a real Neovim, and print the screen."""
    from lcursor.drive import demo as show

    try:
        show.run(find_neovim(), model)
    except TimeoutError as error:
        raise LcursorError(f"the demo did not finish: {error}", "Run it again") from error


def try_out(
    files: Annotated[list[Path] | None, typer.Argument(help="Files to open.")] = None,
) -> None:
    """Open a Neovim with lcursor and without your own configuration."""
    from lcursor.drive.editor import ROOT, prepare_home
    from lcursor.storage import folders

    neovim = find_neovim()
    home = Path(tempfile.gettempdir()) / f"lcursor-try-{os.getuid()}"
    folders.make_private(home)  # another user may have created it
    environment = {**os.environ, **prepare_home(home, init="", plugin=True)}
    names = [str(path) for path in files or [ROOT / "lcursor/fim/kv.py"]]
    os.execve(neovim, [str(neovim), *names], environment)  # noqa: S606 - no shell is meant
