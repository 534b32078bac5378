"""No call runs without the policy, a rule or the user's answer, in random runs.

`pytest --hypothesis-profile thorough` on this file tries 10,000 of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lcursor.agent.approvals import Approvals, decide
from lcursor.agent.loop import Loop
from lcursor.agent.parts import RunLimits, RunParts
from lcursor.agent.records import Decision, Known, Observation, Policy, Shown, ToolCall
from lcursor.agent.run_log import AgentStep, RunLog, RunState
from lcursor.agent.shell_rules import ShellRules, normalize
from lcursor.agent.tools.table import has_effect
from lcursor.agent.tools.tool import Tool
from lcursor.config import AgentConfig
from lcursor.context.servers import AskUser
from lcursor.process.run import Cancel
from lcursor.process.sandbox import Level
from lcursor.protocol.agent import AgentChoice
from lcursor.stop import Stop
from tests.fakes.agent import TOOLS, LineDialect, ScriptModel, Watcher, call, create, finish, view
from tests.unit.agent.test_crashes import Killed, KilledLog
from tests.unit.agent.test_loop import start

RULES = ShellRules.of(AgentConfig(allow=("make test",), forbid=("curl",)))
ROOT = Path("/nowhere")
COMMANDS = ("ls", "make test", "rm a", "rm  a", "curl x", "ls && rm a", "cat /etc/passwd")
ANSWERS = [
    view("a.py"), create("b.py", "x"), call("fly"), finish(),
    *(call("bash", command=each) for each in COMMANDS),
    *(call("bash", command=each, escalate="why") for each in COMMANDS),
]  # fmt: skip
Choice = tuple[AgentChoice, str]


class Tools:
    """Tools that only check that a call may run."""

    tools: Sequence[Tool] = (*TOOLS, replace(TOOLS[0], name="fly"))

    def __init__(self, user: User, approvals: Approvals, level: Level) -> None:
        self.user, self.approvals, self.level = user, approvals, level
        self.count = 0

    def run(
        self,
        call: ToolCall,
        cancel: Cancel,
        *,
        is_unconfined: bool = False,
        ask: AskUser | None = None,
    ) -> Observation:
        self.count += 1
        if call.tool == "finish":
            assert not is_unconfined
            return Observation("tests fail", is_error=True, result="tests failed")
        policy = self.approvals.policy
        user, key, is_unchanged = self.user, key_of(call), self.user.has_no_change
        verdict = decide(call, policy, self.level, RULES, ROOT, is_unchanged=is_unchanged).verdict
        is_approved = call.key == user.approved or key in user.approved_for_run
        assert verdict == "allow" or (is_approved and (verdict == "ask" or user.has_changed))
        if is_unconfined:
            is_free = policy == "full" or self.level == "none"
            assert is_free or (call.arguments["escalate"] and is_approved)
        if has_effect(call):  # outside of the sandbox, only its own approval is left after it
            user.has_no_change &= is_unconfined and verdict == "allow"
            user.approved_for_run &= user.approved_inside | {key}
        user.approved, user.has_changed = "", False
        return Observation(f"result {self.count}", result="exit 0")

    def remember(self, shown: Sequence[Shown]) -> None:
        """Remember nothing."""

    def known(self) -> Known:
        return Known()


class Files:
    """A tree in which every command changes something."""

    base, count = "0", 0

    def checkpoint(self) -> str:
        self.count += 1
        return str(self.count)

    def restore(self, tree_id: str) -> None:
        """Restore nothing."""

    def changed(self, since: str = "") -> list[Any]:
        return []


class User(Watcher):
    """A user with given answers, who remembers what was approved."""

    def __init__(self, answers: list[Choice]) -> None:
        super().__init__()
        self.answers, self.approved_for_run = answers, set[str]()
        self.approved, self.has_changed = "", False
        self.approved_inside = set[str]()
        self.has_no_change = True

    def ask(self, step: AgentStep, question: Decision) -> Choice:
        choice, text = self.answers.pop() if self.answers else ("reject", "")
        asked = step.call
        if choice != "reject" and text:
            asked = ToolCall(asked.tool, {**asked.arguments, "command": text})
            self.has_changed = True
        self.approved = "" if choice == "reject" else asked.key
        if choice == "run":
            self.approved_for_run.add(key_of(asked))
            if not question.is_bound:
                self.approved_inside.add(key_of(asked))
        return choice, text

    def plan(self, text: str, *, is_question: bool = False) -> str:
        return text if self.answers and self.answers.pop()[0] != "reject" else ""


def key_of(call: ToolCall) -> str:
    arguments = {**call.arguments, "escalate": bool(call.arguments.get("escalate"))}
    if "command" in arguments:
        arguments["command"] = normalize(str(arguments["command"]))
    return ToolCall(call.tool, arguments).key


@given(
    policy=st.sampled_from(["plan", "ask", "auto", "full"]),
    level=st.sampled_from(["bubblewrap", "none"]),
    script=st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=8),
    answers=st.lists(
        st.tuples(st.sampled_from(["once", "run", "reject"]), st.sampled_from(["", "rm b"])),
        max_size=6,
    ),
    left=st.integers(1, 40),
)
def test_nothing_runs_unapproved(
    policy: Policy, level: Level, script: list[str], answers: list[Choice], left: int
) -> None:
    user, files = User(answers), Files()
    with tempfile.TemporaryDirectory() as name:
        start(Path(name), policy).write("resume", sandbox=level)
        for killed_after in (left, 1 << 30):
            log = KilledLog.open(Path(name))
            vars(log).update(left=killed_after, is_written=True)
            try:
                _execute(log, level, [*script, finish()], user, files)
            except Killed:
                continue
            break


def _execute(log: RunLog, level: Level, script: list[str], user: User, files: Files) -> None:
    def summarize(state: RunState) -> None:
        raise AssertionError(state)

    approvals = Approvals("plan", level, RULES, ROOT, lambda: str(files.count), files.base)
    tools, limits = Tools(user, approvals, level), RunLimits(steps=20)
    model = ScriptModel(script, 100_000)
    made = RunParts(model, LineDialect(), tools, files, approvals, summarize, limits=limits)
    Loop(log, made, user, Stop()).run()
