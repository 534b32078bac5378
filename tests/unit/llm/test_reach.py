"""Models that several share: who waits for a server hears its words, who has a cache is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from lcursor.config import ChatConfig
from lcursor.llm.reach import Models
from tests.unit.llm.serving import Machine, machine_of


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with machine_of(monkeypatch) as made:
        made.install()
        yield made


def mine(name: str, heard: list[str]) -> Callable[[str], bool]:
    """Return a listener that takes what is said on a thread of that name."""

    def says(words: str) -> bool:
        is_mine = threading.current_thread().name == name
        if is_mine:
            heard.append(words)
        return is_mine

    return says


def started(models: Models, name: str) -> None:
    """Have the server there, on a thread of that name."""
    thread = threading.Thread(target=models.local_server().ensure, name=name)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def test_who_waits_for_a_server_hears_its_words(machine: Machine) -> None:
    chat, edit, nobody = list[str](), list[str](), list[str]()
    models = Models(ChatConfig(model=str(machine.model)), machine.folder, nobody.append)
    models.listen(mine("chat", chat))
    models.listen(mine("edit", edit))
    started(models, "edit")
    assert edit[0].startswith("starting toy")
    assert (chat, nobody) == ([], [])
    models.local_server().stop()
    started(models, "other")
    assert nobody[0].startswith("starting toy")
    assert chat == []
    models.local_server().stop()
    models.close()


def test_the_others_are_told_who_fills_the_cache_now(machine: Machine) -> None:
    models = Models(ChatConfig(), machine.folder)
    told: list[str] = []
    chat, edit = mine("chat", []), mine("edit", [])
    models.listen(chat, lambda: told.append("chat"))
    models.listen(edit, lambda: told.append("edit"))
    models.use(edit)
    assert told == ["chat"]
    models.leave(chat)
    models.use(edit)
    assert told == ["chat"]
    models.close()
