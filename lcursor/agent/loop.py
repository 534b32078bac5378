"""The loop of a run: the model answers, its calls are carried out, it reads the results.

Each operation is logged before its effects, and every decision depends on the log alone, so that a
run continues after a crash as if nothing had happened. Only a command that was interrupted is
reported to the model, and not repeated. Blocks; on the run's thread.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from lcursor.agent import stuck
from lcursor.agent.approvals import ESCALATE, approved_plan
from lcursor.agent.parts import Checkpoints, End, RunLimits, RunParts, User
from lcursor.agent.records import Answer, Observation, ToolCall
from lcursor.agent.run_log import NOT_RUN, AgentStep, PendingAnswer, RunLog, difference
from lcursor.agent.tools.table import changed_arguments, has_effect, question_of
from lcursor.errors import (
    Cancelled,
    ContextFull,
    ServerBusy,
    ServerEnded,
    ServerError,
    ServerFailed,
    ServerGarbled,
    ServerSlow,
    ServerUnreachable,
)
from lcursor.stop import Stop

MAX_ANSWER_TOKENS = 4096
MIN_ANSWER_TOKENS = 256
"""Tokens that must be free for an answer; otherwise the conversation is summarized."""
FULL_SHARE = 0.75
"""Share of the context above which the conversation is summarized."""
MAX_MALFORMED = 3
MAX_GATES = 3
RETRY_S = (0.5, 2.0, 8.0)
"""Delays before a failed request to the model is repeated."""
TEMPORARY = (ServerUnreachable, ServerSlow, ServerBusy, ServerEnded, ServerGarbled, ServerFailed)
REPEATED = "You wrote the same text over and over. Write it once, then call one tool."
NO_CALL = "You called no tool. Call one, or call finish with a summary of your work."
SKIPPED = "Not run, because a call before it failed."


@dataclass(frozen=True, slots=True)
class ModelWork:
    """A model that works with our tools; see `parts.Work`."""

    parts: RunParts

    @property
    def tree(self) -> Checkpoints:
        """The files that it works on."""
        return self.parts.tree

    @property
    def limits(self) -> RunLimits:
        """Its budgets."""
        return self.parts.limits

    @property
    def dialect(self) -> str:
        """How it writes calls."""
        return self.parts.dialect.name

    @property
    def used_tokens(self) -> int:
        """The length of the conversation."""
        return self.parts.model.used_tokens

    @property
    def context_tokens(self) -> int:
        """The context."""
        return self.parts.model.context_tokens

    def run(self, log: RunLog, user: User, stopped: Stop) -> End:
        """Work until the end."""
        try:
            return Loop(log, self.parts, user, stopped).run()
        finally:
            self.parts.on_end()

    def close(self) -> None:
        """Stop the current answer. Thread: any."""
        self.parts.model.close()


class Loop:
    """A run that is being executed.

    Args:
        log: of a run that was started; the loop continues with its state.
        stopped: set by another thread to stop the run, which then also closes the model.
    """

    def __init__(self, log: RunLog, parts: RunParts, user: User, stopped: Stop) -> None:
        self._log, self._parts, self._user, self._stopped = log, parts, user, stopped
        self._state = log.state
        self._model, self._dialect = parts.model, parts.dialect
        self._usage = parts.model.usage
        self._tree_id = ""

    def run(self) -> End:
        """Work until the end.

        Raises:
            Cancelled: it was stopped.
            LcursorError: it failed; it can be continued.
        """
        self._begin()
        while True:
            self._check()
            if self._state.answer is None:
                if reason := self._exceeded():
                    return End("stuck", reason)
                self._read_messages()
                self._ask()
            if (end := self._carry_out()) is not None:
                return end

    def _begin(self) -> None:
        """Start or restore the conversation and the tree."""
        state, tree = self._state, self._parts.tree
        self._tree_id = next(
            (each.after for each in reversed(state.steps) if each.after), tree.base
        )
        approvals = self._parts.approvals
        approvals.policy = state.policy
        for call, choice, reason in state.answers_of_user:
            approvals.remember(call, choice, reason, is_earlier=True)
        for step in state.steps:
            if step.before and step.observation is None and step.kind != "command":
                # An edit was interrupted. It is repeated, as its effects are all in the tree.
                tree.restore(step.before)
                self._tree_id = step.before
        for step in state.steps:
            if step.observation and step.observation.shown:
                self._parts.toolbox.remember(step.observation.shown)
        if state.talk:
            self._model.restore(state.talk)
            return
        task = f"{state.task}\n\n{state.context}" if state.context else state.task
        self._model.begin(self._parts.system, task)
        self._log.write_talk(self._model.state())

    def _exceeded(self) -> str:
        """Return the budget that is used up (R7); "" for none."""
        state, limits = self._state, self._parts.limits
        answers, seconds, tokens = state.resumed
        if state.answers - answers >= limits.steps:
            return f"it has reached the limit of {limits.steps} steps"
        if state.seconds - seconds >= limits.seconds:
            return f"it has reached the limit of {limits.seconds / 60:.0f} minutes"
        if state.tokens - tokens >= limits.tokens:
            return f"it has reached the limit of {limits.tokens:,} tokens"
        return ""

    def _read_messages(self) -> None:
        """Append new messages of the user."""
        if unread := self._state.unread:
            self._append("\n\n".join(f"The user says: {text}" for text in unread), said=len(unread))

    # The model.

    def _ask(self) -> None:
        """Let the model answer, and log the answer with its calls."""
        model, dialect, toolbox = self._model, self._dialect, self._parts.toolbox
        if (
            model.used_tokens > FULL_SHARE * model.context_tokens
            or self._free() < MIN_ANSWER_TOKENS
        ):
            self._summarize()
        known_names, began_s = toolbox.known(), time.monotonic()
        self._user.status("running")
        if text := dialect.own_answer(known_names, self._state, self._tree_id):
            model.add_answer(text)
            answer = Answer(text)
        else:
            named = dialect.offered(known_names, self._state, self._tree_id)
            grammar = dialect.grammar(toolbox.tools, named)
            is_forced = dialect.is_forced or self._state.malformed > 0
            answer = self._answer(grammar, is_forced=is_forced)
        reply = dialect.parse(answer, toolbox.tools, known_names)
        problem = reply.problem
        if answer.finish == "stopped":
            problem = REPEATED
        elif not answer.text.strip() and not answer.calls:
            problem = NO_CALL
        elif answer.finish == "length" and (problem or not reply.calls):
            problem = (
                f"Your answer was cut off after {answer.answer_tokens} tokens, and nothing of it "
                "was used. Write less at once."
            )
        self._log.write(
            "answer",
            text=answer.text,
            calls=[] if problem else [asdict(each) for each in reply.calls],
            problem=problem,
            finish=answer.finish,
            seconds=round(time.monotonic() - began_s, 3),
            cached_share=round(answer.cached_tokens / max(answer.prompt_tokens, 1), 4),
            usage=self._take_usage(),
            talk=difference(self._state.talk, model.state()),
        )

    def _take_usage(self) -> dict[str, int]:
        """Return the numbers of tokens since the last call, by fields of `RunState`."""
        old, self._usage = self._usage, self._model.usage
        new, cached = self._usage, self._usage.cached_tokens - old.cached_tokens
        return {
            "read_tokens": new.prompt_tokens - old.prompt_tokens - cached,
            "cached_tokens": cached,
            "answer_tokens": new.answer_tokens - old.answer_tokens,
        }

    def _answer(self, grammar: str, *, is_forced: bool) -> Answer:
        """Return an answer; repeat the request after a temporary failure."""
        temperature = max(self._dialect.temperature, self._parts.temperature)
        temperature = 0.0 if self._state.malformed else temperature
        delays = list(RETRY_S)
        has_summarized = False
        while True:
            repetition, is_new = stuck.Repetition(), True

            def listen(text: str) -> bool:
                nonlocal is_new
                self._user.delta(text, is_new=is_new)
                is_new = False
                return not (self._stopped.is_set() or repetition.add(text))  # noqa: B023

            try:
                answer = self._model.ask(
                    listen,
                    max_tokens=max(1, min(MAX_ANSWER_TOKENS, self._free())),
                    temperature=temperature,
                    grammar=grammar,
                    is_forced=is_forced,
                    on_wait=lambda is_waiting: self._user.status(
                        "waiting" if is_waiting else "running"
                    ),
                )
            except ContextFull:
                if has_summarized:
                    raise
                has_summarized = True
                self._summarize(is_needed=True)
            except ServerError as error:
                self._check()
                if not isinstance(error, TEMPORARY) or not delays:
                    raise
                self._stopped.wait(delays.pop(0))
                self._check()
            else:
                self._check()
                return answer

    def _free(self) -> int:
        return self._model.context_tokens - self._model.used_tokens - 16

    def _summarize(self, *, is_needed: bool = False) -> None:
        """Replace the conversation by a summary, unless that was the last thing that happened."""
        state = self._state
        if not is_needed and state.summarized == len(state.steps):
            return
        self._parts.summarize(state)
        self._log.write_talk(self._model.state(), is_summary=True)

    def _append(self, text: str, results: Sequence[str] = (), **new: Any) -> None:
        """Append a message; `new` as in `RunLog.write_talk`."""
        self._model.append(text, results)
        self._log.write_talk(self._model.state(), **new)

    # Answers.

    def _carry_out(self) -> End | None:
        """Carry out the last answer, and append the results; return the run's end if it ended."""
        state, answer = self._state, self._state.answer
        assert answer is not None
        if answer.problem:
            return self._handle_malformed(answer)
        if not answer.steps:
            if state.silent < 2:
                self._append(NO_CALL, is_read=True)
                return None
            # The second message in a row without a call is the final answer.
            self._log.write("call", tool="finish", arguments={"summary": answer.text.strip()})
        has_failed = False
        for number in answer.steps:
            step = state.steps[number - 1]
            if step.observation is None:
                if has_failed:
                    self._end(step, Observation(SKIPPED, is_error=True, result="not run"))
                elif (end := self._run(step)) is not None:
                    return end
            observation = step.observation
            assert observation is not None
            end, goes_on = self._end_of(step, observation), state.unread or number <= state.past
            if end is not None and not (end.state == "done" and goes_on):
                return end
            has_failed = has_failed or (observation.is_error and has_effect(step.call))
        return self._append_results([state.steps[number - 1] for number in answer.steps])

    def _handle_malformed(self, answer: PendingAnswer) -> End | None:
        """Drop the first malformed answer, comment on the second, end the run at the third."""
        count = self._state.malformed
        if count >= MAX_MALFORMED:
            return End("failed", f"the model wrote {count} malformed calls: {answer.problem}")
        if count == 1 and answer.finish != "length":
            self._model.drop_answer()
            self._log.write_talk(self._model.state(), is_read=True)
        else:
            self._append(answer.problem, is_read=True)
        return None

    def _append_results(self, steps: list[AgentStep]) -> End | None:
        """Append the observations, with a warning if the run goes in circles (R2 to R4)."""
        state = self._state
        calls = [each.call for each in steps]
        observations = [each.observation for each in steps if each.observation]
        text = self._dialect.observations(calls, observations)
        since = max(state.warned, state.summarized)
        reason = stuck.find_circle([each.done for each in state.steps[since:] if each.done])
        if reason and state.warnings:
            return End("stuck", f"it made no progress: {reason}")
        results = [each.text for each in observations]
        if reason:
            note = f"\n\nNote: {reason}. Say what you know, then do something else or finish."
            text, results[-1] = text + note, results[-1] + note
        space = self._free() - MIN_ANSWER_TOKENS
        if space < 4 * len(text) and space < self._model.count(text):
            self._summarize()
        self._append(text, results, is_read=True, is_warning=bool(reason))
        return None

    # Calls.

    def _run(self, step: AgentStep) -> End | None:
        """Decide on a call, run it, and log its end."""
        if step.before and step.kind == "command":
            self._report_interrupted(step)
            return None
        if not step.before:
            repeat, first = self._repeat(step)
            if repeat == "end":
                reason = f"it repeated the call of step {first} without any change"
                return End("stuck", reason)
            if repeat == "skip":
                text = f"Not run: its result was the same each time since step {first}. "
                text += "Do something else, or finish."
                earlier = self._state.steps[first - 1]
                self._end(step, Observation(text, is_error=True, result="skipped"), like=earlier)
                return None
        if (objection := self._approve(step)) is not None:
            self._end(step, Observation(objection, is_error=True, result="rejected"))
            return None
        is_plan = step.call.tool == "finish" and self._state.policy == "plan"
        if is_plan and not self._ask_for_plan(step):
            return End("stopped", "the plan was rejected")
        if step.number == self._state.planned:
            self._end(step, Observation(approved_plan(self._state.plan), result="approved"))
            return None
        if has_effect(step.call) and not step.before:
            self._log.write("begin", fsync=True, step=step.number, tree=self._tree_id)
        self._user.step(step, "running")
        began_s = time.monotonic()
        is_unconfined = self._is_unconfined(step.call)
        observation = self._parts.toolbox.run(
            step.call,
            self._stopped.is_set,
            is_unconfined=is_unconfined,
            ask=self._ask_user,
        )
        self._check()
        self._end(step, observation, time.monotonic() - began_s)
        if is_unconfined:
            self._parts.approvals.ran(step.call)
        return End("failed", observation.obstacle) if observation.obstacle else None

    def _report_interrupted(self, step: AgentStep) -> None:
        """End a command that was interrupted: the model decides, as it had effects elsewhere."""
        changed = ", ".join(each.path for each in self._parts.tree.changed(step.before)) or "none"
        text = (
            "This command was interrupted, so its outcome is unknown, and it was not repeated. "
            f"Files that it changed: {changed}. Check what it did before you run it again."
        )
        self._end(step, Observation(text, is_error=True, result="interrupted"))

    def _repeat(self, step: AgentStep) -> tuple[stuck.Repeat, int]:
        """Apply rule R1; return the action and the number of the first equal step."""
        if step.call.tool == "finish":  # it has a limit of its own
            return "run", 0
        since = max(self._state.warned, self._state.summarized)
        steps = [each for each in self._state.steps[since : step.number - 1] if each.done]
        calls = [each.done for each in steps if each.done]
        repeat, index = stuck.repeat_of(calls, step.call.key, self._tree_id)
        return repeat, steps[index].number if index >= 0 else 0

    def _approve(self, step: AgentStep) -> str | None:
        """Return why a call must not run, for the model; None if it may."""
        if step.decision == "allow":
            return None
        if step.decision not in ("", "asked"):
            return step.decision
        decision = self._parts.approvals.decide(step.call)
        if decision.verdict != "ask":
            return decision.why if decision.verdict == "forbid" else None
        self._log.write("asked", step=step.number, why=decision.why)
        self._user.step(step, "waiting")
        self._user.status("waiting")
        choice, text = self._user.ask(step, decision)
        self._check()
        is_changed = bool(choice != "reject" and text and text != question_of(step.call))
        arguments = changed_arguments(step.call, text) if is_changed else None
        if is_changed and arguments is None:
            choice, text = "reject", f"call it like this instead: {text}"
        reason = f"The user rejected this call: {text or 'no reason was given'}"
        self._log.write(
            "decided",
            fsync=True,
            step=step.number,
            choice=choice,
            decision=reason if choice == "reject" else "allow",
            reason=text if choice == "reject" else "",
            arguments=arguments,
        )
        self._parts.approvals.remember(step.call, choice, text)
        self._user.status("running")
        return reason if choice == "reject" else None

    def _ask_user(self, text: str) -> str:
        """Show a form, which a call needs to be filled in; "" if the user rejects it."""
        self._user.status("waiting")
        answer = self._user.plan(text, is_question=True)
        self._check()
        self._user.status("running")
        return answer

    def _is_unconfined(self, call: ToolCall) -> bool:
        """Return whether an approved command runs without the sandbox."""
        is_free = self._state.policy == "full" or self._state.sandbox == "none"
        return call.tool == "bash" and (is_free or bool(call.arguments.get(ESCALATE)))

    def _ask_for_plan(self, step: AgentStep) -> bool:
        """Let the user decide on the plan; return whether to carry it out."""
        self._user.step(step, "waiting")
        self._user.status("waiting")
        text = self._user.plan(str(step.call.arguments.get("summary", "")))
        self._check()
        if not text.strip():
            self._end(step, Observation("The user rejected the plan.", result="rejected"))
            return False
        policy = self._parts.policy
        self._log.write("plan", fsync=True, step=step.number, text=text, policy=policy)
        self._parts.approvals.policy = policy
        return True

    def _end(
        self,
        step: AgentStep,
        observation: Observation,
        seconds: float = 0.0,
        like: AgentStep | None = None,
    ) -> None:
        """Log and show the end of a call; `like` has an equal result."""
        if has_effect(step.call) and observation.result not in NOT_RUN:
            self._tree_id = self._parts.tree.checkpoint()
        digest = like.done.digest if like and like.done else stuck.digest_of(observation)
        repeat, first = self._repeat(step)
        earlier = self._state.steps[first - 1].done if first else None
        if repeat == "shorten" and earlier and earlier.digest == digest:
            observation = replace(observation, text=f"The same result as in step {first}.")
        self._log.write(
            "end",
            fsync=has_effect(step.call),
            step=step.number,
            tree=self._tree_id,
            digest=digest,
            observation=asdict(observation),
            seconds=round(seconds, 3),
        )
        self._user.step(step, step.shown_state)

    def _end_of(self, step: AgentStep, found: Observation) -> End | None:
        """Return the end of the run if a step finished it."""
        if step.call.tool != "finish" or found.result in ("rejected", "approved", "skipped"):
            return None
        summary = str(step.call.arguments.get("summary", ""))
        if found.result == "done":
            return End("done", summary, is_checked=found.status == 0)
        if self._state.failed_gates >= MAX_GATES:
            return End("done", summary, is_checked=False)
        return None

    def _check(self) -> None:
        if self._stopped.is_set():
            raise Cancelled("the run was stopped")
