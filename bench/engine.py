"""The backend without Neovim: how soon a running request stops when the next one comes."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bench.report import Figure, figure
from lcursor.config import CompletionConfig
from lcursor.drive.editor import ROOT
from lcursor.fim.completer import Completer
from lcursor.host.backends import open_backend
from lcursor.protocol import FimRequest

STOPS = 40
SOURCE = ROOT / "lcursor/fim/engine.py"


class Recorder:
    """A completer and the messages that it sent."""

    def __init__(self, model: str) -> None:
        self._changed = threading.Condition()
        self.events: list[tuple[float, str, Mapping[str, Any]]] = []
        config = CompletionConfig(min_confidence=0.0)  # show every suggestion
        config = replace(config, model=model) if model else config
        self.completer = Completer(config, self._emit, open_backend)

    def _emit(self, method: str, params: Mapping[str, Any]) -> None:
        with self._changed:
            self.events.append((time.perf_counter(), method, params))
            self._changed.notify_all()

    def wait(self, method: str, timeout_s: float = 120, **fields: object) -> float:
        """Wait for a message and return its time."""

        def found() -> float | None:
            for at, name, params in self.events:
                if name == method and all(params.get(k) == v for k, v in fields.items()):
                    return at
                if name == "error":
                    raise RuntimeError(params["message"])
            return None

        with self._changed:
            if not self._changed.wait_for(lambda: found() is not None, timeout_s):
                raise TimeoutError(f"{method} {fields} did not come")
            return found() or 0.0


def request(number: int, prefix: str, suffix: str) -> FimRequest:
    """Return a request as the editor sends it."""
    return FimRequest(
        id=number,
        buf=1,
        tick=number,
        path="",
        name="engine.py",
        repo="bench",
        filetype="python",
        first_row=0,
        row=prefix.count("\n"),
        col=0,
        prefix=prefix,
        suffix=suffix,
        top="",
        single_line=False,
        trigger="auto",
    )


def stops(model: str = "") -> Figure:
    """Measure the time from a new request to the end of the running one, at random moments."""
    recorder = Recorder(model)
    recorder.completer.start()
    recorder.wait("state", state="ready")
    text = SOURCE.read_text()
    rng = random.Random(1)
    samples = []
    for number in range(1, 2 * STOPS, 2):
        start = rng.randrange(len(text) // 2)
        recorder.completer.request(
            request(number, text[start : start + 3000], text[start + 3000 :])
        )
        time.sleep(rng.uniform(0.03, 0.5))
        asked = time.perf_counter()
        recorder.completer.request(request(number + 1, "x = ", ""))
        ended = recorder.wait("fim.done", id=number)
        if ended > asked:
            samples.append((ended - asked) * 1000)
        recorder.wait("fim.done", id=number + 1)
    recorder.completer.close()
    return figure("a running request stops after the next keystroke", samples, limit=15)
