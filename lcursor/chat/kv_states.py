"""The saved KV states of a chat: one for each of its branches. Pure."""

from __future__ import annotations

from lcursor.chat.conversation import Conversation
from lcursor.llm.slot_states import file_name


def names_of(chat: Conversation, last: int, model: str) -> list[str]:
    """Return the names of states that fit the messages up to one, the best first."""
    branches = dict.fromkeys((branch_of(chat, last), 0))
    return [file_name(chat.key, branch, model) for branch in branches]


def server_of(chat: Conversation, last: int) -> str:
    """Return the local server of the last answer up to a message; "" if there is none."""
    return next((each.server for each in reversed(chat.branch(last)) if each.server), "")


def branch_of(chat: Conversation, last: int) -> int:
    """Return the number of the last message with siblings up to a message; 0 if there is none."""
    children: dict[int, int] = {}
    for each in chat.messages.values():
        children[each.parent] = children.get(each.parent, 0) + 1
    forks = (each.number for each in reversed(chat.branch(last)) if children[each.parent] > 1)
    return next(forks, 0)
