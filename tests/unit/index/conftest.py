"""A store in a folder of the test's own, opened anew as often as a test wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lcursor.index.store import Store

Open = Callable[..., Store]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "index"


@pytest.fixture
def opened(folder: Path) -> Iterator[Open]:
    stores: list[Store] = []

    def start(at: Path = folder, **more: str) -> Store:
        for old in stores:
            old.close()
        stores.append(Store(at, revision=more.get("revision", "test")))
        return stores[-1]

    yield start
    for each in stores:
        each.close()


@pytest.fixture
def store(opened: Open) -> Store:
    return opened()
