"""Answer what a foreign agent asks: whether a call may run, and forms. On the run's thread.

Our rules decide first, as for our own agent: the files are a copy and commands run in the sandbox,
so that the policy "auto" allows both. The agent is never allowed more than one call at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lcursor.acp.client.connection import Connection, Message
from lcursor.acp.client.recorder import Recorder
from lcursor.acp.client.updates import ToolUse
from lcursor.agent.approvals import PLAN_ONLY
from lcursor.agent.parts import ForeignRequest, User
from lcursor.agent.records import Decision, ToolCall
from lcursor.agent.run_log import AgentStep, RunLog
from lcursor.agent.tools import bash
from lcursor.run import forms

PERMISSION: Final = "session/request_permission"
FORM: Final = "elicitation/create"
ALLOW: Final = ("allow_once", "allow_always")
"""Kinds of options, the preferred first; their ids differ from agent to agent."""
REJECT: Final = ("reject_once", "reject_always")
MAX_FORMS: Final = 3
"""How often a form is shown again that was filled in wrongly."""


class Questions:
    """The questions of an agent."""

    def __init__(
        self,
        request: ForeignRequest,
        log: RunLog,
        user: User,
        connection: Connection,
        recorder: Recorder,
    ) -> None:
        self._request, self._log, self._user = request, log, user
        self._connection, self._recorder = connection, recorder
        self._open = list[Message]()
        """Those that are not answered."""
        self.remarks = list[str]()
        """What the user said to a call, for the agent: the protocol has no field for reasons."""

    def answer(self, message: Message) -> None:
        """Answer a request, perhaps by the user.

        Raises:
            Cancelled: the run was stopped; the request stays open.
        """
        self._open.append(message)
        if message.method == PERMISSION:
            result = self._permit(message.params)
        elif message.method == FORM:
            result = self._fill_in(message.params)
        else:
            self._open.pop()
            self._connection.reject(message, f"lcursor has no {message.method}")
            return
        self._open.pop()
        self._recorder.take_seconds()  # the user's time is not the agent's
        self._connection.answer(message, result)

    def cancel(self, message: Message) -> None:
        """Answer a request that comes too late for the user."""
        if message.method == PERMISSION:
            self._connection.answer(message, {"outcome": {"outcome": "cancelled"}})
        elif message.method == FORM:
            self._connection.answer(message, {"action": "cancel"})
        else:
            self._connection.reject(message, f"lcursor has no {message.method}")

    def cancel_open(self) -> None:
        """Answer what the user did not decide before the run was stopped."""
        while self._open:
            self.cancel(self._open.pop())

    # Permissions.

    def _permit(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        row = params.get("toolCall")
        use, step = self._recorder.use(row if isinstance(row, dict) else {})
        if schema := _questions_of(row):
            return self._permit_with_answers(params, schema)
        is_allowed = self._may_run(use, step)
        chosen = _option(params.get("options"), ALLOW if is_allowed else REJECT)
        if not chosen:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    def _permit_with_answers(
        self, params: Mapping[str, Any], schema: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Answer the questions of Qwen Code, which come as a permission."""
        filled = self._fill_in({"message": "Questions of the agent", "requestedSchema": schema})
        is_answered = filled["action"] == "accept"
        chosen = _option(params.get("options"), ALLOW if is_answered else REJECT)
        outcome = {"outcome": "selected", "optionId": chosen}
        if not is_answered:
            return {"outcome": outcome}
        names, values = list(schema["properties"]), filled["content"]
        answers = {str(i): values[name] for i, name in enumerate(names) if name in values}
        return {"outcome": outcome, "answers": answers}

    def _may_run(self, use: ToolUse, step: AgentStep) -> bool:
        if use.kind == "switch_mode" and self._log.state.policy == "plan":
            return self.approve_plan(_plan_of(use))
        decision = self._decide(use)
        if decision.verdict != "ask":
            return decision.verdict == "allow"
        log, call = self._log, _call_of(use)
        log.write("asked", step=step.number, why=decision.why)
        self._recorder.show(use, step)
        self._user.status("waiting")
        choice, text = self._user.ask(step, decision)
        command = str(call.arguments.get("command") or "")
        if choice != "reject" and text and text != command:
            choice, text = "reject", f"Run this instead: {text}"
        is_allowed = choice != "reject"
        reason = "" if is_allowed else text
        log.write(
            "decided",
            fsync=True,
            step=step.number,
            choice=choice,
            decision="allow" if is_allowed else f"The user rejected this: {text or 'no reason'}",
            reason=reason,
            arguments=None,
        )
        self._request.approvals.remember(call, choice, text)
        if reason:
            self.remarks.append(f"The user rejected {use.title or command}: {reason}")
        self._user.status("running")
        self._recorder.show(use, step)
        return is_allowed

    def _decide(self, use: ToolUse) -> Decision:
        """Decide by our rules; the policy "ask" asks for a call whose effect is unknown."""
        policy, kind = self._log.state.policy, use.step_kind
        if use.command:
            return self._request.approvals.decide(_call_of(use))
        if kind in ("read", "search"):
            return Decision("allow")
        if policy == "plan":
            return Decision("forbid", PLAN_ONLY)
        if kind == "edit" or policy == "full":
            return Decision("allow")
        if use.kind == "switch_mode":
            return Decision("ask", "changes what it asks for")
        if policy == "ask":
            return Decision("ask", "its effect is unknown")
        return Decision("allow")

    def approve_plan(self, text: str) -> bool:
        """Let the user decide about a plan; return whether to carry it out."""
        self._user.status("waiting")
        text = self._user.plan(text).strip()
        if text:
            policy = self._request.policy
            self._log.write("plan", fsync=True, step=0, text=text, policy=policy)
            self._request.approvals.policy = policy
        self._user.status("running")
        return bool(text)

    # Forms.

    def _fill_in(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        schema = params.get("requestedSchema")
        if params.get("mode", "form") != "form" or not isinstance(schema, dict):
            return {"action": "decline"}
        message = str(params.get("message") or "")
        text = forms.write(message, schema)
        for _ in range(MAX_FORMS):
            self._user.status("waiting")
            answer = self._user.plan(text, is_question=True)
            self._user.status("running")
            if not answer.strip():
                break
            try:
                values = forms.read(answer, schema)
            except forms.FormProblem as problem:
                text = forms.write(f"{message}\n\n{problem}.", schema)
            else:
                self._recorder.note(f"question: {message.splitlines()[0]}", answer)
                return {"action": "accept", "content": values}
        return {"action": "decline"}


def _call_of(use: ToolUse) -> ToolCall:
    """Return a call as our rules know it."""
    if use.command:
        return ToolCall(bash.TOOL.name, {"command": use.command})
    return ToolCall(use.kind, {"title": use.title})


def _questions_of(row: object) -> Mapping[str, Any] | None:
    """Return the questions of a call of Qwen Code as a form; None for another call."""
    found = row if isinstance(row, dict) else {}
    meta, given = found.get("_meta"), found.get("rawInput")
    if not isinstance(meta, dict) or meta.get("qwenInteractionKind") != "user_question":
        return None
    rows = given.get("questions") if isinstance(given, dict) else None
    fields = dict[str, Any]()
    for number, each in enumerate(rows if isinstance(rows, list) else [], 1):
        options = each.get("options") or []
        labels = ", ".join(str(option.get("label")) for option in options)
        about = ": ".join(filter(None, (str(each.get("question") or ""), labels)))
        fields[f"answer{number}"] = {"type": "string", "description": about}
    return {"properties": fields} if fields else None


def _plan_of(use: ToolUse) -> str:
    """Return the plan for which an agent asks approval."""
    given = use.input if isinstance(use.input, dict) else {}
    return str(given.get("plan") or use.observation("/").text or use.title)


def _option(rows: object, kinds: Sequence[str]) -> str:
    """Return the id of the first option of the preferred kind; "" for none."""
    options = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    for kind in kinds:
        for row in options:
            if row.get("kind") == kind:
                return str(row.get("optionId"))
    return ""
