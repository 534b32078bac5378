"""A server made with the SDK, at an address and as a program, in both revisions."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor.errors import McpFailed
from tests.unit.mcp.conftest import World, never
from tests.waiting import wait_for

pytest.importorskip("mcp")
pytestmark = pytest.mark.process
SCRIPT = Path(__file__).parents[2] / "fakes/mcp_sdk_server.py"
REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with subprocess.Popen([sys.executable, str(SCRIPT), str(port)]) as process:

        def listens() -> bool:
            with socket.socket() as made:
                return made.connect_ex(("127.0.0.1", port)) == 0

        wait_for(listens, 20)
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()


def settings(kind: str, url: str) -> dict[str, Any]:
    if kind == "address":
        return {"url": url, "headers": {"X-Mode": "fast"}}
    return {"command": [sys.executable, str(SCRIPT)], "readable": [str(SCRIPT)]}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("kind", ["address", "program"])
def test_all_that_a_server_offers(world: World, url: str, kind: str, mode: str) -> None:
    project = world.configure(mode, it=settings(kind, url))
    world.allow("it")
    assert project.show("it")["revision"] == REVISIONS[mode]
    assert project.call("it__add", {"a": 1, "b": 2}, never) == ("3", False)
    assert project.call("it__picture", {}, never) == ("[image image/png, 5 bytes, left out]", False)
    with pytest.raises(McpFailed, match="a: 'x' is not of type 'integer'"):
        project.call("it__add", {"a": "x", "b": 2}, never)
    with pytest.raises(McpFailed, match=r"more than 4 MB|exceeded the"):
        project.call("it__size", {"number": 5_000_000}, never)
    assert project.call("it__add", {"a": 1, "b": 2}, never) == ("3", False)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (["city: Rome"], "It rains in Rome."),
        (["city: "], "It rains in Paris."),
        ([""], "the user said decline"),
    ],
)
def test_a_server_asks_the_user(world: World, url: str, answers: list[str], words: str) -> None:
    """In the revision with a handshake; in later ones the SDK asks in the same way."""
    asked = []

    def ask(text: str) -> str:
        asked.append(text)
        return answers.pop(0)

    world.configure("legacy", it=settings("address", url))
    world.allow("it")
    assert world.project.call("it__weather", {}, never, ask) == (words, False)
    [text] = asked
    assert text.splitlines()[0] == "The server it asks: Where are you?"
    assert "city: Paris" in text
    assert "Where you are" in text
    assert world.project.call("it__weather", {}, never)[0] == "the user said decline"


def test_an_address_that_nobody_serves_is_an_error(world: World) -> None:
    world.configure(it={"url": "http://127.0.0.1:9/mcp"})
    world.allow("it")
    [row] = world.project.rows()
    assert row["state"] == "failed"
    assert "connect" in row["problem"].lower()
