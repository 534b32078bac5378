"""Files in great number, read by processes of their own: what they are asked, what is believed.

Owns those processes while there is much to read. Used on the pipeline's thread alone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from lcursor.index import priority, reading
from lcursor.index.bulk import Bulk, Died
from lcursor.index.filler import Batch, Filler
from lcursor.index.taking import Taken

MOST_PROCESSES = 2
"""One writer keeps up with about three."""
GROUP_FILES = 8
MOST_DEATHS = 20
"""Of such processes, within one project; then files are read here."""


class Far:
    """Reads files elsewhere.

    Args:
        root: of the project.
        filler: takes in what was read.
        remark: told of a file that nobody can parse.
    """

    def __init__(self, root: Path, filler: Filler, remark: Callable[[str], None]) -> None:
        self._root, self._filler, self._remark = root, filler, remark
        self._bulks: list[Bulk] = []
        self._asked: deque[Bulk] = deque()
        """Whom each group was given to, in their order; they are taken in in that order."""
        self._suspects: deque[str] = deque()
        """Files one of which ended a process; asked for one by one."""
        self._deaths = 0

    @property
    def is_busy(self) -> bool:
        """Whether there are files that were asked for and not taken in."""
        return bool(self._suspects or self._asked)

    def start(self) -> None:
        """Have the processes there, soon; without any all goes on here."""
        while len(self._bulks) < min(MOST_PROCESSES, priority.cores()):
            if self._deaths >= MOST_DEATHS:
                return
            try:
                self._bulks.append(Bulk(self._root))
            except OSError:
                self._deaths += 1

    def take(self, waiting: deque[str], batch: Batch) -> bool:
        """Ask for more of the files that wait, and take in some that were read.

        Returns:
            Whether that was done; else whoever asks reads the next file here.
        """
        if not self._bulks:
            waiting.extendleft(self._suspects)
            self._suspects.clear()
            return False
        for bulk in [*self._bulks]:
            try:
                if bulk.is_ready:
                    self._feed(bulk, waiting)
            except Died as death:
                self._bury(bulk, death, waiting, batch)
        if not self._asked:
            return False
        bulk = self._asked[0]
        start_s = time.monotonic()
        try:
            for taken in bulk.get():
                self._believe(taken, waiting, batch)
            self._asked.popleft()
        except Died as death:
            self._bury(bulk, death, waiting, batch)
        self._filler.meter.read_s += time.monotonic() - start_s
        return True

    def close(self) -> None:
        """End the processes; what they have not answered is forgotten."""
        bulks, self._bulks = self._bulks, []
        self._asked.clear()
        self._suspects.clear()
        for bulk in bulks:
            bulk.close()

    def _feed(self, bulk: Bulk, waiting: deque[str]) -> None:
        while bulk.has_room and (self._suspects or waiting):
            if self._suspects:
                if not bulk.is_busy:
                    self._put(bulk, [self._suspects.popleft()])
                return
            count = min(GROUP_FILES, len(waiting))
            self._put(bulk, [waiting.popleft() for _ in range(count)])

    def _put(self, bulk: Bulk, paths: list[str]) -> None:
        self._asked.append(bulk)
        bulk.put([(path, self._filler.digest_of(path)) for path in paths])

    def _believe(self, taken: Taken, waiting: deque[str], batch: Batch) -> None:
        """Take a file in, unless it changed since: who watches may not know it yet."""
        state = taken.state
        seen = reading.look(self._root, taken.path)
        if state is not None and seen != (state.size_bytes, state.mtime_ns):
            waiting.append(taken.path)
        else:
            self._filler.accept(taken, batch)

    def _bury(self, bulk: Bulk, death: Died, waiting: deque[str], batch: Batch) -> None:
        """Find out which file it was: of one alone it is known, of several each is asked anew."""
        self._bulks.remove(bulk)
        self._asked = deque(other for other in self._asked if other is not bulk)
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
