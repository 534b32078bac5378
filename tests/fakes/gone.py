"""A local server that ends between being found and being asked."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from lcursor.llm.client import ChatClient
from lcursor.llm.pool import Connection, ModelPool, Report
from tests.fakes.chat_server import ChatServer


def gone_once(patch: pytest.MonkeyPatch, *, is_ours: bool = True, times: int = 1) -> list[str]:
    """Let the first connection fail when it is used; return the names of all connections."""
    real, names = ModelPool.connect, list[str]()

    def connect(
        self: ModelPool, name: str, cancel: threading.Event, report: Report | None = None
    ) -> Connection:
        names.append(name)
        found = real(self, name, cancel, report)
        if len(names) > times:
            return found
        with ChatServer() as gone:
            url = gone.url
        client = ChatClient(replace(found.client.target, url=url))
        return replace(found, client=client, server="run" if is_ours else "")

    patch.setattr(ModelPool, "connect", connect)
    return names
