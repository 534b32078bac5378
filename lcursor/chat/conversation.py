"""A chat as data: a tree of messages, which branch of it is shown, and what stands for what.

Owns the state and the one way to change it: `Conversation.apply` of an operation, a plain table
that `archive.py` writes down as it is. No operation takes a message away. A summary stands for all
messages up to one of them; it has no place in the tree, so that taking it back costs nothing.
Pure: no clock, no file, no thread of its own; who shares one locks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

from lcursor.protocol_chat import ChatAttachment, ChatEnd

Op = dict[str, Any]
Speaker = Literal["user", "assistant"]
T = TypeVar("T")

VERSION = 1
"""Of the operations; a file with a higher one is left alone."""
TITLE_CHARS = 48
PREVIEW_CHARS = 120


@dataclass(frozen=True, slots=True)
class Attached:
    """What was attached to a message: a line of its bill, kept as a receipt."""

    key: str
    kind: str
    name: str
    path: str = ""
    first_row: int = 0
    rows: int = 0
    tokens: int = 0
    is_exact: bool = False
    note: str = ""
    is_left_out: bool = False
    digest: str = ""
    """Of its text, to know it again."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What an answer cost, as `ChatDone` says it."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    prompt_ms: float = 0.0
    answer_ms: float = 0.0
    first_ms: float = 0.0
    context_tokens: int = 0
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the tree."""

    number: int
    parent: int
    """Of the message before it; 0 for the first."""
    role: Speaker
    text: str
    sent: str = ""
    """The text as the model reads it, with what is attached; "" where that is `text`."""
    reasoning: str = ""
    end: ChatEnd | Literal[""] = ""
    """How an answer ended; "" while it is written, or where its writer was killed."""
    model: str = ""
    items: tuple[Attached, ...] = ()
    attachments: tuple[ChatAttachment, ...] = ()
    """What was attached on purpose, with its text: it is again where the question is changed."""
    cost: Cost = field(default_factory=Cost)
    server: str = ""
    """Which run of which server wrote it."""
    why: str = ""
    """Why an answer broke off, for people."""

    @property
    def is_open(self) -> bool:
        """Whether it is an answer of which no end is known."""
        return self.role == "assistant" and not self.end

    @property
    def is_partial(self) -> bool:
        """Whether it is an answer that the model did not end."""
        return self.role == "assistant" and self.end not in ("stop", "length")


@dataclass(frozen=True, slots=True)
class Summary:
    """A text that stands for a message and all before it."""

    number: int
    last: int
    """The last message that it stands for."""
    text: str
    tokens_before: int = 0
    tokens_after: int = 0
    is_undone: bool = False


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a file that came out of the chat."""

    after: int
    """The message that it followed."""
    name: str
    first_row: int
    rows: int
    what: str


@dataclass(slots=True)
class Conversation:
    """The state of a chat; change it by `apply` alone."""

    key: str = ""
    root: str = ""
    title: str = ""
    """As the user gave it; "" has it made from the first question."""
    model: str = ""
    """"" is the one of the settings."""
    said: dict[int, Said] = field(default_factory=dict)
    summaries: dict[int, Summary] = field(default_factory=dict)
    shown: dict[int, int] = field(default_factory=dict)
    """Which of the messages that follow one is shown."""
    edits: list[Edit] = field(default_factory=list)

    @property
    def next_number(self) -> int:
        """The number of the next message or summary."""
        return max((0, *self.said, *self.summaries)) + 1

    @property
    def last(self) -> int:
        """The number of the last message that is shown; 0 where there is none."""
        number = 0
        while number in self.shown:
            number = self.shown[number]
        return number

    def copy(self) -> Conversation:
        """Return the state as it is now; what is done to the one does not show in the other."""
        return replace(
            self,
            said=dict(self.said),
            summaries=dict(self.summaries),
            shown=dict(self.shown),
            edits=list(self.edits),
        )

    def line(self, last: int | None = None) -> list[Said]:
        """Return the messages up to one, the oldest first; up to the last that is shown."""
        number, found = self.last if last is None else self.place(last), list[Said]()
        while number:
            found.append(self.said[number])
            number = found[-1].parent
        return found[::-1]

    def place(self, number: int) -> int:
        """Return a message's number; of a summary, the last one's that it stands for."""
        summary = self.summaries.get(number)
        return summary.last if summary else number if number in self.said else 0

    def question(self, number: int) -> int:
        """Return the question that a message is, or that it answers; of 0 the last one; else 0."""
        line = self.line(self.place(number) or None)
        return next((each.number for each in reversed(line) if each.role == "user"), 0)

    def siblings(self, number: int) -> list[int]:
        """Return the messages that were said in the place of one, with it, the oldest first."""
        parent = self.said[number].parent
        return [each.number for each in self.said.values() if each.parent == parent]

    def summary(self, line: Sequence[Said]) -> Summary | None:
        """Return the summary that stands for the most messages of a line."""
        place = {each.number: at for at, each in enumerate(line)}
        found = [each for each in self.summaries.values() if not each.is_undone]
        found = [each for each in found if each.last in place]
        return max(found, key=lambda each: (place[each.last], each.number), default=None)

    def step(self, number: int, step: int) -> int:
        """Return the message that stands so many branches further; the outermost at the ends."""
        rows = self.siblings(number)
        return rows[min(max(rows.index(number) + step, 0), len(rows) - 1)]

    def name(self) -> str:
        """Return the title: the given one, else the first words of the first question."""
        return self.title or title_of(self.first_question())

    def first_question(self) -> str:
        """Return the first question of what is shown."""
        return next((each.text for each in self.line() if each.role == "user"), "")

    def apply(self, op: Mapping[str, Any]) -> None:
        """Change the state.

        Raises:
            KeyError: it speaks of a message that there is not, or lacks a field.
            TypeError: a value is of the wrong type.
            ValueError: it makes no sense here.
        """
        do = {
            "chat": self._chat,
            "say": self._say,
            "attach": self._attach,
            "answer": self._answer,
            "more": self._more,
            "end": self._end,
            "show": self._show,
            "sum": self._sum,
            "expand": self._expand,
            "title": self._title,
            "model": self._model,
            "edit": self._edit,
            "whole": self._whole,
        }.get(op["op"])
        if do is None:
            raise ValueError(f"no such operation: {op['op']}")
        do(op)

    def _chat(self, op: Mapping[str, Any]) -> None:
        self.key, self.root = op["key"], op["root"]

    def _say(self, op: Mapping[str, Any]) -> None:
        self._add(Said(op["number"], self._parent(op), "user", op["text"]))

    def _attach(self, op: Mapping[str, Any]) -> None:
        items = tuple(_made(Attached, each) for each in op["items"])
        there = tuple(op.get("attachments", ()))
        self._change(op["number"], sent=op["sent"], items=items, attachments=there)

    def _answer(self, op: Mapping[str, Any]) -> None:
        model, server = op.get("model", ""), op.get("server", "")
        self._add(Said(op["number"], self._parent(op), "assistant", "", model=model, server=server))

    def _more(self, op: Mapping[str, Any]) -> None:
        here = self.said[op["number"]]
        if here.role != "assistant":
            raise ValueError("only an answer grows")
        text, reasoning = here.text + op["text"], here.reasoning + op.get("reasoning", "")
        self._change(here.number, text=text, reasoning=reasoning)

    def _end(self, op: Mapping[str, Any]) -> None:
        cost = _made(Cost, op.get("cost", {}))
        server = op.get("server", self.said[op["number"]].server)
        why = op.get("why", "")
        self._change(op["number"], end=op["reason"], cost=cost, server=server, why=why)

    def _show(self, op: Mapping[str, Any]) -> None:
        self._bring(self.said[op["number"]].number)

    def _sum(self, op: Mapping[str, Any]) -> None:
        number = op["number"]
        if number in self.said or number in self.summaries or op["last"] not in self.said:
            raise ValueError(f"no summary can have number {number} there")
        self.summaries[number] = _made(Summary, op)

    def _expand(self, op: Mapping[str, Any]) -> None:
        number = op["number"]
        self.summaries[number] = replace(self.summaries[number], is_undone=True)

    def _title(self, op: Mapping[str, Any]) -> None:
        self.title = op["title"]

    def _model(self, op: Mapping[str, Any]) -> None:
        self.model = op["model"]

    def _edit(self, op: Mapping[str, Any]) -> None:
        self.edits.append(_made(Edit, op))

    def _whole(self, op: Mapping[str, Any]) -> None:
        other = from_json(op["chat"])
        for spec in fields(self):
            setattr(self, spec.name, getattr(other, spec.name))

    def _parent(self, op: Mapping[str, Any]) -> int:
        parent = int(op["parent"])
        if parent and parent not in self.said:
            raise KeyError(parent)
        return parent

    def _add(self, new: Said) -> None:
        if new.number in self.said or new.number in self.summaries or new.number < 1:
            raise ValueError(f"there is a message {new.number} already")
        self.said[new.number] = new
        self._bring(new.number)

    def _change(self, number: int, **values: Any) -> None:
        self.said[number] = replace(self.said[number], **values)

    def _bring(self, number: int) -> None:
        """Show a message, and what leads to it."""
        while number:
            parent = self.said[number].parent
            self.shown[parent] = number
            number = parent


def amended(chat: Conversation, number: int, text: str) -> list[Op]:
    """Return what puts another text in the place of an answer; the old one stays beside it.

    Raises:
        KeyError: there is no such message.
        ValueError: it is a question, which is asked anew.
    """
    old, new = chat.said[number], chat.next_number
    if old.role != "assistant":
        raise ValueError("only an answer can be amended")
    return [
        {"op": "answer", "number": new, "parent": old.parent, "model": ""},
        {"op": "more", "number": new, "text": text, "reasoning": old.reasoning},
        {"op": "end", "number": new, "reason": "stop"},
    ]


def to_json(chat: Conversation) -> dict[str, Any]:
    """Return a chat as a table that JSON can hold."""
    return {
        "key": chat.key,
        "root": chat.root,
        "title": chat.title,
        "model": chat.model,
        "said": [asdict(each) for each in chat.said.values()],
        "summaries": [asdict(each) for each in chat.summaries.values()],
        "shown": sorted([parent, child] for parent, child in chat.shown.items()),
        "edits": [asdict(each) for each in chat.edits],
    }


def from_json(table: Mapping[str, Any]) -> Conversation:
    """Return the chat of `to_json`.

    Raises:
        KeyError: a field is missing.
        TypeError: a value is of the wrong type.
    """
    said = []
    for each in table["said"]:
        items = tuple(_made(Attached, item) for item in each["items"])
        made = replace(_made(Said, each), items=items, cost=_made(Cost, each["cost"]))
        said.append(replace(made, attachments=tuple(made.attachments)))
    return Conversation(
        key=table["key"],
        root=table["root"],
        title=table["title"],
        model=table["model"],
        said={each.number: each for each in said},
        summaries={each["number"]: _made(Summary, each) for each in table["summaries"]},
        shown=dict(map(tuple, table["shown"])),
        edits=[_made(Edit, each) for each in table["edits"]],
    )


def rescue(chat: Conversation, op: Mapping[str, Any]) -> bool:
    """Take the words of an operation that cannot be applied, where it has some.

    A line of a damaged file may have been lost, and another one speaks of it: what was said is
    kept, at the end of what there is. Returns whether something was kept.
    """
    kind, text = op.get("op"), op.get("text")
    if kind not in ("say", "answer", "more") or not isinstance(text, str):
        return False
    number = op.get("number")
    if not isinstance(number, int) or number < 1:
        number = chat.next_number
    if number in chat.said or number in chat.summaries:
        number = chat.next_number
    role: Speaker = "user" if kind == "say" else "assistant"
    last = max(chat.said, default=0)
    chat._add(Said(number, last, role, text, reasoning=str(op.get("reasoning", ""))))
    return True


def title_of(question: str) -> str:
    """Return the first words of a question, as a title; always the same ones for the same text."""
    lines = (line.strip() for line in _prose(question))
    words = " ".join(next((line for line in lines if line), "").split())
    if len(words) <= TITLE_CHARS:
        return words
    cut = words[: TITLE_CHARS + 1].rpartition(" ")[0]
    return f"{cut if len(cut) > TITLE_CHARS // 2 else words[:TITLE_CHARS]}…"


def preview_of(question: str) -> str:
    """Return the beginning of a question, on one line."""
    return " ".join(question.split())[:PREVIEW_CHARS]


def _prose(text: str) -> Iterator[str]:
    """Yield the lines outside of code; if there are none, all."""
    lines, is_code, seen = text.split("\n"), False, False
    for line in lines:
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code and line.strip():
            seen = True
            yield line
    if not seen:
        yield from (line for line in lines if not line.lstrip().startswith(("```", "~~~")))


def _made(kind: type[T], table: Mapping[str, Any]) -> T:
    """Return a record from a table, without the fields that a newer version may have added."""
    if not isinstance(table, Mapping):
        raise TypeError(f"expected a table, not {type(table).__name__}")
    names = {spec.name for spec in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in table.items() if name in names})
