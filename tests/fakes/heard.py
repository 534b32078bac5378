"""Records the messages of a part of the host; settings for fake servers."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lcursor import protocol
from lcursor.config import ChatConfig, ModelConfig
from tests.fakes.chat_server import ChatServer

Told = Mapping[str, Any]
WAIT_S = 120.0


def config_of(*servers: ChatServer, **more: Any) -> ChatConfig:
    """Return chat settings with servers of the test; the first is named `fake`."""
    names = ["fake", *(f"fake{number}" for number in range(2, len(servers) + 1))]
    models = tuple(
        ModelConfig(name, url=server.url) for name, server in zip(names, servers, strict=True)
    )
    return replace(ChatConfig(model="fake", models=models, server="off", rule_files=False), **more)


class Heard:
    """Records messages to Neovim and checks each against the protocol.

    Attributes:
        sent: (name, fields) of all, in their order.
    """

    def __init__(self) -> None:
        self.sent: list[tuple[str, Told]] = []
        self._changed = threading.Condition()

    def _tell(self, method: str, params: Told) -> None:
        """Record a message. Thread: any."""
        protocol.check(method, params, protocol.TO_LUA)
        with self._changed:
            self.sent.append((method, params))
            self._changed.notify_all()

    def told(self, method: str, number: int | None = None) -> list[Told]:
        """Return the messages of a name, about one request or all."""
        with self._changed:
            return [
                params
                for name, params in self.sent
                if name == method and number in (None, params.get("id"))
            ]

    def wait(self, method: str, number: int | None = None, *, count: int = 1) -> Told:
        """Wait for so many messages of a name, about one request or all; return the last."""
        with self._changed:
            is_there = self._changed.wait_for(
                lambda: len(self.told(method, number)) >= count, WAIT_S
            )
            assert is_there, self.sent[-12:]
            return self.told(method, number)[-1]
