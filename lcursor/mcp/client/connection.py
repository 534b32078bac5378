"""A connection to a server of the Model Context Protocol, by the SDK. In the helper process only.

A server is a program, which this process starts, or an address. Whatever it does, one of these
errors follows within a limit of time and bytes, and other connections go on.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import anyio
import httpx2
from mcp import types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from lcursor import __version__
from lcursor.mcp.client import schemas
from lcursor.mcp.client.program import MAX_ERROR, MAX_MESSAGE_BYTES, TOO_LONG, Program, Trouble, run
from lcursor.storage import json_text

MAX_TOOLS: Final = 500
MAX_PAGES: Final = 20
MAX_TEXT: Final = 400_000
"""Characters of a result; the agent reads far less."""
OPEN_S: Final = 15.0
"""Time limit for the connection to an address."""
NAME: Final = re.compile(r"[\w./-]{1,128}", re.ASCII)
INFO: Final = types.Implementation(name="lcursor", version=__version__)
CLOSED: Final = types.CONNECTION_CLOSED
Message = SessionMessage | Exception
Result = TypeVar("Result")
Ask = Callable[[str, Mapping[str, Any]], Awaitable[tuple[str, Mapping[str, Any] | None]]]
"""Asks the user, given a message and the schema of the answer: accept, decline or cancel, and the
answer."""


class ServerProblem(Exception):
    """A server did not do what was asked; the message is for the user and the model."""


class Connection:
    """A connection to a server.

    Args:
        words: the program and its arguments; empty for a server at an address.
        mode: "auto" for the newest revision that both know, or "legacy" for one with a handshake.
    """

    def __init__(
        self,
        *,
        words: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        url: str = "",
        headers: Mapping[str, str] | None = None,
        mode: str = "auto",
        ask: Ask,
        changed: Callable[[], None],
    ) -> None:
        self._words, self._env = words, env
        self._url, self._headers = url, headers
        self._mode, self._ask, self._changed = mode, ask, changed
        self._trouble = Trouble()
        self._client: Client | None = None
        self._opened, self._closing = anyio.Event(), anyio.Event()
        self._opening = anyio.CancelScope()
        """Cancelled to give up before there is a connection."""
        self._failure = ""
        self._limits: dict[anyio.CancelScope, float] = {}
        """Those of the requests that run."""
        self._schemas: dict[str, Mapping[str, Any]] = {}
        self.problems: dict[str, str] = {}
        """Why tools cannot be used, by name."""

    async def run(self) -> None:
        """Connect, and stay connected until `close`. The task in which the SDK's tasks run."""
        try:
            closed = (anyio.BrokenResourceError, anyio.ClosedResourceError)
            with self._opening, contextlib.suppress(*closed):
                async with Client(
                    self._transport(),
                    mode=self._mode,
                    client_info=INFO,
                    elicitation_callback=self._elicit,
                    message_handler=self._notice,
                    cache=None,
                ) as client:
                    self._client = client
                    self._opened.set()
                    await self._listen(client)
        except Exception as error:  # noqa: BLE001 - whatever a server and the SDK raise
            self._failure = _words_of(error)
        finally:
            self._client = None
            self._opened.set()

    def close(self) -> None:
        """End the connection, and its program."""
        self._closing.set()
        if not self._opened.is_set():
            self._opening.cancel()

    async def open(self, max_s: float) -> dict[str, Any]:
        """Wait for the connection; return what the server offers.

        Raises:
            ServerProblem: there is none.
        """
        with anyio.move_on_after(max_s) as scope:
            await self._opened.wait()
        if scope.cancelled_caught:
            raise ServerProblem(f"it did not answer within {max_s:.0f} s. {self._trouble}".strip())
        return await self.offer(max_s)

    async def offer(self, max_s: float) -> dict[str, Any]:
        """Return the tools, resources and prompts.

        Raises:
            ServerProblem: they cannot be listed.
        """

        async def listed(client: Client) -> dict[str, Any]:
            has = client.server_capabilities
            self.problems, self._schemas = {}, {}
            tools = await _pages(client.list_tools, "tools") if has.tools else []
            resources = await _pages(client.list_resources, "resources") if has.resources else []
            prompts = await _pages(client.list_prompts, "prompts") if has.prompts else []
            self._schemas = {each.name: each.input_schema for each in tools}
            return {
                "revision": client.protocol_version,
                "tools": [_tool(each) for each in tools],
                "resources": [_row(each, "uri", "name", "description") for each in resources],
                "prompts": [_prompt(each) for each in prompts],
                "problems": dict(self.problems),
            }

        return await self._within(max_s, listed)

    async def call(self, tool: str, arguments: dict[str, Any], max_s: float) -> dict[str, Any]:
        """Call a tool; return the text of its result, and whether it failed.

        Raises:
            ServerProblem: it has no result.
        """
        schema = self._schemas.get(tool)
        if schema is None:
            raise ServerProblem(f"it has no tool {tool}")
        if problem := schemas.argument_problem(schema, arguments):
            # Models write null for what they leave out.
            arguments = {name: each for name, each in arguments.items() if each is not None}
            if schemas.argument_problem(schema, arguments):
                raise ServerProblem(f"the arguments do not fit: {problem}")

        async def called(client: Client) -> dict[str, Any]:
            result = await client.call_tool(tool, arguments)
            parts = [_text_of(each) for each in result.content]
            if not parts and result.structured_content is not None:
                parts = [json.dumps(result.structured_content, ensure_ascii=False)]
            return {"text": _cut("\n".join(parts)), "is_error": bool(result.is_error)}

        return await self._within(max_s, called)

    async def read(self, uri: str, max_s: float) -> dict[str, Any]:
        """Return the whole text of a resource, and whether any of it is text.

        Raises:
            ServerProblem: it cannot be read.
        """

        async def read(client: Client) -> dict[str, Any]:
            result = await client.read_resource(uri)
            is_text = any(isinstance(each, types.TextResourceContents) for each in result.contents)
            return {"text": "\n".join(map(_content, result.contents)), "is_text": is_text}

        return await self._within(max_s, read)

    async def prompt(self, name: str, arguments: dict[str, str], max_s: float) -> dict[str, Any]:
        """Return the text of a prompt.

        Raises:
            ServerProblem: there is none.
        """

        async def got(client: Client) -> dict[str, Any]:
            result = await client.get_prompt(name, arguments)
            return {"text": _cut("\n\n".join(_text_of(each.content) for each in result.messages))}

        return await self._within(max_s, got)

    async def _within(self, max_s: float, use: Callable[[Client], Awaitable[Result]]) -> Result:
        """Do something with the server, within a limit of time.

        Raises:
            ServerProblem: it failed.
        """
        client = self._client
        if client is None:
            raise ServerProblem(self._why_ended())
        with anyio.move_on_after(max_s) as scope:
            self._limits[scope] = max_s
            try:
                return await use(client)
            except MCPError as error:
                if self._client is None or self._trouble.reason or error.code == CLOSED:
                    self.close()
                    self._failure = self._failure or error.message[:MAX_ERROR]
                    raise ServerProblem(self._why_ended()) from error
                raise ServerProblem(error.message[:MAX_ERROR]) from error
            except Exception as error:
                raise ServerProblem(_words_of(error)) from error
            finally:
                del self._limits[scope]
        raise ServerProblem(f"it did not answer within {max_s:.0f} s. {self._trouble}".strip())

    def _why_ended(self) -> str:
        words = str(self._trouble) or self._failure
        return f"it has ended: {words}" if words else "it has ended"

    async def _listen(self, client: Client) -> None:
        """Wait until `close`, and watch for changes of the list of tools."""

        async def watch() -> None:
            with contextlib.suppress(Exception):  # older revisions send notifications
                async with client.listen(tools_list_changed=True) as events:
                    async for _ in events:
                        self._changed()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await self._closing.wait()
            tasks.cancel_scope.cancel()

    async def _notice(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changed()

    async def _elicit(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Ask the user what a server wants to know; the limits of time wait for the answer."""
        if not isinstance(params, types.ElicitRequestFormParams):
            return types.ElicitResult(action="decline")
        for scope in self._limits:
            scope.deadline = math.inf
        action, content = await self._ask(params.message, params.requested_schema)
        for scope, max_s in self._limits.items():
            scope.deadline = anyio.current_time() + max_s
        known = action if action in ("accept", "decline") else "cancel"
        if known == "accept":
            content = {**_defaults(params.requested_schema), **(content or {})}
        return types.ElicitResult.model_validate({"action": known, "content": content})

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[tuple[Any, Any]]:
        """Yield the streams of the server, without tools that cannot be used."""
        if self._words:
            transport = _program(self._words, self._env or {}, self._trouble)
        else:
            transport = _address(self._url, self._headers or {}, self._trouble)
        send, receive = anyio.create_memory_object_stream[Message](0)

        async def pass_on(messages: AsyncIterable[Message]) -> None:
            async with send:
                async for message in messages:
                    if isinstance(message, SessionMessage):
                        self._drop_tools(message.message)
                    await send.send(message)

        async with transport as (messages, write), anyio.create_task_group() as tasks:
            tasks.start_soon(pass_on, messages)
            yield receive, write
            tasks.cancel_scope.cancel()

    def _drop_tools(self, message: Any) -> None:
        """Remove the tools of a list that are none, so that the others can be used."""
        result = getattr(message, "result", None)
        if not isinstance(result, dict) or not isinstance(tools := result.get("tools"), list):
            return
        usable = list[dict[str, Any]]()
        for row in tools[:MAX_TOOLS]:
            problem = _problem_of(row)
            name = row.get("name") if isinstance(row, dict) else None
            if not problem and any(name == each["name"] for each in usable):
                problem = "it is listed twice"
            if problem:
                self.problems[ascii(name or "?")[1:-1][:80]] = problem
            else:
                row.pop("outputSchema", None)  # the text of a result is all that is used
                usable.append(row)
        if len(tools) > MAX_TOOLS:
            self.problems["…"] = f"{len(tools) - MAX_TOOLS} tools are left out"
        result["tools"] = usable


@asynccontextmanager
async def _program(
    words: Sequence[str], env: Mapping[str, str], trouble: Trouble
) -> AsyncIterator[tuple[AsyncIterable[Message], Any]]:
    """Run a program, and yield the streams of its messages."""
    write, written = anyio.create_memory_object_stream[SessionMessage](0)

    async def pass_on(program: Program) -> None:
        async for message in written:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await program.write(text.encode())

    async with run(words, env, trouble) as program, anyio.create_task_group() as tasks:
        tasks.start_soon(pass_on, program)
        yield _messages(program), write
        tasks.cancel_scope.cancel()


async def _messages(program: Program) -> AsyncIterator[Message]:
    """Yield the messages that a program prints, and no other lines."""
    async for line in program.lines():
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            if (row := _repaired(line)) is None:
                program.note_noise(line)
                continue
            message = types.jsonrpc_message_adapter.validate_python(row, by_name=False)
        yield SessionMessage(message)


def _repaired(line: bytes) -> dict[str, Any] | None:
    """Return an invalid answer without the tools that make it so, or as an error; None for others.

    A tool whose schema is nested too deeply must not be the end of the others.
    """
    with contextlib.suppress(ValueError):
        row = json_text.parse(line)
        if not isinstance(row, dict) or not isinstance(row.get("id"), int):
            return None
        result = row.get("result")
        if isinstance(result, dict) and isinstance(tools := result.get("tools"), list):
            rows = [_name_of(each) if "deeply" in _problem_of(each) else each for each in tools]
            return {**row, "result": {**result, "tools": rows}}
        error = {"code": types.INTERNAL_ERROR, "message": "its answer is no valid message"}
        return {"jsonrpc": "2.0", "id": row["id"], "error": error}
    return None


def _name_of(row: Any) -> Any:
    """Return what is left of a tool that cannot be used: its name, for the user."""
    return {"name": row.get("name")} if isinstance(row, dict) else row


@asynccontextmanager
async def _address(
    url: str, headers: Mapping[str, str], trouble: Trouble
) -> AsyncIterator[tuple[AsyncIterable[Message], Any]]:
    """Yield the streams of a server at an address."""

    async def limit(response: httpx2.Response) -> None:
        """Limit the size of a response, unless it has events, whose size the SDK limits."""
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _Limited(response.stream, trouble)

    client = httpx2.AsyncClient(
        headers=dict(headers),
        timeout=httpx2.Timeout(OPEN_S, read=None),
        event_hooks={"response": [limit]},
    )
    async with (
        client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
        ) as streams,
    ):
        yield streams


class _Limited(httpx2.AsyncByteStream):
    """A stream that fails after too many bytes."""

    def __init__(self, stream: Any, trouble: Trouble) -> None:
        self._stream, self._trouble = stream, trouble

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for block in self._stream:
            total += len(block)
            if total > MAX_MESSAGE_BYTES:
                self._trouble.reason = TOO_LONG
                raise httpx2.ReadError(TOO_LONG)
            yield block

    async def aclose(self) -> None:
        await self._stream.aclose()


def _defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a form that the user leaves as they are."""
    properties = schema.get("properties")
    rows = properties.items() if isinstance(properties, Mapping) else ()
    return {
        name: row["default"] for name, row in rows if isinstance(row, Mapping) and "default" in row
    }


async def _pages(fetch: Callable[..., Awaitable[Any]], name: str) -> list[Any]:
    """Return what a server lists, from all pages."""
    rows: list[Any] = []
    cursor = None
    for _ in range(MAX_PAGES):
        page = await fetch(cursor=cursor)
        rows += getattr(page, name)
        cursor = page.next_cursor
        if not cursor or len(rows) >= MAX_TOOLS:
            break
    return rows[:MAX_TOOLS]


def _problem_of(row: Any) -> str:
    """Return why a tool cannot be used; "" if it can."""
    try:
        tool = types.Tool.model_validate(row, by_name=False)
    except ValidationError as error:
        return f"it is described wrongly: {_words_of(error)}"
    if not NAME.fullmatch(tool.name):
        return "its name has other characters than letters, digits, _, -, . and /"
    if tool.execution and tool.execution.task_support == "required":
        return "it runs only as a task, which this client cannot start"
    return schemas.problem_of(tool.input_schema)


def _tool(tool: types.Tool) -> dict[str, Any]:
    hints = tool.annotations
    return {
        "name": tool.name,
        "description": _cut(tool.description or tool.title or ""),
        "schema": tool.input_schema,
        "annotations": hints.model_dump(mode="json", exclude_none=True) if hints else {},
    }


def _prompt(prompt: types.Prompt) -> dict[str, Any]:
    rows = [_row(each, "name", "description", "required") for each in prompt.arguments or []]
    return {**_row(prompt, "name", "description"), "arguments": rows}


def _row(record: Any, *names: str) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in names}
    return {
        name: value if isinstance(value, bool) else str(value or "")
        for name, value in values.items()
    }


def _text_of(block: Any) -> str:
    """Return a part of a result as text; what is no text becomes a note."""
    if isinstance(block, types.TextContent):
        return block.text
    if isinstance(block, types.EmbeddedResource):
        return _content(block.resource)
    if isinstance(block, types.ResourceLink):
        return f"[resource {block.uri}]"
    size = _size(getattr(block, "data", ""))
    return f"[{block.type} {getattr(block, 'mime_type', '')}, {size:,} bytes, left out]"


def _size(data: str) -> int:
    """Return the number of bytes of a text in base 64."""
    return len(data.rstrip("=")) * 3 // 4


def _content(content: Any) -> str:
    if isinstance(content, types.TextResourceContents):
        return content.text
    size = _size(getattr(content, "blob", ""))
    return f"[{content.mime_type or 'binary'} {content.uri}, {size:,} bytes, left out]"


def _cut(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}\n… {len(text) - MAX_TEXT:,} more characters"


def _words_of(error: BaseException) -> str:
    """Return an exception as one line; of several, the first."""
    while inner := getattr(error, "exceptions", ()):
        error = inner[0]
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:MAX_ERROR]
    return (" ".join(str(error).split()) or type(error).__name__)[:MAX_ERROR]
