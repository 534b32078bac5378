"""The messages between an editor and its service of agents, checked and recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lcursor import protocol
from lcursor.agent.service import AgentService
from lcursor.protocol import agent as wire
from tests.waiting import wait_for


class Messages:
    """An editor that sends messages to a service, and keeps what it receives."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.service: AgentService
        self.messages: list[tuple[str, dict[str, Any]]] = []
        self.choice = ""
        """How questions are answered; "" for not at all."""

    def receive(self, method: str, params: Any) -> None:
        if method in wire.TO_LUA:
            protocol.check(method, dict(params), wire.TO_LUA)
        self.messages.append((method, dict(params)))
        if method == "agent.asks" and self.choice:
            ask = {"id": params["id"], "ask": params["ask"]}
            self.send("agent.decide", **ask, choice=self.choice, text="")

    def send(self, method: str, **params: Any) -> None:
        self.service.handlers()[method](protocol.check(method, params, wire.TO_PYTHON))

    def start(self, number: int = 1, **changes: Any) -> None:
        known = {"task": "Set x to 2.", "path": str(self.root), "policy": "", "model": ""}
        more = {"context": "", "buffers": [], "group": "", "attempt": 0, "test": ""}
        self.send("agent.start", id=number, **{**known, **more, "when_idle": False, **changes})

    def resume(
        self, number: int, run: str = "last", *, continues: bool = True, text: str = ""
    ) -> None:
        row = {"id": number, "run": run, "path": str(self.root), "continues": continues}
        self.send("agent.resume", **row, text=text, seen=0)

    def all(self, method: str, number: int = 1) -> list[dict[str, Any]]:
        wanted = (method, number)
        return [row for name, row in list(self.messages) if (name, row.get("id")) == wanted]

    def wait(self, method: str, number: int = 1) -> dict[str, Any]:
        wait_for(lambda: self.all(method, number), 60.0, f"{method} {number}")
        return self.all(method, number)[0]
