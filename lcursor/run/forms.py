"""A question with fields to fill in, as text that the user edits. Pure.

    Which size do you want?

    size: small (small, medium or large)
    count:

What is in parentheses only explains. The user's answer is read from lines of the same form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

TRUE: Final = frozenset({"yes", "y", "true", "1"})
FALSE: Final = frozenset({"no", "n", "false", "0"})
MAX_FIELDS: Final = 20


class FormProblem(Exception):
    """An answer is not valid; the message is for the user."""


def write(message: str, schema: Mapping[str, Any]) -> str:
    """Return a question with a line for each field."""
    lines = [f"{name}: {_default(field)}{_hint(field)}" for name, field in _fields(schema)]
    return "\n".join([message.strip(), "", *lines])


def read(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the fields; one that is empty and not required is left out.

    Raises:
        FormProblem: a value is missing, or is none of those that there are.
    """
    given = dict[str, str]()
    names = {name for name, _ in _fields(schema)}
    for line in text.splitlines():
        name, mark, value = line.partition(":")
        if mark and name.strip() in names:
            given[name.strip()] = value.strip()
    values, required = dict[str, Any](), schema.get("required")
    for name, field in _fields(schema):
        words = given.get(name, "").removesuffix(_hint(field).strip()).strip()
        if words:
            values[name] = _value(name, words, field)
        elif isinstance(required, list) and name in required:
            raise FormProblem(f"{name} is missing")
    return values


def _fields(schema: Mapping[str, Any]) -> Sequence[tuple[str, Mapping[str, Any]]]:
    found = schema.get("properties")
    rows = found.items() if isinstance(found, dict) else ()
    return [(str(name), row) for name, row in rows if isinstance(row, dict)][:MAX_FIELDS]


def _choices(field: Mapping[str, Any]) -> dict[str, str]:
    """Return the values that a field may have, with their titles."""
    items = field.get("items")
    rows = field.get("oneOf") or (items.get("anyOf") if isinstance(items, dict) else None)
    if isinstance(rows, list):
        pairs = ((str(row.get("const")), row.get("title")) for row in rows if isinstance(row, dict))
        return {value: str(title or value) for value, title in pairs}
    names = field.get("enum") or (items.get("enum") if isinstance(items, dict) else None)
    return {str(each): str(each) for each in names} if isinstance(names, list) else {}


def _default(field: Mapping[str, Any]) -> str:
    value = field.get("default")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _hint(field: Mapping[str, Any]) -> str:
    choices = _choices(field)
    words = [value if value == title else f"{value}: {title}" for value, title in choices.items()]
    if field.get("type") == "boolean":
        words = ["yes", "no"]
    about = [str(field[name]) for name in ("title", "description") if field.get(name)]
    found = [*about, ", ".join(words)] if words else about
    return f"  ({'; '.join(found)})" if found else ""


def _value(name: str, words: str, field: Mapping[str, Any]) -> Any:
    kind, choices = field.get("type"), _choices(field)
    if kind == "array":
        return [_choice(name, each.strip(), choices) for each in words.split(",") if each.strip()]
    if kind == "boolean":
        if words.lower() not in TRUE | FALSE:
            raise FormProblem(f"{name} is yes or no")
        return words.lower() in TRUE
    if kind in ("integer", "number"):
        try:
            return int(words) if kind == "integer" else float(words)
        except ValueError as error:
            raise FormProblem(f"{name} is a number") from error
    return _choice(name, words, choices)


def _choice(name: str, words: str, choices: Mapping[str, str]) -> str:
    """Return the value that is meant, by itself or by its title."""
    if not choices:
        return words
    for value, title in choices.items():
        if words.lower() in (value.lower(), title.lower()):
            return value
    raise FormProblem(f"{name} is one of {', '.join(choices)}")
