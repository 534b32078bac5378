"""Fixtures of the tests that run the real 0.5B model: one loaded engine for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lcursor.catalog import manifest, store
from lcursor.config import CompletionConfig
from lcursor.fim.engine import Engine
from tests.waiting import BUDGET_MS

MODEL = "qwen2.5-coder-0.5b"
TIMEOUT_S = 900
"""Of one test, on a machine that does other work as well."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder more time than others."""
    folder = Path(__file__).parent
    for item in items:
        if item.path.parent == folder:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def model_path() -> Path:
    """The embedded default model; `make test` has pulled it."""
    return store.resolve(MODEL, "completion")


def load(path: Path) -> Engine:
    """Load a model, and do all idle work."""
    config = CompletionConfig(min_confidence=0.0, budget_ms=BUDGET_MS)
    engine = Engine(path, "qwen2.5-coder", config, lambda fraction: True)
    while engine.idle():
        pass
    return engine


@pytest.fixture(scope="session")
def loaded(model_path: Path) -> Iterator[Engine]:
    """Load it once."""
    with closing(load(model_path)) as engine:
        yield engine


@pytest.fixture(scope="session")
def unadapted() -> Iterator[Engine]:
    """Load the same model without its adapter, as servers have it."""
    with closing(load(store.path_of(manifest.find(MODEL)))) as engine:
        yield engine


@pytest.fixture
def engine(loaded: Engine) -> Engine:
    """The engine, with no request to stop."""
    loaded.abort.clear()
    return loaded
