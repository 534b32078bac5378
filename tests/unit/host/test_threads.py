"""The threads of a host: those that stay when nothing is left to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor.protocol import PROTOCOL
from tests.fakes.chat_server import ChatServer, say
from tests.fakes.engine import request
from tests.fakes.model_server import ModelServer
from tests.unit.host.pipes import Neovim
from tests.unit.index import workers
from tests.waiting import wait_for

MAX_THREADS = 7
TEXT = "def area(width):\n    return w * w\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project of a user of the test's own."""
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("LCURSOR_DATA", raising=False)
    root = tmp_path / "project"
    workers.make(root)
    (root / "area.py").write_text(TEXT)
    yield root
    workers.end(root)


@pytest.fixture
def host(tmp_path: Path, project: Path) -> Iterator[Neovim]:
    host = Neovim(tmp_path)
    yield host
    host.close()


def threads(host: Neovim) -> int:
    """Return the number of a process's threads, also those that Python did not start."""
    return len(list(Path(f"/proc/{host.process.pid}/task").iterdir()))


def complete(host: Neovim) -> None:
    host.notify("fim.request", request(1, "python"))
    assert host.said("fim.done")["text"] == "return a"
    outcome = {"id": 1, "filetype": "python", "outcome": "accepted", "source": "model"}
    numbers = {"shown_chars": 8, "kept_chars": 8, "through_keys": 0}
    times = {"shown_ms": 700.0, "latency_ms": 31.5, "confidence": 0.5}
    host.notify("fim.outcome", {**outcome, **numbers, **times})
    host.notify("stats.request", {})
    host.said("stats")


def predict(host: Neovim, path: str) -> None:
    edit = {"row": 0, "old": ["def area(w):"], "new": ["def area(width):"], "is_accepted": False}
    files = [{"path": path, "text": TEXT}]
    edits = [{"path": path, **edit}]
    params = {"id": 2, "files": files, "is_wide": False, "edits": edits, "row": 0, "column": 9}
    host.notify("next_edit.predict", params)
    host.said("next_edit.predicted")


def search(host: Neovim, path: str) -> None:
    host.notify("index.begin", {"id": 3, "path": path, "is_confirmed": True, "rebuild": False})
    while host.said("index.state")["phase"] != "ready":
        pass
    params = {"id": 4, "path": path, "text": "area", "limit": 9, "mode": "lexical"}
    host.notify("index.search", params)
    assert host.said("index.found")["hits"]


def chat(host: Neovim, path: str) -> None:
    host.notify("chat.open", {"id": 5, "chat": "", "path": path})
    key = host.said("chat.opened")["chat"]
    question: dict[str, Any] = {
        "chat": key, "after": 0, "text": "Why?", "path": path, "attachments": [], "dropped": [],
        "model": "", "again": 0, "call": "", "choice": "",
    }  # fmt: skip
    host.notify("chat.preview", {"id": 6, **question})
    host.said("chat.previewed")
    host.notify("chat.complete", {"id": 7, "path": path, "word": "@ar"})
    host.said("chat.completed")
    host.notify("chat.send", {"id": 8, **question})
    assert host.said("chat.done")["reason"] == "stop"


def edit(host: Neovim, path: str) -> None:
    place = {"scope": "region", "path": path, "name": "area.py", "filetype": "python", "tick": 1}
    region = {"text": TEXT, "first_row": 0, "last_row": 2, "instruction": "Return more"}
    more = {"attachments": [], "buffers": [], "model": "", "again": 0, "remark": ""}
    host.notify("edit.ask", {"id": 9, **place, **region, **more})
    host.said("edit.proposed")
    host.said("edit.done")
    host.notify("edit.turns", {"id": 10, "path": path})
    host.said("edit.turned")
    host.notify("agent.list", {"id": 11, "path": path})
    host.said("agent.listed")


@pytest.mark.process
@pytest.mark.linux
def test_a_host_that_has_used_every_feature_keeps_few_threads(project: Path, host: Neovim) -> None:
    path = str(project / "area.py")
    answer = say("```python\n", TEXT.replace("w * w", "width * 2"), "```\n")
    with ModelServer() as completing, ChatServer(lambda _: answer) as answering:
        completing.llama("return a")
        models = {"small": {"url": completing.url}, "large": {"url": answering.url}}
        settings = {
            "models": models,
            "completion": {"model": "small"},
            "chat": {"model": "large"},
            "next_edit": {"model": "small"},
            "index": {"embedder": ""},
        }
        host.notify("hello", {"protocol": PROTOCOL, "version": "x", "config": settings})
        complete(host)
        predict(host, path)
        search(host, path)
        chat(host, path)
        edit(host, path)
        wait_for(lambda: threads(host) <= MAX_THREADS, what=f"{MAX_THREADS} threads")
