"""The edits' messages on their way through the host, with models that the chat has as well."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from lcursor import protocol
from lcursor.config import AgentConfig, ChatConfig, Config, EditConfig
from lcursor.host.services import Services
from tests.fakes.chat_server import Answer, ChatServer, Hang, say
from tests.fakes.heard import Heard, config_of

TEXT = "def one():\n    return 1"
NEW = "def one():\n    return 100"


class Index:
    """Stands where the index's part of the host stands."""

    def __init__(self) -> None:
        self.rests = 0

    def typing(self) -> None:
        self.rests += 1

    def client_of(self, root: Path) -> Any:
        return None


class Service(Heard):
    """Chats and edits as the host has them, and what they sent."""

    def __init__(self, chat: ChatConfig, edit: EditConfig | None = None) -> None:
        self.index = cast("Any", Index())
        super().__init__()
        self.services = Services(self._tell, self.index)
        self.configure(chat, edit or EditConfig())
        self.handlers = self.services.handlers()

    def configure(self, chat: ChatConfig, edit: EditConfig) -> None:
        self.services.configure(Config(chat=chat, edit=edit))

    def close(self) -> None:
        self.services.close()

    def do(self, method: str, **params: Any) -> None:
        self.handlers[method](protocol.check(method, params))

    def ask(self, number: int, path: Path) -> None:
        self.do(
            "edit.ask",
            **{
                "id": number, "scope": "region", "path": str(path), "name": path.name,
                "filetype": "python", "tick": 1, "text": TEXT, "first_row": 0,
                "last_row": 2, "instruction": "Return more", "attachments": [], "buffers": [],
                "model": "", "again": 0, "remark": "",
            },
        )  # fmt: skip


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LCURSOR_DATA", str(tmp_path / "data"))
    (tmp_path / "project/.git").mkdir(parents=True)
    found = tmp_path / "project/a.py"
    found.write_text(f"{TEXT}\n")
    return found


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda _: say("```python\n", f"{NEW}\n", "```\n")) as fake:
        yield fake


def test_an_edit_goes_through_the_host_and_pauses_the_index(path: Path, server: ChatServer) -> None:
    service = Service(config_of(server))
    service.ask(1, path)
    assert service.wait("edit.done", 1)["reason"] == "proposed"
    (file,) = service.wait("edit.proposed", 1)["files"]
    assert file["changes"][0]["new"] == ["    return 100"]
    assert service.index.rests >= 1
    service.close()


def test_chat_and_edits_have_the_same_models(path: Path, server: ChatServer) -> None:
    service = Service(config_of(server))
    service.ask(1, path)
    service.wait("edit.done", 1)
    models = service.services._models
    assert models is not None
    service.do("chat.open", id=2, chat="", path=str(path))
    service.wait("chat.opened", 2)
    assert service.services._models is models
    assert models.known("fake") is not None
    service.close()
    assert models.known("fake") is None  # closed


def test_other_settings_of_edits_leave_the_chat_alone(path: Path) -> None:
    with ChatServer([Answer([Hang()])]) as slow:
        service = Service(config_of(slow))
        service.do("chat.open", id=1, chat="", path=str(path))
        chat = service.wait("chat.opened", 1)["chat"]
        service.do(
            "chat.send", id=2, chat=chat, after=0, text="Hi", path="", attachments=[], dropped=[],
            model="", again=0, call="", choice="",
        )  # fmt: skip
        service.wait("chat.started", 2)
        service.configure(config_of(slow), EditConfig(max_tokens=9))
        service.do("edit.turns", id=3, path=str(path))
        service.wait("edit.turned", 3)
        assert not service.told("chat.done")
        service.close()


def test_other_settings_of_the_chat_stop_edits_and_give_them_other_models(path: Path) -> None:
    with ChatServer([Answer([Hang()]), say("```python\n", f"{NEW}\n", "```\n")]) as slow:
        service = Service(config_of(slow))
        service.ask(1, path)
        deadline_s = time.monotonic() + 10
        while not slow.bodies and time.monotonic() < deadline_s:
            time.sleep(0.005)
        service.configure(config_of(slow), EditConfig())  # the same: nothing happens
        assert not [name for name, _ in service.sent if name == "edit.done"]
        service.configure(replace(config_of(slow), max_tokens=99), EditConfig())
        assert service.wait("edit.done", 1)["reason"] == "stopped"
        service.ask(2, path)
        assert service.wait("edit.done", 2)["reason"] == "proposed"
        service.close()


def test_other_settings_of_agents_apply_to_the_checks_of_edits(path: Path) -> None:
    service = Service(ChatConfig())
    service.do("edit.turns", id=1, path=str(path))
    service.wait("edit.turned", 1)
    agent = AgentConfig(env=("PGHOST",), readable=("/opt/sdk",))
    service.services.configure(Config(agent=agent))
    service.do("edit.turns", id=2, path=str(path))
    service.wait("edit.turned", 2)
    assert service.services._get_edit()._services.agent == agent
    service.close()


def test_accepted_code_of_a_chat_is_recorded_in_its_file(path: Path, server: ChatServer) -> None:
    service = Service(config_of(server))
    service.do("chat.open", id=1, chat="", path=str(path))
    chat = service.wait("chat.opened", 1)["chat"]
    service.do(
        "chat.send", id=2, chat=chat, after=0, text="Return more", path=str(path), attachments=[],
        dropped=[], model="", again=0, call="", choice="",
    )  # fmt: skip
    service.wait("chat.done", 2)
    here = {"path": str(path), "tick": 3, "text": TEXT}
    service.do(
        "edit.apply", id=3, path=str(path), text=f"```python\n{NEW}\n```\n", file="a.py",
        chat=chat, message=0, buffers=[here],
    )  # fmt: skip
    assert service.wait("edit.done", 3)["reason"] == "proposed"
    turn = service.wait("edit.proposed", 3)
    change = turn["files"][0]["changes"][0]
    hunk = {"row": 1, "old": change["old"], "new": change["new"], "above": [], "below": []}
    service.do(
        "edit.decided", turn=turn["turn"], path=str(path), accepted=[hunk], rejected=[], open=0,
        is_undone=False,
    )  # fmt: skip
    service.close()
    (file,) = (path.parents[1] / "data/chats").glob("*/*.jsonl")
    ops = [json.loads(line) for line in file.read_text().splitlines()]
    edits = [op for op in ops if op.get("op") == "edit"]
    assert [(op["name"], op["first_row"], op["rows"]) for op in edits] == [("a.py", 1, 1)]


def test_the_paths_of_a_chat_are_those_of_its_project(path: Path, server: ChatServer) -> None:
    service = Service(config_of(server))
    service.do("chat.open", id=1, chat="", path=str(path))
    chat = service.wait("chat.opened", 1)["chat"]
    other = path.parents[1] / "other/c.py"
    (other.parent / ".git").mkdir(parents=True)
    other.write_text(f"{TEXT}\n")
    here = {"path": str(other), "tick": 3, "text": TEXT}

    def applied(number: int, text: str, file: str = "") -> tuple[str, str]:
        service.do(
            "edit.apply", id=number, path=str(other), text=text, file=file, chat=chat, message=0,
            buffers=[here],
        )  # fmt: skip
        assert service.wait("edit.done", number)["reason"] == "proposed"
        (made,) = service.wait("edit.proposed", number)["files"]
        return made["path"], made["kind"]

    project = path.parent
    assert applied(3, f"```python\n{NEW}\n```\n", "a.py") == (str(path), "edit")
    new = str(project / "lib/new.py")
    assert applied(4, "```python\n# lib/new.py\nx = 1\n```\n") == (new, "create")
    assert applied(5, f"```python\n{NEW}\n```\n") == (str(other), "edit")  # the current file
    service.close()


TWICE = "def one(x):\n    go(x, first)\n\n\ndef two(x):\n    go(x, first)\n"
SWAP = "```python\n<<<<<<< SEARCH\n    go(x, first)\n=======\n    go(x)\n>>>>>>> REPLACE\n```\n"


@pytest.mark.parametrize("is_open", [True, False])
def test_only_lines_that_the_model_read_are_changed(
    path: Path, server: ChatServer, is_open: bool
) -> None:
    service = Service(config_of(server))
    path.write_text(TWICE)
    service.do("chat.open", id=1, chat="", path=str(path))
    chat = service.wait("chat.opened", 1)["chat"]
    piece = {
        "kind": "selection", "name": "a.py:1-2", "path": str(path), "first_row": 0,
        "text": "def one(x):\n    go(x, first)\n", "is_offered": False,
    }  # fmt: skip
    service.do(
        "chat.send", id=2, chat=chat, after=0, text="Return more", path=str(path),
        attachments=[piece], dropped=[], model="", again=0, call="", choice="",
    )  # fmt: skip
    answer = service.wait("chat.started", 2)["answer"]
    service.wait("chat.done", 2)
    if not is_open:  # the chat is read from its file
        service.close()
        service = Service(config_of(server))

    def apply(number: int, text: str, key: str) -> None:
        here = {"path": str(path), "tick": 3, "text": text.removesuffix("\n")}
        service.do(
            "edit.apply", id=number, path=str(path), text=SWAP, file="a.py", chat=key,
            message=answer, buffers=[here],
        )  # fmt: skip

    apply(3, TWICE, chat)
    assert service.wait("edit.done", 3)["reason"] == "proposed"
    (change,) = service.wait("edit.proposed", 3)["files"][0]["changes"]
    assert change["first_row"] == 1
    apply(4, TWICE, "")  # nobody knows what was read
    assert len(service.wait("edit.question", 4)["choices"]) == 2
    changed = TWICE.replace("go(x, first)", "stay(x)", 1)
    apply(5, changed, chat)
    (choice,) = service.wait("edit.question", 5)["choices"]
    assert choice["first_row"] == 5
    service.do("edit.choose", id=5, choice=-1)
    assert service.wait("edit.done", 5)["reason"] == "stopped"
    apply(6, changed, "no-such-chat")
    assert service.wait("edit.done", 6)["reason"] == "proposed"
    service.close()


def test_closing_waits_for_what_is_written_slowly(path: Path) -> None:
    with ChatServer() as server:
        service = Service(config_of(server))
        written = list[str]()

        def write_slowly() -> None:
            time.sleep(1.0)
            written.append("first")

        writer = service.services._get_edit()._writer
        writer.submit(write_slowly)
        writer.submit(lambda: written.append("second"))
        service.do("edit.turns", id=1, path=str(path))
        service.close()
        assert written == ["first", "second"]
        assert service.told("edit.turned", 1)
