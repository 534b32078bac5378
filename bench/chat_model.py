"""The parts of `bench chat` that ask a real model, on a local server of their own."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.chat_talk import Bare, Heard, Talk
from bench.report import Figure, figure, measuring
from lcursor.chat import prompt
from lcursor.config import ChatConfig
from lcursor.errors import LcursorError
from lcursor.llm.records import Target
from lcursor.llm.server import LocalServer

MODEL = "qwen2.5-coder-0.5b"
CONTEXT_TOKENS = 8192
ROUNDS, SPEED_ROUNDS = 9, 15
LONG_TOKENS, FIRST_TOKENS = 250, 8
"""Of questions whose first token is timed, such as a function with its surroundings; of answers."""
SHORT_TOKENS, ANSWER_TOKENS = 60, 120
"""Of questions whose answers are timed; of these answers."""
CONVERSATION_TOKENS = 6000
STOPS = 8
STEP_S = 0.002
"""Between two looks at a server that generates."""
READING_STEP_S = 0.02
"""The same for one that evaluates a prompt; it answers only between two batches."""
IDLE_S = 0.3
MAX_STOP_MS = 200.0

LINE = "def step_{0:04d}(value, weight):  # item {1:04d}\n    return value * weight + {0:04d}\n"


class Model:
    """The parts of the bench that need a model.

    Args:
        folder: empty.
        model: a name of `models list`, or a path.
    """

    def __init__(self, folder: Path, model: str) -> None:
        self.folder = folder
        self.config = ChatConfig(
            model=model or MODEL,
            context_tokens=CONTEXT_TOKENS,
            max_tokens=48,
            temperature=0.0,
            speculate=False,
        )
        self.project = folder / "project"
        self.project.mkdir()
        (self.project / "pyproject.toml").touch()
        self.path = self.project / "steps.py"
        self.path.touch()
        self.facts: dict[str, str] = {}
        self._asked = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the server while the context is open."""
        measuring("starting the local server")
        server = LocalServer(self.config, self.folder / "server", lambda _: None)
        try:
            self.target: Target = server.ensure()
            self.facts["server"] = "; ".join(server.status().lines[:1])
            yield
        finally:
            server.stop()
            server.close()

    def text(self, tokens: int, bare: Bare) -> str:
        """Return new code of about so many tokens."""
        self._asked += 1
        lines = [LINE.format(number, self._asked) for number in range(4)]
        count = len(bare.call("/tokenize", {"content": "".join(lines)})["tokens"]) / len(lines)
        return "".join(LINE.format(n, self._asked) for n in range(max(round(tokens / count), 1)))

    def overhead(self) -> tuple[list[Figure], dict[str, float]]:
        """Ask the same through the chat slot and through a bare client, in turn.

        A machine may be a fifth slower from one run to the next, which is more than the slot adds.
        So the time to the first token is divided by the server's own prompt time of the same run,
        and the speed of an answer by that of the other client in the same round (the median of
        the ratios); the plain ratios of the medians are reported as well. Speculative decoding is
        off, since its speed depends on the words of the answer.
        """
        figures, numbers = [], dict[str, float]()
        with Bare(self.target) as bare:
            ours, theirs = self._pairs(bare, LONG_TOKENS, ROUNDS, FIRST_TOKENS, is_cold=True)
            for who, heard in (("slot", ours), ("bare server", theirs)):
                figures.append(figure(f"first token, {who}", [h.first_ms for h in heard]))
                more = [h.first_ms - h.prompt_ms for h in heard]
                figures.append(figure(f"of it not the server's reading, {who}", more))
            numbers["ttft_ratio"] = _ratio(ours, theirs, lambda heard: heard.first_share)
            numbers["ttft_ratio_plain"] = _ratio(ours, theirs, lambda heard: heard.first_ms)
            numbers["ttft_overhead_ms"] = _added_ms(ours) - _added_ms(theirs)
            ours, theirs = self._pairs(
                bare, SHORT_TOKENS, SPEED_ROUNDS, ANSWER_TOKENS, is_cold=False
            )
            for who, heard in (("slot", ours), ("bare server", theirs)):
                speed = [h.tokens_per_s for h in heard]
                figures.append(figure(f"tokens a second, {who}", speed, unit="/s"))
            numbers["tokens_per_s_ratio"] = statistics.median(
                one.tokens_per_s / other.tokens_per_s
                for one, other in zip(ours, theirs, strict=True)
            )
            numbers["tokens_per_s_ratio_plain"] = _ratio(ours, theirs, lambda h: h.tokens_per_s)
        return figures, numbers

    def _pairs(
        self, bare: Bare, tokens: int, rounds: int, answer_tokens: int, is_cold: bool
    ) -> tuple[list[Heard], list[Heard]]:
        """Ask both the same, in changing order; the first round is a warm-up.

        Args:
            bare: the other client.
            tokens: approximate size of the question.
            rounds: after the warm-up.
            answer_tokens: limit of each answer.
            is_cold: whether the server's cache is cleared before each question.
        """
        ours, theirs = list[Heard](), list[Heard]()
        config = replace(self.config, max_tokens=answer_tokens)
        with Talk(config, self.folder) as talk:
            for number in range(rounds + 1):
                measuring(f"a question of {tokens} tokens, {number} of {rounds}")
                text = f"Explain each of these at length.\n\n{self.text(tokens, bare)}".strip()
                found = dict[bool, Heard]()
                for is_ours in (True, False) if number % 2 else (False, True):
                    if is_cold:
                        bare.call("/slots/0?action=erase", {})
                    elif not found:
                        self._bare(bare, text, 1)  # fills the cache for the first one, too
                    found[is_ours] = (
                        self._ours(talk, text) if is_ours else self._bare(bare, text, answer_tokens)
                    )
                one, other = found[True], found[False]
                if one.prompt_tokens != other.prompt_tokens:
                    raise LcursorError(
                        f"the two did not ask the same: {one.prompt_tokens} and "
                        f"{other.prompt_tokens} tokens",
                        "Report this bug of lcursor",
                    )
                if number:
                    ours.append(one)
                    theirs.append(other)
        return ours, theirs

    def _ours(self, talk: Talk, text: str) -> Heard:
        chat = str(talk.open(self.path)["chat"])
        return talk.ask(chat, text, self.path)

    def _bare(self, bare: Bare, text: str, answer_tokens: int) -> Heard:
        messages = [
            {"role": "system", "content": prompt.SYSTEM},
            {"role": "user", "content": text},
        ]
        return bare.ask(messages, answer_tokens)

    def stops(self) -> tuple[list[Figure], dict[str, float]]:
        """Stop answers, and measure the time until the server is idle."""
        writing, reading = list[float](), list[float]()
        long = replace(self.config, max_tokens=0)
        with Bare(self.target) as bare, Talk(long, self.folder) as talk:
            for number in range(STOPS):
                measuring(f"stopping an answer, {number + 1} of {STOPS}")
                chat = str(talk.open(self.path)["chat"])
                asked, _ = talk.send(chat, f"Count from {number} to 1000, in words.", self.path)
                talk.wait(asked, "chat.delta")
                time.sleep(0.15)
                writing.append(self._stop(talk, bare, asked, STEP_S))
            for number in range(STOPS // 2):
                measuring(f"stopping while the prompt is read, {number + 1} of {STOPS // 2}")
                chat = str(talk.open(self.path)["chat"])
                text = self.text(2000, bare)
                asked, _ = talk.send(chat, text, self.path)
                deadline_s = time.monotonic() + 10
                while not _is_busy(bare):
                    if time.monotonic() > deadline_s:
                        raise LcursorError("the server did not begin to read", "Run it again")
                    time.sleep(READING_STEP_S)
                time.sleep(0.3)
                reading.append(self._stop(talk, bare, asked, READING_STEP_S))
        figures = [
            figure("stop while writing, to an idle server", writing, limit=MAX_STOP_MS),
            # The server finishes its current batch, which is slow without a GPU.
            figure("stop while reading, to an idle server", reading),
        ]
        return figures, {
            "stop_ms": statistics.median(writing),
            "stop_p95_ms": figures[0].p95,
            "stop_reading_ms": statistics.median(reading),
        }

    def _stop(self, talk: Talk, bare: Bare, asked: int, step_s: float) -> float:
        stopped_s = time.perf_counter()
        talk.slot.stop({"id": asked})
        while _is_busy(bare):
            if time.perf_counter() - stopped_s > 60:
                raise LcursorError("the server goes on after a stop", "Look at its log")
            time.sleep(step_s)
        idle_s = time.perf_counter()
        heard = talk.end(asked, stopped_s)
        if heard.reason != "stopped":
            raise LcursorError(f"an answer ended before it was stopped: {heard.reason}", "Again")
        return (idle_s - stopped_s) * 1000

    def turns(self) -> tuple[list[Figure], dict[str, float]]:
        """Ask twice about much code, and again after a restart of the server."""
        with Bare(self.target) as bare:
            text = self.text(CONVERSATION_TOKENS, bare)
        attached = {
            "kind": "buffer",
            "name": "steps.py",
            "path": str(self.path),
            "first_row": 0,
            "text": text,
            "is_offered": False,
        }
        with Talk(self.config, self.folder, IDLE_S) as talk:
            chat = str(talk.open(self.path)["chat"])
            measuring(f"a conversation of {CONVERSATION_TOKENS} tokens: its first turn")
            one = talk.ask(chat, "What is this file for?", self.path, attachments=[attached])
            measuring("its second turn")
            two = talk.ask(chat, "Which step is the last?", self.path, after=one.number)
            self._wait_saved()
        measuring("its third turn, after a restart of the server")
        server = LocalServer(self.config, self.folder / "server", lambda _: None)
        server.stop()
        with Talk(self.config, self.folder, IDLE_S) as talk:
            shown = talk.open(self.path, chat)
            if len(shown["messages"]) != 4:
                raise LcursorError("the stored chat is not whole", "Report this bug of lcursor")
            three = talk.ask(chat, "And the first?", self.path, after=two.number)
        server.close()
        figures = [
            figure("first turn, to its first token", [one.first_ms]),
            figure("second turn, to its first token", [two.first_ms]),
            figure("third turn after a restart, to its first token", [three.first_ms]),
        ]
        return figures, {
            "conversation_tokens": two.prompt_tokens,
            "second_turn_cached_share": two.cached_tokens / max(two.prompt_tokens, 1),
            "resume_cached_share": three.cached_tokens / max(three.prompt_tokens, 1),
            "first_turn_ms": one.first_ms,
            "second_turn_ms": two.first_ms,
            "resume_ms": three.first_ms,
        }

    def _wait_saved(self) -> None:
        """Wait until the state of the chat is on disk."""
        slots, deadline_s = self.folder / "server" / "slots", time.monotonic() + 30
        sizes: list[int] = []
        while not sizes or sizes[-1:] * 3 != sizes[-3:] or not sizes[-1]:
            if time.monotonic() > deadline_s:
                return  # then the third turn evaluates everything, which its numbers show
            sizes.append(sum(path.stat().st_size for path in slots.glob("*.kv")))
            time.sleep(0.2)


def _is_busy(bare: Bare) -> bool:
    return any(slot["is_processing"] for slot in bare.call("/slots"))


def _added_ms(heard: list[Heard]) -> float:
    return statistics.median(each.first_ms - each.prompt_ms for each in heard)


def _ratio(ours: list[Heard], theirs: list[Heard], value: Callable[[Heard], float]) -> float:
    return statistics.median(map(value, ours)) / statistics.median(map(value, theirs))
