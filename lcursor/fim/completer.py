"""The completion service: turns messages into jobs for the engine, and results into messages.

Owns the engine, which is opened, configured and closed only on the scheduler's thread, one at a
time, so that two models are never in memory. No method except `close` blocks; any thread. `emit` is
called on the engine's thread, and on the thread that cancels a pending request.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lcursor.catalog import hardware
from lcursor.code.headers import header_lines
from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled, EngineFailed, LcursorError
from lcursor.fim import outcomes
from lcursor.fim.backend import Backend, OnImproved, Progress
from lcursor.fim.context_ring import Chunk, ContextRing, Retriever
from lcursor.fim.prompt import STEP_LINES, Source
from lcursor.fim.result import Result
from lcursor.fim.scheduler import Job, Scheduler
from lcursor.protocol.fim import (
    ContextChunk,
    FimAlternatives,
    FimDone,
    FimImproved,
    FimRequest,
    FimStats,
    FimWarm,
    StopReason,
)
from lcursor.protocol.session import HostState
from lcursor.reporting import Notify, error_message, log_exception


class FindAlternatives(NamedTuple):
    """Find alternatives to an answer, partly typed; the job has the request's number."""

    typed: str


class Warm(NamedTuple):
    """Evaluate the text around a position before a request."""

    position: FimWarm


Work = FimRequest | FindAlternatives | Warm

NEEDS_MODEL = frozenset(["model", "gpu_layers", "main_gpu", "threads", "context_tokens", "kv_type"])
"""Settings that require reloading the model; the others apply to a loaded one."""

FAR_ROWS = STEP_LINES
"""Distance in rows between two cursors whose next batches have little in common."""

REOPEN_S = 60.0
"""Time after which a server is tried again whose key, for example, could not be read."""
BUSY_S = 1.0
"""Pause of idle work while other programs use all cores."""

OpenBackend = Callable[[CompletionConfig, Progress, ContextRing, OnImproved], Backend]
"""Opens the configured backend; called on the engine's thread."""


def needs_reload(before: CompletionConfig, after: CompletionConfig) -> bool:
    """Return whether a change of settings requires reloading the model or reconnecting.

    A change of the excluded files does, so that nothing of them stays in a prompt or a cache.
    """
    if before.excluded != after.excluded:
        return True
    if before.endpoint or after.endpoint:
        return before.endpoint != after.endpoint
    return any(getattr(before, name) != getattr(after, name) for name in NEEDS_MODEL)


class Completer:
    """The completion service.

    Args:
        emit: sends a message to the editor.
        open_backend: opens the model or the connection to the server.
        retriever: searches the project; none by default.
        power: reports whether the machine runs on battery, which disables reading ahead.
        load: reports whether other programs use all cores; then idle work only improves the last
            answer.
        measures_speed: whether the speed of the model is measured, once, when there is no other
            idle work.
        clock: time in seconds, to measure idle time.
    """

    def __init__(
        self,
        config: CompletionConfig,
        emit: Notify,
        open_backend: OpenBackend,
        retriever: Retriever | None = None,
        power: hardware.Power | None = None,
        load: hardware.Load | None = None,
        measures_speed: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wanted = config  # set on any thread; applied on the engine's thread
        self._config = config  # the engine's; used only on the engine's thread
        self._emit = emit
        self._open_backend = open_backend
        self._power, self._others = power or hardware.Power(), load or hardware.Load()
        self._measures_speed = measures_speed  # False once it was measured
        self._engine: Backend | None = None  # used on the engine's thread
        self._clock, self._used_s = clock, clock()
        self._opens_s = 0.0
        """When a backend that could not be opened may be tried again."""
        self._is_unloaded = False  # after a long time without requests
        self._is_stopped = threading.Event()  # also used while there is no engine
        self._is_closing = False
        self._shown_percent = -1
        self._failure: str | None = None  # None before the first attempt to open or connect
        self.ring = self._new_ring(retriever)
        self._running: FimRequest | None = None  # the last one that ran
        self._answered: FimRequest | None = None  # the same, once the engine has its answer
        self._learning = threading.Lock()
        self._history: Sequence[tuple[str, float, bool]] = ()
        self._base = 0.0  # the configured threshold
        self.thresholds: dict[str, float] = {"": 0.0}
        self._scheduler: Scheduler[Work] = Scheduler(
            prepare=self._prepare,
            run=self._run,
            abort=self._abort,
            resume=self._resume,
            idle=self._idle,
            dropped=lambda job: self._done(job, "cancelled"),
            failed=self._failed,
            finish=self._unload,
        )

    def _new_ring(self, retriever: Retriever | None) -> ContextRing:
        ring = ContextRing(retriever)
        ring.on_change = lambda: self._scheduler.call(lambda: None)  # resumes idle work
        return ring

    def start(self) -> None:
        """Start loading the model in the background."""
        self._scheduler.start()

    def request(self, request: FimRequest) -> None:
        """Start a completion; events follow until `fim.done`."""
        self._scheduler.submit(Job(request["id"], request))

    def warm(self, position: FimWarm) -> None:
        """Evaluate the text around a position in advance, unless a request is pending."""
        self._scheduler.submit(Job(position["id"], Warm(position), is_ahead=True))

    def find_alternatives(self, number: int, typed: str = "") -> None:
        """Find alternatives to the answer of request `number`; `fim.alternatives` follows."""
        self._scheduler.submit(Job(number, FindAlternatives(typed)))

    def configure(self, config: CompletionConfig) -> None:
        """Apply settings; reload the model only if necessary.

        Only a reload cancels a running request; a pending one is answered afterwards.
        """
        before = self._wanted
        if before.excluded != config.excluded:  # set first, because the engine's thread reads both
            self.ring = self._new_ring(self.ring.retriever)
        self._wanted = config
        if before != config:
            self._scheduler.prepare_again(interrupts=needs_reload(before, config))

    def add_chunk(self, params: ContextChunk) -> None:
        """Add part of a file to the context of later completions."""
        ring = self.ring  # the settings may change before `add` runs

        def add() -> None:
            path, text = params["name"] or params["path"], params["text"]
            if params["kind"] == "import":
                text = header_lines(path, text, params["symbols"])
            ring.add(Chunk(path, params["first_row"], text, params["kind"]))

        self._scheduler.call(add, interrupts=False)

    def learn(self, history: Sequence[tuple[str, float, bool]]) -> None:
        """Adapt the thresholds to earlier outcomes: filetype, confidence, whether accepted."""
        with self._learning:
            self._history = history
            self.thresholds = outcomes.thresholds(self._base, history)

    def cancel(self, number: int) -> None:
        """Cancel the job `number`."""
        self._scheduler.cancel(number)

    def close(self, timeout_s: float = 1.0) -> bool:
        """Stop the engine and free the model; return whether that happened in time."""
        self._is_closing = True
        return self._scheduler.close(timeout_s)

    def _prepare(self) -> None:
        """Apply the latest settings to the engine."""
        wanted = self._wanted
        if self._engine is None or needs_reload(self._config, wanted):
            self._unload()
            self._config = wanted
            self._load()
        else:
            self._config = wanted
            self._engine.configure(wanted)
            self._set_threshold()

    def _unload(self) -> None:
        """Save the KV cache, unless files were excluded since, and free the model."""
        engine, self._engine, self._opens_s = self._engine, None, 0.0
        self._answered, self._shown_percent, self._failure = None, -1, None
        if engine is None:
            return
        engine.abort.clear()  # may be set because the scheduler was closed
        try:
            if self._config.excluded == self._wanted.excluded:
                engine.save()
        finally:
            engine.close()

    def _set_threshold(self) -> None:
        # Servers report no probabilities that could be compared with a threshold.
        self._base = 0.0 if self._config.endpoint else self._config.min_confidence
        self.learn(self._history)

    def _load(self) -> None:
        """Open the backend, and report whether it can complete."""
        self._is_unloaded = False
        self._set_threshold()
        is_remote = self._config.endpoint is not None
        self._state("loading_model", self._config.model, -1.0 if is_remote else 0.0)
        began = time.perf_counter()
        engine = self._connect()
        if engine is not None and not self._is_closing:
            self._set_ready(engine, began)

    def _connect(self) -> Backend | None:
        """Open the backend, if there is none, and connect it; None if that failed.

        Reports each failure only once.
        """
        if self._engine is None and self._clock() < self._opens_s:
            return None
        try:
            if self._engine is None:
                self._opens_s = self._clock() + REOPEN_S  # unless it succeeds
                self._engine = self._open_backend(
                    self._config, self._progress, self.ring, self._improved
                )
            if not self._engine.is_connected:
                self._engine.connect()
        except Cancelled:
            return None
        except Exception as error:  # noqa: BLE001 - any error becomes the host's state
            self._set_failed(error)
            return None
        return self._engine

    def _set_ready(self, engine: Backend, began: float) -> None:
        """Report that the backend can complete, unless already reported."""
        if self._failure != "":
            self._failure = ""
            self._log(f"ready after {time.perf_counter() - began:.1f} s: {engine.description}")
            self._report_warnings(engine)
            self._state("ready", engine.name)

    def _set_failed(self, error: Exception, number: int = 0) -> None:
        """Report that the backend cannot complete, once per reason."""
        if str(error) != self._failure:
            self._failure = str(error)
            self._state("failed", self._report(error, number))

    def _report_warnings(self, engine: Backend) -> None:
        for warning in engine.warnings:
            self._report(warning)
        engine.warnings.clear()

    def _progress(self, fraction: float) -> bool:
        percent = int(fraction * 100)
        if percent > self._shown_percent:
            self._shown_percent = percent
            self._state("loading_model", self._config.model, fraction)
        return not (self._is_closing or needs_reload(self._config, self._wanted))

    def _run(self, job: Job[Work]) -> None:
        self._used_s = self._clock()
        if self._is_unloaded:
            self._load()
        if self._is_stopped.is_set():
            return self._done(job, "cancelled")
        if isinstance(job.work, Warm):
            return self._warm(job.work.position)
        if not isinstance(job.work, FindAlternatives) and job.work["trigger"] == "manual":
            self._opens_s = 0.0
        # A server is tried again at each request; a model that cannot be loaded is not.
        engine = self._connect() if self._config.endpoint else self._engine
        if engine is None:
            return self._done(job, "cancelled" if self._is_stopped.is_set() else "failed")
        if isinstance(job.work, FindAlternatives):
            return self._find_alternatives(engine, job.id, job.work.typed)
        request = job.work
        self._answered, self._running = None, request
        began = time.perf_counter()
        threshold = self.thresholds.get(request["filetype"], self.thresholds[""])
        engine.threshold = threshold
        engine.is_machine_busy = self._others.is_busy()
        source = _source(request)
        keys = {"id": job.id, "buf": request["buf"], "tick": request["tick"]}
        try:
            result = engine.complete(
                source,
                lambda text: self._emit("fim.partial", {**keys, "text": text}),
                single_line=request["single_line"],
                bypass_cache=request["trigger"] == "manual",
            )
        except Cancelled:
            return self._done(job, "cancelled", "", _no_stats(job, engine.read_tokens))
        except LcursorError as error:
            if engine.is_connected:
                raise
            self._set_failed(error, job.id)
            return self._done(job, "failed")
        self._set_ready(engine, began)
        self._report_warnings(engine)
        self._answered = request
        stats = result.stats(threshold, (began - job.arrived_s) * 1000)
        return self._done(job, result.reason, result.text, stats, result.replace_bytes)

    def _improved(self, result: Result) -> None:
        """Send a better answer to the last request; called by the engine."""
        request, engine = self._answered, self._engine
        if request is not None and engine is not None:
            improved = FimImproved(
                id=request["id"],
                buf=request["buf"],
                tick=request["tick"],
                text=result.text,
                replaces=result.replace_bytes,
                reason=result.reason,
                stats=result.stats(engine.threshold),
            )
            self._emit("fim.improved", improved)

    def _find_alternatives(self, engine: Backend, number: int, typed: str) -> None:
        texts: list[str] = []
        if self._answered and number == self._answered["id"]:
            with contextlib.suppress(Cancelled):
                texts = engine.alternatives(typed)
        self._emit("fim.alternatives", FimAlternatives(id=number, texts=texts))

    def _done(
        self,
        job: Job[Work],
        reason: StopReason,
        text: str = "",
        stats: FimStats | None = None,
        replace_bytes: int = 0,
    ) -> None:
        if isinstance(job.work, Warm):
            return None
        if isinstance(job.work, FindAlternatives):  # none were found
            return self._emit("fim.alternatives", FimAlternatives(id=job.id, texts=[]))
        done = FimDone(
            id=job.id,
            buf=job.work["buf"],
            tick=job.work["tick"],
            text=text,
            replaces=replace_bytes,
            reason=reason,
            stats=stats or _no_stats(job),
        )
        return self._emit("fim.done", done)

    def _warm(self, position: FimWarm) -> None:
        if self._engine is None or self._power.is_on_battery() or self._others.is_busy():
            return
        self._answered = None
        with contextlib.suppress(Cancelled):
            self._engine.warm(_source(position))

    def _idle(self) -> float | None:
        engine = self._engine
        if engine is None:
            return None
        is_busy = engine.is_machine_busy = self._others.is_busy()
        try:
            if engine.idle():
                return 0.0
            if self._measures_speed and not is_busy and not self._power.is_on_battery():
                self._measure_speed(engine)
        except Cancelled:
            return 0.0
        left_s = self._unload_if_unused(engine.config.idle_minutes)
        return BUSY_S if is_busy and not self._is_unloaded else left_s

    def _measure_speed(self, engine: Backend) -> None:
        try:
            text = engine.measure_speed()
        except Cancelled:
            raise
        except LcursorError as error:
            text = f"the speed was not measured: {error}"
        self._measures_speed = False
        if text:
            self._log(text)

    def _unload_if_unused(self, minutes: int) -> float | None:
        """Free the model after some minutes without a job; return the remaining seconds."""
        if minutes <= 0:
            return None
        left_s = self._used_s + 60 * minutes - self._clock()
        if left_s > 0:
            return left_s
        self._is_unloaded = True
        with contextlib.suppress(Cancelled):  # a request, which reloads the model
            self._unload()
        self._log(f"freed {self._config.model}: no request for {minutes} minutes")
        return None

    def _failed(self, error: Exception, job: Job[Work] | None) -> None:
        """Report an exception, and finish the job."""
        try:
            self._report(error, job.id if job else 0)
        finally:
            if job:
                self._done(job, "failed")

    def _abort(self, newer: Job[Work] | None = None) -> None:
        self._is_stopped.set()
        engine, running = self._engine, self._running  # the engine's thread may replace them
        if engine is None:
            return
        if newer and running and _is_far(newer.work, running):
            engine.abort.set(immediately=True)  # the result of the running batch is useless
        else:
            engine.abort.set()

    def _resume(self) -> None:
        self._is_stopped.clear()
        if self._engine is not None:
            self._engine.abort.clear()

    def _state(self, state: HostState, detail: str, progress: float = -1.0) -> None:
        self._emit("state", {"state": state, "detail": detail, "progress": progress})

    def _log(self, message: str) -> None:
        self._emit("log", {"level": "info", "message": message})

    def _report(self, error: Exception, number: int = 0) -> str:
        """Report an error to the user; return its message."""
        if not isinstance(error, LcursorError):
            log_exception(self._emit, error)
            error = EngineFailed(f"the engine failed ({error!r})", "See :LCursor log")
        self._emit("error", error_message(error, number))
        return error.message


def _source(position: FimRequest | FimWarm) -> Source:
    name, path = position["name"], position["path"]
    return Source(
        prefix=position["prefix"],
        suffix=position["suffix"],
        first_row=position["first_row"],
        path=name,
        repo=position["repo"],
        top=position["top"],
        root=path.removesuffix(name) if name else "",
    )


def _is_far(work: Work, running: FimRequest) -> bool:
    """Return whether a request is for another file, or for distant lines."""
    if isinstance(work, FindAlternatives | Warm):
        return False
    return work["path"] != running["path"] or abs(work["row"] - running["row"]) > FAR_ROWS


def _no_stats(job: Job[Work], read_tokens: int = 0) -> FimStats:
    waited_ms = (time.perf_counter() - job.arrived_s) * 1000
    return Result(read_tokens=read_tokens).stats(queue_ms=waited_ms)
