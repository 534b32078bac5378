"""Show the progress of a download: a bar on a terminal, else a line every few seconds.

Writes to standard error only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lcursor.catalog.store import format_bytes

if TYPE_CHECKING:
    from rich.progress import Progress

    from lcursor.catalog.download import Reporter


LINE_EVERY_S = 3.0


class PlainWatcher:
    """Lines for a log or an editor's window."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._what, self._total, self._first = "", 0, 0
        self._began_s = self._spoke_s = 0.0

    def say(self, text: str) -> None:
        """Print one line."""
        print(f"{self._name}: {text}", file=sys.stderr, flush=True)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Print a step and its size."""
        self._what, self._total, self._first = what, total, done
        self._began_s = self._spoke_s = time.monotonic()
        self.say(
            f"{what}: {format_bytes(total)}" + (f", {format_bytes(done)} are here" if done else "")
        )

    def at(self, done: int) -> None:
        """Print the progress, if the last line is old enough."""
        now_s = time.monotonic()
        if now_s - self._spoke_s < LINE_EVERY_S or not self._total:
            return
        self._spoke_s = now_s
        rate = max(1.0, (done - self._first) / (now_s - self._began_s))
        self.say(
            f"{self._what}: {format_bytes(done)} of {format_bytes(self._total)} "
            f"({100 * done // self._total} %), {format_bytes(int(rate))}/s, "
            f"{max(0.0, self._total - done) / rate:.0f} s left"
        )


class BarWatcher:
    """A bar that redraws itself."""

    def __init__(self, name: str, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task(name, total=None, visible=False)
        self._name = name

    def say(self, text: str) -> None:
        """Print one line above the bar."""
        self._progress.console.print(f"{self._name}: {text}", markup=False, highlight=False)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Begin a new bar."""
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(what, total=total, completed=done)

    def at(self, done: int) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=done)


@contextmanager
def watching(name: str) -> Iterator[Reporter]:
    """Yield a reporter for a terminal or for a file."""
    if not sys.stderr.isatty():
        yield PlainWatcher(name)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield BarWatcher(name, progress)
