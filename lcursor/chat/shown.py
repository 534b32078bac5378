"""A chat as messages of the wire. Pure; any thread."""

from __future__ import annotations

from collections.abc import Sequence

from lcursor.chat.archive import Row
from lcursor.chat.attach import line_of
from lcursor.chat.conversation import Conversation, Said, Summary
from lcursor.protocol_chat import ChatMessage, ChatOpened, ChatRow

GONE = "Neovim or its Python host ended while it was written"


def opened(
    chat: Conversation,
    number: int,
    models: Sequence[str],
    context_tokens: int,
    *,
    is_written: bool = False,
) -> ChatOpened:
    """Return what is shown of a chat.

    Args:
        chat: as it is.
        number: id of what asked for it.
        models: that one can choose from, the default first.
        context_tokens: of its model, where that is known; else that of its last answer is told.
        is_written: somebody has an answer written in it now.
    """
    line = chat.line()
    paid = next((each.cost for each in reversed(line) if each.cost.prompt_tokens), None)
    return {
        "id": number,
        "chat": chat.key,
        "title": chat.name(),
        "root": chat.root,
        "model": chat.model or (models[0] if models else ""),
        "models": list(models),
        "messages": messages(chat, line, is_written=is_written),
        "context_tokens": context_tokens or (paid.context_tokens if paid else 0),
        "used_tokens": paid.prompt_tokens + paid.answer_tokens if paid else 0,
    }


def messages(
    chat: Conversation, line: Sequence[Said], *, is_written: bool = False
) -> list[ChatMessage]:
    """Return a line as it is shown, with the summary where what it stands for ends."""
    standing = chat.summary(line)
    found = list[ChatMessage]()
    for each in line:
        among = chat.siblings(each.number)
        found.append(
            {
                "number": each.number,
                "role": each.role,
                "text": each.text,
                "reasoning": each.reasoning,
                "branch": among.index(each.number) + 1,
                "branches": len(among),
                "is_partial": each.is_partial,
                "model": each.model,
                "why": GONE if each.is_open and not is_written else each.why,
                "items": [line_of(item) for item in each.items],
            }
        )
        if standing is not None and standing.last == each.number:
            found.append(_summary(standing))
    return found


def row(found: Row) -> ChatRow:
    """Return a chat of the archive as a list shows it."""
    return {
        "chat": found.key,
        "title": found.title,
        "root": found.root,
        "model": found.model,
        "messages": found.messages,
        "updated_s": found.updated_s,
        "preview": found.preview,
    }


def _summary(summary: Summary) -> ChatMessage:
    return {
        "number": summary.number,
        "role": "summary",
        "text": summary.text,
        "reasoning": "",
        "branch": 1,
        "branches": 1,
        "is_partial": False,
        "model": "",
        "why": "",
        "items": [],
    }
