"""The dialect of models that write code in Markdown but fail at calls: one fenced block. Pure.

The block's first word is the action: `bash`, `view`, `edit`, `search` or `finish`. Edits are
search/replace blocks, which `edit.apply` parses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from lcursor.agent.dialects import call_parser, prompts
from lcursor.agent.dialects.arguments import Malformed, call_of
from lcursor.agent.dialects.dialect import Dialect
from lcursor.agent.records import Answer, DialectName, Known, Observation, Reply, ToolCall
from lcursor.agent.tools.tool import Tool
from lcursor.changes import fences
from lcursor.changes.apply import parse, patches
from lcursor.changes.apply.blocks import Block

ORDER: Final = ("bash", "view", "search", "edit", "finish")
"""Of the forms in the prompt; others follow."""
_SHELL: Final = {"bash", "sh", "shell"}
_TARGET: Final = re.compile(r"(?P<path>.+?)(?::L?(?P<first>\d+)(?:-L?(?P<last>\d+))?)?")
_FORM: Final = """\
Write one or two sentences about what you do next, and then exactly one block, which is carried \
out. Wait for its result. These are the blocks:"""


class Fenced(Dialect):
    """The dialect."""

    name: DialectName = "fenced"
    temperature = 0.2

    def system(self, tools: Sequence[Tool], facts: str) -> str:
        """Return the system text."""
        return prompts.with_facts(
            "\n\n".join([prompts.RULES, _FORM, *_forms(tools).values()]), facts
        )

    def grammar(self, tools: Sequence[Tool], known: Known) -> str:
        """Return "": the text is free."""
        return ""

    def parse(self, answer: Answer, tools: Sequence[Tool], known: Known) -> Reply:
        """Parse the only action of an answer; without one, calls in a native form."""
        text = call_parser.without_reasoning(answer.text)
        try:
            actions = list(_actions(text.split("\n"), tools))
            if not actions:
                return call_parser.read(answer, tools)
            if len(actions) > 1:
                raise Malformed(f"Write one block, not {len(actions)}.")
        except Malformed as error:
            words = call_parser.cut_off(answer) or str(error)
            return Reply(text.strip(), problem=words)
        return Reply(actions[0].thought, actions[0].calls)

    def observations(self, calls: Sequence[ToolCall], found: Sequence[Observation]) -> str:
        """Return the results as plain text."""
        return "\n\n".join(each.text for each in found)


def _forms(tools: Sequence[Tool]) -> dict[str, str]:
    """Return the form of each action."""
    forms = {action: text for tool in tools for action, text in tool.examples.items()}
    return {action: forms[action] for action in [*filter(forms.get, ORDER), *forms]}


def _actions(lines: Sequence[str], tools: Sequence[Tool]) -> Iterator[Reply]:
    """Yield each block that is an action."""
    row = last = 0
    while row < len(lines):
        fence = fences.opening(lines[row])
        if fence is None:
            row += 1
            continue
        stop, body, is_closed = parse.fence_body(lines, row, fence)
        before = "\n".join(lines[:row])
        if not call_parser.is_example(before):
            calls = _calls(fence.info, body, lines[last:stop], tools)
            if calls and not is_closed:
                raise Malformed("The block does not end with ```.")
            if calls:
                yield Reply(before.strip(), tuple(calls))
        row = last = stop


def _calls(
    info: str, body: Sequence[str], lines: Sequence[str], tools: Sequence[Tool]
) -> list[ToolCall]:
    """Return the calls of a block; none if it is quoted code.

    Args:
        info: the text after its opening fence.
        lines: the block with the prose above, which may name its file.
    """
    first, _, rest = info.partition(" ")
    action, target = first.lower(), rest.strip()
    action = "bash" if action in _SHELL else action
    if action == "edit" or any(map(patches.begins_pair, body)):
        return _edits(target if action == "edit" else "", lines, tools)
    forms = _forms(tools)
    if action not in forms:
        return []
    text = "\n".join(body).strip("\n")
    target = target or text.strip()
    if not target:
        raise Malformed(f"The block is empty. {forms[action]}")
    if action == "view":
        return [_view(target, tools)]
    tool = next(tool for tool in tools if action in tool.examples)
    names = [*tool.required]
    values = dict(zip(names, (target, text) if len(names) > 1 else (text or target,), strict=True))
    return [call_of(tool.name, values, tools)]


def _view(target: str, tools: Sequence[Tool]) -> ToolCall:
    match = _TARGET.fullmatch(target)
    if match is None:
        raise Malformed(f"{target!r} is no path. {_forms(tools)['view']}")
    values: dict[str, Any] = {"command": "view", "path": match["path"]}
    if match["first"]:
        values["view_range"] = [int(match["first"]), int(match["last"] or match["first"])]
    return call_of("str_replace_editor", values, tools)


def _edits(path: str, lines: Sequence[str], tools: Sequence[Tool]) -> list[ToolCall]:
    found = [one for one in parse.blocks("\n".join(lines), path) if one.pairs or one.problem]
    if not found:
        raise Malformed(f"The block has no complete pair. {_forms(tools)['edit']}")
    return [_edit(path or one.path, one, tools) for one in found]


def _edit(path: str, block: Block, tools: Sequence[Tool]) -> ToolCall:
    if not path or block.problem or not block.is_closed or len(block.pairs) != 1:
        why = block.problem or ("a pair is not complete" if path else "it names no file")
        raise Malformed(f"The block cannot be used: {why}. {_forms(tools)['edit']}")
    old, new = ("\n".join(lines) for lines in (block.pairs[0].old, block.pairs[0].new))
    if old:
        values = {"command": "str_replace", "path": path, "old_str": old, "new_str": new}
    else:
        values = {"command": "create", "path": path, "file_text": f"{new}\n"}
    return call_of("str_replace_editor", values, tools)
