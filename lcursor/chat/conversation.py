"""A chat as data: a tree of messages, the branch that is shown, and summaries.

Only `Conversation.apply` changes it. An operation is a plain dictionary, which `chat_file.py`
stores. No operation deletes a message. A summary replaces all messages up to one in the prompt; it
is not part of the tree, so it can be undone. Pure; not locked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

from lcursor.context.items import Item
from lcursor.errors import ChatFailed
from lcursor.protocol.chat import ChatAttachment, ChatEnd

Op = dict[str, Any]
T = TypeVar("T")

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
class Edit:
    """An accepted edit that came from the chat."""

    after: int
    """Number of the preceding message."""
    name: str
    first_row: int
    rows: int
    what: str


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
    edits: list[Edit] = field(default_factory=list)

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
        number, found = self.last if last is None else self.resolve(last), list[StoredMessage]()
        while number:
            found.append(self.messages[number])
            number = found[-1].parent
        return found[::-1]

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
        match op:
            case {"op": "chat", "key": str(key), "root": str(root)}:
                if op.get("version", 0) > VERSION:
                    raise ChatFailed("a newer lcursor wrote this chat", "Update lcursor")
                self.key, self.root = key, root
            case {"op": "say", "number": int(number), "parent": int(parent), "text": str(text)}:
                self._add(StoredMessage(number, parent, "user", text))
            case {"op": "attach", "number": int(number), "sent": str(sent), "items": [*rows]}:
                items = tuple(_record(Item, row) for row in rows)
                attachments = tuple(op.get("attachments", ()))
                self._update(number, sent=sent, items=items, attachments=attachments)
            case {"op": "answer", "number": int(number), "parent": int(parent)}:
                model = op.get("model", "")
                self._add(StoredMessage(number, parent, "assistant", "", model=model))
            case {"op": "more", "number": int(number), "text": str(text)}:
                old = self.messages[number]
                if old.role != "assistant":
                    raise ValueError("only an answer can be continued")
                reasoning = old.reasoning + op.get("reasoning", "")
                self._update(number, text=old.text + text, reasoning=reasoning)
            case {"op": "end", "number": int(number), "reason": str(reason)}:
                cost, server = _record(Cost, op.get("cost", {})), op.get("server", "")
                why = op.get("why", "")
                self._update(number, end=reason, cost=cost, server=server, why=why)
            case {"op": "show", "number": int(number)}:
                self._select(number)
            case {"op": "sum", "number": int(number), "last": int(last), "text": str()}:
                if number in self.messages or number in self.summaries or last not in self.messages:
                    raise ValueError(f"no summary can have number {number} here")
                self.summaries[number] = _record(Summary, op)
            case {"op": "expand", "number": int(number)}:
                self.summaries[number] = replace(self.summaries[number], is_undone=True)
            case {"op": "title", "title": str(title)}:
                self.title = title
            case {"op": "model", "model": str(model)}:
                self.model = model
            case {"op": "edit"}:
                self.edits.append(_record(Edit, op))
            case {"op": "whole", "chat": dict(table)}:
                self._restore(table)
            case _:
                raise ValueError(f"no such operation: {op.get('op')}")

    def _restore(self, table: Mapping[str, Any]) -> None:
        """Load the state of a chat that lcursor 0.1 stored as a snapshot."""
        self.key, self.root = table["key"], table["root"]
        self.title, self.model = table["title"], table["model"]
        for each in table["said"]:
            items = tuple(_record(Item, item) for item in each["items"])
            changed = {"items": items, "attachments": tuple(each["attachments"])}
            message = _record(
                StoredMessage, {**each, **changed, "cost": _record(Cost, each["cost"])}
            )
            self.messages[message.number] = message
        self.summaries = {each["number"]: _record(Summary, each) for each in table["summaries"]}
        self.shown = dict(map(tuple, table["shown"]))
        self.edits = [_record(Edit, each) for each in table["edits"]]

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


def _record(kind: type[T], table: Mapping[str, Any]) -> T:
    """Return a record from a table, ignoring unknown fields of newer versions."""
    if not isinstance(table, Mapping):
        raise TypeError(f"expected a table, not {type(table).__name__}")
    names = {spec.name for spec in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in table.items() if name in names})
