"""Check a call's name, arguments and types against the tools. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lcursor.agent.records import ToolCall
from lcursor.agent.tools.tool import Tool
from lcursor.storage import json_text


class Malformed(Exception):
    """A call is written wrongly; the message is for the model."""


def call_of(name: str, values: Mapping[str, Any], tools: Sequence[Tool]) -> ToolCall:
    """Return a call with the types that its tool declares.

    Args:
        values: of any JSON type; a text is converted to the declared type.

    Raises:
        Malformed: the tool or an argument is unknown, missing, or of another type.
    """
    tool = next((one for one in tools if one.name == name), None)
    if tool is None:
        raise Malformed(f"There is no tool {name!r}. Use {_or([one.name for one in tools])}.")
    for argument in values:
        if argument not in tool.required and argument not in tool.optional:
            raise Malformed(f"{name} has no argument {argument!r}. Write {_signature(tool)}.")
    missing = [argument for argument in tool.required if values.get(argument) is None]
    if missing:
        raise Malformed(f"{name} needs {' and '.join(missing)}. Write {_signature(tool)}.")
    given = {key: value for key, value in values.items() if value is not None}
    return ToolCall(name, {key: _typed(tool, key, value) for key, value in given.items()})


def _typed(tool: Tool, argument: str, value: Any) -> Any:
    if argument in tool.integers:
        return _integer(tool, argument, value)
    if argument in tool.objects:
        found = _json(value) if isinstance(value, str) else value
        if not isinstance(found, dict):
            raise _wrong(tool, argument, "a JSON object")
        return found
    if argument in tool.lists:
        numbers = _json(value) if isinstance(value, str) else value
        if not isinstance(numbers, list):
            raise _wrong(tool, argument, "a list of integers, such as [1, 40]")
        return [_integer(tool, argument, each) for each in numbers]
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        raise _wrong(tool, argument, "a string")
    if isinstance(value, (dict, list)):  # the content of a JSON file, not in quotes
        return json.dumps(value, indent=2, ensure_ascii=False)
    return str(value)


def _integer(tool: Tool, argument: str, value: Any) -> int:
    number = _json(value.strip()) if isinstance(value, str) else value
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int):
        raise _wrong(tool, argument, "an integer")
    return number


def _json(text: str) -> Any:
    try:
        return json_text.parse(text)
    except ValueError:
        return None


def _wrong(tool: Tool, argument: str, what: str) -> Malformed:
    return Malformed(f"{argument} must be {what}. Write {_signature(tool)}.")


def _signature(tool: Tool) -> str:
    """Return a tool on one line: `bash(command, timeout_s?)`."""
    return f"{tool.name}({', '.join([*tool.required, *(f'{one}?' for one in tool.optional)])})"


def _or(names: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
