"""The dialect of models that are trained to call tools: the form of their chat templates. Pure.

Two forms: the tags of Qwen3-Coder, which agents of other models were trained with as well, and the
JSON of Hermes, which Qwen2.5, Qwen3 and many others use. Models that are trained for it stay in
their form, so a grammar applies only inside a call. The tools are listed as JSON in both, as newer
templates do: it has fewer tokens than the tags in which Qwen3-Coder's template lists them.

Source: the chat templates of Qwen2.5-Coder, Qwen3-Coder and Qwen3.6, and llama.cpp's parsers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from lcursor.agent.dialects import gbnf, ladder, texts
from lcursor.agent.records import Answer, Call, DialectName, Known, Observation, Reply, Tool

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


class Native:
    """The dialect, in one of its forms."""

    name: DialectName = "native"
    temperature = 0.7

    def __init__(self, form: Form = "tags") -> None:
        self.form = form

    def system(self, tools: Sequence[Tool], facts: str) -> str:
        """Return the system text."""
        listed = "\n".join(_shown(tool) for tool in tools)
        form = _TAGS_FORM if self.form == "tags" else _JSON_FORM
        parts = [texts.RULES, f"# Tools\n\n<tools>\n{listed}\n</tools>", form]
        return texts.with_facts("\n\n".join(parts), facts)

    def grammar(self, tools: Sequence[Tool], known: Known) -> str:
        """Return the grammar of one or more calls, which end the message."""
        return _tags_grammar(tools) if self.form == "tags" else _json_grammar(tools)

    def parse(self, answer: Answer, tools: Sequence[Tool], known: Known) -> Reply:
        """Parse an answer in this form or a similar one."""
        return ladder.read_answer(answer, tools)

    def observations(self, calls: Sequence[Call], found: Sequence[Observation]) -> str:
        """Return the results, as the templates have them."""
        return "\n".join(f"<tool_response>\n{each.text}\n</tool_response>" for each in found)

    def render(self, call: Call) -> str:
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


def type_of(tool: Tool, argument: str) -> str:
    """Return the JSON type of an argument."""
    if argument in tool.integers:
        return "integer"
    return "array" if argument in tool.lists else "string"


def _shown(tool: Tool) -> str:
    properties: dict[str, Mapping[str, Any]] = {}
    for name, what in {**tool.required, **tool.optional}.items():
        kind = type_of(tool, name)
        items = {"items": {"type": "integer"}} if kind == "array" else {}
        properties[name] = {"type": kind, **items, **({"description": what} if what else {})}
    parameters = {"type": "object", "properties": properties, "required": [*tool.required]}
    function = {"name": tool.name, "description": tool.what, "parameters": parameters}
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False)


def _tags_grammar(tools: Sequence[Tool]) -> str:
    named = {
        "root": 'call ("\\n" call)*',
        "call": '("<tool_call>\\n")? ('
        + " | ".join(f"t{at}" for at in range(len(tools)))
        + ') "</function>\\n</tool_call>"',
    }
    types = {
        "string": "text",
        "integer": 'int "\\n</parameter>"',
        "array": 'ints "\\n</parameter>"',
    }
    for at, tool in enumerate(tools):
        arguments = {}
        for name in [*tool.required, *tool.optional]:
            rule = f"t{at}-{name.replace('_', '-')}"
            arguments[name] = rule
            head = gbnf.literal(f"<parameter={name}>\n")
            named[rule] = f'{head} {types[type_of(tool, name)]} "\\n"'
        required = [arguments[name] for name in tool.required]
        optional = " | ".join(arguments[name] for name in tool.optional)
        named[f"t{at}"] = " ".join(
            [gbnf.literal(f"<function={tool.name}>\n")]
            + ([gbnf.in_any_order(required)] if required else [])
            + ([f"({optional})*"] if optional else [])
        )
    return gbnf.rules({**named, **_NUMBERS, **gbnf.until("text", VALUE_END)})


def _json_grammar(tools: Sequence[Tool]) -> str:
    named = {
        "root": 'call ("\\n" call)*',
        "call": '"<tool_call>\\n{\\"name\\": \\"" ('
        + " | ".join(f"t{at}" for at in range(len(tools)))
        + ') "}}\\n</tool_call>"',
        "string": gbnf.JSON_STRING,
    }
    types = {"string": "string", "integer": "int", "array": "ints"}
    for at, tool in enumerate(tools):
        pairs = {
            name: f"{gbnf.literal(f'{json.dumps(name)}: ')} {types[type_of(tool, name)]}"
            for name in [*tool.required, *tool.optional]
        }
        required = ' ", " '.join(pairs[name] for name in tool.required)
        optional = " | ".join(pairs[name] for name in tool.optional)
        head = gbnf.literal(tool.name + '", "arguments": {')
        rest = f'(", " ({optional}))*' if optional else ""
        named[f"t{at}"] = f"{head} {required} {rest}".rstrip()
    return gbnf.rules({**named, **_NUMBERS})


_NUMBERS = {
    "int": gbnf.INTEGER,
    "ints": '"[" int ("," " "? int)* "]"',
}
