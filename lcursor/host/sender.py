"""The way back to Neovim: one function, callable from any thread, that never waits.

Messages leave in the order in which they were given. Neovim's end is `lcursor.rpc.receive`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

RECEIVE = "require('lcursor.rpc').receive(...)"


class Nvim(Protocol):
    """What of pynvim's client is used here; channel_id is the one that Neovim knows."""

    channel_id: int

    def exec_lua(self, code: str, *args: Any, async_: bool) -> Any:
        """Run Lua in Neovim."""

    def async_call(self, fn: Callable[..., Any], *args: Any) -> None:
        """Run a function on the loop's thread."""


class Sender:
    """Sends messages of `protocol.TO_LUA`.

    Args:
        nvim: the client.
    """

    def __init__(self, nvim: Nvim) -> None:
        self._nvim = nvim

    def send(self, method: str, params: Mapping[str, Any]) -> None:
        """Send one message. Thread: any."""
        self._nvim.async_call(self._send, method, dict(params))

    def _send(self, method: str, params: dict[str, Any]) -> None:
        self._nvim.exec_lua(RECEIVE, self._nvim.channel_id, method, params, async_=True)
