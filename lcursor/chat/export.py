"""A chat as a markdown document, for people. Pure; any thread."""

from __future__ import annotations

from lcursor.chat.conversation import Conversation, Said


def markdown(chat: Conversation) -> str:
    """Return the branch that is shown, whole: also what a summary stands for."""
    parts = [f"# {chat.name() or 'Chat'}"]
    line = chat.line()
    standing = chat.summary(line)
    for each in line:
        parts += _message(each)
        if standing is not None and standing.last == each.number:
            parts += ["## Summary", standing.text.strip()]
    return "\n\n".join(parts) + "\n"


def _message(said: Said) -> list[str]:
    if said.role == "user":
        names = [item.name for item in said.items if not item.is_left_out]
        attached = [f"Attached: {', '.join(names)}"] if names else []
        return ["## You", said.text.strip(), *attached]
    parts = [f"## {said.model or 'Model'}"]
    if said.reasoning.strip():
        rows = said.reasoning.strip().split("\n")
        parts.append("\n".join(f"> {row}".rstrip() for row in rows))
    if said.text.strip():
        parts.append(said.text.strip())
    if said.is_partial:
        parts.append(
            f"*(It broke off here: {said.why}.)*" if said.why else "*(It was stopped here.)*"
        )
    return parts
