"""A world in which a user has opened the project of a stranger."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.world import Trick, World

Enter = Callable[..., World]


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return a world on which no trick was played."""
    return World.create(tmp_path_factory.mktemp("pristine"))


@pytest.fixture
def enter(tmp_path: Path, pristine: World, monkeypatch: pytest.MonkeyPatch) -> Enter:
    """Become the user of a world with some tricks: `enter(*tricks)`."""

    def entered(*tricks: Trick) -> World:
        world = World.create(tmp_path / "world", pristine).build(*tricks)
        for name in ("LCURSOR_DATA", "LCURSOR_MODELS", "XDG_STATE_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in (world.variables() | world.env).items():
            monkeypatch.setenv(name, value)
        return world

    return entered
