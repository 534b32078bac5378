"""Read the calls in a message, in the form that was asked for or in a similar one. Pure.

Models often depart from the form of their own template. A departure is read only if the tool is
known, its required arguments are present, and there is one reading; what is quoted is no call.

| form | example |
| --- | --- |
| tags, also without the outer ones | `<function=bash><parameter=command>ls</parameter>…` |
| JSON in a tag | `<tool_call>{…}</tool_call>`, `<tools>`, `<function>`, `<function-call>` |
| one JSON object as the message, as a fenced block, or on lines of its own | `{"name": …}` |
| a Python call alone on a line | `bash(command="ls")` |

The first form that a message has counts. The forms were collected from reports to ollama, vLLM,
goose, opencode and llama.cpp, and from replies of local models.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lcursor.agent.dialects.arguments import Malformed, call_of
from lcursor.agent.records import Answer, Reply, ToolCall
from lcursor.agent.tools.tool import Tool
from lcursor.changes import fences
from lcursor.llm.records import Text
from lcursor.llm.streaming import ReasoningSplitter

_OPEN: Final = re.compile(
    r"<(?:tool_call|tools|function|function-call|function_call)>|<function=([\w.-]+)>"
)
_FUNCTION: Final = re.compile(r"\s*<function=[\"']?([^>\n\"']+)[\"']?>")
_PARAMETER: Final = re.compile(r"\s*<parameter=([\w.-]+)>")
_VALUE_END: Final = re.compile(r"\n?</parameter>(?=\s*(?:<parameter=|</function>|</tool_call>|\Z))")
_CLOSE: Final = re.compile(r"\s*</(?:tool_call|tools|function|function-call|function_call)>")
_QUOTES: Final = re.compile(
    r"(?:\b(?:for example|for instance|e\.g\.|example of)[^.!?\n]{0,60}"
    r"|\b(?:example(?: call)?|looks? like(?: this)?|like this|such as|as follows))[:,]?\s*$",
    re.IGNORECASE,
)
"""The end of a text that announces an example."""
_TRAILING_COMMA: Final = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)
_PYTHON: Final = re.compile(r"\s*(\w+)\(.*\)\s*")
_KEYS: Final = {"name", "arguments", "parameters", "id", "type", "function"}


def cut_off(answer: Answer) -> str:
    """Return words for the model if its answer was cut off at the limit."""
    if answer.finish != "length":
        return ""
    return f"The message was cut off after {answer.answer_tokens} tokens. Write less."


def read(answer: Answer, tools: Sequence[Tool]) -> Reply:
    """Return the calls of an answer; its problem, if a call is malformed or the answer cut off."""
    text = without_reasoning(answer.text)
    scan = _Scan(text, tools)
    try:
        for find in (scan.tagged, scan.objects, scan.python):
            if found := list(scan.walk(find)):
                calls = tuple(call for one in found for call in one.calls)
                return Reply(text[: found[0].start].strip(), calls)
    except Malformed as error:
        return Reply(text.strip(), problem=cut_off(answer) or str(error))
    return Reply(text.strip(), problem=cut_off(answer))


def without_reasoning(text: str) -> str:
    """Return a message without the model's reasoning in tags."""
    thinking = ReasoningSplitter()
    parts = [*thinking.feed(text), *thinking.finish()]
    text = "".join(part.text for part in parts if isinstance(part, Text))
    reasoning, _, rest = text.partition("\n</think>\n")  # it started in the prompt
    return rest if rest and "<think>" not in reasoning else text


def is_example(before: str) -> bool:
    """Return whether the text before a call announces an example."""
    return _QUOTES.search(before.rstrip()[-160:]) is not None


@dataclass(frozen=True, slots=True)
class _Lines:
    """A line of a message, or a block of code."""

    start: int
    end: int
    """After the line break."""
    block: str | None
    """The content of a block of code; None for a line outside of blocks."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Calls, or a quoted call, in which case there are none."""

    start: int
    end: int
    calls: Sequence[ToolCall] = ()


@dataclass(frozen=True, slots=True)
class _Scan:
    """One message."""

    text: str
    tools: Sequence[Tool]

    def walk(self, find: Callable[[_Lines], _Found | None]) -> Iterator[_Found]:
        """Yield the calls that `find` returns for each line and block of code."""
        pos = 0
        while pos < len(self.text):
            end = _line_end(self.text, pos)
            lines = _Lines(pos, end + 1, None)
            if fence := fences.opening(self.text[pos:end]):
                lines = self._block(fence, lines)
            found = find(lines)
            if found and found.calls:
                yield found
            pos = found.end if found else lines.end

    def tagged(self, lines: _Lines) -> _Found | None:
        """Return the calls in the first tag of a line."""
        if lines.block is not None:
            return None
        for match in _OPEN.finditer(self.text, lines.start, lines.end):
            if self.text.count("`", lines.start, match.start()) % 2:  # inline code
                continue
            if is_example(self.text[: match.start()]):
                return _Found(match.start(), self._quoted_end(match.end()))
            if (found := self._tag(match)) is not None:
                return _Found(match.start(), found[1], found[0])
        return None

    def objects(self, lines: _Lines) -> _Found | None:
        """Return the calls in JSON that is a block of code or starts a line."""
        block, end = lines.block, lines.end
        if block is None:
            block = self.text[lines.start : end]
            if block.lstrip().startswith(("{", "[")):
                end = self._object_end(lines.start)
                block = self.text[lines.start : end]
        is_call = block.lstrip().startswith(("{", "[")) and not is_example(self.text[: lines.start])
        return _Found(lines.start, end, self._object_calls(block) if is_call else ())

    def python(self, lines: _Lines) -> _Found | None:
        """Return the Python call that is alone on a line."""
        line = self.text[lines.start : lines.end]
        match = _PYTHON.fullmatch(line)
        is_known = match and any(tool.name == match[1] for tool in self.tools)
        if lines.block is not None or not is_known or is_example(self.text[: lines.start]):
            return None
        return _Found(lines.start, lines.end, self._python_calls(line.strip()))

    def _block(self, fence: fences.Fence, first: _Lines) -> _Lines:
        """Return the block of code that a line opens."""
        body, pos = list[str](), first.end
        while pos < len(self.text):
            end = _line_end(self.text, pos)
            line, pos = self.text[pos:end], end + 1
            if fence.is_end(line):
                break
            body.append(fence.unindent(line))
        return _Lines(first.start, pos, "\n".join(body))

    def _quoted_end(self, pos: int) -> int:
        """Return the end of a quoted call in tags."""
        match = _CLOSE.search(self.text, pos)
        while match and (following := _CLOSE.match(self.text, match.end())):
            match = following
        return match.end() if match else _line_end(self.text, pos) + 1

    def _tag(self, match: re.Match[str]) -> tuple[list[ToolCall], int] | None:
        """Return the calls in a tag and their end; None if it is no call."""
        if match[1]:
            is_known = any(tool.name == match[1] for tool in self.tools)
            is_call = is_known or _PARAMETER.match(self.text, match.end())
            return self._function(match.start()) if is_call else None
        start = _skip(self.text, match.end())
        if _FUNCTION.match(self.text, start):
            return self._function(start)
        if self.text[start : start + 1] in {"{", "["}:
            return self._tagged_json(start)
        if match[0] == "<tool_call>":
            raise Malformed("<tool_call> is not followed by a call of a tool.")
        return None

    def _function(self, start: int) -> tuple[list[ToolCall], int]:
        head = _FUNCTION.match(self.text, start)
        assert head is not None
        values: dict[str, Any] = {}
        pos = head.end()
        if self.text[_skip(self.text, pos) :].startswith("{"):  # <function=bash>{"command": …}
            arguments, end = _decode(self.text, _skip(self.text, pos))
            if not isinstance(arguments, dict):
                raise Malformed(f"The arguments of {head[1]} are not a JSON object.")
            return [call_of(head[1], arguments, self.tools)], _after_tags(self.text, end)
        while parameter := _PARAMETER.match(self.text, pos):
            end_match = _VALUE_END.search(self.text, parameter.end())
            if end_match is None:
                raise Malformed(f"The value of {parameter[1]} does not end with </parameter>.")
            value = self.text[parameter.end() : end_match.start()].removeprefix("\n")
            if "<parameter=" in value or "<function=" in value:
                raise Malformed(f"The end of the value of {parameter[1]} is ambiguous.")
            if parameter[1] in values:
                raise Malformed(f"{head[1]} has the argument {parameter[1]} twice.")
            values[parameter[1]] = value
            pos = end_match.end()
        return [call_of(head[1], values, self.tools)], _after_tags(self.text, pos)

    def _tagged_json(self, pos: int) -> tuple[list[ToolCall], int]:
        calls: list[ToolCall] = []
        while self.text[pos : pos + 1] in {"{", "["}:
            made, pos = _decode(self.text, pos)
            calls += [self._call(each) for each in (made if isinstance(made, list) else [made])]
            pos = _skip(self.text, pos)
        return calls, _after_tags(self.text, pos)

    def _object_end(self, pos: int) -> int:
        """Return the end of the lines that a JSON value at a position is on."""
        try:
            _, end = json.JSONDecoder(strict=False).raw_decode(self.text, _skip(self.text, pos))
        except (ValueError, RecursionError):
            blank = self.text.find("\n\n", pos)
            return len(self.text) if blank < 0 else blank + 1
        return max(_line_end(self.text, end), pos) + 1

    def _object_calls(self, block: str) -> list[ToolCall]:
        """Return the calls of a block that is one JSON value; none if it is other data."""
        value = _loads(block.strip())
        if value is None:
            names = "|".join(re.escape(tool.name) for tool in self.tools)
            starts = rf'\s*\[?\s*{{\s*"name"\s*:\s*"(?:{names})"\s*,\s*"(?:arguments|parameters)"'
            if re.match(starts, block):
                raise Malformed("The call is not valid JSON.")
            return []
        some = value if isinstance(value, list) else [value]
        if len(some) == 1 and isinstance(some[0], dict) and self._is_flat(some[0]):
            raise Malformed('Write a call as {"name": NAME, "arguments": {…}}.')
        is_call = all(isinstance(each, dict) and self._is_call(each) for each in some)
        return [self._call(each) for each in some] if is_call else []

    def _is_call(self, made: dict[str, Any]) -> bool:
        inner = made.get("function")
        made = inner if isinstance(inner, dict) else made
        values = made.get("arguments", made.get("parameters"))
        has_both = isinstance(made.get("name"), str) and isinstance(values, (dict, str))
        return has_both and made.keys() <= _KEYS

    def _is_flat(self, made: dict[str, Any]) -> bool:
        """Return whether an object has the arguments of a tool next to its name."""
        tool = next((tool for tool in self.tools if tool.name == made.get("name")), None)
        given = made.keys() - {"name"}
        return tool is not None and bool(given) and given <= {*tool.required, *tool.optional}

    def _call(self, table: Any) -> ToolCall:
        if isinstance(table, dict) and isinstance(table.get("function"), dict):
            table = table["function"]
        if not isinstance(table, dict) or not isinstance(table.get("name"), str):
            raise Malformed('Write a call as {"name": NAME, "arguments": {…}}.')
        values = table.get("arguments", table.get("parameters"))
        if isinstance(values, str):  # as in the messages of an API
            values = _loads(values)
        if not isinstance(values, dict):
            raise Malformed(f"The arguments of {table['name']} are not a JSON object.")
        return call_of(table["name"], values, self.tools)

    def _python_calls(self, line: str) -> list[ToolCall]:
        try:
            expression = ast.parse(line, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []
        if not isinstance(expression, ast.Call) or not isinstance(expression.func, ast.Name):
            return []
        name = expression.func.id
        tool = next(tool for tool in self.tools if tool.name == name)
        try:
            given = [ast.literal_eval(each) for each in expression.args]
            named = {each.arg or "**": ast.literal_eval(each.value) for each in expression.keywords}
        except (ValueError, TypeError, RecursionError):
            return []
        first = dict(zip(tool.required, given, strict=False))
        if len(given) > len(first) or first.keys() & named.keys():
            raise Malformed(f"Name the arguments of {name}.")
        return [call_of(name, {**first, **named}, self.tools)]


def _line_end(text: str, pos: int) -> int:
    end = text.find("\n", pos)
    return len(text) if end < 0 else end


def _skip(text: str, pos: int) -> int:
    """Return the position of the next character that is no blank."""
    while pos < len(text) and text[pos].isspace():
        pos += 1
    return pos


def _after_tags(text: str, pos: int) -> int:
    """Return the position after the tags that close a call; they may be missing at the end."""
    end = pos
    while match := _CLOSE.match(text, end):
        end = match.end()
    rest = text[_skip(text, end) :]
    if end == pos and rest and not _OPEN.match(rest):
        raise Malformed("The call does not end with its closing tag.")
    return end


def _decode(text: str, pos: int) -> tuple[Any, int]:
    """Return the JSON value at a position, repaired if necessary, and its end."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, pos)
    except (ValueError, RecursionError):
        match = _CLOSE.search(text, pos)
        end = match.start() if match else len(text)
        made = _loads(text[pos:end].strip())
        if made is None:
            raise Malformed("The call is not valid JSON.") from None
        return made, end


def _loads(text: str) -> Any:
    """Parse JSON with line breaks in strings, commas too many, or without its last brace."""
    fewer = _TRAILING_COMMA.sub(lambda match: match[1] or "", text)
    for each in (text, fewer, fewer + "}"):
        try:
            return json.loads(each, strict=False)
        except (ValueError, RecursionError):
            continue
    return None
