"""Completers on engines that never compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lcursor.catalog.hardware import Load, Power
from lcursor.config import CompletionConfig
from lcursor.fim.completer import Completer
from tests.fakes.engine import Models

Start = Callable[..., Completer]


@pytest.fixture
def models() -> Models:
    """What opens the engines, and keeps the messages of the completers."""
    return Models()


@pytest.fixture
def start(models: Models, tmp_path: Path) -> Iterator[Start]:
    """Start completers and wait until their models are loaded; close them afterwards."""
    with ExitStack() as stack:

        def begin(config: CompletionConfig, **more: Any) -> Completer:
            power = Power((tmp_path / "battery").exists)
            options = {"power": power, "load": Load(lambda: None), **more}
            completer = Completer(config, models._tell, models.open, **options)
            completer.start()
            stack.callback(_close, completer)
            models.wait("state", count=2)
            return completer

        yield begin


def _close(completer: Completer) -> None:
    assert completer.close(10)
