"""Alternatives on their way through the completer: which request they belong to, and failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lcursor import protocol
from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled
from lcursor.fim.completer import Completer, More
from lcursor.fim.scheduler import Job

Sent = list[tuple[str, Mapping[str, Any]]]


class Engine:
    """Stands where the engine stands, once it has answered a request."""

    def __init__(self, alternatives: Callable[[], list[str]]) -> None:
        self.alternatives = lambda typed: alternatives()


def fail() -> list[str]:
    raise RuntimeError("broken")


def stop() -> list[str]:
    raise Cancelled("stopped")


@pytest.mark.parametrize(
    ("number", "alternatives", "texts", "errors"),
    [
        (7, lambda: ["b", "c"], ["b", "c"], 0),
        (7, lambda: [], [], 0),
        (6, lambda: ["b"], [], 0),  # the engine knows of a newer request only
        (7, stop, [], 0),
        (7, fail, [], 1),
    ],
)
def test_each_search_has_one_answer(
    number: int, alternatives: Callable[[], list[str]], texts: list[str], errors: int
) -> None:
    sent: Sent = []
    completer = Completer(CompletionConfig(), lambda *message: sent.append(message))
    completer._engine = Engine(alternatives)
    completer._answered = 7
    completer._run(Job(number, More()))
    answers = [params for method, params in sent if method == "fim.alternatives"]
    assert answers == [{"id": number, "texts": texts}]
    protocol.check("fim.alternatives", dict(answers[0]), protocol.TO_LUA)
    assert len([method for method, _ in sent if method == "error"]) == errors


def test_a_search_that_never_ran_is_answered_too() -> None:
    sent: Sent = []
    completer = Completer(CompletionConfig(), lambda *message: sent.append(message))
    completer.more(3)
    completer.cancel(3)
    assert sent == [("fim.alternatives", {"id": 3, "texts": []})]
