"""The dialect of the smallest models: one action a step, under a grammar of what exists. Pure.

The model never spells a path, a command or existing code: it chooses among files, symbols and
regions that it has seen named. So every action can be carried out; it may still be the wrong one.

    # the test expects a list
    edit src/dates.py#parse_dates : return a list instead of a tuple
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Final

from lcursor.agent.dialects import call_parser, gbnf, prompts, schemas
from lcursor.agent.dialects.dialect import Dialect
from lcursor.agent.guided import guidance, rewrite
from lcursor.agent.guided.known import KnownNames, name_paths
from lcursor.agent.guided.regions import RegionPages
from lcursor.agent.records import Answer, DialectName, Known, Observation, Reply, ToolCall
from lcursor.agent.run_log import RunState
from lcursor.agent.tools import bash, edit, finish, grep, mcp, search
from lcursor.agent.tools.pages import Pages
from lcursor.agent.tools.read_lines import ReadLines
from lcursor.agent.tools.tool import Tool, ToolContext
from lcursor.storage import json_text

MAX_SPOTS: Final = 400
"""Paths and symbols in a grammar; the last ones count."""
MAX_LISTED: Final = 150
"""Definitions that are listed at the start."""
_THOUGHT: Final = '"# " [^\\n#] [^\\n]{0,119} "\\n"'
_WORDS: Final = "[^\\n: ] [^\\n]{0,119}"
_ACTION: Final = re.compile(
    r"(?:(?P<verb>read|find|grep|run) (?P<target>.+)"
    r"|edit (?P<region>\S+) : (?P<instruction>.+)|done : (?P<summary>.+)"
    r"|call (?P<tool>\S+) : (?P<arguments>\{.*\}))"
)
_SYSTEM: Final = """\
You change a small project, one action a step. Each step is two lines: # with a short thought, \
then one action. The actions:

read src/dates.py                 show a file
read src/dates.py#parse_date      show a definition
grep parse_date                   find lines by a pattern
find where dates are parsed       find code by its meaning
edit src/dates.py#parse_date : …  rewrite a part that was shown; say what to change
run test                          run a command of the project
done : …                          end; say what was changed

If a command fails, run it first. If you know the function, read it; else grep for a word of the \
task. Then edit the part that has to change, run the tests, and end when they pass.

Example. Task: parse_date should accept an empty text.
# the task is about this function
read src/dates.py#parse_date
# it fails if the text is empty
edit src/dates.py#parse_date : return None if the text is empty
# check the change
run test
# the tests pass
done : parse_date accepts an empty text"""


_TOOLS: Final = """\
The user has further tools. If the task needs one, call it first, as in
call NAME : {"argument": "value"}
They are:"""


class Choice(Dialect):
    """The dialect. Its grammar must be forced: it is about the whole answer."""

    name: DialectName = "choice"
    temperature = 0.0
    searches_servers = False
    tools = (edit.TOOL, search.TOOL, grep.TOOL, rewrite.TOOL, bash.TOOL, finish.TOOL)
    is_forced = True
    can_plan = False
    note = "This small model can look up, test and rewrite single functions, not plan larger work"

    def __init__(self) -> None:
        self._names = KnownNames()

    def system(self, tools: Sequence[Tool], facts: str) -> str:
        """Return the system text."""
        return prompts.with_facts(_SYSTEM, facts)

    def grammar(self, tools: Sequence[Tool], known: Known) -> str:
        """Return the grammar of a step with what may be named now."""
        actions = ['"done : " words'] if known.may_end else []
        named = {}
        spots = _spots(known)[-MAX_SPOTS:]
        if known.may_look and known.may_search:
            actions += ['"find " words', '"grep " words']
        if known.may_look and spots:
            actions.append('"read " spot')
            named["spot"] = gbnf.one_of(spots)
        if known.regions:
            actions.append('"edit " id " : " words')
            named["id"] = gbnf.one_of(known.regions)
        if known.commands:
            actions.append('"run " name')
            named["name"] = gbnf.one_of(known.commands)
        if known.schemas:
            actions.append('"call " tool')
            named["tool"] = " | ".join(
                f"{gbnf.literal(f'{name} : ')} {schemas.expression(schema)}"
                for name, schema in known.schemas.items()
            )
            named |= {**gbnf.JSON_OBJECT, "space": '" "?'}
        act = f"({' | '.join(actions)})"
        return gbnf.rules(
            {"root": 'think act "\\n"', "think": _THOUGHT, "act": act, "words": _WORDS, **named}
        )

    def parse(self, answer: Answer, tools: Sequence[Tool], known: Known) -> Reply:
        """Parse a step."""
        lines = [line.strip() for line in answer.text.strip().split("\n")]
        thought = " ".join(line[1:].strip() for line in lines if line.startswith("#"))
        actions = [line for line in lines if line and not line.startswith("#")]
        if len(actions) != 1:
            words = call_parser.cut_off(answer) or f"Write one action, not {len(actions)}."
            return Reply(thought, problem=words)
        call = _call(actions[0], known)
        if call is None:
            words = call_parser.cut_off(answer) or f"There is no action {actions[0]!r}."
            return Reply(thought, problem=words)
        return Reply(thought, (call,))

    def observations(self, calls: Sequence[ToolCall], found: Sequence[Observation]) -> str:
        """Return the result, and which actions usually follow."""
        parts = (
            part
            for call, one in zip(calls, found, strict=True)
            for part in (one.text, _hint(call, one))
        )
        return "\n\n".join(filter(None, parts))

    def pages(self, seen: ReadLines) -> Pages:
        """Return what shows rows of files, with the ids of regions."""
        return RegionPages(seen)

    def facts(self, known: Known, of_project: Callable[[], str]) -> str:
        """Return what may be named: more would confuse a small model."""
        return facts(known)

    def known(self, context: ToolContext) -> Known:
        """Return what the model may name."""
        return self._names.collect(context)

    def offered(self, known: Known, state: RunState, tree_id: str) -> Known:
        """Return what may be named in the next answer."""
        return guidance.offered(known, state, tree_id)

    def own_answer(self, known: Known, state: RunState, tree_id: str) -> str:
        """Return the next answer if it needs no model."""
        return guidance.own_answer(known, state, tree_id)

    def observe(self, call: ToolCall, found: Observation, context: ToolContext) -> None:
        """Record the files that the output of a command names."""
        if call.tool == bash.TOOL.name:
            name_paths(context, found.text)

    def render(self, call: ToolCall, known: Known) -> str:
        """Return the action of a call that this dialect has."""
        values = call.arguments
        if call.tool == "bash":
            names = (name for name, text in known.commands.items() if text == values["command"])
            return f"run {next(names)}"
        if call.tool == mcp.CALL.name:
            return f"call {values['name']} : {json.dumps(values['arguments'], ensure_ascii=False)}"
        if call.tool == "rewrite":
            return f"edit {values['region']} : {values['instruction']}"
        form = {"search": "find {query}", "grep": "grep {pattern}", "finish": "done : {summary}"}
        return form.get(call.tool, "read {path}").format(**values)


def facts(known: Known) -> str:
    """Return what a model should know of the project at the start: commands, files, definitions."""
    lines, left = list[str](), MAX_LISTED
    for path in known.paths:
        names = known.symbols.get(path, ())[: max(left, 0)]
        left -= len(names)
        lines.append(f"{path}: {' '.join(names)}" if names else path)
    commands = ", ".join(f"{name} ({text})" for name, text in known.commands.items())
    lines = ["Files and definitions:", *lines, *([f"Commands: {commands}"] * bool(commands))]
    if known.schemas:
        lines += [_TOOLS, *(schema["description"] for schema in known.schemas.values())]
    return "\n".join(lines)


def _hint(call: ToolCall, found: Observation) -> str:
    if call.tool == "bash":
        if found.status == 0:
            return "It passed. End with done if nothing is left to change; else read on, or edit."
        return "It failed. Read the code that is the cause, or edit it if you have read it."
    if found.is_error:
        return ""
    if call.tool == mcp.CALL.name:
        return "Use this result now: read or edit what it is for, or end with done."
    if call.tool == "rewrite":
        return "Run the tests now, or edit another region."
    if call.tool == "str_replace_editor":
        return "Edit a region of it if the change belongs here; else read on."
    return "Read one of these." if call.tool in {"search", "grep"} else ""


def _spots(known: Known) -> list[str]:
    """Return the paths, and the symbols as `path#name`."""
    symbols = (f"{path}#{name}" for path, names in known.symbols.items() for name in names)
    return [*symbols, *known.paths]


def _call(action: str, known: Known) -> ToolCall | None:
    match = _ACTION.fullmatch(action)
    if match is None:
        return None
    if tool := match["tool"]:
        return _server_call(tool, match["arguments"]) if tool in known.schemas else None
    if match["summary"]:
        return ToolCall("finish", {"summary": match["summary"]})
    if region := match["region"]:
        if region not in known.regions:
            return None
        path, words = known.regions[region].path, match["instruction"]
        return ToolCall("rewrite", {"path": path, "region": region, "instruction": words})
    target = match["target"].strip()
    if match["verb"] == "find":
        return ToolCall("search", {"query": target})
    if match["verb"] == "grep":
        return ToolCall("grep", {"pattern": target})
    if match["verb"] == "run":
        command = known.commands.get(target)
        return ToolCall("bash", {"command": command}) if command else None
    if target in _spots(known):
        return ToolCall("str_replace_editor", {"command": "view", "path": target})
    return None


def _server_call(tool: str, text: str) -> ToolCall | None:
    try:
        arguments = json_text.parse(text)
    except ValueError:
        return None
    return ToolCall(mcp.CALL.name, {"name": tool, "arguments": arguments})
