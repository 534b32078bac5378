"""A pytest plugin for `mutate.py`: record which functions each test calls, or run given tests only.

Both are asked for by environment variables, so that it does nothing without them.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import pytest

ROOT = Path(__file__).resolve().parent.parent
RECORD, SELECT = "MUTATE_RECORD", "MUTATE_SELECT"
"""The file to write what was recorded to; a file with the ids of the tests to run, in order."""
PACKAGE = f"{ROOT}/lcursor/"


class Recorder:
    """Records for each test how long it takes, and the functions of the product that it calls.

    A function is `path:name`: its line changes more often than its name.
    """

    def __init__(self, out: Path) -> None:
        self._out = out
        self._called: set[tuple[str, str]] = set()
        self._tests: dict[str, tuple[float, list[str]]] = {}
        self._failed: set[str] = set()

    def _trace(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if code.co_filename.startswith(PACKAGE):
            self._called.add((code.co_filename, code.co_name))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Run a test, and record it."""
        self._called, started = set(), time.perf_counter()
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            called = {f"{os.path.relpath(path, ROOT)}:{name}" for path, name in [*self._called]}
            self._tests[item.nodeid] = time.perf_counter() - started, sorted(called)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out tests that fail as it is."""
        if report.failed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write what was recorded."""
        tests = {test: found for test, found in self._tests.items() if test not in self._failed}
        self._out.write_text(json.dumps({"tests": tests, "failed": sorted(self._failed)}))


def pytest_configure(config: pytest.Config) -> None:
    """Record, if that is asked for."""
    if RECORD in os.environ:
        config.pluginmanager.register(Recorder(Path(os.environ[RECORD])))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the given tests only, in the given order."""
    if SELECT in os.environ:
        wanted = json.loads(Path(os.environ[SELECT]).read_text())
        order = {test: number for number, test in enumerate(wanted)}
        items[:] = [item for item in items if item.nodeid in order]
        items.sort(key=lambda item: order[item.nodeid])
