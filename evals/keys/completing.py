"""lcursor's own completion on a simulated clock: the real engine, and the rules of the editor.

The editor's rules (`lua/lcursor/complete/`: `init.lua`, `suggestion.lua`, `gate.lua`) are repeated
here, because no Neovim runs: `eval keys --neovim` compares both.
"""

from __future__ import annotations

import re
from pathlib import Path

from evals.keys.insertions import Insertion
from evals.keys.recorded import Clock, Context, Record, Speed
from evals.keys.typist import Choice, View
from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled
from lcursor.fim import llama
from lcursor.fim.engine import Engine
from lcursor.fim.prompt import Source
from lcursor.fim.result import Result
from lcursor.fim.scheduler import IDLE_S

PAUSE_S, PREFETCH_S = 1.0, 0.25
"""`PAUSE_MS` of init.lua, and `REST_MS` of prefetch.lua."""
INERT = re.compile(r"\s*[)>}\]\"'`]*\s*[:{;,]?\s*")
"""`is_inert` of text.lua: text right of the cursor that allows a suggestion."""


class SimulatedEngine(Engine):
    """The engine with a recorded context."""

    def __init__(
        self,
        path: Path,
        family: str,
        config: CompletionConfig,
        clock: Clock,
        speed: Speed,
        record: Record,
    ) -> None:
        self._simulated = clock, speed, record
        super().__init__(path, family, config, lambda fraction: True)

    def _new_context(self, size: llama.ContextSize) -> llama.Context:
        clock, speed, record = self._simulated
        model = self.model
        return Context(  # type: ignore[return-value]
            model.n_vocab, size, clock, speed, record, lambda: llama.Context(model, size)
        )


class Suggestion:
    """What `suggestion.lua` keeps of one."""

    def __init__(self, at: int, single_line: bool) -> None:
        self.at, self.single_line = at, single_line
        self.text, self.reason, self.is_done = "", "", False
        self.replaces = 0
        self.since_s = 0.0
        self.number = 0

    def rest(self, text: str, at: int) -> str | None:
        """Return the part that is not typed yet; None if the typed text differs."""
        typed = text[self.at : at]
        if self.text.startswith(typed):
            return self.text[len(typed) :]
        return "" if not self.is_done and self.text and typed.startswith(self.text) else None


class Completing:
    """The completer; see `typist.Completer`."""

    def __init__(self, engine: Engine, clock: Clock, repo: str) -> None:
        self._engine, self._clock, self._repo = engine, clock, repo
        engine.on_improved = self._improved
        self._insertion: Insertion
        self._at = 0
        self._is_inserting = False
        self._current: Suggestion | None = None
        self._answered: Suggestion | None = None
        self._request: Suggestion | None = None
        self._running: Suggestion | None = None
        self._is_busy = False
        self._pressed_s = 0.0
        self._idle_from_s = 0.0
        self._count = 0
        self._warms: Source | None = None

    def begin(self, insertion: Insertion) -> None:
        """Begin with a text: the cursor is there, in Normal mode."""
        self._insertion, self._at, self._is_inserting = insertion, 0, False
        self._warms = self._source()

    def changed(self, at: int) -> None:
        """React to a key in Insert mode."""
        self._at, self._is_inserting = at, True
        self._pressed_s = self._clock.now_s
        s = self._current
        if s:
            rest = s.rest(self._insertion.text, at)
            if rest is not None and (rest.strip() or not s.is_done):
                return
            self._drop()
        self._ask()

    def accepted(self, at: int, choice: Choice) -> None:
        """React to the acceptance of the suggestion, or a part."""
        self.changed(at)

    def end(self) -> None:
        """Leave Insert mode."""
        self._drop()
        self._request = None

    def view(self) -> View | None:
        """Return what is on the screen."""
        s = self._current
        rest = s.rest(self._insertion.text, self._at) if s else None
        if s is None or not rest or not rest.strip():
            return None
        return View(s.number, rest, s.since_s, s.reason)

    def work(self) -> None:
        """Do one step of work, or advance the clock to its next event."""
        engine, clock = self._engine, self._clock
        self._is_busy = True
        try:
            if self._request:
                self._complete(self._request)
            elif self._warms and not self._is_inserting:
                source, self._warms = self._warms, None
                if clock.advance(PREFETCH_S, engine.abort.is_set):
                    engine.warm(source)
            elif self._idle_from_s > clock.now_s:
                clock.advance(self._idle_from_s - clock.now_s, engine.abort.is_set)
            elif not engine.idle():
                clock.advance(max(clock.next_s - clock.now_s, 0.0))
        except Cancelled:
            pass
        finally:
            self._is_busy = False
            engine.abort.clear()

    def _complete(self, s: Suggestion) -> None:
        self._request, self._running = None, s
        try:
            result = self._engine.complete(
                self._source(s.at),
                lambda text: self._receive(s, text, "", 0),
                single_line=s.single_line,
            )
            self._answered = s
            self._receive(s, result.text, result.reason, result.replace_bytes)
        finally:
            self._running = None
            self._idle_from_s = self._clock.now_s + IDLE_S

    def _source(self, at: int = 0) -> Source:
        insertion = self._insertion
        prefix = insertion.before + insertion.text[:at]
        return Source(prefix, insertion.after, 0, insertion.path, self._repo)

    def _ask(self) -> None:
        right = self._insertion.after.partition("\n")[0]
        self._abort()
        self._answered = None
        if not INERT.fullmatch(right):
            return
        self._request = self._current = Suggestion(self._at, bool(right.strip()))
        self._count += 1
        self._current.number = self._count

    def _abort(self) -> None:
        self._request = None
        if self._is_busy:
            self._engine.abort.set()

    def _drop(self) -> None:
        if self._running or self._request:
            self._abort()
        self._current = None

    def _extend(self, s: Suggestion, text: str, replaces: int) -> None:
        if s.single_line:
            text = text.partition("\n")[0]
        if not text.startswith(s.text) or replaces:
            return  # what replaces text is not simulated
        if text != s.text and not s.text.strip():
            s.since_s = self._clock.now_s
        s.text = text

    def _receive(self, s: Suggestion, text: str, reason: str, replaces: int) -> None:
        if s is not self._current:
            return
        self._extend(s, text, replaces)
        s.is_done, s.reason = bool(reason), reason
        rest = s.rest(self._insertion.text, self._at)
        if (rest is not None and (rest.strip() or not s.is_done)) or rest == s.text:
            return
        self._drop()
        self._ask()

    def _improved(self, result: Result) -> None:
        s = self._current
        if s is None or s is not self._answered:
            return
        rest = s.rest(self._insertion.text, self._at)
        if rest is None:
            return
        is_visible = bool(rest.strip())
        is_paused = self._clock.now_s - self._pressed_s >= PAUSE_S
        before = s.text
        self._extend(s, result.text, result.replace_bytes)
        if s.text == before and rest == before and (is_paused or not is_visible):
            text = result.text.partition("\n")[0] if s.single_line else result.text
            if text.strip() and text != before and not result.replace_bytes:
                s.text, s.since_s = text, self._clock.now_s
                self._count += 1
                s.number = self._count
        if s.text != before:
            s.reason = result.reason
