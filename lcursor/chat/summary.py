"""What of a long chat stays when there is no room for all of it.

Owns when, how much and in which words. The model writes down what was wanted, decided and left
open; which files were attached and what was changed is listed by us, to the letter. No message is
lost by it: a summary stands in for them in the prompt alone. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lcursor.chat import prompt
from lcursor.chat.conversation import Conversation, Said
from lcursor.errors import ContextFull
from lcursor.llm import tokens
from lcursor.llm.records import Message
from lcursor.protocol_chat import ChatItem

Measure = Callable[[Sequence[Message]], int]

ASKED_TOKENS = 1000
LEAST_TOKENS = 128
"""With less room than this there is no summary worth its name."""
MOST_TOKENS = 2048
"""That it may take, with what a model thinks before."""
KEPT_SHARE = 0.25
"""The last question and its answer stay as they are, if they have at most this of the room."""
MOST_LISTED = 60
BIGGEST = 3

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
class Plan:
    """What is summarized, and how one asks for it."""

    last: int
    """The last message that it stands for."""
    messages: list[Message]
    tokens: int
    """Of `messages`."""
    max_tokens: int
    replaced: int
    """Messages that are no longer in the prompt."""


def plan(chat: Conversation, last: int, limit: int, measure: Measure) -> Plan | None:
    """Return what to summarize of the messages up to one; None where nothing can be.

    Args:
        chat: the chat.
        last: the last message that is there; a question that waits for an answer stays out.
        limit: most tokens of a prompt and what is written to it, together.
        measure: counts a prompt's tokens.
    """
    line = chat.line(last)
    rest = prompt.after(line, chat.summary(line))
    ends = [at for at, each in enumerate(rest) if each.role == "assistant"]
    if len(ends) > 1:
        kept = prompt.spoken(rest[ends[-2] + 1 : ends[-1] + 1])
        if tokens.estimate_messages(kept) <= KEPT_SHARE * limit:
            ends.pop()
    for at in reversed(ends):
        here = rest[at].number
        asked = [*prompt.messages(chat, here), Message("user", INSTRUCTION)]
        size = measure(asked)
        room = limit - size
        if room >= min(ASKED_TOKENS, max(limit // 8, LEAST_TOKENS)):
            return Plan(here, asked, size, min(room, MOST_TOKENS), at + 1)
    return None


def text(written: str, chat: Conversation, last: int) -> str:
    """Return the text of a summary: what the model wrote, and the list of what was attached.

    Where the model wrote nothing, or only said again what it was told, as small ones do, the
    questions stand in for it.
    """
    line = chat.line(last)
    words = _own(written) or _questions(line)
    return "\n\n".join(filter(None, (words, ledger(chat, line))))


def ledger(chat: Conversation, line: Sequence[Said]) -> str:
    """Return which files were attached to messages and what was changed, as a list."""
    names: dict[str, None] = {}
    for item in (item for each in line for item in each.items):
        if not item.is_left_out:
            names.pop(item.name, None)  # what was attached last is listed last
            names[item.name] = None
    numbers = {each.number for each in line}
    edits = [
        f"{edit.name}:{edit.first_row + 1}-{edit.first_row + max(edit.rows, 1)}: {edit.what}"
        for edit in chat.edits
        if edit.after in numbers
    ]
    parts = (("## Attached so far", list(names)), ("## Edits so far", edits))
    return "\n\n".join(_listed(head, rows) for head, rows in parts if rows)


def guard(items: Sequence[ChatItem], total_tokens: int, limit: int) -> None:
    """Refuse a prompt that does not fit.

    Raises:
        ContextFull: it does not; the biggest items are named.
    """
    if limit <= 0 or total_tokens <= limit:
        return
    there = [each for each in items if not each["is_left_out"] and each["kind"] != "system"]
    there.sort(key=lambda each: -each["tokens"])
    biggest = ", ".join(f"{each['name']} {each['tokens']:,}" for each in there[:BIGGEST])
    error = ContextFull(
        f"the prompt has {total_tokens:,} tokens, {limit:,} fit" + (biggest and f" ({biggest})"),
        "Drop what is not needed, ask in a new chat with :LCChat!, or set chat.context_tokens "
        "higher",
    )
    error.prompt_tokens, error.context_tokens = total_tokens, limit
    raise error


def _own(written: str) -> str:
    """Return what a model wrote without what it was told to write; "" where nothing is left."""
    told = INSTRUCTION.lower()
    rows = [row.rstrip() for row in written.strip().split("\n")]
    kept = [row for row in rows if row.startswith("#") or row.strip().lower() not in told]
    if not any(row.strip() and not row.startswith("#") for row in kept):
        return ""
    return "\n".join(row for row in rows if not row or row in kept).strip()


def _listed(head: str, rows: Sequence[str]) -> str:
    left = len(rows) - MOST_LISTED
    first = [f"- ({left} earlier ones)"] if left > 0 else []
    return "\n".join([head, *first, *(f"- {row}" for row in rows[-MOST_LISTED:])])


def _questions(line: Sequence[Said]) -> str:
    rows = [" ".join(each.text.split())[:200] for each in line if each.role == "user"]
    return _listed("## Questions so far", rows)
