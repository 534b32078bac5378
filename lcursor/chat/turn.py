"""One turn of a chat, which answers a question or summarizes messages.

Runs on its own thread; `stop` works at once, on any thread. The question is stored before it is
reported, the answer while it streams, and both remain however the turn ends. Nothing is retried,
unless our own server ended before it accepted the request.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from lcursor.chat import kv_states, prompt
from lcursor.chat.attachments import ChatQuestion, Gatherer
from lcursor.chat.chat_file import ChatFile, MakeOps
from lcursor.chat.conversation import Cost, Op
from lcursor.chat.server_calls import (
    FIND,
    STOPPED,
    CallRequest,
    ServerCalls,
    find_call,
    is_offered,
)
from lcursor.chat.summary import PromptFitter
from lcursor.chat.views import item_row
from lcursor.config import ChatConfig
from lcursor.errors import (
    Cancelled,
    ChatMissing,
    ContextFull,
    LcursorError,
    ServerGarbled,
    ServerUnreachable,
)
from lcursor.llm import tokens
from lcursor.llm.client import Stream
from lcursor.llm.pool import Connection, ModelPool
from lcursor.llm.records import (
    Event,
    Finished,
    Message,
    Progress,
    Queued,
    Reasoning,
    SamplingParams,
    Text,
    Usage,
)
from lcursor.protocol.chat import ChatEnd, ChatPhase
from lcursor.reporting import Notify
from lcursor.run.run import Run, Runs

PROGRESS_S = 0.1
"""Minimum time between two reports of prompt progress."""
STORE_S = 0.25
"""Maximum delay before streamed text is stored in the chat's file."""


@dataclass(frozen=True, slots=True)
class ChatDeps:
    """The dependencies that all turns share."""

    config: ChatConfig
    models: ModelPool
    gatherer: Gatherer
    calls: ServerCalls
    notify: Notify


class Turn(Run[ChatEnd]):
    """A turn.

    Args:
        file: the chat; locked by the caller, unlocked at the end of the turn.
        question_number: number of the question; 0 to summarize only.
        question: the question if its context was not gathered yet.
        request: the call whose result is the question, if it has not run yet.
        model: name of the model; "" for the chat's.
    """

    thread_name = "lcursor-chat-turn"
    failure = "the chat failed to answer"

    def __init__(
        self,
        number: int,
        file: ChatFile,
        deps: ChatDeps,
        runs: Runs[Turn],
        *,
        question_number: int,
        question: ChatQuestion | None = None,
        request: CallRequest | None = None,
        model: str = "",
    ) -> None:
        super().__init__(number, deps.notify, runs)
        self.question_number, self.key = question_number, file.chat.key
        self._file, self._deps = file, deps
        self._question, self._request, self._model = question, request, model
        self._writing = threading.RLock()
        self._has_ended = False
        """Whether the end is in the chat's file; guarded by `_writing`."""
        self._stream: Stream | None = None
        self._answer = 0
        self._unstored = {"text": "", "reasoning": ""}
        """The part of the answer that is not yet in the chat's file; guarded by `_writing`."""
        self._written_chars = 0
        self._cost = Cost()
        self._server = self._why = ""
        self._is_too_large = False

    def stop(self, why: str = "") -> None:
        """Stop at once, and keep the partial answer. Thread: any.

        Args:
            why: shown to the user, unless the user stopped it.
        """
        self._why = self._why or why
        super().stop()
        with self._lock:
            stream = self._stream
        if stream is not None:
            stream.close()

    def _work(self) -> ChatEnd:
        with self.using_model():
            return self._answer_question() if self.question_number else self._compact()

    def _ended_by(self, error: LcursorError) -> ChatEnd:
        if isinstance(error, Cancelled):
            return "stopped"
        self._why = error.message
        self._is_too_large = isinstance(error, ContextFull) and not self._written_chars
        return "failed"

    def _answer_question(self) -> ChatEnd:
        if self._question is not None:
            self._progress("context")
            self._attach(self._question)
        elif self._request is not None:
            self._carry_out(self._request)
        self.check()
        model = self._choose_model()
        self._begin_answer(model)
        connect = partial(self._connect, model)
        return self._deps.models.with_retry(connect(), self._answer_with, connect)

    def _answer_with(self, connection: Connection) -> ChatEnd:
        states, model = self._deps.models.slot_states, connection.served.model
        chat = self._file.snapshot()
        names = kv_states.names_of(chat, self.question_number, model)
        states.restore(connection, names, kv_states.server_of(chat, self.question_number))
        messages = self._fitter(connection).fit(self.question_number)
        self.check()
        try:
            return self._stream_answer(connection, messages)
        except ServerUnreachable as error:
            if self._written_chars:  # a repeated answer would follow the part that is written
                raise ServerGarbled(error.message, error.hint) from error
            raise
        finally:
            read = self._cost.prompt_tokens + self._cost.answer_tokens
            name, *_ = kv_states.names_of(self._file.snapshot(), self._answer, model)
            states.schedule_save(connection, name, read)

    def _begin_answer(self, model: str) -> None:
        """Add the empty answer to the chat, and report it."""
        op: Op = {
            "op": "answer",
            "parent": self.question_number,
            "model": model,
            "at_s": time.time(),
        }
        with self._writing:  # so that an end on another thread includes it
            ops = self._change(lambda it: [{**op, "number": it.next_number}])
            self._answer = int(ops[-1]["number"])
        question = self._file.snapshot().messages[self.question_number]
        self._send(
            "chat.started",
            {
                "id": self.number,
                "chat": self.key,
                "question": self.question_number,
                "answer": self._answer,
                "items": [item_row(each) for each in question.items],
                "model": model,
                "result": question.sent if question.call else "",
            },
        )

    def _compact(self) -> ChatEnd:
        def summarize(connection: Connection) -> bool:
            return self._fitter(connection).summarize(self._file.snapshot().last)

        connect = partial(self._connect, self._choose_model())
        if not self._deps.models.with_retry(connect(), summarize, connect):
            raise ChatMissing("there is nothing to summarize yet", "Try again in a longer chat")
        return "stop"

    def _choose_model(self) -> str:
        return self._deps.models.choose(self._model, self._file.snapshot().model)

    def _attach(self, question: ChatQuestion) -> None:
        """Gather the question's context, and add it to the chat."""
        chat, models = self._file.snapshot(), self._deps.models
        model = self._choose_model()
        connection = models.known(model)
        gathered = self._deps.gatherer.gather(
            chat,
            chat.messages[self.question_number].parent,
            question,
            self.stopped,
            connection.context_tokens if connection else 0,
            with_screen=models.may_see(model, question.text),
        )
        count = partial(connection.client.count, may_ask=False) if connection else tokens.estimated
        items = gathered.attached(count, is_near=models.is_near(model))
        op: Op = {
            "op": "attach",
            "number": self.question_number,
            "sent": gathered.sent_text(),
            "items": [asdict(each) for each in items],
            "attachments": list(gathered.stored),
        }
        self._change(lambda _: [op], fsync=False)

    def _carry_out(self, request: CallRequest) -> None:
        """Call a tool, and add the result to the chat."""
        self._progress("tool", request.call.tool or FIND)
        known = self._deps.models.known(self._choose_model())
        context_tokens = known.context_tokens if known else 0
        chat, cancel = self._file.snapshot(), self.stopped.is_set
        self._store_result(self._deps.calls.carry_out(request, chat, context_tokens, cancel))

    def _store_result(self, text: str) -> None:
        self._request = None
        op: Op = {"op": "attach", "number": self.question_number, "sent": text, "items": []}
        self._change(lambda _: [op])

    def _change(self, make: MakeOps, *, fsync: bool = True) -> list[Op]:
        """Change the chat. Thread: any.

        Raises:
            Cancelled: the turn's end is stored already.
        """
        with self._writing:
            if self._has_ended:
                raise Cancelled("the turn has ended")
            return self._file.change(make, fsync=fsync)

    def _connect(self, model: str) -> Connection:
        if self._deps.models.known(model) is None:
            self._progress("server")
        report = partial(self._progress, "server")
        connection = self._deps.models.connect(model, self.stopped, report)
        self.check()
        self._server = connection.server
        self._cost = replace(self._cost, context_tokens=connection.context_tokens)
        return connection

    def _fitter(self, connection: Connection) -> PromptFitter:
        def ask(messages: Sequence[Message], max_tokens: int) -> Iterable[Event]:
            self._deps.models.claim_cache()
            return self._open_stream(connection, messages, max_tokens)

        return PromptFitter(
            self._file,
            connection,
            self._deps.models.is_near(connection.name),
            self._deps.config,
            ask,
            self._change,
            partial(self._progress, "summary"),
            self._report_summary,
        )

    def _report_summary(self, summary: Mapping[str, Any]) -> None:
        self.send("chat.summed", chat=self.key, **summary)

    def _stream_answer(self, connection: Connection, messages: Sequence[Message]) -> ChatEnd:
        started_s = reported_s = time.monotonic()
        cost = replace(self._cost, prompt_tokens=tokens.estimate(messages))
        self._report_estimate(connection, messages)
        reason: ChatEnd = "failed"
        may_call, answer = is_offered(self._file.snapshot(), self.question_number), ""
        stream = self._open_stream(connection, messages, self._deps.config.max_tokens)
        try:
            for event in stream:
                now_s = time.monotonic()
                if isinstance(event, (Text, Reasoning)):
                    if not self._written_chars:
                        cost = replace(cost, first_ms=(now_s - started_s) * 1000)
                        self._progress("writing")
                    if isinstance(event, Reasoning):
                        self._add("reasoning", event.text)
                        continue
                    answer += event.text
                    call = find_call(answer) if may_call and "`" in event.text else None
                    excess = len(answer) - call.end if call else 0
                    self._add("text", event.text[: len(event.text) - excess])
                    if call:  # what follows would be an invented result
                        cost, reason = _with_usage(cost, stream.usage()), "stop"
                        stream.close()
                        break
                elif isinstance(event, Progress):
                    cost = replace(cost, prompt_tokens=event.total, cached_tokens=event.cached)
                    if now_s - reported_s >= PROGRESS_S:
                        reported_s = now_s
                        self._report_reading(event)
                elif isinstance(event, Queued):
                    if event.is_waiting:
                        self._progress("queue")
                    else:
                        self._report_estimate(connection, messages)
                elif isinstance(event, Finished):
                    cost, reason = _with_usage(cost, event.usage), event.reason
        except ServerGarbled:
            self._deps.models.invalidate(connection)
            raise
        finally:
            if reason == "failed":
                answer_tokens = round(self._written_chars / tokens.BYTES_PER_TOKEN)
                cost = replace(cost, answer_tokens=answer_tokens)
            self._cost = cost
        return reason

    def _open_stream(
        self, connection: Connection, messages: Sequence[Message], max_tokens: int
    ) -> Stream:
        sampling = SamplingParams(max_tokens, self._deps.config.temperature)
        stream = connection.client.stream(messages, sampling)
        with self._lock:
            self._stream = stream
        if self.stopped.is_set():
            stream.close()
        return stream

    def _add(self, field: str, text: str) -> None:
        """Send the next part of the answer."""
        with self._writing:
            if self._has_ended:
                return
            if not any(self._unstored.values()):
                timer = threading.Timer(STORE_S, self._store_answer)
                timer.daemon = True
                timer.start()
            self._written_chars += len(text)
            self._unstored[field] += text
            self.send("chat.delta", **{"text": "", "reasoning": "", field: text})

    def _store_answer(self) -> None:
        """Write new text to the chat's file. Thread: any."""
        with self._writing:
            op: Op = {"op": "more", "number": self._answer, **self._unstored}
            if not self._has_ended and any(self._unstored.values()):
                self._unstored = {"text": "", "reasoning": ""}
                self._change(lambda _: [op], fsync=False)

    def _report_estimate(self, connection: Connection, messages: Sequence[Message]) -> None:
        """Report the estimated time of prompt processing, before the server reports progress."""
        chat = self._file.snapshot()
        total, cached = tokens.estimate(messages), 0
        counted = [each for each in chat.branch(self.question_number) if each.cost.is_exact]
        if counted:
            known = prompt.messages(chat, counted[-1].number)
            if known == messages[: len(known)]:  # no summary in between
                cached = counted[-1].cost.prompt_tokens + counted[-1].cost.answer_tokens
                total = cached + tokens.estimate(messages[len(known) :])
        speed = connection.client.prompt_speed
        seconds = (total - cached) / speed / 1000 if speed > 0 else -1.0
        self._progress("reading", total=total, seconds_left=seconds)

    def _report_reading(self, event: Progress) -> None:
        read = event.done - event.cached
        speed = read / event.spent_ms if event.spent_ms > 0 else 0.0
        seconds = (event.total - event.done) / speed / 1000 if speed > 0 else -1.0
        self._progress(
            "reading",
            done=event.done,
            total=event.total,
            cached=event.cached,
            seconds_left=seconds,
        )

    def _progress(self, phase: ChatPhase, detail: str = "", **numbers: float) -> None:
        default = {"done": 0, "total": 0, "cached": 0, "seconds_left": -1.0}
        self.send("chat.progress", phase=phase, detail=detail, **{**default, **numbers})

    def _store_end(self, outcome: ChatEnd) -> None:
        with self._writing:
            try:
                if self._request is not None:
                    self._store_result(STOPPED)
                if self.question_number and not self._answer:
                    self._begin_answer("")  # every stored question is reported
                self._store_answer()
                if self._answer:
                    op: Op = {
                        "op": "end",
                        "number": self._answer,
                        "reason": outcome,
                        "cost": asdict(self._cost),
                        "server": self._server,
                        "why": self._why,
                        "is_too_large": self._is_too_large,
                    }
                    self._change(lambda _: [op])
            finally:
                self._has_ended = True
                self._file.unlock_turn()

    def _send_end(self, outcome: ChatEnd) -> None:
        chat = self._file.snapshot()
        done = {
            "id": self.number,
            "chat": self.key,
            "reason": outcome,
            "title": chat.display_title(),
            "call": self._deps.calls.state(chat, self._answer),
        }
        self._send("chat.done", {**done, **asdict(self._cost)})


def _with_usage(cost: Cost, usage: Usage) -> Cost:
    return replace(
        cost,
        prompt_tokens=usage.prompt_tokens or cost.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        answer_tokens=usage.answer_tokens,
        prompt_ms=usage.prompt_ms,
        answer_ms=usage.answer_ms,
        is_exact=usage.is_exact,
    )
