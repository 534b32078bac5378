"""Record what a foreign agent reports, in the run's log and for the user. On the run's thread.

A call of a tool is a step, which is shown before it is stored: what a report says has happened
already. Text before a step is stored with it. Changed files get a checkpoint in a pause.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from lcursor.acp.client import updates
from lcursor.acp.client.updates import ToolUse
from lcursor.agent.parts import Checkpoints, User
from lcursor.agent.records import FOREIGN, Observation, ToolCall
from lcursor.agent.run_log import AgentStep, RunLog
from lcursor.agent.tools.table import has_effect

SETTLE_S: Final = 0.2
"""Time without a report after which changed files get a checkpoint."""
NO_USAGE: Final = {"read_tokens": 0, "cached_tokens": 0, "answer_tokens": 0}


class Recorder:
    """The steps of a run.

    Args:
        root: the project, as the agent sees it.
    """

    def __init__(self, log: RunLog, user: User, tree: Checkpoints, root: str) -> None:
        self._log, self._user, self._tree, self._root = log, user, tree, root
        self._uses = dict[str, tuple[ToolUse, int]]()
        """Calls with the numbers of their steps, by the agent's ids."""
        self._text, self._kind = "", ""
        """What it wrote since the last step, and whether that was a thought at last."""
        self.message = ""
        """The part of that which is no thought."""
        self.used_tokens = self.context_tokens = 0
        self._plan = 0
        """Number of the step with its plan."""
        steps = log.state.steps
        self._tree_id = next((each.after for each in reversed(steps) if each.after), tree.base)
        self._shown = dict[int, tuple[str, str]]()
        """What is shown of steps that run, by their numbers."""
        self._has_changed = False
        self._since_s = self._last_s = time.monotonic()

    def update(self, row: Mapping[str, Any]) -> None:
        """Record a report of the agent; one of an unknown kind is ignored."""
        self._last_s = time.monotonic()
        kind = str(row.get("sessionUpdate"))
        if kind in ("agent_message_chunk", "agent_thought_chunk"):
            self._add_text(updates.text_of(row.get("content")), kind)
        elif kind in ("tool_call", "tool_call_update"):
            self.use(row)
        elif kind == "plan":
            self._show_plan(row.get("entries"))
        elif kind == "usage_update":
            used, size = row.get("used"), row.get("size")
            self.used_tokens = used if isinstance(used, int) else self.used_tokens
            self.context_tokens = size if isinstance(size, int) else self.context_tokens

    def use(self, row: Mapping[str, Any]) -> tuple[ToolUse, AgentStep]:
        """Record a call of a tool, or its change; return it with its step."""
        key = str(row.get("toolCallId"))
        use, number = self._uses.get(key, (ToolUse(), 0))
        was_over = use.is_over
        use.update(row)
        if not number:
            number = self.add(use.call(self._root))
            self._uses[key] = use, number
        step = self._log.state.steps[number - 1]
        if use.is_over:
            target = str(next(iter([*use.call(self._root).arguments.values()][1:]), ""))
            observation = replace(use.observation(self._root), target=target)
            if not was_over or observation != step.observation:
                self.end(number, observation)
        elif step.observation is None:
            self.show(use, step)
        return use, step

    def add(self, call: ToolCall) -> int:
        """Record a step that begins; return its number."""
        text, self._text, self._kind, self.message = self._text, "", "", ""
        number = len(self._log.state.steps) + 1
        self._user.step(AgentStep(number, call), "running")
        self._shown[number] = call.key, "running"
        self._log.write(
            "answer",
            text=text,
            calls=[asdict(call)],
            problem="",
            finish="stop",
            seconds=self.take_seconds(),
            cached_share=0.0,
            usage=NO_USAGE,
            talk={},
        )
        self._user.status("running")
        return number

    def end(self, number: int, observation: Observation) -> None:
        """Record the end of a step, or what came after it."""
        step = self._log.state.steps[number - 1]
        is_first = step.observation is None
        self._has_changed = self._has_changed or has_effect(step.call)
        self._log.write(
            "end",
            step=number,
            tree=self._tree_id,
            digest="",
            observation=asdict(observation),
            seconds=self.take_seconds() if is_first else step.seconds,
        )
        self._user.step(step, step.shown_state)

    def note(self, title: str, text: str = "") -> None:
        """Record something that is no call of a tool."""
        number = self.add(ToolCall(FOREIGN, {"kind": "note", "path": title}))
        self.end(number, Observation(text))

    def finish(self, result: str) -> None:
        """Record the end of steps that have none; `result` says why."""
        for number, step in enumerate(self._log.state.steps, 1):
            if step.observation is None:
                use = next((use for use, at in self._uses.values() if at == number), ToolUse())
                found = use.observation(self._root)
                self.end(number, replace(found, is_error=True, result=result))
        self.checkpoint()

    def settle(self) -> None:
        """Use a pause between reports."""
        if self._has_changed and time.monotonic() - self._last_s > SETTLE_S:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Store the files as they are."""
        if not self._has_changed:
            return
        self._has_changed = False
        tree_id = self._tree.checkpoint()
        last = len(self._log.state.steps)
        if tree_id != self._tree_id and last and self._log.state.steps[-1].observation:
            self._tree_id = tree_id
            observation = self._log.state.steps[-1].observation
            self.end(last, observation)
            self._has_changed = False
        self._user.status("running")

    def show(self, use: ToolUse, step: AgentStep) -> None:
        """Show a step that runs, with what is known of its call now; it is stored as it began."""
        now = replace(step, call=use.call(self._root))
        if self._shown.get(step.number) != (now.call.key, step.shown_state):
            self._shown[step.number] = now.call.key, step.shown_state
            self._user.step(now, step.shown_state)

    @property
    def seconds(self) -> float:
        """The time that is not in the log yet."""
        return time.monotonic() - self._since_s

    def take_seconds(self) -> float:
        """Return the time since the last call, for the log."""
        since_s, self._since_s = self._since_s, time.monotonic()
        return round(self._since_s - since_s, 3)

    def _add_text(self, text: str, kind: str) -> None:
        if text:
            self._user.delta(text, is_new=kind != self._kind)
            space = "\n\n" if self._text and kind != self._kind else ""
            self._text, self._kind = self._text + space + text, kind
            if kind == "agent_message_chunk":
                self.message += text

    def _show_plan(self, entries: object) -> None:
        title, text = updates.plan_step(entries)
        if not self._plan:
            self._plan = self.add(ToolCall(FOREIGN, {"kind": "note", "path": title}))
        self.end(self._plan, Observation(text, target=title))
