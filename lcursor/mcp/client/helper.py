"""The helper process: it talks to all servers, so that the SDK is not in the host.

Each line on its standard input is a request in JSON, with an id that its answer repeats; the
process ends with its input. Requests run at the same time. Nothing else is printed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio

from lcursor.errors import LcursorError
from lcursor.mcp.client import launch
from lcursor.mcp.client.connection import Connection, ServerProblem

MAX_LINE_BYTES: Final = 16 << 20
Request = Mapping[str, Any]


class Helper:
    """All connections, by the name of their server."""

    def __init__(self, write: Callable[[Mapping[str, Any]], None]) -> None:
        self._write = write
        self._connections: dict[str, Connection] = {}
        self._running: dict[int, anyio.CancelScope] = {}
        self._questions: dict[int, asyncio.Future[Request]] = {}
        self._asked = 0
        self._tasks: Any = None
        self._operations: dict[str, Callable[[Request], Awaitable[Any]]] = {
            "open": self._open,
            "list": lambda given: self._of(given).offer(given["max_s"]),
            "call": lambda given: self._of(given).call(
                given["tool"], given["arguments"], given["max_s"]
            ),
            "read": lambda given: self._of(given).read(given["uri"], given["max_s"]),
            "prompt": lambda given: self._of(given).prompt(
                given["prompt"], given["arguments"], given["max_s"]
            ),
            "close": self._close,
        }

    async def serve(self, lines: asyncio.StreamReader) -> None:
        """Answer requests until the input ends; then end all programs."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            while line := await lines.readline():
                given = json.loads(line)
                if given["op"] == "cancel":
                    if scope := self._running.get(given["id"]):
                        scope.cancel()
                elif given["op"] == "answer":
                    if question := self._questions.pop(given["question"], None):
                        question.set_result(given)
                else:
                    tasks.start_soon(self._answer, given)
            for each in self._connections.values():
                each.close()
            for scope in self._running.values():
                scope.cancel()

    async def _answer(self, given: Request) -> None:
        """Do what a request asks for, and answer it, unless it is cancelled."""
        number = given["id"]
        with anyio.CancelScope() as scope:
            self._running[number] = scope
            try:
                self._write({"id": number, "result": await self._operations[given["op"]](given)})
            except (ServerProblem, LcursorError) as problem:
                self._write({"id": number, "error": str(problem)})
            except Exception as error:  # noqa: BLE001 - the root of a request
                self._write({"id": number, "error": f"{type(error).__name__}: {error}"})
            finally:
                del self._running[number]

    async def _open(self, given: Request) -> Any:
        """Connect to a server, in the place of an earlier connection."""
        name, server = given["server"], given["settings"]
        await self._close(given)

        async def ask(message: str, schema: Mapping[str, Any]) -> tuple[str, Any]:
            return await self._ask(name, message, schema)

        words, env = launch.command_line(server)
        connection = Connection(
            words=words,
            env=env,
            url=server["url"],
            headers=launch.resolved(server["headers"]),
            mode=given["mode"],
            ask=ask,
            changed=lambda: self._write({"event": "changed", "server": name}),
        )
        self._connections[name] = connection
        self._tasks.start_soon(connection.run)
        try:
            return await connection.open(given["max_s"])
        except BaseException:
            connection.close()
            raise

    async def _close(self, given: Request) -> None:
        if old := self._connections.pop(given["server"], None):
            old.close()

    async def _ask(self, name: str, message: str, schema: Mapping[str, Any]) -> tuple[str, Any]:
        """Send a question of a server to the host, and wait for the answer."""
        self._asked += 1
        question = self._questions[self._asked] = asyncio.get_running_loop().create_future()
        self._write(
            {
                "event": "question",
                "server": name,
                "question": self._asked,
                "message": message,
                "schema": schema,
            }
        )
        answer = await question
        return answer["action"], answer["content"]

    def _of(self, given: Request) -> Connection:
        """Return a connection.

        Raises:
            ServerProblem: there is none.
        """
        connection = self._connections.get(given["server"])
        if connection is None:
            raise ServerProblem("it is not connected")
        return connection


async def _run() -> None:
    lines = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
    )
    output = sys.stdout.buffer

    def write(answer: Mapping[str, Any]) -> None:
        output.write(json.dumps(answer).encode() + b"\n")
        output.flush()

    await Helper(write).serve(lines)


def main() -> None:
    """Serve one host."""
    logging.disable()
    asyncio.run(_run())
