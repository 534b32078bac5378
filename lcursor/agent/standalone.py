"""The agents without an editor, for the command line and for other editors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lcursor.agent.assembly import Assembly
from lcursor.agent.parts import ForeignAgents
from lcursor.agent.records import Policy
from lcursor.agent.service import AgentService
from lcursor.changes.histories import Histories
from lcursor.changes.records import FileChange, Lines
from lcursor.config import Config
from lcursor.edit.session import short_title
from lcursor.errors import LcursorError
from lcursor.llm.pool import ModelPool
from lcursor.protocol.agent import AgentStart
from lcursor.reporting import Notify, error_message


@dataclass(frozen=True, slots=True)
class Standalone:
    """A service of agents, with the history that gets their changes."""

    service: AgentService
    histories: Histories
    models: ModelPool


def start_message(
    number: int, task: str, path: str, policy: Policy, model: str = "", context: str = ""
) -> AgentStart:
    """Return the message that starts a run of its own; arguments as its fields."""
    return {
        "id": number,
        "task": task,
        "path": path,
        "policy": policy,
        "model": model,
        "context": context,
        "buffers": [],
        "group": "",
        "attempt": 0,
        "test": "",
        "when_idle": False,
    }


@contextmanager
def open_service(
    config: Config,
    send: Notify,
    secrets: Sequence[str] = (),
    warn: Callable[[str], None] = lambda _: None,
    foreign: Callable[[Config, ModelPool], ForeignAgents] | None = None,
) -> Iterator[Standalone]:
    """Open a service, and close it with its models.

    Args:
        send: gets the service's messages, on any thread.
        warn: called with a message about an interrupted write.
        foreign: makes the agents of others; None for none.
    """
    models = ModelPool(config.chat)

    def on_error(error: LcursorError) -> None:
        send("error", error_message(error))

    histories = Histories(None, on_error, warn=warn)
    others = foreign(config, models) if foreign is not None else None
    assembly = Assembly(config, models, partial(_record, histories), secrets, foreign=others)
    service = AgentService(config, send, assembly)
    try:
        yield Standalone(service, histories, models)
    finally:
        service.close()
        models.close()


def _record(
    histories: Histories,
    root: Path,
    title: str,
    files: Sequence[FileChange],
    bases: Mapping[str, Lines],
    run: str,
) -> str:
    return histories.begin(root, short_title(title), files, "", bases, run)
