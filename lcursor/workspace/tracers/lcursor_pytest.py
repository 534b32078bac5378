"""What pytest reports to the tracer; see `sitecustomize.py`. PYTEST_PLUGINS names this module."""

from __future__ import annotations

import sys
from typing import Any

tracer: Any = sys.modules["sitecustomize"]


def pytest_runtest_setup(item: Any) -> None:
    """Begin a test."""
    tracer.record.begin(item.nodeid)


def pytest_exception_interact(call: Any) -> None:
    """Record a failure."""
    tracer.fail(call.excinfo.value, call.excinfo.tb)


def pytest_runtest_teardown() -> None:
    """End a test."""
    tracer.record.end()
