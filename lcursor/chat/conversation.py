"""A chat as data: a tree of messages, the branch that is shown, and summaries.

Only `Conversation.apply` changes it. An operation is a plain dictionary, which `chat_file.py`
stores. No operation deletes a message. A summary replaces all messages up to one in the prompt; it
is not part of the tree, so it can be undone. Pure; not locked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from lcursor.context.items import Item
from lcursor.errors import ChatFailed
from lcursor.protocol.chat import ChatAttachment, ChatEnd
from lcursor.storage import stored

Op = dict[str, Any]

VERSION = 1
"""Version of the operations; files with a higher one are not opened."""
TITLE_CHARS = 48
PREVIEW_CHARS = 120


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens and times of an answer, as in `ChatDone`."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    prompt_ms: float = 0.0
    answer_ms: float = 0.0
    first_ms: float = 0.0
    context_tokens: int = 0
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message of the tree."""

    number: int
    parent: int
    """Number of the previous message; 0 for the first."""
    role: Literal["user", "assistant"]
    text: str
    sent: str = ""
    """The text with its context, as sent to the model; "" if equal to `text`."""
    reasoning: str = ""
    end: ChatEnd | Literal[""] = ""
    """How an answer ended; "" while it is written, or if the process was killed."""
    model: str = ""
    items: tuple[Item, ...] = ()
    attachments: tuple[ChatAttachment, ...] = ()
    """The user's attachments with their text, to attach again if the question is edited."""
    cost: Cost = field(default_factory=Cost)
    server: str = ""
    """Identifies the server process that wrote it."""
    why: str = ""
    """Why an answer broke off, for the user."""
    is_too_large: bool = False
    """Whether there is no answer because the prompt is longer than the model's context."""
    call: str = ""
    """The call whose result takes the place of a question; "" for a question."""

    @property
    def is_open(self) -> bool:
        """Whether it is an answer without a recorded end."""
        return self.role == "assistant" and not self.end

    @property
    def is_partial(self) -> bool:
        """Whether it is an incomplete answer."""
        return self.role == "assistant" and self.end not in ("stop", "length")


@dataclass(frozen=True, slots=True)
class Summary:
    """A text that replaces a message and all earlier ones in the prompt."""

    number: int
    last: int
    """Number of the last message that it replaces."""
    text: str
    tokens_before: int = 0
    tokens_after: int = 0
    is_undone: bool = False


@dataclass(frozen=True, slots=True)
class AcceptedEdit:
    """An accepted edit that came from the chat."""

    after: int
    """Number of the preceding message."""
    name: str
    first_row: int
    rows: int
    what: str


@dataclass(frozen=True, slots=True)
class _Whole:
    """A chat in a file of lcursor 0.1."""

    key: str
    root: str
    title: str
    model: str
    said: tuple[StoredMessage, ...]
    summaries: tuple[Summary, ...]
    shown: tuple[tuple[int, int], ...]
    edits: tuple[AcceptedEdit, ...]


@dataclass(slots=True)
class Conversation:
    """The state of a chat; change it with `apply` only."""

    key: str = ""
    root: str = ""
    title: str = ""
    """The user's title; "" to derive one from the first question."""
    model: str = ""
    """"" for the configured one."""
    messages: dict[int, StoredMessage] = field(default_factory=dict)
    summaries: dict[int, Summary] = field(default_factory=dict)
    shown: dict[int, int] = field(default_factory=dict)
    """Number of a message -> number of its shown reply."""
    edits: list[AcceptedEdit] = field(default_factory=list)

    @property
    def next_number(self) -> int:
        """The number of the next message or summary."""
        return max((0, *self.messages, *self.summaries)) + 1

    @property
    def last(self) -> int:
        """The number of the last shown message; 0 for none."""
        number = 0
        while number in self.shown:
            number = self.shown[number]
        return number

    def copy(self) -> Conversation:
        """Return an independent copy."""
        return replace(
            self,
            messages=dict(self.messages),
            summaries=dict(self.summaries),
            shown=dict(self.shown),
            edits=list(self.edits),
        )

    def branch(self, last: int | None = None) -> list[StoredMessage]:
        """Return the messages up to one, oldest first; by default up to the last shown one."""
        number, messages = self.last if last is None else self.resolve(last), list[StoredMessage]()
        while number:
            messages.append(self.messages[number])
            number = messages[-1].parent
        return messages[::-1]

    def resolve(self, number: int) -> int:
        """Return the number of a message, or of the last message of a summary; else 0."""
        summary = self.summaries.get(number)
        return summary.last if summary else number if number in self.messages else 0

    def question_of(self, number: int) -> int:
        """Return a message's question, which may be itself, by default the last one; else 0."""
        branch = self.branch(self.resolve(number) or None)
        return next((each.number for each in reversed(branch) if each.role == "user"), 0)

    def siblings(self, number: int) -> list[int]:
        """Return the messages with the same parent, this one included, oldest first."""
        parent = self.messages[number].parent
        return [each.number for each in self.messages.values() if each.parent == parent]

    def active_summary(self, branch: Sequence[StoredMessage]) -> Summary | None:
        """Return the summary that replaces the most messages of a branch."""
        position = {each.number: at for at, each in enumerate(branch)}
        found = [
            each for each in self.summaries.values() if not each.is_undone and each.last in position
        ]
        return max(found, key=lambda each: (position[each.last], each.number), default=None)

    def sibling(self, number: int, step: int) -> int:
        """Return the sibling `step` branches further, or the outermost one."""
        rows = self.siblings(number)
        return rows[min(max(rows.index(number) + step, 0), len(rows) - 1)]

    def display_title(self) -> str:
        """Return the user's title, else the start of the first question."""
        return self.title or title_of(self.first_question())

    def first_question(self) -> str:
        """Return the first question of the branch that is shown."""
        return next((each.text for each in self.branch() if each.role == "user"), "")

    def apply(self, op: Op) -> None:
        """Change the state.

        Raises:
            KeyError: it names a message that does not exist.
            ChatFailed: a newer lcursor wrote it.
            TypeError, ValueError: it is impossible here, or a field is missing or invalid.
        """
        if not all(stored.is_number(op.get(name, 0)) for name in ("number", "parent", "last")):
            raise TypeError("a number is invalid")
        match op:
            case {"op": "chat", "key": str(key), "root": str(root)}:
                if op.get("version", 0) > VERSION:
                    raise ChatFailed("a newer lcursor wrote this chat", "Update lcursor")
                self.key, self.root = key, root
            case {"op": "say", "number": int(number), "parent": int(parent), "text": str(text)}:
                call, attachments = _text(op, "call"), _attachments(op.get("attachments", ()))
                message = StoredMessage(number, parent, "user", text, call=call)
                self._add(replace(message, attachments=attachments))
            case {"op": "attach", "number": int(number), "sent": str(sent), "items": [*rows]}:
                items = tuple(stored.load(Item, row) for row in rows)
                attachments = _attachments(op.get("attachments", ()))
                self._update(number, sent=sent, items=items, attachments=attachments)
            case {"op": "answer", "number": int(number), "parent": int(parent)}:
                model = _text(op, "model")
                self._add(StoredMessage(number, parent, "assistant", "", model=model))
            case {"op": "more", "number": int(number), "text": str(text)}:
                old = self.messages[number]
                if old.role != "assistant":
                    raise ValueError("only an answer can be continued")
                reasoning = old.reasoning + _text(op, "reasoning")
                self._update(number, text=old.text + text, reasoning=reasoning)
            case {"op": "end", "number": int(number), "reason": str(reason)}:
                cost, server = stored.load(Cost, op.get("cost", {})), _text(op, "server")
                why, is_too_large = _text(op, "why"), op.get("is_too_large") is True
                end = {"end": reason, "why": why, "is_too_large": is_too_large}
                self._update(number, cost=cost, server=server, **end)
            case {"op": "show", "number": int(number)}:
                self._select(number)
            case {"op": "sum", "number": int(number), "last": int(last), "text": str()}:
                if number in self.messages or number in self.summaries or last not in self.messages:
                    raise ValueError(f"no summary can have number {number} here")
                self.summaries[number] = stored.load(Summary, op)
            case {"op": "expand", "number": int(number)}:
                self.summaries[number] = replace(self.summaries[number], is_undone=True)
            case {"op": "title", "title": str(title)}:
                self.title = title
            case {"op": "model", "model": str(model)}:
                self.model = model
            case {"op": "edit"}:
                self.edits.append(stored.load(AcceptedEdit, op))
            case {"op": "whole", "chat": dict(table)}:
                self._load(table)
            case _:
                raise ValueError(f"no such operation: {op.get('op')}")

    def restore(self, op: Op) -> None:
        """Apply an operation of a file; an answer whose first line was damaged gets a new one.

        Raises: see `apply`.
        """
        number = op.get("number")
        if op.get("op") == "more" and stored.is_number(number) and number not in self.messages:
            last = max(self.messages, default=0)
            self.apply({"op": "answer", "number": number, "parent": last})
        self.apply(op)

    def _load(self, table: Mapping[str, Any]) -> None:
        """Load the state of a chat that lcursor 0.1 stored as a snapshot."""
        whole = stored.load(_Whole, table)
        self.key, self.root = whole.key, whole.root
        self.title, self.model = whole.title, whole.model
        self.messages = {each.number: each for each in whole.said}
        self.summaries = {each.number: each for each in whole.summaries}
        self.shown, self.edits = dict(whole.shown), list(whole.edits)

    def _add(self, new: StoredMessage) -> None:
        if new.number in self.messages or new.number in self.summaries or new.number < 1:
            raise ValueError(f"message {new.number} exists already")
        if new.parent and new.parent not in self.messages:  # its line is damaged
            new = replace(new, parent=max(self.messages, default=0))
        self.messages[new.number] = new
        self._select(new.number)

    def _update(self, number: int, **values: Any) -> None:
        self.messages[number] = replace(self.messages[number], **values)

    def _select(self, number: int) -> None:
        """Show a message and its ancestors."""
        while number:
            parent = self.messages[number].parent
            self.shown[parent] = number
            number = parent


def amend_ops(chat: Conversation, number: int, text: str) -> list[Op]:
    """Return the operations that add a new branch with a changed answer.

    Raises:
        KeyError: there is no such message.
        ValueError: it is a question.
    """
    old, new = chat.messages[number], chat.next_number
    if old.role != "assistant":
        raise ValueError("only an answer can be amended")
    return [
        {"op": "answer", "number": new, "parent": old.parent, "model": ""},
        {"op": "more", "number": new, "text": text, "reasoning": old.reasoning},
        {"op": "end", "number": new, "reason": "stop"},
    ]


def title_of(question: str) -> str:
    """Return the start of a question as a title."""
    lines = (line.strip() for line in _prose(question))
    words = " ".join(next((line for line in lines if line), "").split())
    if len(words) <= TITLE_CHARS:
        return words
    cut = words[: TITLE_CHARS + 1].rpartition(" ")[0]
    return f"{cut if len(cut) > TITLE_CHARS // 2 else words[:TITLE_CHARS]}…"


def preview_of(question: str) -> str:
    """Return the start of a question, on one line."""
    return " ".join(question.split())[:PREVIEW_CHARS]


def _prose(text: str) -> Iterator[str]:
    """Yield the lines outside of fenced code, or the code if there are none."""
    lines, is_code, has_prose = text.split("\n"), False, False
    for line in lines:
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code and line.strip():
            has_prose = True
            yield line
    if not has_prose:
        yield from (line for line in lines if not line.lstrip().startswith(("```", "~~~")))


def _text(op: Op, name: str) -> str:
    """Return a field of an operation, which may be missing."""
    value = op.get(name, "")
    if not isinstance(value, str):
        raise TypeError(f"{name} is not a text")
    return value


def _attachments(rows: Any) -> tuple[ChatAttachment, ...]:
    """Return the attachments of a message, without damaged ones and those of newer versions."""
    attachments = list[ChatAttachment]()
    for row in rows if isinstance(rows, list) else ():
        with contextlib.suppress(*stored.DAMAGE):
            attachments.append(stored.load(ChatAttachment, row))
    return tuple(attachments)
