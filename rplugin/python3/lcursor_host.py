"""Entry of the Python half: Neovim runs this file as a child and talks to it over stdio.

For those who run `:UpdateRemotePlugins` it is a valid remote plugin as well. That imports this file
into their own Python, so nothing but the standard library and pynvim is imported at the top.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pynvim

ROOT = str(Path(__file__).resolve().parent.parent.parent)


@pynvim.plugin
class LcursorHost:
    """The same messages, as a function of a classic remote plugin."""

    def __init__(self, nvim: Any) -> None:
        self._nvim = nvim
        self._dispatch: Any = None

    @pynvim.function("LcursorNotify")
    def notify(self, args: list[Any]) -> None:
        """Take one message: its name and its table."""
        if self._dispatch is None:
            sys.path.insert(0, ROOT)
            from lcursor.host.dispatch import Dispatch
            from lcursor.host.session import sender

            self._dispatch = Dispatch(sender(self._nvim), lambda: None)
        self._dispatch(args[0], args[1] if len(args) > 1 else {})


if __name__ == "__main__":
    sys.path.insert(0, ROOT)
    from lcursor.host.session import run

    run()
