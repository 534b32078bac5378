"""The conversation of an agent with a model: as tokens on a llama-server, else as messages.

On a llama-server with a ChatML template the conversation is a list of token ids. The tokens of an
answer are appended as the server sent them, so that each prompt begins with the last one and its
answer, and only new tokens are evaluated. Contents are tokenized as plain text: a file cannot
contain the end of a message.

Elsewhere the conversation is a list of messages with the text of each answer as it came, and
markers of special tokens in contents are broken.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final

from lcursor.agent.records import Answer, OnText, OnWait
from lcursor.errors import Cancelled, LcursorError, ServerDenied, ServerGarbled, ServerUnreachable
from lcursor.llm import tokens, tool_calls
from lcursor.llm.client import ChatClient, Stream
from lcursor.llm.pool import Connection, ModelPool
from lcursor.llm.records import (
    CallText,
    Finished,
    Message,
    Prompt,
    Queued,
    Returned,
    Role,
    SamplingParams,
    Text,
    TokenPrompt,
    ToolRequest,
    ToolSpec,
    Usage,
    add_usage,
)
from lcursor.llm.slot_states import file_name
from lcursor.llm.tool_calls import CALL_END, CALL_START

UNKNOWN_CONTEXT: Final = 16_384
"""Context of a server that does not report it."""
NO_RESULT: Final = "Not run."
_BREAK: Final = "\u200b"
_MARKER: Final = re.compile(
    r"<(?=[|｜][^\s<>]{1,40}[|｜]>|/?s>|(?:start|end)_of_turn>|/?(?:bos|eos|pad|unk)>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
)
"""The start of a marker of a special token: `<|im_end|>`, `</s>`, `[INST]`."""
_PARTS: Final = ("1SYSTEM1", "2FIRST2", "3ANSWER3", "4NEXT4")


@dataclass(frozen=True, slots=True)
class Frame:
    """The tokens around messages, by their position."""

    system: tuple[int, ...]
    """Before the system text."""
    first: tuple[int, ...]
    """Between the system text and the first message of the user."""
    user: tuple[int, ...]
    """Before each other message of the user, with the end of the message before."""
    answer: tuple[int, ...]
    """Before an answer, with the end of the message before."""


def read_frame(client: ChatClient) -> Frame | None:
    """Return the frame of a llama-server's chat template; None if it is not of ChatML.

    Raises:
        ServerError: the server failed.
    """
    roles: tuple[Role, ...] = ("system", "user", "assistant", "user")
    messages = [Message(role, text) for role, text in zip(roles, _PARTS, strict=True)]
    text = client.apply_template(messages)
    pattern = "(.*?)" + "(.*?)".join(map(re.escape, _PARTS)) + "(.*)"
    match = re.fullmatch(pattern, text, re.DOTALL)
    if match is None:
        return None
    system, first, answer, user, last = match.groups()
    starts, ends = (system, first, user, last), (first, answer, user, last)
    has_marks = all("<|im_start|>" in each for each in starts)
    if not has_marks or not all("<|im_end|>" in each for each in ends):
        return None
    ids = [tuple(client.tokenize(each, is_template=True)) for each in starts]
    return Frame(*ids) if all(ids) else None


def without_markers(text: str) -> str:
    """Break the markers of special tokens, which a server would read as such."""
    return _MARKER.sub(lambda match: match[0] + _BREAK, text)


class TextModel:
    """A conversation as messages.

    Args:
        name: of the model in the pool.
        key: of the run, for the saved KV cache.
    """

    def __init__(self, pool: ModelPool, name: str, key: str) -> None:
        self._pool, self._name, self._key = pool, name, key
        self._server = ""  # of the last answer
        self._messages: list[Message] = []
        self._closed = threading.Event()
        self._stream: Stream | None = None
        self._connection: Connection | None = None
        self.tools: tuple[ToolSpec, ...] = ()
        self.usage = Usage()

    @property
    def context_tokens(self) -> int:
        """The context of the model."""
        return self._known().context_tokens or UNKNOWN_CONTEXT

    def begin(self, system: str, task: str) -> None:
        """Start, or start again after a summary."""
        self._messages = [Message("system", system), Message("user", task)]

    def append(self, text: str, results: Sequence[str] = ()) -> None:
        """Add a message; see `records.Model`."""
        self._messages.append(Message("user", text))

    def add_answer(self, text: str) -> None:
        """Add an answer that the model did not write itself."""
        self._messages.append(Message("assistant", text))

    def ask(
        self,
        on_text: OnText,
        *,
        max_tokens: int,
        temperature: float = 0.0,
        grammar: str = "",
        is_forced: bool = False,
        on_wait: OnWait = lambda _: None,
    ) -> Answer:
        """Let the model answer; see `records.Model`."""
        connection = self._reach()
        state_name = file_name(self._key, 0, connection.served.model)
        self._pool.slot_states.restore(connection, [state_name], self._server)
        prompt = self._prompt(connection)
        sampling = SamplingParams(
            max_tokens,
            temperature,
            grammar=grammar if is_forced or isinstance(prompt, TokenPrompt) else "",
            # A grammar that is not forced applies from the start of a call on.
            trigger="" if is_forced else CALL_START,
            preserved=(CALL_START, CALL_END),
            has_counts=True,
            tools=self.tools,
            rank=self.rank,
        )
        stream = self._stream = connection.client.stream(prompt, sampling)
        if self._closed.is_set():
            stream.close()
        parts, calls, end = list[Text](), list[ToolRequest](), ""
        returned: Mapping[str, Any] = {}
        is_calling = False
        try:
            for event in stream:
                if isinstance(event, Finished):
                    end = event.reason
                elif isinstance(event, Queued):
                    on_wait(event.is_waiting)
                elif isinstance(event, ToolRequest):
                    calls.append(event)
                elif isinstance(event, Returned):
                    returned = event.fields
                elif isinstance(event, (Text, CallText)):
                    shown = event.text
                    if isinstance(event, Text):
                        parts.append(event)
                    elif not is_calling:  # so that the editor sees where the calls begin
                        shown, is_calling = f"\n\n{CALL_START}\n{shown}", True
                    if shown and not on_text(shown):
                        break
        except (ServerUnreachable, ServerGarbled, ServerDenied):
            self._pool.invalidate(connection)
            raise
        finally:
            stream.close()
        if self._closed.is_set():
            raise Cancelled("the run was stopped")
        usage = stream.usage()
        self.add_usage(usage)
        self._server = connection.server
        read_tokens = usage.prompt_tokens + usage.answer_tokens
        self._pool.slot_states.schedule_save(connection, state_name, read_tokens)
        text = "".join(each.text for each in parts)
        self._add_answer(connection, parts, Message("assistant", text, tuple(calls), "", returned))
        return Answer(
            text,
            "length" if end == "length" else "stop" if end else "stopped",
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.answer_tokens,
            tuple(calls),
        )

    def add_usage(self, usage: Usage) -> None:
        """Count tokens, also those of other requests of the run."""
        self.usage = add_usage(self.usage, usage)

    @property
    def rank(self) -> int:
        """The rank of its requests: the runs that have the fewest tokens come first."""
        return 1 + self.usage.answer_tokens

    def drop_answer(self) -> None:
        """Remove the last answer.

        Raises:
            ValueError: the last message is no answer.
        """
        if not self._messages or self._messages[-1].role != "assistant":
            raise ValueError("the last message is no answer")
        self._messages.pop()

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, estimated if the server does not count."""
        return self._known().client.count(text)[0]

    @property
    def used_tokens(self) -> int:
        """The length of the conversation."""
        texts = ("".join([each.text, *_arguments(each)]) for each in self._messages)
        return sum(self.count(text) + tokens.MESSAGE_TOKENS for text in texts)

    def state(self) -> Mapping[str, Any]:
        """Return the conversation as JSON."""
        return {"messages": [*map(_stored, self._messages)], "server": self._server}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue a conversation, also one of another model."""
        self._restore(state)
        if any(each.calls for each in self._messages):  # of a server that has tools
            self._messages = tool_calls.as_text(self._messages)

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._messages = [_message(*row) for row in state["messages"]]
        self._server = state["server"]

    def close(self) -> None:
        """Stop the current answer, and all later ones. Thread: any."""
        self._closed.set()
        if self._stream is not None:
            self._stream.close()

    def _reach(self) -> Connection:
        """Return the connection, which changes when the local server was started again."""
        if self._closed.is_set():
            raise Cancelled("the run was stopped")
        self._connection = self._pool.connect(self._name, self._closed)
        return self._connection

    def _known(self) -> Connection:
        """Return the connection of the last request."""
        return self._connection or self._reach()

    def _prompt(self, connection: Connection) -> Prompt:
        """Return the prompt; consecutive messages of the user are one."""
        found: list[Message] = []
        for each in self._messages:
            is_answer = each.role == "assistant"
            text = each.text if is_answer else without_markers(each.text)
            if found and found[-1].role == "user" == each.role:
                text = f"{found.pop().text}\n\n{text}"
            if text or each.calls or not is_answer:
                found.append(replace(each, text=text))
        return found

    def _add_answer(self, connection: Connection, parts: Sequence[Text], answer: Message) -> None:
        self._messages.append(answer)


class TokenModel(TextModel):
    """A conversation as token ids on a llama-server.

    Messages are tokenized once, with the next request that needs their tokens.
    """

    def __init__(self, pool: ModelPool, name: str, key: str, frame: Frame) -> None:
        super().__init__(pool, name, key)
        self._frame = frame
        self._ids: list[int] = []
        self._ends: list[int] = []  # length of `_ids` after each message that is in it

    @property
    def ids(self) -> Sequence[int]:
        """The tokens of the messages that the server has read or written."""
        return tuple(self._ids)

    def begin(self, system: str, task: str) -> None:
        """Start, or start again after a summary."""
        super().begin(system, task)
        self._ids, self._ends = [], []

    def drop_answer(self) -> None:
        """Remove the last answer; see `TextModel`."""
        super().drop_answer()
        del self._ends[len(self._messages) :]
        del self._ids[self._ends[-1] if self._ends else 0 :]

    @property
    def used_tokens(self) -> int:
        """The length of the conversation, estimated for messages while the server is away."""
        with contextlib.suppress(LcursorError):
            self._tokenize(self._known().client)
        return len(self._ids) + tokens.estimate(self._messages[len(self._ends) :])

    def state(self) -> Mapping[str, Any]:
        """Return the conversation as JSON."""
        more = {"ids": list(self._ids), "ends": list(self._ends), "model": self._model_name()}
        return {**super().state(), **more}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue a conversation; one of another model is tokenized again."""
        super().restore(state)
        self._ids, self._ends = [], []
        if state.get("model") == self._model_name():
            self._ids, self._ends = list(state["ids"]), list(state["ends"])

    def _model_name(self) -> str:
        return self._known().served.model

    def _prompt(self, connection: Connection) -> Prompt:
        self._tokenize(connection.client)
        return TokenPrompt((*self._ids, *self._frame.answer))

    def _tokenize(self, client: ChatClient) -> None:
        """Append the tokens of new messages.

        Raises:
            ServerError: the server failed.
        """
        for message in self._messages[len(self._ends) :]:
            content = client.tokenize(message.text) if message.text else []
            frame = self._frame.answer if message.role == "assistant" else self._frame.user
            if len(self._ends) < 2:
                frame = (self._frame.system, self._frame.first)[len(self._ends)]
            self._ids += [*frame, *content]
            self._ends.append(len(self._ids))

    def _add_answer(self, connection: Connection, parts: Sequence[Text], answer: Message) -> None:
        ids: list[int] = []
        for each in parts:
            if each.unsent:
                with contextlib.suppress(LcursorError):
                    found = connection.client.tokenize(each.text)
                    ids += found[: -len(each.ids)]
            ids += each.ids
        if parts and parts[-1].ids and not parts[-1].text:
            ids.pop()  # the end of the message, which is a part of the next frame
        self._ids += [*self._frame.answer, *ids]
        self._ends.append(len(self._ids))
        super()._add_answer(connection, parts, answer)


class ToolModel(TextModel):
    """A conversation with a server that has tools: calls and results have their own place.

    Attributes:
        tools: those in each request.
    """

    @property
    def used_tokens(self) -> int:
        """The length of the conversation, with the tools."""
        return super().used_tokens + self.count(json.dumps(tool_calls.listed(self.tools)))

    def append(self, text: str, results: Sequence[str] = ()) -> None:
        """Add a message, as the results of calls if the last answer has some."""
        calls = self._messages[-1].calls if self._messages else ()
        if not calls:
            super().append(text)
            return
        for call, result in zip_longest(calls, results or [text]):
            if call is not None:
                self._messages.append(Message("tool", result or NO_RESULT, call_id=call.id))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue a conversation, also one of another model."""
        self._restore(state)


def _arguments(message: Message) -> Sequence[str]:
    return [call.arguments for call in message.calls]


def _stored(message: Message) -> list[Any]:
    """Return a message as JSON; calls and ids only where there are some."""
    row: list[Any] = [message.role, message.text]
    if message.calls or message.call_id:
        calls = [[each.id, each.name, each.arguments, each.extra] for each in message.calls]
        row += [calls, message.call_id, message.extra]
    return row


def _message(role: Role, text: str, calls: Sequence[Any] = (), *more: Any) -> Message:
    return Message(role, text, tuple(ToolRequest(*each) for each in calls), *more)


def open_model(
    pool: ModelPool, name: str, key: str, closed: threading.Event, *, calls_tools: bool = False
) -> TextModel:
    """Connect to a model, and return a conversation in the best form for its server.

    Args:
        name: a name of `pool.names()`.
        key: of the run.
        closed: set to stop waiting for the server.
        calls_tools: whether the model calls tools well, if its server has them.

    Raises:
        Cancelled: `closed` was set.
        LcursorError: there is no such model, or no server for it.
    """
    connection = pool.connect(name, closed)
    frame = None
    if connection.served.kind == "llama.cpp":
        with contextlib.suppress(LcursorError):
            frame = read_frame(connection.client)
    if frame is not None:
        return TokenModel(pool, name, key, frame)
    has_tools = calls_tools and connection.served.has_tools
    return ToolModel(pool, name, key) if has_tools else TextModel(pool, name, key)
