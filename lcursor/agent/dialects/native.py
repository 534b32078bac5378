"""The dialect of models that are trained to call tools: the form of their chat templates. Pure.

Two forms: the tags of Qwen3-Coder, which agents of other models were trained with as well, and the
JSON of Hermes, which Qwen2.5, Qwen3 and many others use. Models that are trained for it stay in
their form, so a grammar applies only inside a call. The tools are listed as JSON in both, as newer
templates do: it has fewer tokens than the tags in which Qwen3-Coder's template lists them.

Source: the chat templates of Qwen2.5-Coder, Qwen3-Coder and Qwen3.6, and llama.cpp's parsers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from lcursor.agent.dialects import call_parser, gbnf, prompts
from lcursor.agent.dialects.dialect import Dialect
from lcursor.agent.records import Answer, DialectName, Known, Observation, Reply, ToolCall
from lcursor.agent.tools.tool import Tool

Form = Literal["tags", "json"]
VALUE_END = "\n</parameter>"
_TAGS_FORM = """\
To call a tool, write this at the end of your message, after a sentence or two:

<tool_call>
<function=NAME>
<parameter=ARGUMENT>
VALUE
</parameter>
</function>
</tool_call>

Values are plain text, without quotes or escapes, on one or more lines. You may call several \
tools that only read, block after block, but only one that changes something."""
_JSON_FORM = """\
To call a tool, write this at the end of your message, after a sentence or two:

<tool_call>
{"name": NAME, "arguments": {"ARGUMENT": VALUE}}
</tool_call>

You may call several tools that only read, one block after the other, but only one that changes \
something."""


class Native(Dialect):
    """The dialect, in one of its forms."""

    name: DialectName = "native"
    temperature = 0.7

    def __init__(self, form: Form = "tags") -> None:
        self.form = form

    def system(self, tools: Sequence[Tool], facts: str) -> str:
        """Return the system text."""
        listed = "\n".join(_shown(tool) for tool in tools)
        form = _TAGS_FORM if self.form == "tags" else _JSON_FORM
        parts = [prompts.RULES, f"# Tools\n\n<tools>\n{listed}\n</tools>", form]
        return prompts.with_facts("\n\n".join(parts), facts)

    def grammar(self, tools: Sequence[Tool], known: Known) -> str:
        """Return the grammar of one or more calls, which end the message."""
        return _tags_grammar(tools) if self.form == "tags" else _json_grammar(tools)

    def parse(self, answer: Answer, tools: Sequence[Tool], known: Known) -> Reply:
        """Parse an answer in this form or a similar one."""
        return call_parser.read(answer, tools)

    def observations(self, calls: Sequence[ToolCall], found: Sequence[Observation]) -> str:
        """Return the results, as the templates have them."""
        return "\n".join(f"<tool_response>\n{each.text}\n</tool_response>" for each in found)

    def render(self, call: ToolCall) -> str:
        """Return the text of a call.

        In tags, no value may contain the tag that ends it.
        """
        if self.form == "json":
            made = {"name": call.tool, "arguments": dict(call.arguments)}
            return f"<tool_call>\n{json.dumps(made, ensure_ascii=False)}\n</tool_call>"
        values = (
            f"<parameter={name}>\n{value if isinstance(value, str) else json.dumps(value)}"
            f"{VALUE_END}\n"
            for name, value in call.arguments.items()
        )
        return f"<tool_call>\n<function={call.tool}>\n{''.join(values)}</function>\n</tool_call>"


def _shown(tool: Tool) -> str:
    function = {"name": tool.name, "description": tool.what, "parameters": tool.schema}
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False)


_COMMON: Final = {
    "root": 'call ("\\n" call)*',
    "int": gbnf.INTEGER,
    "ints": '"[" int ("," " "? int)* "]"',
}
_TAGS: Final = {
    "string": "text",
    "integer": 'int "\\n</parameter>"',
    "array": 'ints "\\n</parameter>"',
    "object": 'object "\\n</parameter>"',
}
_JSON: Final = {"string": "string", "integer": "int", "array": "ints", "object": "object"}


def _tags_grammar(tools: Sequence[Tool]) -> str:
    calls = []
    for tool in tools:
        values = {}
        for name in [*tool.required, *tool.optional]:
            head = gbnf.literal(f"<parameter={name}>\n")
            values[name] = f'({head} {_TAGS[tool.type_of(name)]} "\\n")'
        required = gbnf.in_any_order([values[name] for name in tool.required])
        head = gbnf.literal(f"<function={tool.name}>\n")
        calls.append(f"{head} {required} {_any(values[name] for name in tool.optional)}")
    call = f'("<tool_call>\\n")? ({" | ".join(calls)}) "</function>\\n</tool_call>"'
    return gbnf.rules({**_COMMON, "call": call, **gbnf.until("text", VALUE_END), **_objects(tools)})


def _json_grammar(tools: Sequence[Tool]) -> str:
    calls = []
    for tool in tools:
        pairs = {
            name: f"{gbnf.literal(json.dumps(name) + ': ')} {_JSON[tool.type_of(name)]}"
            for name in [*tool.required, *tool.optional]
        }
        required = ' ", " '.join(pairs[name] for name in tool.required)
        head = gbnf.literal(tool.name + '", "arguments": {')
        rest = _any(f'", " {pairs[name]}' for name in tool.optional)
        calls.append(f"{head} {required} {rest}")
    head, end = gbnf.literal('<tool_call>\n{"name": "'), gbnf.literal("}}\n</tool_call>")
    call = f"{head} ({' | '.join(calls)}) {end}"
    return gbnf.rules({**_COMMON, "call": call, "string": gbnf.JSON_STRING, **_objects(tools)})


def _objects(tools: Sequence[Tool]) -> dict[str, str]:
    """Return the rules of JSON objects, if a tool has such arguments."""
    return dict(gbnf.JSON_OBJECT) if any(tool.objects for tool in tools) else {}


def _any(texts: Iterable[str]) -> str:
    """Return an expression for any number of some expressions."""
    joined = " | ".join(texts)
    return f"({joined})*" if joined else ""
