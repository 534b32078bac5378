"""What all tests of the HTTP client share."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from lcursor.http.client import Call, Client, Limits
from tests.fakes.model_server import ModelServer

Make = Callable[..., Client]


@pytest.fixture(autouse=True)
def _busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give servers of the test's own time to answer; a test that is about time sets its own."""
    limits = Limits(connect_s=30.0, answer_s=30.0)
    monkeypatch.setattr("lcursor.http.client.DEFAULT_LIMITS", limits)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as it:
        yield it


@pytest.fixture
def make() -> Iterator[Make]:
    """Make clients; close them afterwards."""
    with ExitStack() as stack:

        def begin(url: str, key: str = "", limits: Limits | None = None) -> Client:
            one = Client(url, key, "models.x.", limits)
            stack.callback(one.close)
            return one

        yield begin


def ended(call: Call) -> list[bytes] | BaseException:
    """Read a call to its end on another thread; fail if it does not end."""
    found: list[list[bytes] | BaseException] = []

    def read() -> None:
        try:
            found.append(list(call))
        except Exception as error:  # noqa: BLE001 - returned
            found.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(30)
    assert found, "the call does not end"
    return found[0]


def free_port() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        port: int = it.getsockname()[1]
        return port
