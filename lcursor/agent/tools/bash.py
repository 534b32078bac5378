"""The tool that runs shell commands."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from lcursor.agent import shell_rules
from lcursor.agent.observe import command_observation
from lcursor.agent.records import Observation
from lcursor.agent.tools.tool import Arguments, Tool, ToolContext
from lcursor.workspace import shell
from lcursor.workspace.shell import DEFAULT_S, MAX_S


def run(given: Arguments, context: ToolContext) -> Observation:
    """Run a command."""
    command = given["command"]
    max_s = min(max(given.get("timeout_s") or DEFAULT_S, 1), MAX_S)
    result = context.shell.run(
        command, context.cancel, max_s=max_s, is_unconfined=context.is_unconfined
    )
    context.gate.forget()
    tests, seen = context.commands().get("test", ""), list[str]()
    parsed = shell_rules.parse(command)
    is_plain = len(parsed.commands) == 1 and not parsed.problem
    if not context.is_unconfined and (command == tests or is_plain):  # others may change files
        seen = context.gate.evidence(command, result, tests, context.cancel)
    observation = command_observation(result, command, context.limit, context.outputs, seen)
    context.seen.print(observation.text.split("\n"))
    if context.edit.test and command == tests:
        reason = shell.obstacle(result, command, context.tree.root)
        if reason and not context.tree.changed():  # else it may be for a change
            return replace(observation, obstacle=reason)
    return observation


TOOL: Final = Tool(
    "bash",
    "Run a shell command in the project's folder, without network, input and background "
    "processes. Git is read-only.",
    {"command": "the command"},
    {
        "timeout_s": f"at most {MAX_S}; {DEFAULT_S} by default",
        "escalate": "only to leave the sandbox: the reason, for the user",
    },
    integers=frozenset({"timeout_s"}),
    kind="command",
    examples={
        "bash": "Run shell commands. They start in the root, without network or input:\n\n"
        "```bash\npytest -q tests/test_dates.py\n```"
    },
    run=run,
)
