"""Makes room for a question: a prompt that fits, by summaries where need be, or a refusal.

Owns when the server is asked to count, and a summary from its plan to its place in the chat. Never
cuts anything. Blocks; on a turn's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lcursor.chat import attach, prompt, summary
from lcursor.chat.conversation import Conversation, Op
from lcursor.chat.stored import Make, Stored
from lcursor.config import ChatConfig
from lcursor.llm import tokens
from lcursor.llm.pool import Connection
from lcursor.llm.records import Event, Message, Text

MOST_SUMMARIES = 4
"""In one turn: a chat that was had with a model of a larger context may need several."""
UNKNOWN = 1 << 20
"""Tokens of a context that nobody knows: its server says when it is full."""


@dataclass(frozen=True, slots=True)
class Made:
    """A summary that took its place."""

    number: int
    last: int
    """The last message that it stands for."""
    replaced: int
    """Messages that it stands for, and none did before."""
    tokens_before: int
    tokens_after: int
    text: str


class Room:
    """Room in a model's context, for one turn.

    Args:
        stored: the chat.
        reached: the model.
        config: the settings.
        ask: has the model write; given a prompt and the most tokens.
        change: changes the chat, as `Stored.change` does, while the turn lasts.
        progress: told, in words, that a summary is written.
        summed: told of each summary.
    """

    def __init__(
        self,
        stored: Stored,
        reached: Connection,
        config: ChatConfig,
        ask: Callable[[Sequence[Message], int], Iterable[Event]],
        change: Callable[[Make], list[Op]],
        progress: Callable[[str], None],
        summed: Callable[[Made], None],
    ) -> None:
        self._stored, self._reached, self._config = stored, reached, config
        self._ask, self._change, self._progress, self._summed = ask, change, progress, summed

    def fitted(self, asked: int) -> list[Message]:
        """Return the prompt for a question, after earlier messages were summarized if need be.

        The server is asked to count only where it may matter, since that takes time.

        Raises:
            ContextFull: it cannot be made to fit.
        """
        context, share = self._reached.context_tokens, self._config.summarize_at
        limit = tokens.prompt_limit(context, self._config.max_tokens)
        most = min(limit, int(share * context)) if share > 0 else limit
        for _ in range(MOST_SUMMARIES):
            messages = self._messages(asked)
            if not limit or self._at_most(asked, messages) <= most:
                return messages
            if self._count(messages) <= most:
                return messages
            before = self._stored.snapshot().said[asked].parent
            if share <= 0 or not self.summarize(before):
                break
        messages = self._messages(asked)
        total = self._count(messages)
        if total > limit:
            chat = self._stored.snapshot()
            said = chat.said[asked]
            counter = self._reached.counter
            items, _ = attach.bill(chat, said.parent, said.text, said.items, counter)
            summary.guard(items, total, limit)
        return messages

    def summarize(self, last: int) -> bool:
        """Have messages up to one summarized; return whether there was something to."""
        before = self._stored.snapshot()
        room = self._reached.context_tokens or UNKNOWN
        plan = summary.plan(before, last, room, self._count)
        if plan is None:
            return False
        self._progress(f"{plan.replaced} messages are summarized")
        written = ""
        for event in self._ask(plan.messages, plan.max_tokens):
            if isinstance(event, Text):
                written += event.text
        was = self._count(prompt.messages(before, last))

        def make(chat: Conversation) -> Sequence[Op]:
            text = attach.clean(summary.text(written, chat, plan.last))
            op = {"op": "sum", "number": chat.next_number, "last": plan.last, "text": text}
            return [{**op, "tokens_before": was}]

        made = self._change(make)[-1]
        now = self._count(prompt.messages(self._stored.snapshot(), last))
        self._summed(Made(made["number"], made["last"], plan.replaced, was, now, made["text"]))
        return True

    def _count(self, messages: Sequence[Message]) -> int:
        return self._reached.counter.messages(messages)[0]

    def _messages(self, asked: int) -> list[Message]:
        return prompt.messages(self._stored.snapshot(), asked)

    def _at_most(self, asked: int, messages: Sequence[Message]) -> int:
        """Return a number of tokens that a prompt hardly reaches, from what the last one had."""
        chat = self._stored.snapshot()
        line = chat.line(asked)
        standing = chat.summary(line)
        rest = prompt.after(line, standing)
        for at in range(len(rest) - 1, -1, -1):
            each = rest[at]
            is_newer = standing is None or each.number > standing.number
            is_counted = each.end in ("stop", "length") and each.cost.is_exact
            if is_newer and is_counted and each.model == self._reached.name:
                known = each.cost.prompt_tokens + each.cost.answer_tokens
                return known + tokens.upper_bound(prompt.spoken(rest[at + 1 :]))
        return tokens.upper_bound(messages)
