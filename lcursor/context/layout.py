"""Format items for a message: general items first, the subject of the question last.

Small models use text near the question best. The same items give the same text. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lcursor.code import languages
from lcursor.context.items import DROPPED, Item

ORDER: Final = (
    "tools", "rules", "mcp", "codebase", "dir", "file", "symbol", "commit", "diff", "quickfix",
    "terminal", "diagnostics", "buffer", "screen", "text", "selection",
)  # fmt: skip
TITLES: Final = {
    "quickfix": "Quickfix list",
    "terminal": "Terminal",
    "diagnostics": "Diagnostics",
    "text": "Text",
    "selection": "Selection",
    "screen": "On the screen",
    "mcp": "Resource of an MCP server",
}
_LANGUAGES: Final = {"commit": "diff", "diff": "diff", "rules": "markdown"}
_FENCED: Final = re.compile(r"^[ \t]{0,3}(`{3,})", re.MULTILINE)


def message(question: str, items: Sequence[Item]) -> str:
    """Return the message of a user: the items, then the question."""
    attached = write(items)
    return f"{attached}\n\n{question.strip()}" if attached else question.strip()


def write(items: Sequence[Item]) -> str:
    """Return all items in a fixed order; "" for none.

    Missing items are listed with the reason, so that the model does not invent their content.
    """
    parts = [block(item) for item in sorted(items, key=_order) if not item.is_left_out]
    missing = [item for item in sorted(items, key=_order) if item.is_left_out]
    reasons = [
        f"{item.name} ({item.note})"
        for item in missing
        if item.kind != "codebase" and item.note not in {"", DROPPED}
    ]
    if reasons:
        few = reasons[:12]
        more = f"; and {len(reasons) - len(few)} more" if len(reasons) > len(few) else ""
        parts.append(f"Not attached: {'; '.join(few)}{more}.")
    return "\n\n".join(parts)


def block(item: Item) -> str:
    """Return one item: its heading, and its text in a fence. Instructions are left as they are."""
    if item.kind == "tools":
        return item.text
    return f"{heading(item)}\n{fenced(item.text, language(item))}"


def fenced(text: str, language: str = "") -> str:
    """Return a text in a fence that it cannot end."""
    text = text if text.endswith("\n") or not text else f"{text}\n"
    fence = "`" * max([3, *(len(run) + 1 for run in _FENCED.findall(text))])
    return f"{fence}{language}\n{text}{fence}"


def heading(item: Item) -> str:
    """Return the heading of an item."""
    if item.kind == "rules":
        return f"Rules of this project, from {item.name}:"
    if item.kind in {"diff", "commit"}:
        return f"{item.name[:1].upper()}{item.name[1:]}:"
    title = TITLES.get(item.kind, "")
    if item.kind == "codebase":
        return f"{item.name}, found in the project:"
    return f"{title}, {item.name}:" if title and item.name != title else f"{item.name or title}:"


def language(item: Item) -> str:
    """Return the language of an item's fence."""
    if item.kind in _LANGUAGES:
        return _LANGUAGES[item.kind]
    if not item.path or item.kind in {"diagnostics", "quickfix", "terminal"}:
        return ""
    found = languages.detect(item.path, item.text.partition("\n")[0] if not item.first_row else "")
    return "" if found == languages.TEXT else found


def _order(item: Item) -> tuple[int, str, int, str]:
    rank = ORDER.index(item.kind) if item.kind in ORDER else len(ORDER)
    return rank, item.path, item.first_row, item.key
