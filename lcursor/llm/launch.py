"""Start the local server: choose program, model and context, and explain failures.

A second attempt starts only after the first one has certainly failed. Any thread.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict

from lcursor.catalog import hardware
from lcursor.config import ChatConfig
from lcursor.errors import LcursorError, OutOfMemory, ServerEnded, ServerMissing
from lcursor.llm import discovery, fit, llama_server, slots
from lcursor.llm.fit import ServerPlan
from lcursor.llm.llama_server import Engine
from lcursor.llm.server_process import Settings
from lcursor.llm.server_state import ServerFolder
from lcursor.process.supervise import Child, error_line
from lcursor.storage import folders

NO_MEMORY = re.compile(
    r"out of memory|OutOfDeviceMemory|failed to allocate(?!.*pinned)|unable to allocate"
    r"|cannot allocate"
    r"|not enough (?:memory|space)|std::bad_alloc|MemoryError|alloc(?:ation)?\w* .{0,80}failed",
    re.IGNORECASE,
)


class Launcher:
    """Starts a server, and retries with a smaller context if memory runs out."""

    def __init__(
        self,
        config: ChatConfig,
        folder: ServerFolder,
        notify: Callable[[str], None],
        completion: str,
        idle_s: float,
    ) -> None:
        self._config, self._folder, self._notify = config, folder, notify
        self._completion, self._idle_s = completion, idle_s
        self._engine: Engine | None = None
        self._plan: ServerPlan | None = None
        self._child: Child | None = None

    def start(self, lock: int) -> None:
        """Start a server process.

        Args:
            lock: lock of the folder, held and closed by the caller.

        Raises:
            LcursorError: it cannot be started, or another attempt would be useless.
        """
        self._folder.clear_state()
        engine = self._engine or choose_engine(self._config, self._notify)
        plan = self._plan or make_plan(self._config, engine, self._completion, self._notify)
        if self._child is not None:
            plan = self._smaller(self._child, plan)
        self._engine, self._plan = engine, plan
        self._notify(f"starting {plan.describe()}, with {engine.name}")
        self._child = spawn(self._folder, lock, engine, plan, self._idle_s)

    def _smaller(self, ended: Child, plan: ServerPlan) -> ServerPlan:
        """Return the plan for the attempt after a failed one."""
        error, less = failure(ended, plan), fit.smaller_plan(plan)
        ran_out = NO_MEMORY.search(ended.output()) is not None
        if ran_out and less and not self._config.context_tokens:
            self._notify(f"{error}: trying {less.context_tokens:,} tokens")
            return less
        raise error


def choose_engine(config: ChatConfig, notify: Callable[[str], None]) -> Engine:
    """Return the server program: a `llama-server`, if possible one that uses a GPU, or `xllamacpp`.

    Raises:
        ServerMissing: no program works, or the setting is "off".
    """
    if config.server == "off":
        raise ServerMissing(
            'chat.server is "off", and chat.model is not in the table models',
            'Set chat.server = "auto", or set chat.model to a name in the table models',
        )
    broken: list[str] = []
    working: list[Engine] = []
    for program in llama_server.programs():
        try:
            engine = llama_server.inspect(program)
        except LcursorError as error:
            broken.append(error.message)
        else:
            if engine.devices:
                return engine
            working.append(engine)
    if working:
        return working[0]
    if llama_server.has_package():
        try:
            found = llama_server.inspect_package()
        except ServerEnded as error:
            broken.append(error.message)
        else:
            for words in broken:
                notify(words)
            return found
    others = discovery.running()
    hint = "Put llama-server of llama.cpp on PATH, or run :LCursor install"
    if others:
        hint = f"{others[0].describe()}. {discovery.advice(others[0])}"
    raise ServerMissing(
        "; ".join(["no program on this machine can serve a chat model", *broken]), hint
    )


def make_plan(
    config: ChatConfig, engine: Engine, completion: str, notify: Callable[[str], None]
) -> ServerPlan:
    """Choose model and context for an engine on this machine.

    Raises:
        ModelError: the model's file is missing or invalid.
        OutOfMemory: it does not fit.
    """
    here = hardware.detect()
    if here.gpu is not None and not engine.devices:
        notify(
            f"{engine.name} cannot use the {here.gpu}: the chat runs on the CPU. "
            "To use the GPU, put a llama-server built for it on PATH"
        )
    here = here.using(engine.devices)
    name, path = fit.choose_model(config.model, here, notify)
    return fit.make_plan(
        fit.measure(name, path), fit.memory_budget(here, completion), config.context_tokens
    )


def spawn(
    folder: ServerFolder, lock: int, engine: Engine, plan: ServerPlan, idle_s: float
) -> Child:
    """Start a server process that inherits the lock.

    Args:
        lock: closed by the caller.
        idle_s: idle time after which it unloads the model, and ends without users; 0 is never.

    Raises:
        ServerEnded: it cannot be started.
    """
    socket = folders.socket_path(folder.path)
    slots.forget_parts(folder.slots_path)
    slots.forget_old(folder.slots_path)
    words: list[str] = []
    if engine.kind == "llama-server":
        words = llama_server.command(engine, plan, str(socket), folder.slots_path, int(idle_s))
    settings = Settings(
        folder=str(folder.path),
        state={
            "url": f"unix://{socket}",
            "engine": engine.name,
            "model": plan.model.name,
            "path": str(plan.model.path),
            "placement": plan.budget.placement,
            "context_tokens": plan.context_tokens,
            "need_bytes": plan.need_bytes,
            "run": secrets.token_hex(8),
        },
        command=words,
        socket=str(socket),
        kv_type=plan.kv_type,
        batch_tokens=plan.batch_tokens,
        cache_ram_mib=plan.cache_ram_mib,
        parallel=llama_server.PARALLEL,
        threads=llama_server.usable_cores(),
        speculations=[
            (each.kind, each.match_tokens, each.draft_tokens)
            for each in llama_server.speculations(plan.batch_tokens)
        ],
        idle_s=idle_s,
    )
    path = folder.path / "settings.json"
    try:
        with contextlib.suppress(FileNotFoundError):
            socket.unlink()  # from a killed server: with our lock, no server is listening
        folders.write_file(path, json.dumps(asdict(settings)).encode())
        return folder.spawn(
            [sys.executable, "-I", str(llama_server.PROCESS), str(path), str(lock)],
            lock,
            env=llama_server.environment(),
            header=f"{engine.name}: {plan.describe()}",
        )
    except OSError as error:
        raise ServerEnded(
            f"the local server cannot be started: {error.strerror or error}",
            f"Check disk space and permissions of {folder.path}",
        ) from error


def failure(child: Child, plan: ServerPlan) -> LcursorError:
    """Return the error for a server process that ended while loading."""
    log = child.output()
    ran_out = NO_MEMORY.search(log) is not None
    # The kernel kills processes when memory runs out: the server, or its parent process.
    was_killed = child.status == -signal.SIGKILL or f"status {-signal.SIGKILL}" in log
    if ran_out or was_killed:
        error = fit.out_of_memory(plan)
        what = "ran out of memory" if ran_out else "was killed"
        return OutOfMemory(f"the local server {what}: {error.message}", error.hint)
    last = error_line(log)
    text = f"the local server ended while it loaded {plan.model.name}"
    return ServerEnded(
        f"{text}: {last}" if last else text,
        "See :LCursor server log, or in a shell python -m lcursor server log",
    )
