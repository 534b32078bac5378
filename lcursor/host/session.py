"""Run the host: attach to Neovim over stdio, and handle messages until the channel closes.

The only importer of pynvim. The main thread runs only pynvim's loop.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import pynvim

from lcursor.host.dispatch import Dispatch
from lcursor.reporting import Notify

RECEIVE = "require('lcursor.host.rpc').receive(...)"


def sender(nvim: Any) -> Notify:
    """Return a non-blocking function that sends messages to Neovim in order, from any thread."""

    def send_now(method: str, params: dict[str, Any]) -> None:
        nvim.exec_lua(RECEIVE, nvim.channel_id, method, params, async_=True)

    return lambda method, params: nvim.async_call(send_now, method, dict(params))


def run() -> None:
    """Serve one Neovim until it exits; never returns.

    Ends the process with `os._exit`, because llama.cpp may be computing on another thread.
    """
    nvim: Any = pynvim.attach("stdio")
    dispatch = Dispatch(sender(nvim), nvim.stop_loop)
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
