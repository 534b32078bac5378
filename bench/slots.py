"""`bench slots`: what several requests at once gain and cost on the local server.

The server is the one of chats, edits and agents, with its slots and drafts. All streams continue
code of this project, each another file.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from bench.report import Json, Promise, Report, measuring
from lcursor.config import ChatConfig
from lcursor.drive.editor import ROOT
from lcursor.http.client import Client
from lcursor.llm.records import ServedModel
from lcursor.llm.server import LocalServer

MODEL: Final = "qwen2.5-coder-0.5b"
CONTEXT_TOKENS: Final = 8192
STREAMS: Final = (1, 4, 8)
TOKENS: Final = 150
"""Tokens of each stream."""
ROUNDS: Final = 3
PROMPT_CHARS: Final = 120
CHAT_CHARS: Final = 2000
PROMISES: Final = {
    "gain_4": Promise("tokens/s of 4 streams relative to one", at_least=1.1),
    "gain_8": Promise("tokens/s of 8 streams relative to one", at_least=1.5),
    "chat": Promise("a chat's first token with 8 streams, relative to alone", at_most=2.0),
}


def command(
    model: Annotated[str, typer.Option(help="A name of `models list`, or a path.")] = MODEL,
    as_json: Json = False,
) -> None:
    """Measure the local server with 1, 4 and 8 answers at once, and a chat beside them.

    Exits with 1 when a promise is not kept.
    """
    report = Report(promises=PROMISES)
    with _server(model) as target:
        bench = _Bench(target)
        rates = {count: bench.rates(report, count) for count in STREAMS}
        report.numbers["gain_4"] = rates[4] / rates[1]
        report.numbers["gain_8"] = rates[8] / rates[1]
        report.numbers["chat"] = bench.chats(report)
    report.finish(as_json, f"Model: {model}")


class _Bench:
    """Sends requests to a server; each text is new to its cache."""

    def __init__(self, target: ServedModel) -> None:
        self._target = target
        paths = sorted((ROOT / "lcursor/llm").glob("*.py"), key=lambda path: -path.stat().st_size)
        self._texts = [path.read_text(encoding="utf-8") for path in paths[: max(STREAMS)]]
        self._number = 0

    def rates(self, report: Report, count: int) -> float:
        """Return the tokens per second of so many streams together."""
        measuring(f"streams at once: {count}")
        rates = []
        for _ in range(ROUNDS):
            began_s = time.monotonic()
            self._write(count).join()
            rates.append(count * TOKENS / (time.monotonic() - began_s))
        report.add(f"{count} at once", rates, unit="tokens/s")
        return statistics.median(rates)

    def chats(self, report: Report) -> float:
        """Return how much later a chat's first token is beside all streams than alone."""
        measuring("the first token of a chat")
        alone = [self._first_ms() for _ in range(ROUNDS)]
        others = []
        for _ in range(ROUNDS):
            streams = self._write(max(STREAMS))
            time.sleep(2 * alone[0] / 1000)  # all of them write
            others.append(self._first_ms())
            streams.join()
        report.add("first token of a chat, alone", alone)
        report.add(f"first token of a chat, with {max(STREAMS)} streams", others)
        return statistics.median(others) / statistics.median(alone)

    def _write(self, count: int) -> threading.Thread:
        prompts = [self._new(text[:PROMPT_CHARS]) for text in self._texts[:count]]

        def run() -> None:
            with ThreadPoolExecutor(count) as pool:
                list(pool.map(lambda prompt: self._ask(prompt, TOKENS), prompts))

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def _first_ms(self) -> float:
        return self._ask(self._new(self._texts[0][CHAT_CHARS : 2 * CHAT_CHARS]), 1)

    def _new(self, text: str) -> str:
        self._number += 1
        return f"# {self._number}\n{text}"

    def _ask(self, prompt: str, count: int) -> float:
        """Return the milliseconds that an answer of so many tokens takes."""
        client = Client(self._target.url, self._target.key, "chat")
        body: dict[str, Any] = {"prompt": prompt, "n_predict": count, "ignore_eos": True}
        began_s = time.monotonic()
        try:
            answer = json.loads(b"\n".join(client.stream("/completion", body)))
        finally:
            client.close()
        assert answer["tokens_predicted"] == count, answer
        return (time.monotonic() - began_s) * 1000


@contextmanager
def _server(model: str) -> Iterator[ServedModel]:
    with tempfile.TemporaryDirectory(prefix="lcs") as name:
        config = ChatConfig(model=model, context_tokens=CONTEXT_TOKENS)
        server = LocalServer(config, Path(name), lambda _: None)
        try:
            yield server.ensure()
        finally:
            server.stop()
            server.close()
