"""The host's life: attach to Neovim over stdio, answer until the channel closes, leave quietly.

The only importer of pynvim. The main thread runs pynvim's loop and nothing else.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import pynvim

from lcursor.host.dispatch import Dispatch
from lcursor.host.sender import Sender


def run() -> None:
    """Serve one Neovim until it goes; never returns.

    llama.cpp may be deep in a computation when Neovim leaves, and a thread cannot be ended from
    outside: the process is left by `os._exit` once the engine had its chance to stop.
    """
    nvim: Any = pynvim.attach("stdio")
    sender = Sender(nvim)
    dispatch = Dispatch(sender.send, nvim.stop_loop)
    try:
        nvim.run_loop(
            lambda name, args: None,
            lambda name, args: dispatch(name, args[0] if args else {}),
        )
    except (EOFError, OSError):
        pass  # Neovim closed the channel or died
    finally:
        dispatch.close()
        sys.stderr.flush()
        os._exit(0)
