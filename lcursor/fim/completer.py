"""Request in, events out: the engine's front door for the host.

Turns messages of the wire into work for the scheduler, and what the engine says into messages. Owns
the engine's life: load, reload, close. `emit` is called on the engine's thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lcursor.catalog import manifest, store
from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled, EngineFailed, LcursorError
from lcursor.fim import gate, headers
from lcursor.fim.chunks import Chunk
from lcursor.fim.prompt import Source
from lcursor.fim.ring import Retriever, Ring
from lcursor.fim.scheduler import Job, Scheduler
from lcursor.protocol import (
    ContextChunk,
    FimAlternatives,
    FimDone,
    FimRequest,
    FimStats,
    FimWarm,
    HostState,
    Prompt,
    PromptPiece,
    StopReason,
)
from lcursor.telling import Tell, failure, log_raised


@dataclass(frozen=True, slots=True)
class More:
    """Work of a job: find alternatives to the answer of the request with the job's number."""

    typed: str = ""
    """What of the answer has been typed since."""


Work = FimRequest | More


class Completer:
    """The completion slot.

    Args:
        config: its settings.
        emit: sends a message to the editor; callable on any thread.
        retriever: finds pieces of the project; none by default.
    """

    def __init__(
        self, config: CompletionConfig, emit: Tell, retriever: Retriever | None = None
    ) -> None:
        self.config = config
        self._emit = emit
        self._engine: Any = None  # an Engine; llama.cpp is imported on the engine's thread alone
        self._is_closing = False
        self._shown_percent = -1
        self._trouble: str | None = None  # what keeps the server away; None before the first try
        self.ring = Ring(retriever)
        self._answered = 0  # id of the request whose answer the engine still knows; 0 is none
        self._learning = threading.Lock()
        self._history: Sequence[tuple[str, float, bool]] = ()
        self._base = 0.0  # the engine's threshold before anything was learned
        self.thresholds: dict[str, float] = {"": 0.0}
        self._scheduler: Scheduler[Work] = Scheduler(
            prepare=self._load,
            run=self._run,
            abort=self._abort,
            resume=self._resume,
            idle=self._idle,
            dropped=lambda job: self._done(job, "cancelled"),
        )
        self.ring.news = lambda: self._scheduler.call(_nothing)  # so that idle work goes on

    def start(self) -> None:
        """Begin to load the model, in the background."""
        self._scheduler.start()

    def request(self, request: FimRequest) -> None:
        """Complete; events follow until its `fim.done`."""
        self._scheduler.submit(Job(request["id"], request))

    def warm(self, place: FimWarm) -> None:
        """Read what stands around a place, in idle time."""
        self._scheduler.call(lambda: self._warm(place))

    def more(self, number: int, typed: str = "") -> None:
        """Find alternatives to the answer of request `number`; `fim.alternatives` follows."""
        self._scheduler.submit(Job(number, More(typed)))

    def offer(self, params: ContextChunk) -> None:
        """Put a piece of a file where later completions may find it."""
        path, text = params["name"] or params["path"], params["text"]
        if params["kind"] == "import":
            text = headers.of(path, text, params["symbols"])
        now_ms = time.monotonic() * 1000
        self.ring.offer(Chunk(path, params["first_row"], text, params["kind"], now_ms))

    def learn(self, history: Sequence[tuple[str, float, bool]]) -> None:
        """Take what became of earlier suggestions: filetype, confidence, whether accepted."""
        with self._learning:
            self._history = history
            self.thresholds = gate.thresholds(self._base, history)

    def prompt(self) -> None:
        """Tell the last prompt, once the engine is free; `prompt` follows."""
        self._scheduler.call(self._tell_prompt)

    def cancel(self, number: int) -> None:
        """Abandon request `number`, or the search for alternatives to its answer."""
        self._scheduler.cancel(number)

    def close(self, timeout_s: float = 1.0) -> bool:
        """Stop the engine; return whether it ended in time."""
        self._is_closing = True
        has_ended = self._scheduler.close(timeout_s)
        if self._engine is None:
            return has_ended
        if self.config.backend == "endpoint":
            self._engine.close()  # it has a thread of its own
        elif has_ended:
            self._engine.save()
        return has_ended

    def _load(self) -> None:
        if self.config.backend == "endpoint":
            self._state("loading_model", self.config.endpoint_url)
            if self._reach():
                self._is_reached()
            return
        self._state("loading_model", self.config.model, 0.0)
        started = time.perf_counter()
        try:
            from lcursor.fim.engine import Engine  # imports llama.cpp: 0.3 s, only here

            path = store.resolve(self.config.model, "completion")
            known = {model.file: model.family for model in manifest.load()}
            self._engine = Engine(path, known.get(path.name) or "", self.config, self._progress)
            self._engine.ring = self.ring
            self._base = self._engine.threshold
            self.learn(self._history)
        except Cancelled:
            return
        except Exception as error:  # noqa: BLE001 - the root of a thread
            self._state("failed", self._report(error))
            return
        if self._is_closing:
            return
        took = time.perf_counter() - started
        model = self._engine.model
        self._emit(
            "log",
            {"level": "info", "message": f"{path.name} ({model.description}) in {took:.1f} s"},
        )
        self._remark()
        self._state("ready", path.name)

    def _remark(self) -> None:
        """Tell what the engine has to say though all goes on."""
        for remark in self._engine.remarks:
            self._report(remark)
        self._engine.remarks.clear()

    def _reach(self) -> bool:
        """Find the server; return whether it is known. Tried again before each request till then.

        The same failure is told once: who types on without a server knows it by now.
        """
        try:
            from lcursor.fim.endpoint import Endpoint

            if self._engine is None:
                self._engine = Endpoint(self.config)
                self._engine.ring = self.ring
            if not self._engine.is_connected:
                self._engine.connect()
        except Cancelled:
            return False
        except Exception as error:  # noqa: BLE001 - the root of a thread
            self._lost(error)
            return False
        return True

    def _is_reached(self) -> None:
        """Say that the server answers, if it was not known to."""
        if self._trouble != "":
            self._trouble = ""
            self._emit("log", {"level": "info", "message": self._engine.description})
            self._state("ready", self._engine.description)

    def _lost(self, error: Exception, number: int = 0) -> None:
        """Say that the server does not answer, once for each reason."""
        if str(error) != self._trouble:
            self._trouble = str(error)
            self._state("failed", self._report(error, number))

    def _progress(self, fraction: float) -> bool:
        percent = int(fraction * 100)
        if percent > self._shown_percent:
            self._shown_percent = percent
            self._state("loading_model", self.config.model, fraction)
        return not self._is_closing

    def _run(self, job: Job[Work]) -> None:
        is_remote = self.config.backend == "endpoint"
        if not (self._reach() if is_remote else self._engine):
            is_stopped = self._engine is not None and self._engine.abort.is_set()
            return self._done(job, "cancelled" if is_stopped else "failed")
        if isinstance(job.work, More):
            return self._find_more(job)
        request = job.work
        self._answered = 0
        began = time.perf_counter()
        threshold = self.thresholds.get(request["filetype"], self.thresholds[""])
        self._engine.threshold = threshold
        source = _source(request)
        keys = {"id": job.id, "buf": request["buf"], "tick": request["tick"]}
        try:
            result = self._engine.complete(
                source,
                lambda text: self._emit("fim.partial", {**keys, "text": text}),
                single_line=request["single_line"],
                afresh=request["trigger"] == "manual",
            )
        except Cancelled:
            return self._done(job, "cancelled", "", _no_stats(job, self._engine.read_tokens))
        except Exception as error:  # noqa: BLE001 - the root of a thread
            if is_remote and not self._engine.is_connected:
                self._lost(error, job.id)
            else:
                self._report(error, job.id)
            return self._done(job, "failed")
        if is_remote:
            self._is_reached()
        self._remark()
        self._answered = job.id
        queue_ms = (began - job.arrived_s) * 1000
        stats = FimStats(
            prompt_tokens=result.prompt_tokens,
            reused_tokens=max(result.prompt_tokens - result.read_tokens, 0),
            decoded_tokens=result.read_tokens,
            generated_tokens=result.generated_tokens,
            queue_ms=round(queue_ms, 2),
            prompt_ms=round(result.prompt_ms, 2),
            first_ms=round(queue_ms + result.first_ms, 2) if result.first_ms else 0.0,
            total_ms=round(queue_ms + result.total_ms, 2),
            confidence=round(result.confidence, 4),
            threshold=round(threshold, 4),
            source=result.source,
        )
        return self._done(job, result.reason, result.text, stats, result.replaces)

    def _find_more(self, job: Job[Work]) -> None:
        typed = job.work.typed if isinstance(job.work, More) else ""
        if job.id != self._answered:
            return self._done(job, "end")
        try:
            texts: list[str] = self._engine.alternatives(typed)
        except Cancelled:
            return self._done(job, "cancelled")
        except Exception as error:  # noqa: BLE001 - the root of a thread
            self._report(error, job.id)
            return self._done(job, "failed")
        return self._emit("fim.alternatives", FimAlternatives(id=job.id, texts=texts))

    def _done(
        self,
        job: Job[Work],
        reason: StopReason,
        text: str = "",
        stats: FimStats | None = None,
        replaces: int = 0,
    ) -> None:
        if isinstance(job.work, More):  # nothing came of it, whatever the reason
            return self._emit("fim.alternatives", FimAlternatives(id=job.id, texts=[]))
        done = FimDone(
            id=job.id,
            buf=job.work["buf"],
            tick=job.work["tick"],
            text=text,
            replaces=replaces,
            reason=reason,
            stats=stats or _no_stats(job),
        )
        return self._emit("fim.done", done)

    def _warm(self, place: FimWarm) -> None:
        if self._engine is not None and self.config.backend == "inproc":
            self._engine.warm(_source(place))

    def _tell_prompt(self) -> None:
        if self._engine is None:
            return self._emit("prompt", Prompt(pieces=[]))
        markers = set(self._engine.family.ids.values())
        pieces = [
            PromptPiece(
                id=token,
                text=data.decode("utf-8", "surrogateescape"),
                kind="marker" if token in markers else "text",
                is_kept=is_kept,
            )
            for token, data, is_kept in self._engine.last_prompt()
        ]
        return self._emit("prompt", Prompt(pieces=pieces))

    def _idle(self) -> bool:
        if self._engine is None:
            return False
        try:
            more: bool = self._engine.idle()
        except Cancelled:
            return True
        except Exception as error:  # noqa: BLE001 - the root of a thread
            self._report(error)
            return False
        return more

    def _abort(self) -> None:
        if self._engine is not None:
            self._engine.abort.set()

    def _resume(self) -> None:
        if self._engine is not None:
            self._engine.abort.clear()

    def _state(self, state: HostState, detail: str, progress: float = -1.0) -> None:
        self._emit("state", {"state": state, "detail": detail, "progress": progress})

    def _report(self, error: Exception, number: int = 0) -> str:
        """Tell the user what failed; return it in one line."""
        if not isinstance(error, LcursorError):
            log_raised(self._emit, error)
            error = EngineFailed(f"the engine broke ({error!r})", "See :LCursor log")
        self._emit("error", failure(error, number))
        return error.message


def _nothing() -> None:
    """Do nothing; idle work begins again behind it."""


def _source(place: FimRequest | FimWarm) -> Source:
    name, path = place["name"], place["path"]
    return Source(
        prefix=place["prefix"],
        suffix=place["suffix"],
        first_row=place["first_row"],
        path=name,
        repo=place["repo"],
        top=place["top"],
        root=path.removesuffix(name) if name else "",
    )


def _no_stats(job: Job[Work], read_tokens: int = 0) -> FimStats:
    waited_ms = round((time.perf_counter() - job.arrived_s) * 1000, 2)
    return FimStats(
        prompt_tokens=0,
        reused_tokens=0,
        decoded_tokens=read_tokens,
        generated_tokens=0,
        queue_ms=waited_ms,
        prompt_ms=0.0,
        first_ms=0.0,
        total_ms=waited_ms,
        confidence=0.0,
        threshold=0.0,
        source="model",
    )
