"""Tools of servers, as they are found, stored and shown. Pure.

Names and descriptions come from a server: they are cleaned before anyone reads them, and no text
of them is an instruction.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lcursor.config import SERVER_SEPARATOR

MAX_LINE: Final = 120
MAX_SHOWN: Final = 4000
"""Characters of a description when the user is asked."""
MAX_ARGUMENTS: Final = 8
"""Arguments of a tool that are shown in a line."""
HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that are invisible, or change the order of others."""


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of a server."""

    server: str
    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name by which agents call it."""
        return f"{self.server}{SERVER_SEPARATOR}{self.name}"

    @property
    def digest(self) -> str:
        """Identifies all that a server says of it."""
        parts = [self.name, self.description, self.schema, self.annotations]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def signature(self) -> str:
        """Its name and arguments in one line."""
        found = self.schema.get("properties")
        properties: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
        names = [*properties]
        required = self.schema.get("required") or ()
        names.sort(key=lambda name: name not in required)
        parts = [
            f"{one_line(name, 40)}{'' if name in required else '?'}: {_type(properties[name])}"
            for name in names[:MAX_ARGUMENTS]
        ]
        parts += ["…"] if len(names) > MAX_ARGUMENTS else []
        return f"{one_line(self.key)}({', '.join(parts)})"

    @property
    def summary(self) -> str:
        """The first line of its description."""
        return one_line(self.description.strip().partition("\n")[0])

    def stored(self) -> dict[str, Any]:
        """Return it as JSON, without its server."""
        return {
            "name": self.name,
            "description": self.description,
            "schema": dict(self.schema),
            "annotations": dict(self.annotations),
        }

    def lines(self) -> list[str]:
        """Return all that the user should read before it is allowed."""
        text = cleaned(self.description)[:MAX_SHOWN] or "(no description)"
        head = f"{self.signature} {json.dumps(dict(self.annotations))}".removesuffix(" {}")
        return [head, *(f"    {line}" for line in text.splitlines())]


def tool_of(server: str, row: Mapping[str, Any]) -> ServerTool:
    """Return a tool from JSON.

    Raises:
        ValueError: it has a wrong type.
        KeyError: a field is missing.
    """
    tool = ServerTool(server, row["name"], row["description"], row["schema"], row["annotations"])
    texts, tables = (tool.name, tool.description), (tool.schema, tool.annotations)
    if not all(isinstance(each, str) for each in texts) or not all(
        isinstance(each, dict) for each in tables
    ):
        raise ValueError("a field has a wrong type")
    return tool


def cleaned(text: str) -> str:
    """Return a text without control, invisible and direction-changing characters."""
    return "".join(
        char for char in text if char == "\n" or unicodedata.category(char) not in HIDDEN
    )


def one_line(text: str, most: int = MAX_LINE) -> str:
    """Return a cleaned text on one line, of at most so many characters."""
    line = cleaned(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _type(schema: Any) -> str:
    """Return the type of an argument in a few words."""
    if not isinstance(schema, Mapping):
        return "any"
    values = schema.get("enum")
    if isinstance(values, list) and values:
        return one_line("|".join(map(str, values[:6])) + ("|…" if len(values) > 6 else ""), 60)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "any")
    options: Sequence[Any] = schema.get("anyOf") or schema.get("oneOf") or ()
    if kind is None and options:
        kinds = (_type(each) for each in options)
        return next((each for each in kinds if each not in ("null", "any")), "any")
    if kind == "array":
        return f"[{_type(schema.get('items'))}]"
    return one_line(str(kind or "any"), 20)
