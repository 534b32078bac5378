"""Check the schemas of tools, and the arguments of calls against them. For the helper process.

A schema comes from a server, so it may be huge, no schema at all, or written to take forever. Its
regular expressions are not used: the server checks them itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import jsonschema
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import extend

MAX_SCHEMA_BYTES: Final = 32 << 10
MAX_NODES: Final = 5_000
"""Of a schema, with each reference in the place where it is used."""
MAX_DEPTH: Final = 40
MAX_ARGUMENT_CHARS: Final = 200_000
MAX_MESSAGE: Final = 300


def problem_of(schema: Any) -> str:
    """Return why a schema cannot be used; "" if it can."""
    if not isinstance(schema, dict):
        return "its schema is no table"
    try:
        if len(json.dumps(schema)) > MAX_SCHEMA_BYTES:
            return "its schema is too large"
        left = _count(schema, schema, (), MAX_NODES)
        if left < 0:
            return "its schema is too large"
        jsonschema.Draft202012Validator.check_schema(_without_patterns(schema))
    except SchemaError as error:
        return f"its schema is invalid: {error.message[:MAX_MESSAGE]}"
    except (ValueError, LookupError, RecursionError) as error:
        return f"its schema is invalid: {str(error)[:MAX_MESSAGE]}"
    return ""


def argument_problem(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments of a call, for the model; "" if nothing is."""
    if len(json.dumps(arguments)) > MAX_ARGUMENT_CHARS:
        return "the arguments are too long"
    errors = _Validator(schema).iter_errors(arguments)
    try:
        error = best_match(errors)
    except (ValueError, LookupError, RecursionError) as found:
        return f"the arguments cannot be checked: {str(found)[:MAX_MESSAGE]}"
    if error is None:
        return ""
    path = ".".join(map(str, error.absolute_path))
    return f"{path}: {error.message[:MAX_MESSAGE]}" if path else error.message[:MAX_MESSAGE]


def _count(node: Any, root: Mapping[str, Any], open_refs: tuple[str, ...], left: int) -> int:
    """Return what is left of a number of nodes after those of a schema.

    Raises:
        ValueError: a reference leads outside, or the schema is nested too deeply.
    """
    todo = [(node, open_refs, 0)]
    while todo and left >= 0:
        node, refs, depth = todo.pop()
        left -= 1
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        if isinstance(node, dict):
            ref = node.get("$ref", node.get("$dynamicRef"))
            if isinstance(ref, str) and ref not in refs:
                todo.append((_target(root, ref), (*refs, ref), depth + 1))
            elif isinstance(ref, str) and not ref.startswith("#"):
                raise ValueError(f"it refers to {ref}")
            todo += [(each, refs, depth + 1) for each in node.values()]
        elif isinstance(node, list):
            todo += [(each, refs, depth + 1) for each in node]
    return left


def _target(root: Mapping[str, Any], ref: str) -> Any:
    """Return the part of a schema that a reference names.

    Raises:
        ValueError: it leads outside, or nowhere.
    """
    if not ref.startswith("#"):
        raise ValueError(f"it refers to {ref}")
    node: Any = root
    for part in filter(None, ref[1:].split("/")):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdigit() and int(key) < len(node):
            node = node[int(key)]
        else:
            raise ValueError(f"it refers to {ref}, which it has not")
    return node


def _without_patterns(node: Any) -> Any:
    """Return a schema whose regular expressions, which are compiled when checked, are gone."""
    if isinstance(node, list):
        return [_without_patterns(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _without_patterns(value)
        for key, value in node.items()
        if not (key == "pattern" and isinstance(value, str)) and key != "patternProperties"
    }


def _ignored(*_: Any) -> Iterator[ValidationError]:
    """Accept any value."""
    yield from ()


def _additional(
    validator: Any, allowed: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """Check names that are not listed, unless the schema lists them by patterns."""
    if "patternProperties" not in schema:
        check = jsonschema.Draft202012Validator.VALIDATORS["additionalProperties"]
        yield from check(validator, allowed, instance, schema)


_Validator: Final = extend(
    jsonschema.Draft202012Validator,
    {
        "pattern": _ignored,
        "patternProperties": _ignored,
        "uniqueItems": _ignored,
        "additionalProperties": _additional,
    },
)
