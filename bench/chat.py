"""`bench chat`: what the chat adds to a bare server, how it stops, and what streaming costs.

The parts here ask a real model on a local server of their own; `chat_neovim.py` streams into a real
Neovim and types there. The user's chats, server and settings are neither read nor written.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated
from unittest import mock

import typer

from bench import chat_neovim
from bench.chat_clients import Answer, Bare, Chat
from bench.report import (
    Json,
    Promise,
    Report,
    check_names,
    measuring,
    reporting_timeouts,
    wait,
)
from lcursor.chat import prompt
from lcursor.cli.editor import find_neovim
from lcursor.config import ChatConfig
from lcursor.errors import LcursorError
from lcursor.llm import llama_server
from lcursor.llm.records import ServedModel
from lcursor.llm.server import LocalServer

MODEL_PARTS = ("overhead", "stop", "turns")
PARTS = (*MODEL_PARTS, "screen", "ghost")
"""Each takes one to four minutes on two cores."""
PROMISES = {
    "ttft_ratio": Promise("time to first token, slot : bare server", at_most=1.05),
    "tokens_per_s_ratio": Promise("tokens/s, slot : bare server", at_least=0.97),
    "second_turn_cached_share": Promise("second turn, share of cached tokens", at_least=0.95),
    "resume_cached_share": Promise("the same after a restart of the server", at_least=0.95),
    "stop_ms": Promise("stop while writing, to an idle server, ms", at_most=200),
    "main_thread_share": Promise("Neovim's main thread at 200 tokens/s, share", at_most=0.05),
    "typing_p95_more_ms": Promise("typing elsewhere meanwhile, p95, ms more", at_most=2),
}

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

LINE = "def step_{0:04d}(value, weight):  # item {1:04d}\n    return value * weight + {0:04d}\n"


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="overhead, stop, turns, screen, ghost; default: all."),
    ] = None,
    model: Annotated[
        str, typer.Option(help="Chat model: a name of `models list`, or a path.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Measure the chat: compared with the bare server, stopped, resumed, streamed into Neovim.

    Exits with 1 when a promise is not kept. The last line of --json is one object.
    """
    check_names(names or (), PARTS)
    report, model = Report(promises=PROMISES), model or chat_neovim.MODEL
    report.facts["model"] = model
    parts = names or PARTS
    with reporting_timeouts():
        if {*MODEL_PARTS} & {*parts}:
            with tempfile.TemporaryDirectory(prefix="lcb") as folder:
                bench = _Bench(Path(folder), model, report)
                runs = {"overhead": bench.overhead, "stop": bench.stops, "turns": bench.turns}
                with bench.running():
                    for name in MODEL_PARTS:
                        if name in parts:
                            runs[name]()
        if "screen" in parts:
            chat_neovim.stream(report, find_neovim())
        if "ghost" in parts:
            chat_neovim.type_during_answer(report, find_neovim(), model)
    facts = [
        f"{name}: {report.facts[name]}" for name in ("model", "server") if name in report.facts
    ]
    report.finish(as_json, *facts)


class _Bench:
    """The parts that need a model.

    Args:
        folder: empty.
        model: a name of `models list`, or a path.
        report: gets the figures and numbers.
    """

    def __init__(self, folder: Path, model: str, report: Report) -> None:
        self.folder, self.report = folder, report
        self.config = ChatConfig(
            model=model,
            context_tokens=chat_neovim.CONTEXT_TOKENS,
            max_tokens=48,
            temperature=0.0,
        )
        project = folder / "project"
        project.mkdir()
        (project / "pyproject.toml").touch()
        self.path = project / "steps.py"
        self.path.touch()
        self._asked = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the server while the context is open."""
        measuring("starting the local server")
        server = LocalServer(self.config, self.folder / "server", lambda _: None)
        try:
            with mock.patch.object(llama_server, "SPECULATIONS", ()):
                self.target: ServedModel = server.ensure()
            self.report.facts["server"] = "; ".join(server.status().lines[:1])
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

    def overhead(self) -> None:
        """Ask the same through the chat slot and through a bare client, in turn.

        A machine may be a fifth slower from one run to the next, which is more than the slot adds.
        So the time to the first token is divided by the server's own prompt time of the same run,
        and the speed of an answer by that of the other client in the same round (the median of
        the ratios); the plain ratios of the medians are reported as well. Speculative decoding is
        off, since its speed depends on the words of the answer.
        """
        add, numbers = self.report.add, self.report.numbers
        with Bare(self.target) as bare:
            ours, theirs = self._pairs(bare, LONG_TOKENS, ROUNDS, FIRST_TOKENS, is_cold=True)
            for who, answers in (("slot", ours), ("bare server", theirs)):
                add(f"first token, {who}", [each.first_ms for each in answers])
                more = [each.first_ms - each.prompt_ms for each in answers]
                add(f"of it not the server's reading, {who}", more)
            numbers["ttft_ratio"] = _ratio(ours, theirs, lambda each: each.first_share)
            numbers["ttft_ratio_plain"] = _ratio(ours, theirs, lambda each: each.first_ms)
            numbers["ttft_overhead_ms"] = _added_ms(ours) - _added_ms(theirs)
            ours, theirs = self._pairs(
                bare, SHORT_TOKENS, SPEED_ROUNDS, ANSWER_TOKENS, is_cold=False
            )
            for who, answers in (("slot", ours), ("bare server", theirs)):
                add(f"tokens a second, {who}", [each.tokens_per_s for each in answers], unit="/s")
            numbers["tokens_per_s_ratio"] = statistics.median(
                one.tokens_per_s / other.tokens_per_s
                for one, other in zip(ours, theirs, strict=True)
            )
            numbers["tokens_per_s_ratio_plain"] = _ratio(ours, theirs, lambda a: a.tokens_per_s)

    def _pairs(
        self, bare: Bare, tokens: int, rounds: int, answer_tokens: int, is_cold: bool
    ) -> tuple[list[Answer], list[Answer]]:
        """Ask both the same, in changing order; the first round is a warm-up.

        Args:
            bare: the other client.
            tokens: approximate size of the question.
            rounds: after the warm-up.
            answer_tokens: limit of each answer.
            is_cold: whether the server's cache is cleared before each question.
        """
        ours, theirs = list[Answer](), list[Answer]()
        with Chat(replace(self.config, max_tokens=answer_tokens), self.folder) as chat:
            for number in range(rounds + 1):
                measuring(f"a question of {tokens} tokens, {number} of {rounds}")
                text = f"Explain each of these at length.\n\n{self.text(tokens, bare)}".strip()
                messages = [
                    {"role": "system", "content": prompt.SYSTEM},
                    {"role": "user", "content": text},
                ]
                found = dict[bool, Answer]()
                for is_ours in (True, False) if number % 2 else (False, True):
                    if is_cold:
                        bare.call("/slots/0?action=erase", {})
                    elif not found:
                        bare.ask(messages, 1)  # fills the cache for the first one, too
                    found[is_ours] = (
                        chat.ask(chat.open(self.path), text, self.path)
                        if is_ours
                        else bare.ask(messages, answer_tokens)
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

    def stops(self) -> None:
        """Stop answers, and measure the time until the server is idle."""
        writing, reading = list[float](), list[float]()
        config = replace(self.config, max_tokens=0)
        with Bare(self.target) as bare, Chat(config, self.folder) as chat:
            for number in range(STOPS):
                measuring(f"stopping an answer, {number + 1} of {STOPS}")
                text = f"Count from {number} to 1000, in words."
                asked, _ = chat.send(chat.open(self.path), text, self.path)
                chat.wait(asked, "chat.delta")
                time.sleep(0.15)
                writing.append(self._stop(chat, bare, asked, STEP_S))
            for number in range(STOPS // 2):
                measuring(f"stopping while the prompt is read, {number + 1} of {STOPS // 2}")
                text = self.text(2000, bare)
                asked, _ = chat.send(chat.open(self.path), text, self.path)
                if not wait(lambda: _is_busy(bare), 10, READING_STEP_S):
                    raise LcursorError("the server did not begin to read", "Run it again")
                time.sleep(0.3)
                reading.append(self._stop(chat, bare, asked, READING_STEP_S))
        limit = PROMISES["stop_ms"].at_most
        stop = self.report.add("stop while writing, to an idle server", writing, limit=limit)
        # The server finishes its current batch, which is slow without a GPU.
        slow = self.report.add("stop while reading, to an idle server", reading)
        self.report.numbers |= {
            "stop_ms": stop.p50,
            "stop_p95_ms": stop.p95,
            "stop_reading_ms": slow.p50,
        }

    def _stop(self, chat: Chat, bare: Bare, asked: int, step_s: float) -> float:
        stopped_s = time.perf_counter()
        chat.slot.stop({"id": asked})
        if not wait(lambda: not _is_busy(bare), 60, step_s):
            raise LcursorError("the server goes on after a stop", "Look at its log")
        idle_s = time.perf_counter()
        answer = chat.end(asked, stopped_s)
        if answer.reason != "stopped":
            raise LcursorError(f"an answer ended before it was stopped: {answer.reason}", "Again")
        return (idle_s - stopped_s) * 1000

    def turns(self) -> None:
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
        with Chat(self.config, self.folder, IDLE_S) as chat:
            key = chat.open(self.path)
            measuring(f"a conversation of {CONVERSATION_TOKENS} tokens: its first turn")
            one = chat.ask(key, "What is this file for?", self.path, attachments=[attached])
            measuring("its second turn")
            two = chat.ask(key, "Which step is the last?", self.path, after=one.number)
            self._wait_saved()
        measuring("its third turn, after a restart of the server")
        server = LocalServer(self.config, self.folder / "server", lambda _: None)
        server.stop()
        with Chat(self.config, self.folder, IDLE_S) as chat:
            chat.open(self.path, key)
            three = chat.ask(key, "And the first?", self.path, after=two.number)
        server.close()
        self.report.add("first turn, to its first token", [one.first_ms])
        self.report.add("second turn, to its first token", [two.first_ms])
        self.report.add("third turn after a restart, to its first token", [three.first_ms])
        self.report.numbers |= {
            "conversation_tokens": two.prompt_tokens,
            "second_turn_cached_share": two.cached_tokens / max(two.prompt_tokens, 1),
            "resume_cached_share": three.cached_tokens / max(three.prompt_tokens, 1),
            "first_turn_ms": one.first_ms,
            "second_turn_ms": two.first_ms,
            "resume_ms": three.first_ms,
        }

    def _wait_saved(self) -> None:
        """Wait until the state of the chat is on disk; without it, the numbers show that."""
        slots, sizes = self.folder / "server" / "slots", [0, 0, 0]

        def is_saved() -> bool:
            sizes.append(sum(path.stat().st_size for path in slots.glob("*.kv")))
            return sizes[-1] > 0 and sizes[-1:] * 3 == sizes[-3:]

        wait(is_saved, 30, 0.2)


def _is_busy(bare: Bare) -> bool:
    return any(slot["is_processing"] for slot in bare.call("/slots"))


def _added_ms(answers: list[Answer]) -> float:
    return statistics.median(each.first_ms - each.prompt_ms for each in answers)


def _ratio(ours: list[Answer], theirs: list[Answer], value: Callable[[Answer], float]) -> float:
    return statistics.median(map(value, ours)) / statistics.median(map(value, theirs))
