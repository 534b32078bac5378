"""A region written anew by a model: asked, read while it comes, stopped when it is all there.

Owns the one request. Says nothing of whether what came is good (`checks.py`), and asks only once
(`attempts.py`). Blocks; on the thread of the edit.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from lcursor.config import EditConfig
from lcursor.edit.apply.parse import Reading
from lcursor.edit.records import Lines, Region
from lcursor.edit.rewriting import fitting, prompt
from lcursor.edit.rewriting.foreign import merged
from lcursor.edit.rewriting.task import Failed, Task
from lcursor.edit.talk import stopping
from lcursor.errors import Cancelled, ContextFull, ReplyUnusable
from lcursor.llm import tokens
from lcursor.llm.client import Stream
from lcursor.llm.pool import Connection
from lcursor.llm.records import Finished, Message, Progress, Reasoning, SamplingParams, Text, Usage
from lcursor.protocol_edit import EditPhase

GROWTH: Final = 3
"""A region is not written to more than so many times its tokens, and `SPARE_TOKENS`."""
SPARE_TOKENS: Final = 1024
SHARES: Final = (1.0, 0.5, 0.2, 0.0)
"""Of what stands around the region, tried until the prompt fits."""


class Tell(Protocol):
    """Who hears how a rewrite goes on."""

    def started(self, region: Region, attempt: int) -> None:
        """A region is written."""

    def progress(
        self,
        phase: EditPhase,
        detail: str,
        done: int,
        total: int,
        seconds_left: float,
        attempt: int,
    ) -> None:
        """So far it is."""

    def lines(self, attempt: int, lines: Lines) -> None:
        """More whole lines of the region's new text have come."""


class Silent:
    """Hears how a rewrite goes on, and tells nobody."""

    def started(self, region: Region, attempt: int) -> None:
        """Nothing."""

    def progress(
        self,
        phase: EditPhase,
        detail: str,
        done: int,
        total: int,
        seconds_left: float,
        attempt: int,
    ) -> None:
        """Nothing."""

    def lines(self, attempt: int, lines: Lines) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a model wrote."""

    lines: Lines
    """The new text of the region."""
    note: str
    """What it said besides."""
    usage: Usage
    passes: int
    """Of the model for the answer; 0 where the server does not say."""
    seconds: float
    reply: str
    """As it came."""


class Rewriter:
    """Writes regions with one model.

    Args:
        reached: the model.
        config: how freely, and how much.

    Thread: `run` on any, several at once.
    """

    def __init__(self, reached: Connection, config: EditConfig) -> None:
        self.reached, self.config = reached, config

    def run(
        self,
        task: Task,
        tell: Tell,
        cancel: threading.Event,
        *,
        attempt: int = 1,
        feedback: Sequence[Failed] = (),
        remark: str = "",
        temperature: float | None = None,
    ) -> Written:
        """Write a region once.

        Args:
            task: what.
            tell: told how it goes on.
            cancel: ends it at once.
            attempt: which try this is, from 1.
            feedback: tries before it, with what was wrong with them.
            remark: what the user says of the one before.
            temperature: how freely; None is the settings'.

        Raises:
            ReplyUnusable: the reply is not the new text of the region.
            ContextFull: the region alone is more than the model reads.
            Cancelled: `cancel` was set.
            LcursorError: the model cannot be asked.
        """
        began_s = time.monotonic()
        tell.started(task.region, attempt)
        tell.progress("reading", "", 0, 0, -1.0, attempt)
        asked = self._fitting(task, feedback, remark)
        wish = SamplingParams(
            max_tokens=self._most_tokens(task),
            temperature=self.config.temperature if temperature is None else temperature,
            has_counts=True,
        )
        if cancel.is_set():
            raise Cancelled("the edit was stopped")
        heard = _Heard(task, tell, attempt)
        stream = self.reached.client.stream(asked, wish)
        with stopping(stream, cancel):
            try:
                heard.listen(stream)
            except Cancelled:
                if cancel.is_set():
                    raise
                raise Cancelled("the answer was stopped") from None
        if cancel.is_set():
            raise Cancelled("the edit was stopped")
        try:
            new, note = heard.finish()
        except ReplyUnusable as error:
            error.reply, error.usage = heard.reply, heard.usage
            raise
        seconds = time.monotonic() - began_s
        return Written(new, note, heard.usage, heard.usage.passes, seconds, heard.reply)

    def _fitting(self, task: Task, feedback: Sequence[Failed], remark: str) -> list[Message]:
        """Return the prompt, with as much of the surroundings as there is room for.

        Raises:
            ContextFull: there is no room for the region alone.
        """
        room = self.reached.context_tokens
        needed = 0
        # A small model that failed has often written the surroundings once more: not again. One
        # of less than a billion weights does so at its first try already.
        is_lost = is_tiny(self.reached.served.model) or any(each.problems for each in feedback)
        shares = SHARES[-1:] if is_lost else SHARES
        for share in shares:
            found = prompt.messages(task, feedback, remark, around=share)
            if not room:
                return found
            answer = self._answer_tokens(task)
            if tokens.upper_bound(found) + answer <= room:  # nobody has to be asked
                return found
            needed = self.reached.counter.messages(found)[0] + answer
            if needed <= room:
                return found
        error = ContextFull(
            f"the region and what is attached are {needed:,} tokens with the answer, and "
            f"{self.reached.name} reads {room:,}",
            "Select less, attach less, or give the model more context",
        )
        error.prompt_tokens, error.context_tokens = needed, room
        raise error

    def _answer_tokens(self, task: Task) -> int:
        """Return how many tokens the answer has, roughly."""
        return min(self.reached.counter.known("\n".join(task.old))[0] * 5 // 4 + 128, self._most)

    def _most_tokens(self, task: Task) -> int:
        """Return how many tokens it may have: a model that repeats itself is stopped."""
        if not "".join(task.old).strip():
            return self._most
        own = self.reached.counter.known("\n".join(task.old))[0]
        return min(own * GROWTH + SPARE_TOKENS, self._most)

    @property
    def _most(self) -> int:
        return self.config.max_tokens


def is_tiny(model: str) -> bool:
    """Return whether a model's name says that it has less than a billion weights."""
    found = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])(?![a-z])", model.lower())
    return found is not None and (found[2] == "m" or float(found[1]) < 1)


class _Heard:
    """Reads one answer."""

    def __init__(self, task: Task, tell: Tell, attempt: int) -> None:
        self.reply = ""
        self.usage = Usage()
        self._task, self._tell, self._attempt = task, tell, attempt
        self._reading = Reading(task.language, task.old) if task.format == "whole" else None
        self._fitter = fitting.Fitter(task)
        self._is_cut = False
        self._began_s = 0.0
        self._done = 0

    def listen(self, stream: Stream) -> None:
        """Take what comes, up to the end of the one block that was asked for."""
        is_thinking = False
        for event in stream:
            if isinstance(event, Text):
                if self._take(event.text):
                    self.usage = stream.usage()
                    stream.close()
                    return
            elif isinstance(event, Progress):
                left = _left(event.done - event.cached, event.total - event.cached, event.spent_ms)
                self._say("reading", "", event.done, event.total, left)
            elif isinstance(event, Reasoning) and not is_thinking:
                is_thinking = True
                self._say("writing", "thinking", 0, len(self._task.old), -1.0)
            elif isinstance(event, Finished):
                self.usage, self._is_cut = event.usage, event.reason == "length"

    def finish(self) -> tuple[Lines, str]:
        """Return the region's new text, and what was said besides.

        Raises:
            ReplyUnusable: it is none.
        """
        if self._reading is None:
            return merged(self._task, self.reply, self._is_cut)
        new = self._reading.finish(self._is_cut)
        return self._fitter.whole(new), self._reading.note.strip()

    def _take(self, text: str) -> bool:
        """Take more of the answer; return whether that is all of it."""
        self.reply += text
        self._began_s = self._began_s or time.monotonic()
        if self._reading is None:
            self._say("writing", "", self.reply.count("\n"), len(self._task.old), -1.0)
            return False
        new = self._fitter.more(self._reading.feed(text))
        if new:
            self._done += len(new)
            self._tell.lines(self._attempt, new)
            total = len(self._task.old)
            spent_ms = (time.monotonic() - self._began_s) * 1000
            left = _left(self._done, max(total, self._done), spent_ms)
            self._say("writing", "", self._done, total, left)
        return self._reading.is_closed

    def _say(self, phase: EditPhase, detail: str, done: int, total: int, left: float) -> None:
        self._tell.progress(phase, detail, done, total, left, self._attempt)


def _left(done: int, total: int, spent_ms: float) -> float:
    """Return how many seconds something takes yet, -1 where nobody knows."""
    if done <= 0 or spent_ms <= 0 or total <= 0:
        return -1.0
    return round((total - done) * spent_ms / done / 1000, 1)
