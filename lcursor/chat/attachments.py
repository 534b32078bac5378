"""Gather the context of a question, and put it into the message.

Context that the chat already contains is not attached again. Blocks: it reads files and searches
the index.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lcursor.chat import prompt, server_calls
from lcursor.chat.conversation import Conversation
from lcursor.chat.views import item_row
from lcursor.context import gather, layout, prompts
from lcursor.context.codebase import Codebase
from lcursor.context.items import DROPPED, Item, Seen, count_rows
from lcursor.context.servers import ServersOf, ServerTexts, no_servers
from lcursor.errors import CommandUnknown
from lcursor.llm.records import Message
from lcursor.llm.tokens import Countable, digest, estimate
from lcursor.project.redaction import encodable, redact
from lcursor.protocol.chat import ChatAttachment, ChatItem, ChatPreview, ChatSend

REPEATED = "in the chat already, unchanged"
REPEATED_SHARE: Final = 0.75
"""Share of the context up to which nothing is repeated: above it, a summary may replace the text.
Less than `summary.SUMMARIZE_AT`, because tokens are estimated."""
FILE_KINDS: Final = frozenset(
    {"file", "buffer", "selection", "screen", "symbol", "codebase", "dir"}
)
"""Kinds of items whose text is part of a file."""
OpenCodebase = Callable[[Path], Codebase]
Count = Callable[[Countable], tuple[int, bool]]
"""Returns the number of tokens of a text or a prompt, and whether it is exact."""


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """A user's question, with data from the editor."""

    text: str
    path: str
    """Absolute path of the current file."""
    attachments: Sequence[ChatAttachment] = ()
    dropped: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class QuestionContext:
    """A question with its context."""

    text: str
    """The question with its command expanded."""
    items: Sequence[Item] = ()
    note: str = ""
    """Problem with its command."""
    stored: Sequence[ChatAttachment] = ()
    """The attachments to store with it."""

    def sent_text(self) -> str:
        """Return the message for the model."""
        items = [
            each
            for each in self.items
            if each.note != REPEATED or each.kind not in ("rules", server_calls.KIND)
        ]
        return encodable(layout.message(self.text, items))

    def attached(self, count: Count, *, is_near: bool) -> list[Item]:
        """Return the items without text, with their tokens and positions in the message.

        Args:
            is_near: whether the model is on this machine; others do not get secret values.
        """
        items, sent = list[Item](), self.sent_text()
        if self.note:
            name = self.text.split()[0]
            items.append(Item("command", "text", name, note=self.note, is_left_out=True))
        for item in self.items:
            block = encodable(layout.block(item) + "\n\n")
            tokens, is_exact = (0, True) if item.is_left_out else count(block)
            position = -1 if item.is_left_out else sent.find(block)
            removed = "" if item.is_left_out or is_near else _removed(block)
            items.append(
                replace(
                    item,
                    name=encodable(item.name),
                    path=encodable(item.path),
                    text="",
                    note="; ".join(filter(None, (encodable(item.note), removed))),
                    rows=count_rows(item.text),
                    tokens=tokens,
                    is_exact=is_exact,
                    digest=fingerprint(item) if item.text else "",
                    sent_row=sent.count("\n", 0, position) + 2 if position >= 0 else -1,
                )
            )
        return items


class Gatherer:
    """Gathers the context of questions.

    Args:
        rules: whether to add the project's rules files.
        servers_of: for `@mcp` and `/SERVER:PROMPT`.
    """

    def __init__(
        self,
        codebase: OpenCodebase,
        secrets: Sequence[str],
        rules: bool,
        servers_of: ServersOf = no_servers,
    ) -> None:
        self._codebase, self._secrets, self._rules = codebase, secrets, rules
        self.servers_of = servers_of

    def gather(
        self,
        chat: Conversation,
        last: int,
        question: ChatQuestion,
        cancel: threading.Event,
        limit_tokens: int = 0,
        *,
        with_screen: bool = False,
    ) -> QuestionContext:
        """Return a question with its context.

        Args:
            limit_tokens: context of the model, which limits `@codebase`; 0 if unknown.
            with_screen: whether to attach the visible lines if the question mentions nothing.

        Raises:
            Cancelled: `cancel` was set.
            McpFailed: the question is a prompt of a server, which has no text for it.
            DependencyMissing: as above, because the package for servers is not installed.
        """
        root = Path(chat.root)
        servers = self.servers_of(root)
        expanded = prompts.expand(question.text, root, servers, cancel.is_set)
        found = gather.gather(
            question.text,
            root=root,
            path=question.path,
            attachments=question.attachments,
            codebase=self._codebase(root),
            servers=servers,
            expanded=expanded,
            secrets=self._secrets,
            cancel=cancel.is_set,
            dropped=question.dropped,
            with_rules=self._rules,
            with_screen=with_screen,
            codebase_tokens=_codebase_tokens(limit_tokens),
        )
        if servers and (offer := server_calls.offer(servers.tools)):
            servers.start()  # so that its tools are known when one is called
            if offer.key in question.dropped:
                offer = replace(offer, note=DROPPED, is_left_out=True)
            found = [offer, *found]
        branch = chat.branch(last)
        read = prompt.unsummarized(branch, chat.active_summary(branch))
        if _is_due(prompt.messages(chat, last), found, limit_tokens):
            read = []
        known = {item.digest for each in read for item in each.items if not item.is_left_out}
        numbers = {each.number for each in read}
        items = [
            replace(item, note=REPEATED, is_left_out=True)
            if item.text
            and not item.is_left_out
            and (fingerprint(item) in known or _is_in_prompt(item, chat, last, numbers))
            else item
            for item in found
        ]
        has_screen = any(item.kind == "screen" for item in found)
        stored = gather.storable(
            [each for each in question.attachments if has_screen or each["kind"] != "screen"],
            root=root,
            secrets=self._secrets,
            dropped=question.dropped,
        )
        text = expanded.text
        if expanded.prompt and expanded.prompt.origin == "built in":
            text = text.replace("@selection", _subject(items), 1)
        return QuestionContext(text, items, expanded.note, stored)


def question_of(chat: Conversation, params: ChatSend | ChatPreview) -> ChatQuestion:
    """Return a question, with the attachments of the question that it replaces."""
    old = chat.messages.get(params["again"])
    attachments = list(old.attachments) if old else []
    has_screen = any(each["kind"] == "screen" for each in attachments)
    attachments += [
        each
        for each in params["attachments"]
        if each not in attachments and not (has_screen and each["kind"] == "screen")
    ]
    return ChatQuestion(encodable(params["text"]), params["path"], attachments, params["dropped"])


def check_command(text: str, root: str, servers: ServerTexts | None) -> None:
    """Check that a question does not start with a mistyped command.

    Raises:
        CommandUnknown: it does.
    """
    if found := prompts.mistyped(text, Path(root), servers):
        name, near = found
        raise CommandUnknown(
            f"there is no command /{name}; did you mean /{near}?",
            f"To send it as text, start with a backslash: \\/{name}",
        )


def token_rows(
    chat: Conversation,
    last: int,
    question: str,
    items: Sequence[Item],
    count: Count,
    *,
    is_near: bool,
) -> tuple[list[ChatItem], int]:
    """Return the parts of a prompt with their tokens, and the total; may query the server."""
    before = prompt.messages(chat, last)
    system, is_system_exact = count(before[:1])
    history, is_history_exact = (0, True)
    if len(before) > 1:
        history, is_history_exact = count(before)
        history -= system
    question_tokens, is_own_exact = count(encodable(question))
    rows = [
        _row("system", "the instructions", system, is_system_exact),
        _row("history", "the chat so far", history, is_history_exact),
        *map(item_row, items),
        _row(
            "question",
            "your question",
            question_tokens,
            is_own_exact,
            "" if is_near else _removed(question),
        ),
    ]
    rows = [each for each in rows if each["kind"] != "history" or each["tokens"]]
    return rows, sum(each["tokens"] for each in rows)


def read_before(chat: Conversation, number: int) -> list[Seen]:
    """Return the text in the prompt of an answer, newest first.

    Args:
        number: of the answer; 0 for the last one that is shown.

    Returns:
        The attached parts of files, and the other messages with an empty path.
    """
    branch = chat.branch(chat.resolve(number) or None)
    last = branch[-1].number if branch else 0
    excerpts = list[Seen]()
    for message in branch[::-1]:
        sent = message.sent.split("\n")
        for item in message.items:
            if item.path and item.kind in FILE_KINDS and item.sent_row >= 0:
                text = "\n".join(sent[item.sent_row : item.sent_row + item.rows])
                excerpts.append(Seen(item.path, item.first_row, _lines(text), message.number))
        if message.number != last:
            excerpts.append(Seen("", 0, _lines(message.text), message.number))
    return excerpts


def fingerprint(item: Item) -> str:
    """Return a digest of an item's text and position."""
    return digest(f"{item.kind}\n{item.path or item.name}\n{item.first_row}\n{item.text}")


def _is_due(history: Sequence[Message], new: Sequence[Item], limit_tokens: int) -> bool:
    """Return whether a summary may replace the history before the question is answered."""
    texts = [item.text for item in new if not item.is_left_out]
    size = estimate(history) + sum(map(estimate, texts))
    return limit_tokens > 0 and size > REPEATED_SHARE * limit_tokens


def _subject(items: Sequence[Item]) -> str:
    """Return the subject of a command in words: a small model mistakes `@selection` for code."""
    if any(item.kind == "selection" for item in items):
        return "the selection"
    return next((item.name for item in items if item.kind == "buffer"), "the selection")


def _is_in_prompt(item: Item, chat: Conversation, last: int, numbers: Collection[int]) -> bool:
    """Return whether visible lines are part of a message that is still in the prompt."""
    if item.kind != "screen" or not last:
        return False
    lines = _lines(item.text)
    for each in read_before(chat, last):
        at = item.first_row - each.first_row
        is_same_file = each.path and each.path == item.path and each.message in numbers
        if is_same_file and at >= 0 and each.lines[at : at + len(lines)] == lines:
            return True
    return False


def _codebase_tokens(limit_tokens: int) -> int:
    """Return the limit of `@codebase`: at most a quarter of the context."""
    most = gather.CODEBASE_TOKENS
    return min(most, limit_tokens // 4) if limit_tokens else most


def _row(kind: str, name: str, tokens: int, is_exact: bool, note: str = "") -> ChatItem:
    return item_row(Item(kind, kind, name, note=note, tokens=tokens, is_exact=is_exact))


def _removed(text: str) -> str:
    """Return the note about the secret values that another machine does not get; "" for none."""
    _, count = redact(text)
    return f"{count} secret{'s' * (count > 1)} removed before it is sent" if count else ""


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.removesuffix("\r") for line in text.removesuffix("\n").split("\n"))
