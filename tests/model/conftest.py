"""Fixtures of the tests that run the real 0.5B model: one loaded engine for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.catalog import store
from lcursor.config import CompletionConfig
from lcursor.fim.engine import Engine

MODEL = "qwen2.5-coder-0.5b"


@pytest.fixture(scope="session")
def model_path() -> Path:
    """The embedded default model; `make test` has pulled it."""
    return store.resolve(MODEL, "completion")


@pytest.fixture(scope="session")
def loaded(model_path: Path) -> Iterator[Engine]:
    """Load it once."""
    engine = Engine(
        model_path, "qwen2.5-coder", CompletionConfig(min_confidence=0.0), lambda fraction: True
    )
    while engine.idle():
        pass
    yield engine
    engine.close()


@pytest.fixture
def engine(loaded: Engine) -> Engine:
    """The engine, with no request to stop."""
    loaded.abort.clear()
    return loaded
