"""Request one rewrite of a region from a model: build the prompt, read the streamed answer.

`checks.py` checks the result, and `retry.py` repeats the request. Blocks.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from lcursor.changes import diff
from lcursor.changes.apply.parse import RegionReader, blocks
from lcursor.changes.apply.resolve import Ask, Unresolved, resolve
from lcursor.changes.records import Lines
from lcursor.config import EditConfig
from lcursor.edit.rewriting import prompt
from lcursor.edit.rewriting.normalize import Normalizer
from lcursor.edit.rewriting.task import FailedAttempt, RewriteListener, RewriteProgress, Task
from lcursor.errors import ContextFull, ReplyUnusable
from lcursor.llm import tokens
from lcursor.llm.client import Stream
from lcursor.llm.pool import Connection
from lcursor.llm.records import (
    Finished,
    Message,
    Progress,
    Queued,
    Reasoning,
    SamplingParams,
    Text,
    Usage,
)
from lcursor.project.redaction import restored, with_bytes
from lcursor.protocol.edit import EditPhase
from lcursor.stop import Stop

GROWTH: Final = 3
"""Maximum size of an answer, in multiples of the region's tokens, plus `SPARE_TOKENS`."""
SPARE_TOKENS: Final = 1024
SHARES: Final = (1.0, 0.5, 0.2, 0.0)
"""Shares of the surrounding text, tried in order until the prompt fits."""


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """The answer of a model."""

    lines: Lines
    """The new text of the region."""
    note: str
    """The model's text outside of the code."""
    usage: Usage
    reply: str
    """The verbatim reply."""


class Rewriter:
    """Rewrites regions with one model. Thread: `run` on any, several at once.

    Args:
        rank: of its requests, as in `SamplingParams`.
    """

    def __init__(self, connection: Connection, config: EditConfig, rank: int = 0) -> None:
        self.connection, self.config, self._rank = connection, config, rank

    def run(
        self,
        task: Task,
        listener: RewriteListener,
        cancel: Stop,
        *,
        attempt: int = 1,
        feedback: Sequence[FailedAttempt] = (),
        remark: str = "",
        temperature: float = 0.0,
    ) -> ModelOutput:
        """Rewrite a region once.

        `feedback` are earlier attempts, and `remark` is the user's comment on one of them.
        """
        bare = task.without_returns()
        listener.started(task.region, attempt)
        listener.progress(RewriteProgress("reading", attempt=attempt))
        messages = self._fitting_prompt(bare, feedback, remark)
        sampling = SamplingParams(
            max_tokens=self._max_tokens(task),
            temperature=temperature,
            has_counts=True,
            rank=self._rank,
        )
        cancel.check()
        reader = _AnswerReader(bare, listener, attempt)
        stream = self.connection.client.stream(messages, sampling)
        with cancel.closing(stream.close):
            reader.read(stream)
        try:
            new, note = reader.finish()
        except ReplyUnusable as error:
            error.reply, error.usage = reader.reply, reader.usage
            raise
        return ModelOutput(diff.with_line_ends(task.near, new), note, reader.usage, reader.reply)

    def _fitting_prompt(
        self, task: Task, feedback: Sequence[FailedAttempt], remark: str
    ) -> list[Message]:
        """Return the prompt with as much of the surrounding text as fits."""
        limit, needed = self.connection.context_tokens, 0
        # A small model that failed has often repeated the surroundings, so omit them in a retry. A
        # model with less than a billion weights does so even in its first attempt.
        repeats = is_tiny(self.connection.served.model) or any(each.problems for each in feedback)
        answer = min(self._count("\n".join(task.old)) * 5 // 4 + 128, self.config.max_tokens)
        for share in SHARES[-1:] if repeats else SHARES:
            found = prompt.messages(task, feedback, remark, around=share)
            if not limit or tokens.upper_bound(found) + answer <= limit:
                return found
            needed = self.connection.client.count(found)[0] + answer
            if needed <= limit:
                return found
        error = ContextFull(
            f"the region, the attachments and the answer need {needed:,} tokens, the limit of "
            f"{self.connection.name} is {limit:,}",
            "Select less, attach less, or give the model more context",
        )
        error.prompt_tokens, error.context_tokens = needed, limit
        raise error

    def _max_tokens(self, task: Task) -> int:
        """Return the limit of the answer, which stops a model that repeats itself."""
        text = "\n".join(task.old)
        limit = self.config.max_tokens
        return min(self._count(text) * GROWTH + SPARE_TOKENS, limit) if text.strip() else limit

    def _count(self, text: str) -> int:
        return self.connection.client.count(text, may_ask=False)[0]


def is_tiny(model: str) -> bool:
    """Return whether, according to its name, a model has less than a billion weights."""
    found = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])(?![a-z])", model.lower())
    return found is not None and (found[2] == "m" or float(found[1]) < 1)


class _AnswerReader:
    """Reads one answer as it streams."""

    def __init__(self, task: Task, listener: RewriteListener, attempt: int) -> None:
        self.reply = ""
        self.usage = Usage()
        self._task, self._listener, self._attempt = task, listener, attempt
        self._reader = RegionReader(task.language, task.old) if task.format == "whole" else None
        self._normalizer = Normalizer(task)
        self._is_cut = False
        self._began_s = 0.0
        self._done = 0

    def read(self, stream: Stream) -> None:
        """Read up to the end of the code block."""
        is_thinking = False
        for event in stream:
            if isinstance(event, Text):
                if self._feed(event.text):
                    self.usage = stream.usage()
                    stream.close()
                    return
            elif isinstance(event, Progress):
                left = _seconds_left(
                    event.done - event.cached, event.total - event.cached, event.spent_ms
                )
                self._progress("reading", "", event.done, event.total, left)
            elif isinstance(event, Reasoning) and not is_thinking:
                is_thinking = True
                self._progress("writing", "thinking", 0, len(self._task.old), -1.0)
            elif isinstance(event, Queued):
                self._progress("queue" if event.is_waiting else "reading", "", 0, 0, -1.0)
            elif isinstance(event, Finished):
                self.usage, self._is_cut = event.usage, event.reason == "length"

    def finish(self) -> tuple[Lines, str]:
        """Return the region's new text, and the model's text outside of it."""
        old = self._task.old
        if self._reader is None:
            reply = "\n".join(restored(self.reply.split("\n"), old))
            return _apply_to_region(self._task, reply, self._is_cut), ""
        new = with_bytes(restored(self._reader.finish(self._is_cut), old), old)
        return self._normalizer.whole(new), self._reader.note

    def _feed(self, text: str) -> bool:
        """Read more of the answer; return whether it is complete."""
        self.reply += text
        self._began_s = self._began_s or time.monotonic()
        total = len(self._task.old)
        if self._reader is None:
            self._progress("writing", "", self.reply.count("\n"), total, -1.0)
            return False
        new = self._normalizer.feed(self._reader.feed(text))
        if new:
            self._done += len(new)
            self._listener.lines(self._attempt, new)
            spent_ms = (time.monotonic() - self._began_s) * 1000
            left = _seconds_left(self._done, max(total, self._done), spent_ms)
            self._progress("writing", "", self._done, total, left)
        return self._reader.is_closed

    def _progress(self, phase: EditPhase, detail: str, done: int, total: int, left: float) -> None:
        now = RewriteProgress(phase, detail, done, total, left, self._attempt)
        self._listener.progress(now)


def _seconds_left(done: int, total: int, spent_ms: float) -> float:
    """Return an estimate of the remaining time; -1 if unknown."""
    if done <= 0 or spent_ms <= 0 or total <= 0:
        return -1.0
    return round((total - done) * spent_ms / done / 1000, 1)


# Replies as search/replace blocks or diffs apply only to the region, so nothing else changes.


class _RegionOnly:
    """The region as the only file."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def read(self, path: str) -> Lines | None:
        return self._task.old if path == self._task.path else None

    def current(self) -> str:
        return self._task.path

    def all(self) -> Sequence[str]:
        return (self._task.path,)

    def absolute(self, path: str) -> str:
        return path


def _apply_to_region(task: Task, reply: str, is_cut: bool) -> Lines:
    """Return the region after the changes of a reply; raise `ReplyUnusable` if ambiguous."""
    if is_cut:
        raise ReplyUnusable("cut", "The answer was cut off before its end")
    found = [
        replace(each, path=task.path) if _names_task(each.path, task) else each
        for each in blocks(reply, task.path)
    ]
    if not found:
        raise ReplyUnusable("prose", "The answer has no block of code")
    resolved = resolve(found, _RegionOnly(task))
    if isinstance(resolved, Ask):
        raise ReplyUnusable("form", f"It is not clear where a change belongs: {resolved.text}")
    if isinstance(resolved, Unresolved):
        raise ReplyUnusable("form", resolved.reason)
    new = task.old
    for file in resolved.files:
        if file.path != task.path or file.kind not in ("edit", "create"):
            raise ReplyUnusable("form", "The answer changes other files than the one it was shown")
        new = diff.apply(new, file.changes)
    return new


def _names_task(path: str, task: Task) -> bool:
    path = path.removeprefix("a/").removeprefix("b/").removeprefix("./")
    return not path or path == task.name or task.path.endswith(f"/{path}")
