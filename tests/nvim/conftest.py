"""Fixtures of the tests of the editor half."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.nvim.home import Home


@pytest.fixture
def home(neovim: Path, tmp_path: Path) -> Iterator[Home]:
    """Give a person a project of two files, and a model that says what the test wants."""
    with ExitStack() as stack:
        yield Home(neovim, tmp_path / "home", stack)
