"""Show progress: a bar on a terminal, else a line every few seconds. Writes to standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lcursor.catalog.store import format_bytes

if TYPE_CHECKING:
    from rich.progress import Progress

    from lcursor.catalog.download import Reporter


LINE_EVERY_S = 3.0


class PlainWatcher:
    """Prints lines for a log or an editor's window.

    Args:
        name: starts each line.
        show: returns an amount as text.
    """

    def __init__(self, name: str, show: Callable[[int], str] = format_bytes) -> None:
        self._name, self._show = name, show
        self._what, self._total, self._first = "", 0, 0
        self._began_s = self._spoke_s = 0.0

    def say(self, text: str) -> None:
        """Print one line."""
        print(f"{self._name}: {text}", file=sys.stderr, flush=True)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Print a step and its size."""
        self._what, self._total, self._first = what, total, done
        self._began_s = self._spoke_s = time.monotonic()
        size = f": {self._show(total)}" if total else ""
        self.say(what + size + (f", {self._show(done)} are here" if done else ""))

    def at(self, done: int) -> None:
        """Print the progress, if the last line is old enough."""
        now_s = time.monotonic()
        if now_s - self._spoke_s < LINE_EVERY_S or not self._total:
            return
        self._spoke_s = now_s
        rate = max(1.0, (done - self._first) / (now_s - self._began_s))
        self.say(
            f"{self._what}: {self._show(done)} of {self._show(self._total)} "
            f"({100 * done // self._total} %), {self._show(int(rate))}/s, "
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
        self._task = self._progress.add_task(what, total=total or None, completed=done)

    def at(self, done: int) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=done)


@contextmanager
def watching(name: str, show: Callable[[int], str] = format_bytes) -> Iterator[Reporter]:
    """Yield a reporter for a terminal or for a file; `show` returns an amount as text."""
    if not sys.stderr.isatty():
        yield PlainWatcher(name, show)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    if show is format_bytes:
        amounts = [DownloadColumn(binary_units=True), TransferSpeedColumn()]
    else:
        amounts = [MofNCompleteColumn()]
    columns = [TextColumn("{task.description}"), BarColumn(), *amounts, TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield BarWatcher(name, progress)
