"""Calls of tools of MCP servers in a chat: what the model reads about them, and what it calls.

An answer that ends in a block `mcp_find` or `mcp_call` is a call. It waits for the user's approval;
then its result is the next message, which the model answers. Searches need no approval, nor does a
tool that the user has allowed for this chat, as long as it does not change.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lcursor.changes import fences
from lcursor.chat import prompt
from lcursor.chat.conversation import Conversation, StoredMessage
from lcursor.config import SERVER_SEPARATOR
from lcursor.context import layout
from lcursor.context.items import Item
from lcursor.context.servers import ServersOf, ServerTools
from lcursor.errors import ChatMissing, McpFailed
from lcursor.process.run import Cancel
from lcursor.project.redaction import encodable
from lcursor.protocol.chat import ChatCallChoice, ChatCallState
from lcursor.storage import json_text
from lcursor.workspace.approval import Answer, Answers
from lcursor.workspace.outputs import printable

FIND: Final = "mcp_find"
CALL: Final = "mcp_call"
KIND: Final = "tools"
"""Kind of the item that tells the model how to call tools."""
MAX_UNASKED: Final = 8
"""How many calls in a row run without a question to the user."""
MAX_RESULT_TOKENS: Final = 4000
CONTEXT_SHARE: Final = 8
"""The limit of a result, as a divisor of the context."""
TOKEN_CHARS: Final = 3
STOPPED: Final = "The call was stopped, so its outcome is unknown."

_HOW: Final = """\
The user has set up tools of other programs: {names}. If you need one to answer, search for it \
by words, with a block like this, and end your answer there:

```mcp_find
create an issue
```

The next message names the tools that fit, with their arguments. Call one with a block like this, \
which begins with its name and has its arguments as JSON, and end your answer there:

```mcp_call tracker__create_issue
{{"title": "Dates are wrong"}}
```

The user may approve or reject it; the next message has its result. Never invent a result. \
If you need no tool, answer as usual."""


@dataclass(frozen=True, slots=True)
class ServerCall:
    """A call in an answer."""

    tool: str
    """`SERVER__TOOL`; "" for a search."""
    text: str
    """The arguments as JSON, or the words of a search."""
    end: int
    """Characters of the answer up to the end of the block."""

    @property
    def line(self) -> str:
        """The call on one line, the same for equal calls."""
        return " ".join([self.tool or FIND, *self.text.split()])

    def arguments(self) -> dict[str, Any] | None:
        """Return the arguments; None if they are no JSON object."""
        try:
            found = json_text.parse(self.text.strip() or "{}")
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A call with the user's decision."""

    call: ServerCall
    choice: ChatCallChoice
    reason: str = ""
    """Why the user rejected it, for the model."""
    is_changed: bool = False
    """Whether the user has changed it."""


def find_call(answer: str) -> ServerCall | None:
    """Return the first complete call of an answer."""
    at, fence, body, info = 0, None, list[str](), ""
    for line in answer.split("\n"):
        at += len(line) + 1
        text = line.removesuffix("\r")
        if fence is None:
            fence = fences.opening(text)
            info, body = (fence.info if fence else ""), []
        elif fence.is_end(text):
            action, _, tool = info.partition(" ")
            is_whole = bool(tool.strip()) if action == CALL else action == FIND and any(body)
            if is_whole:
                return ServerCall(
                    tool.strip() if action == CALL else "",
                    "\n".join(body),
                    min(at - 1, len(answer)),
                )
            fence = None
        else:
            body.append(fence.unindent(text))
    return None


def is_offered(chat: Conversation, last: int) -> bool:
    """Return whether the prompt up to a message tells how to call tools."""
    branch = chat.branch(last)
    read = prompt.unsummarized(branch, chat.active_summary(branch))
    return any(item.kind == KIND and not item.is_left_out for each in read for item in each.items)


def offer(tools: ServerTools) -> Item | None:
    """Return what tells a model about tools; None if the user has allowed no server."""
    names = ", ".join(tools.names())
    return Item(KIND, KIND, names, text=_HOW.format(names=names)) if names else None


class ServerCalls:
    """The calls of all chats, and the tools that the user has allowed in each. Thread: any."""

    def __init__(self, servers_of: ServersOf) -> None:
        self._servers_of = servers_of
        self._lock = threading.Lock()
        self._answers: dict[str, Answers] = {}

    def state(self, chat: Conversation, number: int) -> ChatCallState:
        """Return what becomes of the call with which an answer ends; "" if it has none."""
        call, tools = self._call_of(chat, number), self._tools_of(chat)
        if call is None or tools is None:
            return ""
        calls = _calls_before(chat.branch(number))
        if call.line in calls or len(calls) >= MAX_UNASKED:
            return "asks"
        content = tools.content(call.tool)
        if not content or call.arguments() is None:
            return "runs"  # a search, or an error that the model can correct
        return "runs" if self._is_allowed(chat, call.tool, content) else "asks"

    def request(
        self, chat: Conversation, number: int, text: str, choice: ChatCallChoice, reason: str
    ) -> CallRequest:
        """Return the call of an answer, as the user decided.

        Args:
            text: the block of the call as it was approved.

        Raises:
            ChatMissing: there is no such call, or it was not approved.
        """
        original, call = self._call_of(chat, number), find_call(text)
        if original is None or call is None:
            raise ChatMissing("there is no call of a tool to run", "Open the chat again")
        is_changed = (original.tool, original.text) != (call.tool, call.text)
        if choice == "" and (is_changed or self.state(chat, number) != "runs"):
            raise ChatMissing("this call needs your approval", "Open the chat again")
        return CallRequest(call, choice, " ".join(reason.split()), is_changed)

    def carry_out(
        self, request: CallRequest, chat: Conversation, context_tokens: int, cancel: Cancel
    ) -> str:
        """Return the message with the result of a call, or why there is none. Blocks.

        Args:
            context_tokens: of the model; 0 if unknown.

        Raises:
            Cancelled: `cancel` returned true.
        """
        call = request.call
        if request.choice == "reject":
            return f"The user rejected this call{request.reason and ': '}{request.reason}."
        most = MAX_RESULT_TOKENS
        if context_tokens:
            most = min(most, context_tokens // CONTEXT_SHARE)
        tools = self._tools_of(chat)
        if tools is None:
            return "There are no servers any more."
        is_allowed = self._is_allowed(chat, call.tool, tools.content(call.tool))
        if call.tool and call.arguments() is None:
            found = f"{call.tool} was not called: its arguments are not a JSON object."
        elif call.tool and (request.choice or is_allowed):
            found = _call(tools, call, most * TOKEN_CHARS, cancel)
        else:
            found = _find(tools, call, most * TOKEN_CHARS, cancel)
        if request.choice == "chat":
            with self._lock:
                answers = self._answers.setdefault(chat.key, Answers())
                answers.remember(call.tool, Answer(True, tools.content(call.tool)))
        changed = ""
        if request.is_changed:
            changed = f"The user has changed the call:\n{layout.fenced(call.text, 'json')}\n\n"
        return encodable(f"{changed}{found}")

    def _is_allowed(self, chat: Conversation, tool: str, content: str) -> bool:
        """Return whether a tool runs without approval in a chat."""
        with self._lock:
            return self._answers.get(chat.key, Answers()).state(tool, content) == "approved"

    def _call_of(self, chat: Conversation, number: int) -> ServerCall | None:
        message = chat.messages.get(number)
        if message is None or message.role != "assistant" or message.end not in ("stop", "length"):
            return None
        return find_call(message.text) if is_offered(chat, number) else None

    def _tools_of(self, chat: Conversation) -> ServerTools | None:
        servers = self._servers_of(Path(chat.root))
        return servers.tools if servers else None


def _call(tools: ServerTools, call: ServerCall, most_chars: int, cancel: Cancel) -> str:
    try:
        text, has_failed = tools.call(call.tool, call.arguments() or {}, cancel)
    except McpFailed as error:
        return f"{call.tool} was not called: {error}"
    what = "Error of" if has_failed else "Result of"
    text = _cut(printable(text), most_chars) or "nothing"
    return f"{what} {call.tool}:\n{layout.fenced(text)}"


def _find(tools: ServerTools, call: ServerCall, most_chars: int, cancel: Cancel) -> str:
    """Search for tools: by words, or for one that was called but does not exist."""
    words = " ".join(call.text.split())
    if call.tool:
        words = call.tool.partition(SERVER_SEPARATOR)[2].replace("_", " ").strip()
    found, _ = tools.find(words or call.tool, cancel)
    is_missing = call.tool and not tools.content(call.tool)
    missing = f"There is no tool {call.tool}. " if is_missing else ""
    return f"{missing}Tools for “{words}”:\n{layout.fenced(_cut(printable(found), most_chars))}"


def _calls_before(branch: Sequence[StoredMessage]) -> list[str]:
    """Return the calls since the user's last message."""
    calls = list[str]()
    for message in reversed(branch):
        if message.role == "user":
            if not message.call:
                break
            calls.append(message.call)
    return calls


def _cut(text: str, size: int) -> str:
    if len(text) <= size:
        return text
    return f"{text[:size]}\n… {len(text) - size:,} more characters"
