"""Grammars of JSON values under a schema, for the arguments of a server's tool. Pure.

What a schema says beyond types, names and enumerations is not in the grammar; the server's own
check follows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from lcursor.agent.dialects import gbnf

MAX_DEPTH: Final = 5
MAX_VALUES: Final = 200
"""Of an enumeration; the values of a longer one are any."""
ANY: Final = "value"
SIMPLE: Final = {
    "string": "string",
    "integer": gbnf.INTEGER,
    "number": "number",
    "boolean": '("true" | "false")',
    "null": '"null"',
}


def expression(schema: Any, depth: int = 0) -> str:
    """Return an expression for the values that a schema allows; it uses `gbnf.JSON_OBJECT`."""
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return ANY
    if isinstance(values := schema.get("enum"), list) and 0 < len(values) <= MAX_VALUES:
        return gbnf.one_of(json.dumps(each, ensure_ascii=False) for each in values)
    for name in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(name), list) and options:
            return _either(expression(each, depth + 1) for each in options)
    kind = schema.get("type")
    if isinstance(kind, list):
        return _either(expression({**schema, "type": each}, depth + 1) for each in kind)
    if kind == "object":
        return _object(schema, depth)
    if kind == "array":
        item = expression(schema.get("items"), depth + 1)
        return f'("[" space ({item} space ("," space {item} space)*)? "]")'
    return SIMPLE.get(str(kind), ANY)


def _object(schema: Mapping[str, Any], depth: int) -> str:
    """Return an expression for an object: first what it needs, then anything that it may have."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return "object"
    pairs = {
        name: f"{gbnf.literal(json.dumps(name) + ':')} space {expression(each, depth + 1)} space"
        for name, each in properties.items()
    }
    required = [name for name in schema.get("required") or () if name in pairs]
    comma = ' "," space '
    needed = comma.join(pairs[name] for name in required)
    others = " | ".join(pair for name, pair in pairs.items() if name not in required)
    if not others:
        body = needed
    elif needed:
        body = f'{needed} ("," space ({others}))*'
    else:
        body = f'(({others}) ("," space ({others}))*)?'
    return f'("{{" space {body} "}}")'


def _either(parts: Any) -> str:
    found = [*dict.fromkeys(parts)]
    return ANY if ANY in found else f"({' | '.join(found)})"
