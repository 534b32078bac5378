"""Request in, events out: the engine's front door for the host.

Turns messages of the wire into work for the scheduler, and what the engine says into messages. Owns
the engine's life: load, reload, close. `emit` is called on the engine's thread.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from lcursor.catalog import manifest, store
from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled, EngineFailed, LcursorError
from lcursor.fim.scheduler import Job, Scheduler
from lcursor.protocol import FimDone, FimRequest, FimStats, HostState, StopReason

Emit = Callable[[str, Mapping[str, Any]], None]


class Completer:
    """The completion slot.

    Args:
        config: its settings.
        emit: sends a message to the editor; callable on any thread.
    """

    def __init__(self, config: CompletionConfig, emit: Emit) -> None:
        self.config = config
        self._emit = emit
        self._engine: Any = None  # an Engine; llama.cpp is imported on the engine's thread alone
        self._is_closing = False
        self._shown_percent = -1
        self._scheduler: Scheduler[FimRequest] = Scheduler(
            prepare=self._load,
            run=self._run,
            abort=self._abort,
            resume=self._resume,
            idle=self._idle,
            dropped=lambda job: self._done(job, "cancelled"),
        )

    def start(self) -> None:
        """Begin to load the model, in the background."""
        self._scheduler.start()

    def request(self, request: FimRequest) -> None:
        """Complete; events follow until its `fim.done`."""
        self._scheduler.submit(Job(request["id"], request))

    def cancel(self, number: int) -> None:
        """Abandon request `number`."""
        self._scheduler.cancel(number)

    def close(self, timeout_s: float = 1.0) -> bool:
        """Stop the engine; return whether it ended in time."""
        self._is_closing = True
        return self._scheduler.close(timeout_s)

    def _load(self) -> None:
        self._state("loading_model", self.config.model, 0.0)
        started = time.perf_counter()
        try:
            from lcursor.fim.engine import Engine  # imports llama.cpp: 0.3 s, only here

            path = store.resolve(self.config.model, "completion")
            known = {model.file: model.family for model in manifest.load()}
            self._engine = Engine(path, known.get(path.name) or "", self.config, self._progress)
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
        self._state("ready", path.name)

    def _progress(self, fraction: float) -> bool:
        percent = int(fraction * 100)
        if percent > self._shown_percent:
            self._shown_percent = percent
            self._state("loading_model", self.config.model, fraction)
        return not self._is_closing

    def _run(self, job: Job[FimRequest]) -> None:
        if self._engine is None:
            return self._done(job, "failed")
        from lcursor.fim.prompt import Source

        request = job.work
        began = time.perf_counter()
        source = Source(
            request["prefix"],
            request["suffix"],
            request["first_row"],
            request["name"],
            request["repo"],
        )
        keys = {"id": job.id, "buf": request["buf"], "tick": request["tick"]}
        try:
            result = self._engine.complete(
                source,
                lambda text: self._emit("fim.partial", {**keys, "text": text}),
                single_line=request["single_line"],
            )
        except Cancelled:
            return self._done(job, "cancelled", "", _no_stats(job, self._engine.read_tokens))
        except Exception as error:  # noqa: BLE001 - the root of a thread
            self._report(error, job.id)
            return self._done(job, "failed")
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
        )
        return self._done(job, result.reason, result.text, stats)

    def _done(
        self,
        job: Job[FimRequest],
        reason: StopReason,
        text: str = "",
        stats: FimStats | None = None,
    ) -> None:
        done = FimDone(
            id=job.id,
            buf=job.work["buf"],
            tick=job.work["tick"],
            text=text,
            reason=reason,
            stats=stats or _no_stats(job),
        )
        self._emit("fim.done", done)

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
            self._emit("log", {"level": "error", "message": traceback.format_exc()})
            error = EngineFailed(f"the engine broke ({error!r})", "See :LCursor log")
        self._emit(
            "error",
            {
                "id": number,
                "code": error.code,
                "message": error.message,
                "hint": error.hint,
                "level": error.level,
            },
        )
        return error.message


def _no_stats(job: Job[FimRequest], read_tokens: int = 0) -> FimStats:
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
    )
