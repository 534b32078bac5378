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
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lcursor.agent.records import Answer, OnText
from lcursor.errors import Cancelled, LcursorError, ServerGarbled, ServerUnreachable
from lcursor.llm import tokens
from lcursor.llm.client import ChatClient, Stream
from lcursor.llm.pool import Connection, ModelPool
from lcursor.llm.records import (
    Finished,
    Message,
    Prompt,
    Role,
    SamplingParams,
    Text,
    TokenPrompt,
    Usage,
    add_usage,
)
from lcursor.llm.slot_states import SLOT, file_name

UNKNOWN_CONTEXT: Final = 16_384
"""Context of a server that does not report it."""
CALL_START, CALL_END = "<tool_call>", "</tool_call>"
"""Around a call in the native form; a grammar that is not forced applies from its start on."""
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
        self.usage = Usage()

    @property
    def context_tokens(self) -> int:
        """The context of the model."""
        return self._known().context_tokens or UNKNOWN_CONTEXT

    def begin(self, system: str, task: str) -> None:
        """Start, or start again after a summary."""
        self._messages = [Message("system", system), Message("user", task)]

    def append(self, text: str) -> None:
        """Add a message."""
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
    ) -> Answer:
        """Let the model answer; see `records.Model`."""
        connection = self._reach()
        state_name = file_name(self._key, 0, connection.served.model)
        self._pool.slot_states.restore(connection, [state_name], self._server)
        prompt = self._prompt(connection)
        slot = SLOT if connection.served.can_save_slots else -1
        sampling = SamplingParams(
            max_tokens,
            temperature,
            slot,
            grammar=grammar if is_forced or isinstance(prompt, TokenPrompt) else "",
            trigger="" if is_forced else CALL_START,
            preserved=(CALL_START, CALL_END),
            has_counts=True,
        )
        stream = self._stream = connection.client.stream(prompt, sampling)
        if self._closed.is_set():
            stream.close()
        parts, end = list[Text](), ""
        try:
            for event in stream:
                if isinstance(event, Finished):
                    end = event.reason
                elif isinstance(event, Text):
                    parts.append(event)
                    if event.text and not on_text(event.text):
                        break
        except (ServerUnreachable, ServerGarbled):
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
        self._add_answer(connection, parts, text)
        return Answer(
            text,
            "length" if end == "length" else "stop" if end else "stopped",
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.answer_tokens,
        )

    def add_usage(self, usage: Usage) -> None:
        """Count tokens, also those of other requests of the run."""
        self.usage = add_usage(self.usage, usage)

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
        return sum(self.count(each.text) + tokens.MESSAGE_TOKENS for each in self._messages)

    def state(self) -> Mapping[str, Any]:
        """Return the conversation as JSON."""
        messages = [[each.role, each.text] for each in self._messages]
        return {"messages": messages, "server": self._server}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue a conversation, also one of another model."""
        self._messages = [Message(role, text) for role, text in state["messages"]]
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
            if text or not is_answer:
                found.append(Message(each.role, text))
        return found

    def _add_answer(self, connection: Connection, parts: Sequence[Text], text: str) -> None:
        self._messages.append(Message("assistant", text))


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

    def _add_answer(self, connection: Connection, parts: Sequence[Text], text: str) -> None:
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
        super()._add_answer(connection, parts, text)


def open_model(pool: ModelPool, name: str, key: str, closed: threading.Event) -> TextModel:
    """Connect to a model, and return a conversation in the best form for its server.

    Args:
        name: a name of `pool.names()`.
        key: of the run.
        closed: set to stop waiting for the server.

    Raises:
        Cancelled: `closed` was set.
        LcursorError: there is no such model, or no server for it.
    """
    connection = pool.connect(name, closed)
    frame = None
    if connection.served.kind == "llama.cpp":
        with contextlib.suppress(LcursorError):
            frame = read_frame(connection.client)
    if frame is None:
        return TextModel(pool, name, key)
    return TokenModel(pool, name, key, frame)
