"""Alternatives on their way through the completer: which request they belong to, and failures."""

from __future__ import annotations

import pytest

from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled
from lcursor.fim.completer import Completer
from tests.fakes.engine import Act, Models, fail, request


def stop() -> None:
    raise Cancelled("stopped")


@pytest.mark.parametrize(
    ("number", "act", "texts", "errors"),
    [
        (7, lambda: None, ["b", "c"], 0),
        (6, lambda: None, [], 0),  # the engine knows of a newer request only
        (7, stop, [], 0),
        (7, fail, [], 1),
    ],
)
def test_each_search_has_one_answer(number: int, act: Act, texts: list[str], errors: int) -> None:
    models = Models()
    models.acts["alternatives"] = act
    completer = Completer(CompletionConfig(), models._tell, models.open)
    completer.start()
    completer.request(request(7))
    models.wait("fim.done", 7)
    completer.find_alternatives(number)
    assert models.wait("fim.alternatives") == {"id": number, "texts": texts}
    assert completer.close(10)
    assert len(models.told("fim.alternatives")) == 1
    assert len(models.told("error")) == errors


def test_a_search_that_never_ran_is_answered_too() -> None:
    models = Models()
    completer = Completer(CompletionConfig(), models._tell, models.open)
    completer.find_alternatives(3)
    completer.cancel(3)
    assert models.sent == [("fim.alternatives", {"id": 3, "texts": []})]
