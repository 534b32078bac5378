"""What is tried to start the local server: which program, which model, how much context.

Goes on to the next try only when the one before is known to have failed. Any thread.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

from lcursor.catalog import hardware
from lcursor.config import ChatConfig
from lcursor.errors import LcursorError, ServerEnded, ServerMissing
from lcursor.llm import discovery, engines, fit, launch, lease
from lcursor.llm.engines import Engine
from lcursor.llm.fit import Plan
from lcursor.llm.launch import Keeper
from lcursor.llm.lease import Folder, Lease


class Starter:
    """The tries to start a server, each only when the one before is known to have failed."""

    def __init__(
        self,
        config: ChatConfig,
        folder: Folder,
        tell: Callable[[str], None],
        completion: str,
        idle_s: float,
    ) -> None:
        self._config, self._folder, self._tell = config, folder, tell
        self._completion, self._idle_s = completion, idle_s
        self._engine: Engine | None = None
        self._plan: Plan | None = None
        self._keeper: Keeper | None = None
        self._ports_lost = 0

    def begin(self, fd: int, before: Lease | None) -> None:
        """Start a keeper; the lock is held by `fd`.

        Raises:
            LcursorError: there is no use in trying, or in trying again.
        """
        if before is not None and before.server_pid:  # its keeper was killed
            lease.end(before.server_pid, before.server_ticks, before.boot, signal.SIGKILL)
        self._folder.clear()
        engine = self._engine or chosen_engine(self._config, self._tell)
        plan = self._plan or planned(self._config, engine, self._completion, self._tell)
        if self._keeper is not None:
            plan = self._next(self._keeper, plan)
        self._engine, self._plan = engine, plan
        self._tell(f"starting {plan.describe()}, with {engine.name}")
        self._keeper = launch.start(
            self._folder, fd, engine, plan, self._config.speculate, self._idle_s
        )

    def _next(self, ended: Keeper, plan: Plan) -> Plan:
        """Decide what to try after a keeper that ended."""
        if ended.lost_its_port() and self._ports_lost < launch.TRIES:
            self._ports_lost += 1
            self._tell("somebody took the port of the local server: trying another")
            return plan
        failure = ended.failure()
        less = fit.smaller(plan)
        if ended.had_no_room() and not self._config.context_tokens and less:
            self._tell(f"{failure}: trying {less.context_tokens:,} tokens")
            return less
        raise failure


def chosen_engine(config: ChatConfig, tell: Callable[[str], None]) -> Engine:
    """Return the program that serves: a `llama-server`, else the package `xllamacpp`.

    Raises:
        ServerMissing: there is none that runs, or the settings say "off".
    """
    if config.server == "off":
        raise ServerMissing(
            'chat.server is "off", and chat.model names no model of chat.models',
            'Set chat.server = "auto", or name a model of chat.models in chat.model',
        )
    broken: list[str] = []
    for program in engines.programs():
        try:
            engine = engines.look(program)
        except LcursorError as error:
            broken.append(error.message)
            continue
        if engines.can_socket(engine) or engines.can_key(engine):
            return engine
        broken.append(f"{program} is too old: it knows neither unix sockets nor --api-key-file")
    if engines.has_package():
        try:
            found = engines.package()
        except ServerEnded as error:
            broken.append(error.message)
        else:
            for words in broken:
                tell(words)
            return found
    others = discovery.running()
    hint = "Put llama-server of llama.cpp on PATH, or run :LCursor install"
    if others:
        hint = f"{others[0].describe()}. {discovery.advice(others[0])}"
    raise ServerMissing(
        "; ".join(["there is no program here that could serve a chat model", *broken]), hint
    )


def planned(
    config: ChatConfig, engine: Engine, completion: str, tell: Callable[[str], None]
) -> Plan:
    """Choose model and context for an engine on this machine.

    Raises:
        ModelError: the model's file is not here, or wrong.
        OutOfMemory: it does not fit.
    """
    here = hardware.detect()
    if here.gpu is not None and not engine.devices:
        tell(
            f"{engine.name} cannot use the {here.gpu}: the chat runs on the CPU. "
            "A llama-server on PATH that was built for it would be used instead"
        )
    here = fit.seen(here, engine.devices)
    name, path = fit.choose(config.model, here, tell)
    return fit.plan(fit.weigh(name, path), fit.room(here, completion), config.context_tokens)
