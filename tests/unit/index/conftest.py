"""A store in a folder of the test's own, opened anew as often as a test wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lcursor.index.store import Store
from tests.unit.index import workers

Open = Callable[..., Store]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "index"


@pytest.fixture
def opened(folder: Path) -> Iterator[Open]:
    stores: list[Store] = []

    def start(at: Path = folder, **more: int) -> Store:
        for old in stores:
            old.close()
        stores.append(Store(at, version=more.get("version", 1)))
        return stores[-1]

    yield start
    for each in stores:
        each.close()


@pytest.fixture
def store(opened: Open) -> Store:
    return opened()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user of the test's own."""
    home = tmp_path / "home"
    (home / "run").mkdir(parents=True)
    for name in ("data", "cache", "state", "config"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(home / name))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "run"))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("lcursor.index.client.CONNECT_S", 60.0)  # the machine may be busy
    for name in ("LCURSOR_DATA", "LCURSOR_MODELS"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def root(tmp_path: Path, home: Path) -> Iterator[Path]:
    """A project; whatever worker is left on it at the end is ended."""
    root = tmp_path / "project"
    workers.make(root)
    yield root
    workers.end(root)
