"""Fixtures of the chat slot: a scripted server, and a desk with a chat on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.chat_server import ChatServer
from tests.fakes.heard import config_of
from tests.unit.chat.desk import Desk


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """Give a server that repeats what it is asked."""
    with ChatServer() as fake:
        yield fake


@pytest.fixture
def desk(tmp_path: Path, server: ChatServer) -> Iterator[Desk]:
    """Give the slot on that server, with a new chat."""
    with Desk(tmp_path, config_of(server)) as it:
        it.open()
        yield it
