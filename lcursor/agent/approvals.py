"""Decide whether a call of an agent may run, needs the user's approval, or is forbidden.

The files of a run are a copy of the project, so that edits need no approval: the user accepts or
rejects their hunks later. What matters is what leaves the sandbox. No file of a project changes a
decision, only the user's settings and answers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from lcursor.agent import shell_rules
from lcursor.agent.records import Call, Decision, Policy
from lcursor.agent.shell_rules import Rules
from lcursor.process.sandbox import Level
from lcursor.protocol.agent import AgentChoice

READS: Final = frozenset({"grep", "glob", "search", "finish"})
EDITOR: Final = "str_replace_editor"
EDITS: Final = frozenset({"create", "str_replace", "insert"})
REWRITE: Final = "rewrite"
COMMAND: Final = "bash"
ESCALATE: Final = "escalate"
"""The argument of `bash` with a reason to run outside of the sandbox."""

PLAN_ONLY: Final = (
    "This is plan mode: nothing can be changed. Read what you need, then finish with the plan."
)
"""Why a call is forbidden in plan mode, for the model."""


def approved_plan(text: str) -> str:
    """Return the message that lets the model carry out a plan, as edited by the user."""
    return f"Approved:\n\n{text.strip()}\n\nCarry it out now."


def decide(call: Call, policy: Policy, level: Level, rules: Rules, root: Path) -> Decision:
    """Decide about a call, without the user's answers in this run.

    Args:
        level: the level of the sandbox; "none" means that commands run without one.
        root: the folder in which commands run, whose links are resolved.
    """
    command = str(call.arguments.get("command") or "")
    if call.tool in READS or (call.tool == EDITOR and command == "view"):
        return Decision("allow")
    if call.tool == REWRITE or (call.tool == EDITOR and command in EDITS):
        return Decision("forbid", PLAN_ONLY) if policy == "plan" else Decision("allow")
    if call.tool != COMMAND:
        why = f"{call.tool} {command}".strip() + " is unknown"
        return Decision("forbid", PLAN_ONLY) if policy == "plan" else Decision("ask", why)
    return _decide_command(call, command, policy, level, rules, root)


class Approvals:
    """The decisions of a run, with the user's answers.

    Answers hold for equal calls only: the same words in the same folder, in or out of the sandbox.
    """

    def __init__(self, policy: Policy, level: Level, rules: Rules, root: Path) -> None:
        self.policy = policy
        """May change, when the user approves a plan."""
        self._level: Level = level
        self._rules, self._root = rules, root
        self._answers: dict[str, Decision] = {}

    def decide(self, call: Call) -> Decision:
        """Decide about a call."""
        found = decide(call, self.policy, self._level, self._rules, self._root)
        return self._answers.get(self._key(call), found) if found.verdict == "ask" else found

    def remember(self, call: Call, choice: AgentChoice, reason: str = "") -> None:
        """Remember the user's answer for equal calls, unless it was an approval for once.

        Args:
            reason: for a rejection, for the model.
        """
        rejected = f"The user rejected this{': ' + reason.strip() if reason.strip() else ''}."
        if choice != "once":
            answer = Decision("allow") if choice == "run" else Decision("forbid", rejected)
            self._answers[self._key(call)] = answer

    def _key(self, call: Call) -> str:
        """Identify equal calls; time limits and words of a reason do not matter."""
        if call.tool != COMMAND:
            return call.key
        command = shell_rules.normalize(str(call.arguments.get("command") or ""))
        where = "outside" if call.arguments.get(ESCALATE) else "inside"
        return f"{COMMAND} {where} {self._root} {command}"


def _decide_command(
    call: Call, command: str, policy: Policy, level: Level, rules: Rules, root: Path
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
    if policy == "auto" and is_confined:
        return Decision("allow")
    return shell_rules.check(command, rules, root, is_confined=is_confined)
