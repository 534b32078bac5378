"""Decide whether a call of an agent may run, needs the user's approval, or is forbidden.

The files of a run are a copy of the project, so that edits need no approval: the user accepts or
rejects their hunks later. What matters is what leaves the sandbox. No file of a project changes a
decision, only the user's settings and answers. What these allow outside of the sandbox is bound to
the content that was approved (`workspace.approval`): `make test` runs what the Makefile says now.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from lcursor.agent import shell_rules
from lcursor.agent.records import Decision, Policy, ToolCall
from lcursor.agent.shell_rules import ShellRules
from lcursor.agent.tools import bash, mcp, table
from lcursor.context.servers import ServerTools
from lcursor.process.sandbox import Level
from lcursor.protocol.agent import AgentChoice
from lcursor.workspace.approval import CHANGED, Answer, Answers

COMMAND: Final = bash.TOOL.name
SERVER_CALL: Final = mcp.CALL.name
ESCALATE: Final = "escalate"
"""The argument of `bash` with a reason to run outside of the sandbox."""

PLAN_ONLY: Final = (
    "This is plan mode: nothing can be changed. Read what you need, then finish with the plan."
)
"""Why a call is forbidden in plan mode, for the model."""
CONFINED: Final = "in the sandbox"
"""Content for which answers about commands in the sandbox hold: whatever files there are."""
TOOL_CHANGED: Final = "the tool has changed since you approved it"


def approved_plan(text: str) -> str:
    """Return the message that lets the model carry out a plan, as edited by the user."""
    return f"Approved:\n\n{text.strip()}\n\nCarry it out now."


def decide(
    call: ToolCall,
    policy: Policy,
    level: Level,
    rules: ShellRules,
    root: Path,
    *,
    is_unchanged: bool = False,
    risk: str = "",
) -> Decision:
    """Decide about a call, without the user's answers in this run.

    Args:
        level: the level of the sandbox; "none" means that commands run without one.
        root: the folder in which commands run, whose links are resolved.
        is_unchanged: whether the files are those that the run started with; otherwise no rule
            allows a command outside of the sandbox.
        risk: why a call of a server's tool has effects outside of the sandbox.
    """
    tool, command = table.ALL.get(call.tool), str(call.arguments.get("command") or "")
    if tool is None or not tool.has_command(call.arguments):
        why = f"{call.tool} {command}".strip() + " is unknown"
        return Decision("forbid", PLAN_ONLY) if policy == "plan" else Decision("ask", why)
    if not table.has_effect(call):
        return Decision("allow")
    if table.kind_of(call) == "edit":
        return Decision("forbid", PLAN_ONLY) if policy == "plan" else Decision("allow")
    if call.tool == SERVER_CALL:
        return decide_server_call(policy, risk)
    found = _decide_command(call, command, policy, level, rules, root)
    if found.verdict != "allow" or policy == "full" or is_unchanged or not is_outside(call, level):
        return found
    if shell_rules.is_safe(command, root, rules, is_confined=False):
        return found
    return Decision("ask", "files have changed since the run started, so it may do something else")


def decide_server_call(policy: Policy, risk: str) -> Decision:
    """Decide about a call of a server's tool, whatever the server says of it.

    In plan mode none may run: no one can know whether a tool only reads.
    """
    if policy == "plan":
        return Decision("forbid", PLAN_ONLY)
    if policy == "full" or (policy == "auto" and not risk):
        return Decision("allow")
    return Decision("ask", risk or "it calls a tool of a server")


def is_outside(call: ToolCall, level: Level) -> bool:
    """Return whether a call is a command that runs outside of the sandbox."""
    return call.tool == COMMAND and (level == "none" or bool(call.arguments.get(ESCALATE)))


class Approvals:
    """The decisions of a run, with the user's answers.

    Answers hold for equal calls only: the same words in the same folder, in or out of the sandbox.
    Outside of it, an approval also ends when a file changes, except by the command itself.

    Args:
        content: returns an id of all present files, the same for the same files; "" if unknown.
        base: the id of those that the run started with.
        servers: with further tools; an answer about one holds while that is the same.
    """

    def __init__(
        self,
        policy: Policy,
        level: Level,
        rules: ShellRules,
        root: Path,
        content: Callable[[], str] = lambda: "",
        base: str = "",
        servers: ServerTools | None = None,
    ) -> None:
        self.policy = policy
        """May change, when the user approves a plan."""
        self._level: Level = level
        self._rules, self._root = rules, root
        self._content, self._base = content, base
        self._servers = servers
        self._answers = Answers()
        self._before = ""
        """The content at the last decision."""

    def decide(self, call: ToolCall) -> Decision:
        """Decide about a call."""
        is_bound = is_outside(call, self._level)
        self._before = self._content() if is_bound else ""
        found, key = self._by_rules(call), self._key(call)
        if found.verdict != "ask":
            return found
        if self._answers.state(call.key, "") == "rejected":
            return Decision("forbid", self._answers.reason(call.key))
        state = self._answers.state(key, self._before if is_bound else self._tool(call))
        if state == "approved":
            return Decision("allow")
        if state == "rejected":
            return Decision("forbid", self._answers.reason(key))
        changed = TOOL_CHANGED if call.tool == SERVER_CALL else CHANGED
        why = f"{found.why}; {changed}" if state == "changed" else found.why
        if is_bound and self._names_root(call):
            why += "; it names your project itself, not the agent's copy"
        return replace(found, why=why, is_bound=is_bound)

    def remember(
        self, call: ToolCall, choice: AgentChoice, reason: str = "", *, is_earlier: bool = False
    ) -> None:
        """Remember the user's answer for equal calls, unless it was an approval for once.

        Args:
            reason: for a rejection, for the model.
            is_earlier: it was given before the run was continued, for files that are unknown now.
        """
        if choice == "run":
            content = self._tool(call)
            if is_outside(call, self._level):
                content = "" if is_earlier else self._content()
            self._answers.remember(self._key(call), Answer(True, content))
        elif choice == "reject":
            rejected = f"The user rejected this{': ' + reason.strip() if reason.strip() else ''}."
            key = call.key if call.tool == SERVER_CALL else self._key(call)
            self._answers.remember(key, Answer(False, reason=rejected))

    def ran(self, call: ToolCall) -> None:
        """Extend what allowed a command to the files as it left them: it was allowed to do that."""
        if not self._before:
            return
        by_rules = self._by_rules(call).verdict == "allow"
        if by_rules and self._before == self._base:
            self._base = self._content()
        elif not by_rules:
            self._answers.extend(self._key(call), self._before, self._content())
        self._before = ""

    def _by_rules(self, call: ToolCall) -> Decision:
        is_unchanged = bool(self._before) and self._before == self._base
        return decide(
            call,
            self.policy,
            self._level,
            self._rules,
            self._root,
            is_unchanged=is_unchanged,
            risk=self._risk(call),
        )

    def _names_root(self, call: ToolCall) -> bool:
        command = str(call.arguments.get("command"))
        return re.search(rf"{re.escape(str(self._root))}(?![\w.-])", command) is not None

    def _risk(self, call: ToolCall) -> str:
        if call.tool != SERVER_CALL or self._servers is None:
            return ""
        return self._servers.risk(str(call.arguments["name"]))

    def _tool(self, call: ToolCall) -> str:
        """Return the content for which an answer holds that is not about files."""
        if call.tool != SERVER_CALL or self._servers is None:
            return CONFINED
        return self._servers.content(str(call.arguments["name"]))

    def _key(self, call: ToolCall) -> str:
        """Identify equal calls; time limits and words of a reason do not matter.

        Those of a server's tool are equal whatever their arguments, for an approval of the run.
        """
        if call.tool == SERVER_CALL:
            return f"{SERVER_CALL} {call.arguments['name']}"
        if call.tool != COMMAND:
            return call.key
        command = shell_rules.normalize(str(call.arguments.get("command") or ""))
        where = "outside" if call.arguments.get(ESCALATE) else "inside"
        return f"{COMMAND} {where} {self._root} {command}"


def _decide_command(
    call: ToolCall, command: str, policy: Policy, level: Level, rules: ShellRules, root: Path
) -> Decision:
    if reason := shell_rules.forbidden(command, rules):
        return Decision("forbid", f"The user forbids this: {reason}.")
    if policy == "full":
        return Decision("allow")
    escalation = str(call.arguments.get(ESCALATE) or "")
    is_confined = level != "none" and not escalation
    if policy == "plan":
        is_safe = not escalation and shell_rules.is_safe(
            command, root, rules, is_confined=is_confined
        )
        return Decision("allow") if is_safe else Decision("forbid", PLAN_ONLY)
    if escalation:
        return Decision("ask", f"it leaves the sandbox: {' '.join(escalation.split())}")
    if is_confined and (policy == "auto" or rules.is_own(command)):
        return Decision("allow")
    return shell_rules.check(command, rules, root, is_confined=is_confined)
