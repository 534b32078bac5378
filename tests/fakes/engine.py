"""A fake of `lcursor.fim.backend.Backend` that never computes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from lcursor import protocol
from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled, LcursorError
from lcursor.fim.backend import OnImproved
from lcursor.fim.completer import Completer
from lcursor.fim.context_ring import ContextRing
from lcursor.fim.result import OnText, Result
from tests.fakes.heard import WAIT_S, Heard

Act = Callable[[], None]


def fail() -> None:
    """Raise an unexpected exception."""
    raise RuntimeError("broken")


def wait_for(event: threading.Event) -> Act:
    """Return a function that waits for an event."""

    def wait() -> None:
        assert event.wait(WAIT_S)

    return wait


def request(number: int, filetype: str = "") -> Any:
    """Return a request from an empty buffer."""
    kinds: dict[object, object] = {int: 1, str: "", bool: False}
    found = protocol.fields(protocol.fim.FimRequest).items()
    fields = {name: kinds.get(kind, "auto") for name, kind in found}
    return fields | {"id": number, "filetype": filetype}


class FakeAbort(threading.Event):
    """A flag that remembers whether it was set for the running batch too."""

    is_immediate = False

    def set(self, *, immediately: bool = False) -> None:
        self.is_immediate = immediately
        super().set()


class FakeEngine:
    """Completes with the name of its model.

    Attributes:
        acts: by the name of a method, what to do when it is called.
        result: what `complete` returns, in the place of the name of the model.
        the others: see `Backend`.
    """

    read_tokens = 0
    is_connected = True

    def __init__(self, models: Models, config: CompletionConfig, on_improved: OnImproved) -> None:
        self._models = models
        self.config, self.acts = config, models.acts
        self.threshold = config.min_confidence
        self.on_improved = on_improved
        self.result: Result | None = None
        self.warnings: list[LcursorError] = []
        self.name = self.description = config.model
        self.abort = FakeAbort()
        self.is_machine_busy = False

    def _act(self, name: str) -> None:
        self._models.note(name, self.config)
        self.acts.get(name, lambda: None)()

    def wait_abort(self) -> None:
        """Work until somebody sets `abort`, as a long computation would."""
        assert self.abort.wait(WAIT_S)
        raise Cancelled("a newer request came")

    def connect(self) -> None:
        self._act("connect")

    def measure_speed(self) -> str:
        return self._models.measure_speed()

    def configure(self, config: CompletionConfig) -> None:
        self.config, self.threshold = config, config.min_confidence
        self._act("configure")

    def complete(self, source: object, on_text: OnText, **options: bool) -> Result:
        self._act("complete")
        on_text(self.config.model)
        return self.result or Result(text=self.config.model, confidence=0.42)

    def alternatives(self, typed: str = "") -> list[str]:
        self._act("alternatives")
        return ["b", "c"]

    def warm(self, source: object) -> None:
        self._act("warm")

    def idle(self) -> bool:
        self._act("idle")
        return False

    def save(self) -> None:
        self._act("save")

    def close(self) -> None:
        self._act("close")


def wait_queue(completer: Completer) -> None:
    """Wait until the thread of a completer has done what was queued before."""
    is_done = threading.Event()
    completer._scheduler.call(is_done.set)
    assert is_done.wait(WAIT_S)


class Models(Heard):
    """Opens fake engines, and records their calls and the messages of a completer.

    Attributes:
        notes: (what, model, thread) of each call, in their order.
        acts: see `FakeEngine`; "open" is called while one is opened.
        engine: the last one that was opened.
        measure_speed: the method of each engine.
    """

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[tuple[str, str, str]] = []
        self.acts: dict[str, Act] = {}
        self.engine: FakeEngine | None = None
        self.progress: Callable[[float], bool] = lambda fraction: True
        self.measure_speed: Callable[[], str] = lambda: ""

    def open(
        self,
        config: CompletionConfig,
        progress: Callable[[float], bool],
        ring: ContextRing,
        on_improved: OnImproved,
    ) -> FakeEngine:
        """Replace `host.backends.open_backend`."""
        self.note("open", config)
        self.progress = progress
        self.acts.get("open", lambda: None)()
        self.engine = FakeEngine(self, config, on_improved)
        return self.engine

    def note(self, what: str, config: CompletionConfig) -> None:
        """Record a call."""
        with self._changed:
            self.notes.append((what, config.model, threading.current_thread().name))
            self._changed.notify_all()

    def names(self, *which: str) -> list[tuple[str, str]]:
        """Return the calls of these names, with the model."""
        with self._changed:
            return [(what, model) for what, model, _ in self.notes if what in which]

    def wait_call(self, what: str, count: int = 1) -> None:
        """Wait until something was called so often."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.names(what)) >= count, WAIT_S), (
                self.notes
            )
