"""Send messages to Neovim, from any thread and without waiting.

They leave in the order of the calls. `lcursor.rpc.receive` gets them in Neovim.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RECEIVE = "require('lcursor.rpc').receive(...)"


class Sender:
    """Sends messages of `protocol.TO_LUA`.

    Args:
        nvim: a pynvim client.
    """

    def __init__(self, nvim: Any) -> None:
        self._nvim = nvim

    def send(self, method: str, params: Mapping[str, Any]) -> None:
        """Send one message. Thread: any."""
        self._nvim.async_call(self._send, method, dict(params))

    def _send(self, method: str, params: dict[str, Any]) -> None:
        self._nvim.exec_lua(RECEIVE, self._nvim.channel_id, method, params, async_=True)
