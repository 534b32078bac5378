"""Ask the user what a server wants to know: a form, as an object in JSON to change."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from lcursor.mcp.client.records import field_type, one_line
from lcursor.storage import json_text

AskUser = Callable[[str, str], str | None]
"""Asks the user about a text, given why; returns the text as the user left it, None for no."""
NO_OBJECT: Final = "This is no JSON object. "
TRIES: Final = 3
MAX_MESSAGE: Final = 500
EMPTY: Final[Mapping[str, Any]] = {"boolean": False, "integer": 0, "number": 0}


def ask_user(
    ask: AskUser, server: str, message: str, schema: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any] | None]:
    """Ask for what a server wants to know; return accept, decline or cancel, and the answer."""
    text = form_of(schema)
    why = f"{server} asks: {one_line(message, MAX_MESSAGE)}{_fields(schema)}"
    for _ in range(TRIES):
        answer = ask(text, why)
        if answer is None:
            return "decline", None
        try:
            content = json_text.parse(answer)
        except ValueError:
            content = None
        if isinstance(content, dict):
            return "accept", content
        text, why = answer, f"{NO_OBJECT}{why.removeprefix(NO_OBJECT)}"
    return "cancel", None


def form_of(schema: Mapping[str, Any]) -> str:
    """Return an object with a value for each field."""
    values = {name: _value(row) for name, row in _properties(schema).items()}
    return json.dumps(values, indent=2, ensure_ascii=False)


def _fields(schema: Mapping[str, Any]) -> str:
    """Return what is known of each field."""
    parts = []
    for name, row in _properties(schema).items():
        description = row.get("description") if isinstance(row, Mapping) else ""
        text = one_line(str(description or ""))
        parts.append(f"{one_line(name)}: {field_type(row)}{f', {text}' if text else ''}")
    return f" ({'; '.join(parts)})" if parts else ""


def _value(row: Any) -> Any:
    if not isinstance(row, Mapping):
        return ""
    if "default" in row:
        return row["default"]
    if isinstance(values := row.get("enum"), list) and values:
        return values[0]
    return EMPTY.get(str(row.get("type")), "")


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}
