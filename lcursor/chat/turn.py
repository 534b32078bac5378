"""One turn: a question is answered, or something ends it; what was said is kept either way.

Owns the order of a turn and its one end. Runs on a thread of its own; `stop` may be called on any
and takes effect at once. Tries nothing twice, but where our own server went before it took the
question. What is asked is in the chat's file before anybody else hears of it, and what is answered
follows it there while it comes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from lcursor.chat import attach, prompt
from lcursor.chat.attach import Gatherer, Question
from lcursor.chat.conversation import Cost, Op
from lcursor.chat.relay import Relay
from lcursor.chat.room import Made, Room
from lcursor.chat.stored import Make, Stored
from lcursor.chat.warm import SLOT, Warmth
from lcursor.config import ChatConfig
from lcursor.errors import (
    Cancelled,
    ChatMissing,
    ContextFull,
    LcursorError,
    ServerGarbled,
)
from lcursor.llm import tokens
from lcursor.llm.pool import Connection, ModelPool
from lcursor.llm.records import (
    Event,
    Finished,
    Message,
    Progress,
    Reasoning,
    SamplingParams,
    Text,
    Usage,
)
from lcursor.llm.tokens import Counter
from lcursor.protocol_chat import ChatEnd, ChatPhase
from lcursor.reporting import Notify, as_lcursor_error, error_message, log_exception

if TYPE_CHECKING:
    from lcursor.llm.client import Stream

PROGRESS_S = 0.1
"""Least time between two messages about how far the prompt is read."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What all turns share."""

    config: ChatConfig
    models: ModelPool
    gatherer: Gatherer
    warmth: Warmth
    tell: Notify


class Turn:
    """A turn.

    Args:
        number: the id of what asked for it.
        stored: the chat; held by who makes the turn, let go of by its end.
        tools: as they are.
        asked: number of the user's message; 0 for a turn that only summarizes.
        question: what is asked and not attached yet; None where that was done before.
        model: name of the model; "" for the chat's.
        ended: told, on the turn's thread, that it is over.
    """

    def __init__(
        self,
        number: int,
        stored: Stored,
        tools: Tools,
        *,
        asked: int,
        question: Question | None = None,
        model: str = "",
        ended: Callable[[Turn], None] = lambda _: None,
    ) -> None:
        self.number, self.stored = number, stored
        self.key = stored.chat.key
        self._tools, self._config = tools, tools.config
        self.asked, self._question, self._model = asked, question, model
        self._ended = ended
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._writing = threading.RLock()
        self._is_written = False
        """The end is in the chat's file; guarded by `_writing`."""
        self._is_ending = False
        self._is_over = threading.Event()
        self._stream: Stream | None = None
        self._relay: Relay | None = None
        self._answer = 0
        self._said_chars = 0
        self._cost = Cost()
        self._server = self._why = ""
        self._thread = threading.Thread(target=self._run, name="lcursor-chat-turn", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, why: str = "") -> None:
        """End it at once; what was said is kept. Thread: any.

        Args:
            why: for people, where it is not the user who wants it.
        """
        self._why = self._why or why
        self._stopped.set()
        with self._lock:
            stream = self._stream
        if stream is not None:
            stream.close()

    def leave(self, wait_s: float) -> None:
        """Have it ended, also where something does not let go of its thread."""
        if not self._is_over.wait(wait_s):
            self._finish("stopped")
            self._is_over.wait(wait_s)  # where its own thread was just at it

    def runs_on(self, thread: threading.Thread) -> bool:
        """Return whether a thread is the turn's."""
        return thread is self._thread

    def server_says(self, words: str) -> None:
        """Tell what the local server is doing. Thread: the turn's."""
        self._progress("server", words)

    def _run(self) -> None:
        reason: ChatEnd = "failed"
        try:
            reason = self._answered() if self.asked else self._compacted()
        except Cancelled:
            reason = "stopped"
        except Exception as error:  # noqa: BLE001 - the root of a thread
            told = as_lcursor_error(self._tools.tell, error, "the chat could not answer")
            self._why = told.message
            self._fail(told)
        self._finish(reason)

    def _answered(self) -> ChatEnd:
        tools = self._tools
        if self._question is not None:
            self._progress("context")
            self._attach(self._question)
        self._check()
        chosen = self._chosen()
        self._begin(chosen)
        again = partial(self._reach, chosen)
        return tools.models.with_retry(again(), self._said_by, again)

    def _said_by(self, reached: Connection) -> ChatEnd:
        """Have a model answer."""
        stored, warmth = self.stored, self._tools.warmth
        warmth.bring(reached, stored.snapshot(), self.asked)
        messages = self._room(reached).fitted(self.asked)
        self._check()
        try:
            return self._streamed(reached, messages)
        finally:
            read = self._cost.prompt_tokens + self._cost.answer_tokens
            warmth.keep_later(reached, stored.snapshot(), self._answer, read)

    def _begin(self, model: str) -> None:
        """Give the answer its place, and tell it."""
        op: Op = {"op": "answer", "parent": self.asked, "model": model, "at_s": time.time()}
        with self._writing:  # an end on another thread must know of it
            ops = self._change(lambda it: [{**op, "number": it.next_number}], is_firm=False)
            self._answer = int(ops[-1]["number"])
        asked = self.stored.snapshot().said[self.asked]
        self._tools.tell(
            "chat.started",
            {
                "id": self.number,
                "chat": self.key,
                "question": self.asked,
                "answer": self._answer,
                "items": [attach.line_of(each) for each in asked.items],
                "model": model,
            },
        )

    def _compacted(self) -> ChatEnd:
        again = partial(self._reach, self._chosen())
        if not self._tools.models.with_retry(again(), self._summarized_by, again):
            raise ChatMissing("there is nothing to summarize yet", "Go on: it is asked for later")
        return "stop"

    def _summarized_by(self, reached: Connection) -> bool:
        return self._room(reached).summarize(self.stored.snapshot().last)

    def _chosen(self) -> str:
        chat = self.stored.snapshot()
        text = chat.said[self.asked].text if self.asked else ""
        return self._tools.models.choose(self._model, chat.model, text)

    def _attach(self, question: Question) -> None:
        chat = self.stored.snapshot()
        before = chat.said[self.asked].parent
        models, chosen = self._tools.models, self._chosen()
        known = models.known(chosen)
        limit = known.context_tokens if known else 0
        may_see = models.may_see(chosen, question.text)
        found = self._tools.gatherer.gather(
            chat, before, question, self._stopped, limit, with_screen=may_see
        )
        counter = known.counter if known else Counter()
        receipt = attach.receipt(found, counter.known)
        op: Op = {
            "op": "attach",
            "number": self.asked,
            "sent": found.sent(),
            "items": [asdict(each) for each in receipt],
            "attachments": list(found.lasting),
        }
        self._change(lambda _: [op], is_firm=False)

    def _change(self, make: Make, *, is_firm: bool = True) -> list[Op]:
        """Change the chat, unless the turn's end is written. Thread: any.

        Raises:
            Cancelled: it is.
        """
        with self._writing:
            if self._is_written:
                raise Cancelled("the turn has ended")
            return self.stored.change(make, is_firm=is_firm)

    def _reach(self, name: str) -> Connection:
        known = self._tools.models.known(name)
        if known is None:
            self._progress("server")
        reached = self._tools.models.connect(name, self._stopped)
        self._check()
        self._server = reached.server
        self._cost = replace(self._cost, context_tokens=reached.context_tokens)
        return reached

    def _room(self, reached: Connection) -> Room:
        def ask(messages: Sequence[Message], max_tokens: int) -> Iterable[Event]:
            self._tools.warmth.hush()
            wish = SamplingParams(max_tokens, self._config.temperature, self._slot(reached))
            return self._events(reached, messages, wish)

        return Room(
            self.stored,
            reached,
            self._config,
            ask,
            self._change,
            partial(self._progress, "summary"),
            self._summed,
        )

    def _summed(self, made: Made) -> None:
        self._tools.tell(
            "chat.summed",
            {
                "id": self.number,
                "chat": self.key,
                "number": made.number,
                "last": made.last,
                "messages": made.replaced,
                "tokens_before": made.tokens_before,
                "tokens_after": made.tokens_after,
                "text": made.text,
            },
        )

    def _streamed(self, reached: Connection, messages: Sequence[Message]) -> ChatEnd:
        wish = SamplingParams(
            self._config.max_tokens, self._config.temperature, self._slot(reached)
        )
        relay = self._relay = Relay(self._delta, self._more)
        began_s = told_s = time.monotonic()
        cost = replace(self._cost, prompt_tokens=tokens.estimate_messages(messages))
        self._expect(reached, messages)
        reason: ChatEnd = "failed"
        try:
            for event in self._events(reached, messages, wish):
                now_s = time.monotonic()
                if isinstance(event, (Text, Reasoning)):
                    if not self._said_chars:
                        cost = replace(cost, first_ms=(now_s - began_s) * 1000)
                        self._progress("writing")
                    self._said_chars += len(event.text)
                    if isinstance(event, Text):
                        relay.add(event.text)
                    else:
                        relay.add("", event.text)
                elif isinstance(event, Progress):
                    cost = replace(cost, prompt_tokens=event.total, cached_tokens=event.cached)
                    if now_s - told_s >= PROGRESS_S:
                        told_s = now_s
                        self._reading(event)
                elif isinstance(event, Finished):
                    cost, reason = _paid(cost, event.usage), event.reason
                    self._tools.models.record_usage(reached.name, event.usage)
        except ServerGarbled:
            self._tools.models.invalidate(reached)
            raise
        except ContextFull as error:  # the next turn makes room
            self._tools.models.record_context(reached.name, error.context_tokens)
            raise
        finally:
            if reason == "failed":
                cost = replace(cost, answer_tokens=round(self._said_chars / tokens.BYTES_PER_TOKEN))
            self._cost = cost
        return reason

    def _events(
        self, reached: Connection, messages: Sequence[Message], wish: SamplingParams
    ) -> Stream:
        stream = reached.client.stream(messages, wish)
        with self._lock:
            self._stream = stream
        if self._stopped.is_set():
            stream.close()
        # Until now a kill would lose nothing; from here on a power cut neither. The disk takes its
        # time while the server reads.
        threading.Thread(target=self.stored.firm, name="lcursor-chat-firm", daemon=True).start()
        return stream

    def _slot(self, reached: Connection) -> int:
        return SLOT if reached.served.can_keep else -1

    def _delta(self, text: str, reasoning: str) -> None:
        with self._writing:
            if not self._is_written:
                delta = {"id": self.number, "text": text, "reasoning": reasoning}
                self._tools.tell("chat.delta", delta)

    def _more(self, text: str, reasoning: str) -> None:
        op: Op = {"op": "more", "number": self._answer, "text": text, "reasoning": reasoning}
        try:
            self._change(lambda _: [op], is_firm=False)
        except Cancelled:
            pass  # it came after the end
        except Exception as error:  # noqa: BLE001 - what is shown goes on
            log_exception(self._tools.tell, error)

    def _expect(self, reached: Connection, messages: Sequence[Message]) -> None:
        """Tell about how long the reading takes, as long as the server has said nothing."""
        chat = self.stored.snapshot()
        total, cached = tokens.estimate_messages(messages), 0
        counted = [each for each in chat.line(self.asked) if each.cost.is_exact]
        if counted:
            known = prompt.messages(chat, counted[-1].number)
            if known == messages[: len(known)]:  # no summary has come between
                cached = counted[-1].cost.prompt_tokens + counted[-1].cost.answer_tokens
                total = cached + tokens.estimate_messages(messages[len(known) :])
        pace = self._tools.models.prompt_speed(reached.name)
        left = (total - cached) / pace / 1000 if pace > 0 else -1.0
        self._progress("reading", "", 0, total, 0, left)

    def _reading(self, event: Progress) -> None:
        read = event.done - event.cached
        speed = read / event.spent_ms if event.spent_ms > 0 else 0.0
        left = (event.total - event.done) / speed / 1000 if speed > 0 else -1.0
        self._progress("reading", "", event.done, event.total, event.cached, left)

    def _progress(
        self,
        phase: ChatPhase,
        detail: str = "",
        done: int = 0,
        total: int = 0,
        cached: int = 0,
        seconds_left: float = -1.0,
    ) -> None:
        if self._is_ending:
            return
        self._tools.tell(
            "chat.progress",
            {
                "id": self.number,
                "phase": phase,
                "detail": detail,
                "done": done,
                "total": total,
                "cached": cached,
                "seconds_left": seconds_left,
            },
        )

    def _check(self) -> None:
        if self._stopped.is_set():
            raise Cancelled("the turn was stopped")

    def _fail(self, error: LcursorError) -> None:
        if not self._is_ending:
            self._tools.tell("error", error_message(error, self.number))

    def _finish(self, reason: ChatEnd) -> None:
        """Write down and tell how it ended; only the first end counts. Thread: any."""
        with self._lock:
            if self._is_ending:
                return
            self._is_ending = True
        try:
            self._keep_end(reason)
        except Exception as error:  # noqa: BLE001 - who waits for the end has to hear of it
            log_exception(self._tools.tell, error)
        self._is_over.set()
        title = self.stored.snapshot().name()
        self._ended(self)
        done = {"id": self.number, "chat": self.key, "reason": reason, "title": title}
        self._tools.tell("chat.done", {**done, **asdict(self._cost)})

    def _keep_end(self, reason: ChatEnd) -> None:
        try:
            if self._relay is not None:
                self._relay.close()
            with self._writing:
                if self.asked and not self._answer:
                    self._begin("")  # that the question is kept, its asker hears in any case
                if self._answer:
                    op: Op = {
                        "op": "end",
                        "number": self._answer,
                        "reason": reason,
                        "cost": asdict(self._cost),
                        "server": self._server,
                        "why": self._why,
                    }
                    self._change(lambda _: [op])
        finally:
            with self._writing:
                self._is_written = True
                self.stored.let_go()


def _paid(cost: Cost, usage: Usage) -> Cost:
    return replace(
        cost,
        prompt_tokens=usage.prompt_tokens or cost.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        answer_tokens=usage.answer_tokens,
        prompt_ms=usage.prompt_ms,
        answer_ms=usage.answer_ms,
        is_exact=usage.is_exact,
    )
