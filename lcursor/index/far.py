"""Files in great number, read by a process of their own: what it is asked, what of it is believed.

Owns that process while there is much to read. Used on the pipeline's thread alone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from lcursor.index import reading
from lcursor.index.bulk import Bulk, Died, Wanted
from lcursor.index.filler import Batch, Filler

GROUP_FILES = 8
MOST_DEATHS = 20
"""Of the process, within one project; then files are read here."""


class Far:
    """Reads files elsewhere.

    Args:
        root: of the project.
        filler: takes in what was read.
        remark: told of a file that nobody can parse.
    """

    def __init__(self, root: Path, filler: Filler, remark: Callable[[str], None]) -> None:
        self._root, self._filler, self._remark = root, filler, remark
        self._bulk: Bulk | None = None
        self._suspects: deque[str] = deque()
        """Files one of which ended the process; asked for one by one."""
        self._deaths = 0

    @property
    def is_busy(self) -> bool:
        """Whether there are files that were asked for and not taken in."""
        return bool(self._suspects) or (self._bulk is not None and self._bulk.is_busy)

    def start(self) -> None:
        """Have the process there, soon; without one all goes on here."""
        if self._bulk is None and self._deaths < MOST_DEATHS:
            try:
                self._bulk = Bulk(self._root)
            except OSError:
                self._deaths += 1

    def take(self, waiting: deque[str], batch: Batch) -> bool:
        """Ask for more of the files that wait, and take in some that were read.

        Returns:
            Whether that was done; else whoever asks reads the next file here.
        """
        if self._bulk is None:
            waiting.extendleft(self._suspects)
            self._suspects.clear()
            return False
        try:
            if not self._bulk.is_ready:
                return False
            self._feed(self._bulk, waiting)
            if not self._bulk.is_busy:
                return False
            start_s = time.monotonic()
            for taken in self._bulk.get():
                seen = reading.look(self._root, taken.path)
                state = taken.state
                if state is not None and seen != (state.size_bytes, state.mtime_ns):
                    waiting.append(taken.path)  # it changed since; who watches may not know it yet
                else:
                    self._filler.accept(taken, batch)
            self._filler.meter.read_s += time.monotonic() - start_s
        except Died as death:
            self._bury(death, waiting, batch)
        return True

    def close(self) -> None:
        """End the process; what it has not answered is forgotten."""
        bulk, self._bulk = self._bulk, None
        self._suspects.clear()
        if bulk is not None:
            bulk.close()

    def _feed(self, bulk: Bulk, waiting: deque[str]) -> None:
        while bulk.has_room and (self._suspects or waiting):
            if self._suspects:
                if not bulk.is_busy:
                    bulk.put([self._wanted(self._suspects.popleft())])
                return
            count = min(GROUP_FILES, len(waiting))
            bulk.put([self._wanted(waiting.popleft()) for _ in range(count)])

    def _wanted(self, path: str) -> Wanted:
        return path, self._filler.digest_of(path)

    def _bury(self, death: Died, waiting: deque[str], batch: Batch) -> None:
        """Find out which file it was: of one alone it is known, of several each is asked anew."""
        self._bulk = None
        if not death.lost:  # it cannot even be started
            self._deaths = MOST_DEATHS
            return
        first, *later = [[path for path, _ in group] for group in death.lost]
        waiting.extendleft(path for group in reversed(later) for path in reversed(group))
        if len(first) == 1:
            self._filler.give_up(first[0], batch)
            self._remark(f"{first[0]} cannot be parsed: it ended the process that read it")
        else:
            self._suspects.extend(first)
        self._deaths += 1
        self.start()
