"""A server of ours that goes between the moment it was found and the question."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from lcursor.llm.client import ChatClient
from lcursor.llm.pool import Connection, ModelPool
from tests.fakes.chat_server import ChatServer


def gone_once(patch: pytest.MonkeyPatch, *, is_ours: bool = True, times: int = 1) -> list[str]:
    """Have what is reached first be gone when it is asked; return the names that are reached."""
    real, names = ModelPool.connect, list[str]()

    def connect(self: ModelPool, name: str, cancel: threading.Event) -> Connection:
        names.append(name)
        found = real(self, name, cancel)
        if len(names) > times:
            return found
        with ChatServer() as gone:
            url = gone.url
        client = ChatClient(replace(found.target, url=url))
        return replace(found, client=client, server="run" if is_ours else "")

    patch.setattr(ModelPool, "connect", connect)
    return names
