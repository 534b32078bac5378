"""A model server for agents of others that plays a script: three protocols, any agent's tools.

The last user message names a situation: `SITUATION edit`. Its actions are played one a request,
each as a call of the tool that the agent offers for it, until they have all been answered.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

Action = tuple[str, Mapping[str, Any]]
"""A kind of tool and its arguments, or `say` with a text."""
MODEL: Final = "scripted"
MARK: Final = re.compile(r"SITUATION (\w+)")
ENDLESS: Final = "endless"
"""The situation in which the model never ends."""
TOOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "read": ("read", "read_file", "Read"),
    "write": ("write", "write_file", "Write", "apply_patch"),
    "edit": ("edit", "Edit", "apply_patch"),
    "command": ("bash", "run_shell_command", "Bash", "exec_command", "shell", "shell_command"),
    "todo": ("todowrite", "todo_write", "TodoWrite", "update_plan", "TaskCreate"),
    "question": ("question", "ask_user_question", "AskUserQuestion", "request_user_input"),
    "search": ("search",),
}
"""Names of tools by kind, of all agents."""
OPTIONAL: Final = frozenset({"sandbox_permissions", "justification", "todos", "plan", "subject"})
"""Arguments that only some tools have."""
ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("filePath", "file_path", "path", "absolute_path"),
    "old": ("oldString", "old_string"),
    "new": ("newString", "new_string"),
    "text": ("content",),
    "command": ("command", "cmd"),
}


@dataclass
class Asked:
    """A request, in the terms of all protocols."""

    tools: Mapping[str, Mapping[str, Any]]
    """Schemas of arguments by name; `{}` for a tool with free text."""
    rows: Sequence[tuple[str, str]]
    """Role (`user`, `assistant`, `tool`) and text."""
    free: frozenset[str] = frozenset()
    """Tools with free text."""

    @property
    def situation(self) -> str:
        """The name that the last user message with one has."""
        found = [MARK.search(text) for role, text in self.rows if role == "user"]
        names = [match[1] for match in found if match]
        return names[-1] if names else ""

    @property
    def done(self) -> int:
        """Number of results since the situation began."""
        first = max(
            (i for i, (role, text) in enumerate(self.rows) if role == "user" and MARK.search(text)),
            default=0,
        )
        return sum(role == "tool" for role, _ in self.rows[first:])


@dataclass
class Script:
    """The actions of each situation, and what was asked."""

    actions: Mapping[str, Sequence[Action]]
    asked: list[Asked] = field(default_factory=list)
    raw: list[tuple[str, Any]] = field(default_factory=list)

    def next(self, asked: Asked) -> Action:
        """Return what the model does next."""
        self.asked.append(asked)
        actions = self.actions.get(asked.situation, ())
        if not asked.tools or asked.done >= len(actions):
            return "say", {"text": f"Done with {asked.situation or 'it'}."}
        kind, given = actions[asked.done]
        return (kind, given) if kind == "say" else _call(kind, given, asked)


def _call(kind: str, given: Mapping[str, Any], asked: Asked) -> Action:
    """Return the call of a tool that the agent offers; text if it offers none."""
    name = next((each for each in TOOLS[kind] if each in asked.tools), "")
    if not name and kind == "search":
        name = next((each for each in asked.tools if each.endswith("search")), "")
    if not name and kind != "command" and "path" in given:
        return _call("command", {"command": _as_command(kind, given)}, asked)
    if not name:
        return "say", {"text": f"There is no tool for {kind}."}
    if name in asked.free:
        return name, {"input": _patch(kind, given)}
    schema = asked.tools[name]
    known = schema.get("properties") or {}
    arguments = dict[str, Any]()
    for key, value in given.items():
        target = next((each for each in ARGUMENTS.get(key, (key,)) if each in known), key)
        if key in OPTIONAL and key not in known:
            continue
        arguments[target] = value
    for key in schema.get("required") or ():
        if key not in arguments:
            arguments[key] = _filler(key, known.get(key) or {})
    return name, arguments


def _filler(name: str, schema: Mapping[str, Any]) -> Any:
    kinds = {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}}
    if schema.get("enum"):
        return schema["enum"][0]
    return kinds.get(str(schema.get("type")), name)


def _as_command(kind: str, given: Mapping[str, Any]) -> str:
    path = given["path"]
    if kind == "read":
        return f"cat {path}"
    if kind == "edit":
        return f"sed -i 's/{given['old']}/{given['new']}/' {path}"
    return f"printf '%s' '{given['text']}' > {path}"


def _patch(kind: str, given: Mapping[str, Any]) -> str:
    path = given["path"]
    if kind == "write":
        lines = "".join(f"+{line}\n" for line in given["text"].splitlines())
        return f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch"
    change = f"@@\n-{given['old']}\n+{given['new']}\n"
    return f"*** Begin Patch\n*** Update File: {path}\n{change}*** End Patch"


# Protocols.


def _texts(content: object) -> str:
    if isinstance(content, str):
        return content
    rows = content if isinstance(content, list) else []
    return "\n".join(str(row.get("text") or "") for row in rows if isinstance(row, dict))


def read_chat(body: Mapping[str, Any]) -> Asked:
    """Read a request of the chat completions."""
    tools = {row["function"]["name"]: row["function"].get("parameters") or {}
             for row in body.get("tools") or ()}  # fmt: skip
    return Asked(tools, [(row["role"], _texts(row.get("content"))) for row in body["messages"]])


def read_messages(body: Mapping[str, Any]) -> Asked:
    """Read a request of Anthropic's messages."""
    tools = {row["name"]: row.get("input_schema") or {} for row in body.get("tools") or ()}
    rows = list[tuple[str, str]]()
    for message in body["messages"]:
        content = message["content"]
        for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            is_result = part.get("type") == "tool_result"
            text = _texts(part.get("content")) if is_result else str(part.get("text") or "")
            rows.append(("tool" if is_result else message["role"], text))
    return Asked(tools, rows)


def read_responses(body: Mapping[str, Any]) -> Asked:
    """Read a request of OpenAI's responses."""
    tools, free = dict[str, Mapping[str, Any]](), set[str]()
    for row in body.get("tools") or ():
        if "name" in row:
            tools[row["name"]] = row.get("parameters") or {}
            if row.get("type") == "custom":
                free.add(row["name"])
    rows = list[tuple[str, str]]()
    given = body["input"]
    for item in given if isinstance(given, list) else [{"role": "user", "content": given}]:
        if str(item.get("type", "")).endswith("_output"):
            rows.append(("tool", _texts(item.get("output"))))
        elif "role" in item:
            rows.append((item["role"], _texts(item.get("content"))))
    return Asked(tools, rows, frozenset(free))


_ids = itertools.count(1)


def write_chat(action: Action) -> Iterator[bytes]:
    """Write an answer of the chat completions, streamed."""
    name, given = action
    if name == "say":
        parts = [{"role": "assistant", "content": given["text"]}]
    else:
        call = {"index": 0, "id": f"call_{next(_ids)}", "type": "function",
                "function": {"name": name, "arguments": json.dumps(given)}}  # fmt: skip
        parts = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    end = "stop" if name == "say" else "tool_calls"
    base = {"id": f"c{next(_ids)}", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    for part in parts:
        yield _data({**base, "choices": [{"index": 0, "delta": part, "finish_reason": None}]})
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    last = {"index": 0, "delta": {}, "finish_reason": end}
    yield _data({**base, "choices": [last], "usage": usage})
    yield b"data: [DONE]\n\n"


def write_messages(action: Action) -> Iterator[bytes]:
    """Write an answer of Anthropic's messages, streamed."""
    name, given = action
    usage = {"input_tokens": 100, "output_tokens": 10}
    message: dict[str, Any] = {
        "id": f"msg_{next(_ids)}", "type": "message", "role": "assistant", "model": MODEL,
        "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    yield _event("message_start", message=message)
    if name == "say":
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": given["text"]}
    else:
        block = {"type": "tool_use", "id": f"toolu_{next(_ids)}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
    yield _event("content_block_start", index=0, content_block=block)
    yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    reason = "end_turn" if name == "say" else "tool_use"
    yield _event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
    yield _event("message_stop")


def write_responses(action: Action, free: frozenset[str]) -> Iterator[bytes]:
    """Write an answer of OpenAI's responses, streamed."""
    name, given = action
    number = next(_ids)
    response = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": MODEL,
                "status": "in_progress", "output": []}  # fmt: skip
    yield _event("response.created", response=response)
    if name == "say":
        text = {"type": "output_text", "text": given["text"], "annotations": []}
        item: dict[str, Any] = {"type": "message", "id": f"msg_{number}", "role": "assistant",
                                "status": "completed", "content": [text]}  # fmt: skip
        yield _event("response.output_item.added", output_index=0, item={**item, "content": []})
        yield _event("response.output_text.delta", item_id=item["id"], output_index=0,
                     content_index=0, delta=given["text"])  # fmt: skip
    elif name in free:
        item = {"type": "custom_tool_call", "id": f"ct_{number}", "call_id": f"call_{number}",
                "name": name, "input": given["input"], "status": "completed"}  # fmt: skip
    else:
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}",
                "name": name, "arguments": json.dumps(given), "status": "completed"}  # fmt: skip
    yield _event("response.output_item.done", output_index=0, item=item)
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110,
             "input_tokens_details": {"cached_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    yield _event("response.completed", response={**response, "status": "completed",
                                                 "output": [item], "usage": usage})  # fmt: skip


def _data(row: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(row)}\n\n".encode()


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\n".encode() + _data({"type": kind, **fields})


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "x",
                                               "type": "model", "display_name": MODEL,
                                               "created_at": "2026-01-01T00:00:00Z"}],
                    "has_more": False, "first_id": MODEL, "last_id": MODEL})  # fmt: skip

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"] or 0)))
        script, path = self.server.script, self.path.partition("?")[0]
        script.raw.append((path, body))
        if path.endswith("/count_tokens"):
            self._send({"input_tokens": 100})
            return
        if path.endswith("/chat/completions"):
            asked, write = read_chat(body), write_chat
        elif path.endswith("/messages"):
            asked, write = read_messages(body), write_messages
        elif path.endswith("/responses"):
            asked = read_responses(body)
            write = lambda action: write_responses(action, asked.free)  # noqa: E731
        else:
            self.send_error(404)
            return
        if asked.situation == ENDLESS and asked.tools:
            script.asked.append(asked)
            self.server.is_over.wait(60.0)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for part in write(script.next(asked)):
            self.wfile.write(part)
        self.close_connection = True

    def _send(self, row: Mapping[str, Any]) -> None:
        data = json.dumps(row).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script, self.is_over = script, threading.Event()

    def handle_error(self, *_: object) -> None:
        """A client that leaves is no error."""


@contextmanager
def serving(script: Script) -> Iterator[str]:
    """Serve a script, and yield the address."""
    with _Server(script) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.is_over.set()
            server.shutdown()
