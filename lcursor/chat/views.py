"""Convert a chat to messages for Neovim, or to a Markdown document. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from lcursor.chat.conversation import Conversation, StoredMessage, Summary
from lcursor.context.items import Item
from lcursor.protocol.chat import ChatCallState, ChatItem, ChatMessage, ChatOpened

INTERRUPTED = "Neovim or its Python host ended while it was written"
CUT_OFF = "it reached the limit of its length"


def opened_message(
    chat: Conversation,
    number: int,
    models: Sequence[str],
    context_tokens: int,
    *,
    is_running: bool = False,
    call: ChatCallState = "",
) -> ChatOpened:
    """Return the message that shows a chat.

    Args:
        call: of the last answer.
        models: the names to choose from, the default first.
        context_tokens: context of the chat's model; 0 for the value of the last answer.
    """
    branch = chat.branch()
    rows = message_rows(chat, branch, is_running=is_running)
    if branch and call:
        next(row for row in reversed(rows) if row["number"] == branch[-1].number)["call"] = call
    cost = next((each.cost for each in reversed(branch) if each.cost.prompt_tokens), None)
    return {
        "id": number,
        "chat": chat.key,
        "title": chat.display_title(),
        "root": chat.root,
        "model": chat.model or (models[0] if models else ""),
        "models": list(models),
        "messages": rows,
        "context_tokens": context_tokens or (cost.context_tokens if cost else 0),
        "used_tokens": cost.prompt_tokens + cost.answer_tokens if cost else 0,
    }


def message_rows(
    chat: Conversation, branch: Sequence[StoredMessage], *, is_running: bool = False
) -> list[ChatMessage]:
    """Return the messages of a branch, with a summary after the messages that it replaces."""
    summary = chat.active_summary(branch)
    rows = list[ChatMessage]()
    for message in branch:
        siblings = chat.siblings(message.number)
        rows.append(
            {
                "number": message.number,
                "role": "result" if message.call else message.role,
                "text": message.sent if message.call else message.text,
                "reasoning": message.reasoning,
                "branch": siblings.index(message.number) + 1,
                "branches": len(siblings),
                "is_partial": message.is_partial,
                "model": message.model,
                "why": INTERRUPTED if message.is_open and not is_running else _why(message),
                "items": [item_row(item) for item in message.items],
                "call": "",
            }
        )
        if summary is not None and summary.last == message.number:
            rows.append(_summary_row(summary))
    return rows


def item_row(item: Item) -> ChatItem:
    """Return an item of a message's context."""
    row = {name: getattr(item, name) for name in ChatItem.__annotations__}
    return cast("ChatItem", row)


def markdown(chat: Conversation) -> str:
    """Return the shown branch as Markdown, including summarized messages."""
    parts = [f"# {chat.display_title() or 'Chat'}"]
    branch = chat.branch()
    summary = chat.active_summary(branch)
    for each in branch:
        parts += _markdown_parts(each)
        if summary is not None and summary.last == each.number:
            parts += ["## Summary", summary.text.strip()]
    return "\n\n".join(parts) + "\n"


def _markdown_parts(message: StoredMessage) -> list[str]:
    if message.call:
        return ["## Result", message.sent.strip()]
    if message.role == "user":
        names = [item.name for item in message.items if not item.is_left_out]
        attached = [f"Attached: {', '.join(names)}"] if names else []
        return ["## You", message.text.strip(), *attached]
    parts = [f"## {message.model or 'Model'}"]
    if message.reasoning.strip():
        rows = message.reasoning.strip().split("\n")
        parts.append("\n".join(f"> {row}".rstrip() for row in rows))
    if message.text.strip():
        parts.append(message.text.strip())
    why = _why(message)
    if message.is_partial or why:
        reason = f"The answer ends here: {why}." if why else "It was stopped here."
        parts.append(f"*({reason})*")
    return parts


def _why(message: StoredMessage) -> str:
    """Return why an answer is incomplete; "" if it is not, or if the user stopped it."""
    return CUT_OFF if message.end == "length" else message.why


def _summary_row(summary: Summary) -> ChatMessage:
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
        "call": "",
    }
