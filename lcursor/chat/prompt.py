"""The prompt of a chat. Every turn only appends to it, so that the server can reuse its cache.

The prompt contains no time, count or setting, which would change earlier text. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lcursor.chat.conversation import Conversation, StoredMessage, Summary
from lcursor.llm.records import Message

SYSTEM = (
    "You are a programmer who helps another one with the code of a project. "
    "Files and other material of the project are attached to the questions, in fenced blocks that "
    "are headed by what they are; what is attached later is newer. "
    "Answer from them; where they do not say enough, say what is missing. "
    "Be brief and exact. Write code in fenced blocks that name their language."
)
SUMMARY_INTRO = "Summary of our conversation so far, which takes its place:\n\n"
SUMMARY_REPLY = "Understood. I go on from there."
NO_ANSWER = "What is your next question?"
"""Replaces a missing answer. It is a question because small models repeat a statement."""
INTERRUPTED_CALL = "The call was interrupted, so its outcome is unknown."
"""Replaces the result of a call if the process was killed."""
NOT_SENT = "(These lines are not sent to this model.)"
NO_QUESTION = "Go on."
"""Replaces a missing question."""


def messages(chat: Conversation, last: int | None = None, *, is_near: bool = True) -> list[Message]:
    """Return the prompt up to a message, by default the last one that is shown.

    It starts with the prompt up to each earlier message, unless a summary replaces some of them.

    Args:
        is_near: whether the model is on this machine; others get no lines of the screen that were
            attached without being mentioned.
    """
    branch = chat.branch(last)
    summary = chat.active_summary(branch)
    prompt = [Message("system", SYSTEM)]
    if summary is not None:
        prompt += [Message("user", SUMMARY_INTRO + summary.text)]
        prompt += [Message("assistant", SUMMARY_REPLY)]
    return prompt + alternate(unsummarized(branch, summary), is_near=is_near)


def with_question(chat: Conversation, last: int, sent: str) -> list[Message]:
    """Return the prompt for a new question after a message."""
    before = messages(chat, last)
    if before[-1].role == "user":
        before.append(Message("assistant", NO_ANSWER))
    return [*before, Message("user", sent)]


def unsummarized(
    branch: Sequence[StoredMessage], summary: Summary | None
) -> Sequence[StoredMessage]:
    """Return the messages of a branch after those that a summary replaces, as they are sent.

    A question whose context was too large for the model is sent without it from then on.
    """
    too_large = {each.parent for each in branch if each.is_too_large}
    branch = [
        replace(each, sent="", items=()) if each.number in too_large and not each.call else each
        for each in branch
    ]
    if summary is None:
        return branch
    numbers = [each.number for each in branch]
    return branch[numbers.index(summary.last) + 1 :]


def alternate(branch: Sequence[StoredMessage], *, is_near: bool = True) -> list[Message]:
    """Return messages with alternating questions and answers, as chat templates require."""
    alternating = list[Message]()
    for message in branch:
        sent = message.sent if is_near else _without_screen(message)
        text = sent or (INTERRUPTED_CALL if message.call else message.text)
        if message.role == "assistant" and not text.strip():
            text = NO_ANSWER
        if alternating and alternating[-1].role == message.role:
            is_question = message.role == "user"
            filler = ("assistant", NO_ANSWER) if is_question else ("user", NO_QUESTION)
            alternating.append(Message(*filler))  # type: ignore[arg-type]
        alternating.append(Message(message.role, text))
    return alternating


def _without_screen(message: StoredMessage) -> str:
    """Return what is sent of a question without the lines of the screen that it does not name."""
    if "@screen" in message.text:
        return message.sent
    lines = message.sent.split("\n")
    for item in message.items:
        if item.kind == "screen" and item.sent_row >= 0:
            lines[item.sent_row : item.sent_row + item.rows] = [NOT_SENT]
    return "\n".join(lines)
