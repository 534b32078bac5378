"""A chat as the model reads it: the same beginning at every turn.

Owns the order and the fixed words. What a turn adds stands after all that stood there before, so
that the server finds the prompt in its cache: nothing here knows the time, a count, a setting or
what is attached next. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from lcursor.chat.conversation import Conversation, Said, Summary
from lcursor.llm.records import Message

SYSTEM = (
    "You are a programmer who helps another one with the code of a project. "
    "Files and other material of the project are attached to the questions, in fenced blocks that "
    "are headed by what they are; what is attached later is newer. "
    "Answer from them; where they do not say enough, say what is missing. "
    "Be brief and exact. Write code in fenced blocks that name their language."
)
SUMMED = "Summary of our conversation so far, which takes its place:\n\n"
TAKEN = "Understood. I go on from there."
SILENT = "What is your next question?"
"""Where an answer is missing. A question: small models say a statement again at the next turn."""
UNASKED = "Go on."
"""Where a question is missing."""


def messages(chat: Conversation, last: int | None = None) -> list[Message]:
    """Return the prompt up to a message, by default the last one that is shown.

    The list for a message begins with the list for each message before it, as long as no summary
    takes the place of some of them.
    """
    line = chat.line(last)
    summary = chat.summary(line)
    found = [Message("system", SYSTEM)]
    if summary is not None:
        found += summed(summary)
    return found + spoken(after(line, summary))


def with_question(chat: Conversation, last: int, sent: str) -> list[Message]:
    """Return the prompt that a question makes which follows a message."""
    before = messages(chat, last)
    if before[-1].role == "user":
        before.append(Message("assistant", SILENT))
    return [*before, Message("user", sent)]


def after(line: Sequence[Said], summary: Summary | None) -> Sequence[Said]:
    """Return the messages of a line that no summary stands for."""
    if summary is None:
        return line
    numbers = [each.number for each in line]
    return line[numbers.index(summary.last) + 1 :]


def summed(summary: Summary) -> list[Message]:
    """Return what stands in the place of what was summarized."""
    return [Message("user", SUMMED + summary.text), Message("assistant", TAKEN)]


def spoken(line: Sequence[Said]) -> list[Message]:
    """Return messages as the model reads them: question and answer in turn, as templates want."""
    found = list[Message]()
    for each in line:
        text = each.sent or each.text
        if each.role == "assistant" and not text.strip():
            text = SILENT
        if found and found[-1].role == each.role:
            is_silent = each.role == "user"
            found.append(Message("assistant", SILENT) if is_silent else Message("user", UNASKED))
        found.append(Message(each.role, text))
    return found
