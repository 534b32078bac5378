"""What goes along with a question: gathered, compared with what is there, written into it.

Owns the way from mentions to the text that the model reads. What the chat has already, to the
letter, is not attached again. Reads files and asks the index: blocks; for threads that may wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lcursor.chat import prompt
from lcursor.chat.conversation import Attached, Conversation
from lcursor.chat.seen import fingerprint, seen
from lcursor.errors import CommandUnknown
from lcursor.llm.tokens import Counter
from lcursor.protocol_chat import ChatAttachment, ChatBill, ChatItem, ChatSend

if TYPE_CHECKING:
    from lcursor.context.codebase import Codebase
    from lcursor.context.items import Item

REPEATED = "in the chat already, unchanged"
Retrieve = Callable[[Path], "Codebase"]


@dataclass(frozen=True, slots=True)
class Question:
    """What a user asks, and what only the editor knows about it."""

    text: str
    path: str
    """Absolute: of the file one is in."""
    attachments: Sequence[ChatAttachment] = ()
    dropped: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Gathered:
    """A question with what belongs to it."""

    text: str
    """With its command written out."""
    items: Sequence[Item] = ()
    note: str = ""
    """What was wrong with its command."""
    lasting: Sequence[ChatAttachment] = ()
    """What was attached on purpose."""

    def sent(self) -> str:
        """Return the question as the model reads it."""
        from lcursor.context import layout

        told = [each for each in self.items if (each.kind, each.note) != ("rules", REPEATED)]
        return clean(layout.message(self.text, told))


class Gatherer:
    """Finds what belongs to a question.

    Args:
        retrieve: returns what knows a project.
        secrets: globs of files that are never read.
        rules: whether the project's files of rules are read.
    """

    def __init__(self, retrieve: Retrieve, secrets: Sequence[str], rules: bool) -> None:
        self._retrieve, self._secrets, self._rules = retrieve, secrets, rules

    def gather(
        self,
        chat: Conversation,
        last: int,
        question: Question,
        cancel: threading.Event,
        limit_tokens: int = 0,
        *,
        with_screen: bool = False,
    ) -> Gathered:
        """Return a question with all that it brings, each with a note why, or why not.

        Args:
            chat: as it is.
            last: the message before the question.
            question: what is asked.
            cancel: ends it.
            limit_tokens: of the prompt, of which the codebase gets a part; 0 where nobody knows.
            with_screen: whether what is on the screen goes with what mentions nothing.

        Raises:
            Cancelled: `cancel` was set.
        """
        from lcursor.context import gather, prompts

        root = Path(chat.root)
        expanded = prompts.expand(question.text, root)
        found = gather.gather(
            question.text,
            root=root,
            path=question.path,
            attachments=question.attachments,
            retriever=self._retrieve(root),
            secrets=self._secrets,
            cancel=cancel.is_set,
            dropped=question.dropped,
            with_rules=self._rules,
            with_screen=with_screen,
            codebase_tokens=_codebase_tokens(limit_tokens),
        )
        line = chat.line(last)
        rest = prompt.after(line, chat.summary(line))
        there = {item.digest for each in rest for item in each.items if not item.is_left_out}
        numbers = {each.number for each in rest}
        items = [
            replace(item, note=REPEATED, is_left_out=True)
            if item.text
            and not item.is_left_out
            and (fingerprint(item) in there or _is_seen(item, chat, last, numbers))
            else item
            for item in found
        ]
        on_screen = any(item.kind == "screen" for item in found)
        lasting = gather.lasting(
            [each for each in question.attachments if on_screen or each["kind"] != "screen"],
            root=root,
            secrets=self._secrets,
            dropped=question.dropped,
        )
        text = expanded.text
        if expanded.prompt and expanded.prompt.origin == "built in":
            text = text.replace("@selection", _about(items), 1)
        return Gathered(text, items, expanded.note, lasting)


def _about(items: Sequence[Item]) -> str:
    """Return what a command is about, in words: a small model takes `@selection` for code."""
    if any(item.kind == "selection" for item in items):
        return "the selection"
    return next((item.name for item in items if item.kind == "buffer"), "the selection")


def _is_seen(item: Item, chat: Conversation, last: int, numbers: Collection[int]) -> bool:
    """Return whether what is on the screen is in messages that the model still reads."""
    if item.kind != "screen" or not last:
        return False
    lines = tuple(item.text.removesuffix("\n").split("\n"))
    for each in seen(chat, last):
        at = item.first_row - each.first_row
        is_of_file = each.path and each.path == item.path and each.message in numbers
        if is_of_file and at >= 0 and each.lines[at : at + len(lines)] == lines:
            return True
    return False


def asked(chat: Conversation, params: ChatSend | ChatBill) -> Question:
    """Return a question, with what was attached to the one in whose place it is said."""
    before = chat.said.get(params["again"])
    there = list(before.attachments) if before else []
    has_screen = any(each["kind"] == "screen" for each in there)
    there += [
        each
        for each in params["attachments"]
        if each not in there and not (has_screen and each["kind"] == "screen")
    ]
    return Question(clean(params["text"]), params["path"], there, params["dropped"])


def refuse_mistyped(text: str, root: str) -> None:
    """See that a question does not begin with what is nearly a command.

    Raises:
        CommandUnknown: it does; the model could only guess what was meant.
    """
    from lcursor.context import prompts

    if found := prompts.mistyped(text, Path(root)):
        name, near = found
        raise CommandUnknown(
            f"there is no command /{name}; did you mean /{near}?",
            f"To say it as it is, begin with a backslash: \\/{name}",
        )


def _codebase_tokens(limit_tokens: int) -> int:
    """Return what `@codebase` may bring: a quarter of a small window."""
    from lcursor.context.gather import CODEBASE_TOKENS

    return min(CODEBASE_TOKENS, limit_tokens // 4) if limit_tokens else CODEBASE_TOKENS


def receipt(found: Gathered, count: Callable[[str], tuple[int, bool]]) -> list[Attached]:
    """Return what is kept of what was gathered: all but its text."""
    from lcursor.context import layout

    lines = []
    if found.note:
        name = found.text.split()[0]
        lines.append(Attached("command", "text", name, note=found.note, is_left_out=True))
    for item in found.items:
        text = clean(layout.block(item) + "\n\n")
        tokens, is_exact = (0, True) if item.is_left_out else count(text)
        lines.append(
            Attached(
                item.key,
                item.kind,
                clean(item.name),
                clean(item.path),
                item.first_row,
                item.end_row - item.first_row,
                tokens,
                is_exact,
                clean(item.note),
                item.is_left_out,
                fingerprint(item) if item.text else "",
            )
        )
    return lines


def line_of(item: Attached) -> ChatItem:
    """Return an item as a line of a bill."""
    return {
        "key": item.key,
        "kind": item.kind,
        "name": item.name,
        "tokens": item.tokens,
        "is_exact": item.is_exact,
        "note": item.note,
        "is_left_out": item.is_left_out,
        "path": item.path,
        "first_row": item.first_row,
    }


def bill(
    chat: Conversation, last: int, question: str, items: Sequence[Attached], counter: Counter
) -> tuple[list[ChatItem], int]:
    """Return what a prompt consists of, line by line, and its tokens. May ask the server.

    Args:
        chat: as it is.
        last: the message before the question.
        question: its own text.
        items: what is attached to it.
        counter: counts.
    """
    before = prompt.messages(chat, last)
    system, system_exact = counter.messages(before[:1])
    history, history_exact = (0, True)
    if len(before) > 1:
        history, history_exact = counter.messages(before)
        history -= system
    own, own_exact = counter.text(clean(question))
    lines = [
        _line("system", "what the model is told first", system, system_exact),
        _line("history", "the chat so far", history, history_exact),
        *map(line_of, items),
        _line("question", "your question", own, own_exact),
    ]
    lines = [each for each in lines if each["kind"] != "history" or each["tokens"]]
    return lines, sum(each["tokens"] for each in lines)


def clean(text: str) -> str:
    """Return a text that can travel as UTF-8: other bytes become question marks."""
    return text.encode("utf-8", "replace").decode()


def _line(kind: str, name: str, tokens: int, is_exact: bool) -> ChatItem:
    return line_of(Attached(kind, kind, name, tokens=tokens, is_exact=is_exact))
