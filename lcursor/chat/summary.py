"""Fit a long chat into the model's context by summarizing older messages.

The model summarizes goals, decisions and open questions; our code adds the exact list of attached
files and edits. A summary replaces messages in the prompt only; messages are never truncated.
`PromptFitter` blocks, on a turn's thread; the rest is pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lcursor.chat import prompt
from lcursor.chat.attachments import token_rows
from lcursor.chat.chat_file import ChatFile, MakeOps
from lcursor.chat.conversation import Conversation, Op, StoredMessage
from lcursor.config import ChatConfig
from lcursor.errors import ContextFull
from lcursor.llm import tokens
from lcursor.llm.pool import Connection
from lcursor.llm.records import Event, Message, Text
from lcursor.project.redaction import encodable
from lcursor.protocol.chat import ChatItem

Count = Callable[[Sequence[Message]], int]

WANTED_TOKENS = 1000
"""Desired number of free tokens for a summary."""
MIN_TOKENS = 128
"""Minimum number of free tokens for a summary."""
MAX_TOKENS = 2048
"""Limit of a summary, including the model's reasoning."""
RETAINED_SHARE = 0.25
"""The last question and its answer are not summarized up to this share of the context."""
MAX_LISTED = 60
LARGEST = 3
MAX_SUMMARIES = 4
"""Maximum in one turn, for a chat with a model that had a larger context before."""
SUMMARIZE_AT = 0.85
"""Share of the context at which earlier messages are summarized."""
UNKNOWN_CONTEXT = 1 << 20
"""Used if the context's size is unknown: the server reports when it is full."""

INSTRUCTION = (
    "Our conversation is about to grow longer than you can read. Write a summary of it that will "
    "stand in its place, so that you can go on without it. Use these headings, and leave out one "
    "that has nothing under it:\n"
    "## Goal\nwhat I want, in my words where they matter\n"
    "## Decisions\nwhat was settled and why, and what was ruled out\n"
    "## Files\nwhich files, functions and names matter, and what we found out about them\n"
    "## Open ends\nwhat is not done or not answered, and the next step\n"
    "Keep names, numbers and error messages exactly. Do not repeat code of the files; quote only "
    "lines that were decided on. At most 700 words, and nothing besides the summary."
)


@dataclass(frozen=True, slots=True)
class SummaryPlan:
    """A planned summary and its prompt."""

    last: int
    """Number of the last message that the summary replaces."""
    messages: list[Message]
    tokens: int
    """Tokens of `messages`."""
    max_tokens: int
    replaced: int
    """Number of messages that the summary replaces."""


class PromptFitter:
    """Makes the prompt of one turn fit.

    Args:
        is_near: whether the model is on this machine.
        ask: calls the model with a prompt and a limit of tokens.
        change: changes the chat like `ChatFile.change`, while the turn runs.
        on_start: called with a message when a summary starts.
    """

    def __init__(
        self,
        file: ChatFile,
        connection: Connection,
        is_near: bool,
        config: ChatConfig,
        ask: Callable[[Sequence[Message], int], Iterable[Event]],
        change: Callable[[MakeOps], list[Op]],
        on_start: Callable[[str], None],
        on_summary: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._file, self._connection, self._config = file, connection, config
        self._is_near = is_near
        self._ask, self._change = ask, change
        self._on_start, self._on_summary = on_start, on_summary

    def fit(self, question: int) -> list[Message]:
        """Return the prompt for a question, after summarizing if necessary.

        Raises:
            ContextFull: it cannot be made to fit.
        """
        context = self._connection.context_tokens
        limit = tokens.prompt_limit(context, self._config.max_tokens)
        most = min(limit, int(SUMMARIZE_AT * context))
        for _ in range(MAX_SUMMARIES):
            messages = self._messages(question)
            if not limit or tokens.upper_bound(messages) <= most or self._count(messages) <= most:
                return messages
            if self._count([messages[0], messages[-1]]) > limit:
                break  # without the chat so far it does not fit either
            before = self._file.snapshot().messages[question].parent
            if not self.summarize(before):
                break
        messages = self._messages(question)
        total = self._count(messages)
        if total > limit:
            chat = self._file.snapshot()
            message = chat.messages[question]
            count = self._connection.client.count
            items, _ = token_rows(
                chat, message.parent, message.text, message.items, count, is_near=True
            )
            check_fits(items, total, limit)
        return messages

    def summarize(self, last: int) -> bool:
        """Summarize messages up to one; return False if there are none."""
        before = self._file.snapshot()
        context = self._connection.context_tokens or UNKNOWN_CONTEXT
        planned = plan(before, last, context, self._count, is_near=self._is_near)
        if planned is None:
            return False
        self._on_start(f"summarizing {planned.replaced} messages")
        written = ""
        for event in self._ask(planned.messages, planned.max_tokens):
            if isinstance(event, Text):
                written += event.text
        tokens_before = self._count(prompt.messages(before, last))

        def make(chat: Conversation) -> Sequence[Op]:
            op = {"op": "sum", "number": chat.next_number, "last": planned.last}
            content = encodable(text(written, chat, planned.last))
            return [{**op, "text": content, "tokens_before": tokens_before}]

        op = self._change(make)[-1]
        summary = {
            **{name: op[name] for name in ("number", "last", "tokens_before", "text")},
            "messages": planned.replaced,
            "tokens_after": self._count(prompt.messages(self._file.snapshot(), last)),
        }
        self._on_summary(summary)
        return True

    def _count(self, messages: Sequence[Message]) -> int:
        return self._connection.client.count(messages)[0]

    def _messages(self, question: int) -> list[Message]:
        return prompt.messages(self._file.snapshot(), question, is_near=self._is_near)


def plan(
    chat: Conversation, last: int, limit: int, count: Count, *, is_near: bool = True
) -> SummaryPlan | None:
    """Plan a summary of the messages up to one; None if it is impossible.

    Args:
        last: the last message; an unanswered question is not included.
        limit: maximum tokens of prompt and summary together.
    """
    branch = chat.branch(last)
    rest = prompt.unsummarized(branch, chat.active_summary(branch))
    ends = [at for at, each in enumerate(rest) if each.role == "assistant"]
    if len(ends) > 1:
        retained = prompt.alternate(rest[ends[-2] + 1 : ends[-1] + 1])
        if tokens.estimate(retained) <= RETAINED_SHARE * limit:
            ends.pop()
    for at in reversed(ends):
        number = rest[at].number
        before = prompt.messages(chat, number, is_near=is_near)
        request = [*before, Message("user", INSTRUCTION)]
        size = count(request)
        free = limit - size
        if free >= min(WANTED_TOKENS, max(limit // 8, MIN_TOKENS)):
            return SummaryPlan(number, request, size, min(free, MAX_TOKENS), at + 1)
    return None


def text(written: str, chat: Conversation, last: int) -> str:
    """Return the text of a summary: the model's text, and the lists of files and edits.

    If the model wrote nothing or only repeated the instruction, as small ones do, the list of
    questions replaces its text.
    """
    branch = chat.branch(last)
    words = _without_instruction(written) or _questions(branch)
    return "\n\n".join(filter(None, (words, files_and_edits(chat, branch))))


def files_and_edits(chat: Conversation, branch: Sequence[StoredMessage]) -> str:
    """Return the lists of attached files and of accepted edits."""
    names: dict[str, None] = {}
    for item in (item for each in branch for item in each.items):
        if not item.is_left_out:
            names.pop(item.name, None)  # order by the last attachment
            names[item.name] = None
    numbers = {each.number for each in branch}
    edits = [
        f"{edit.name}:{edit.first_row + 1}-{edit.first_row + max(edit.rows, 1)}: {edit.what}"
        for edit in chat.edits
        if edit.after in numbers
    ]
    parts = (("## Attached so far", list(names)), ("## Edits so far", edits))
    return "\n\n".join(_list(head, rows) for head, rows in parts if rows)


def check_fits(items: Sequence[ChatItem], total_tokens: int, limit: int) -> None:
    """Check that a prompt fits.

    Raises:
        ContextFull: it does not; the message lists the largest items.
    """
    if limit <= 0 or total_tokens <= limit:
        return
    sent = [each for each in items if not each["is_left_out"] and each["kind"] != "system"]
    sent.sort(key=lambda each: -each["tokens"])
    largest = ", ".join(f"{each['name']} {each['tokens']:,}" for each in sent[:LARGEST])
    error = ContextFull(
        f"the prompt has {total_tokens:,} tokens, {limit:,} fit" + (largest and f" ({largest})"),
        "Remove unneeded context, ask in a new chat with :LCChat!, or set chat.context_tokens "
        "higher",
    )
    error.prompt_tokens, error.context_tokens = total_tokens, limit
    raise error


def _without_instruction(written: str) -> str:
    """Return a model's text without repeated lines of the instruction."""
    instruction = INSTRUCTION.lower()
    rows = [row.rstrip() for row in written.strip().split("\n")]
    retained = [
        row for row in rows if row.startswith("#") or row.strip().lower() not in instruction
    ]
    if not any(row.strip() and not row.startswith("#") for row in retained):
        return ""
    return "\n".join(row for row in rows if not row or row in retained).strip()


def _list(head: str, rows: Sequence[str]) -> str:
    earlier = len(rows) - MAX_LISTED
    first = [f"- ({earlier} earlier ones)"] if earlier > 0 else []
    return "\n".join([head, *first, *(f"- {row}" for row in rows[-MAX_LISTED:])])


def _questions(branch: Sequence[StoredMessage]) -> str:
    questions = [each.text for each in branch if each.role == "user" and not each.call]
    rows = [" ".join(text.split())[:200] for text in questions]
    return _list("## Questions so far", rows)
