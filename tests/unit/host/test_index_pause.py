"""The index rests while a service works: one thread says so, and ends with the work."""

from __future__ import annotations

import threading
from typing import Any, cast

from lcursor.host.services import IndexPause


class Index:
    """Notes which threads let it rest."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.rested = threading.Condition()

    def typing(self) -> None:
        with self.rested:
            self.threads.append(threading.current_thread())
            self.rested.notify_all()


def test_work_that_begins_again_at_once_has_one_thread() -> None:
    index = Index()
    pause = IndexPause(cast(Any, index))
    pause.set_busy("chat", True)
    pause.set_busy("chat", True)
    with index.rested:
        assert index.rested.wait_for(lambda: index.threads, 10)
    [first] = index.threads
    pause.set_busy("chat", False)
    pause.set_busy("chat", True)
    first.join(10)
    assert not first.is_alive()
    with index.rested:
        assert index.rested.wait_for(lambda: index.threads[-1] is not first, 10)
    second = index.threads[-1]
    assert second.is_alive()
    pause.set_busy("chat", False)
    second.join(10)
    assert not second.is_alive()
    pause.set_busy("chat", False)


def test_services_that_work_at_once_share_a_thread() -> None:
    index = Index()
    pause = IndexPause(cast(Any, index))
    known = set(threading.enumerate())
    for name in ("chat", "edit", "agent"):
        pause.set_busy(name, True)
    assert len(set(threading.enumerate()) - known) == 1
    with index.rested:
        assert index.rested.wait_for(lambda: index.threads, 10)
    [thread] = set(index.threads)
    for name in ("chat", "edit"):
        pause.set_busy(name, False)
        pause.set_busy(name, False)
    assert thread.is_alive()
    pause.set_busy("agent", False)
    thread.join(10)
    assert not thread.is_alive()
