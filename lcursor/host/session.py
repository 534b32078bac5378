"""Run the host: attach to Neovim over stdio, and answer messages until the channel closes.

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
    """Serve one Neovim until it exits; never returns.

    Ends the process with `os._exit`, because llama.cpp may be computing on another thread.
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
