"""A process that reads and parses many files, so that who asks in this one is not held up.

The grammars hold the interpreter's lock while they parse; in a process of their own they hold up
nobody, and a grammar that crashes takes no index with it. Owns that process; used on the pipeline's
thread. It ends with this process, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from lcursor.index.launch import CAPS
from lcursor.index.taking import Taken

ENTRY = Path(__file__).with_name("bulk_main.py")
MOST_AHEAD = 3
"""Groups that wait there, so that it has work while this process writes."""
Wanted = tuple[str, bytes | None]
"""The path of a file, and the digest of what is known of it."""


class Died(Exception):
    """The process ended; `lost` has the groups that it did not answer, the oldest first."""

    def __init__(self, lost: Sequence[Sequence[Wanted]]) -> None:
        super().__init__("the process that reads files has ended")
        self.lost = lost


class Bulk:
    """The reading process of one project; it starts at once and is ready some moments later.

    Raises:
        OSError: no process can be started.
    """

    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(ENTRY), str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **CAPS},
        )
        self._ahead: deque[Sequence[Wanted]] = deque()
        self._is_ready = False

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def is_ready(self) -> bool:
        """Whether it has started; does not wait.

        Raises:
            Died: it ended before it had.
        """
        out = self._process.stdout
        assert out is not None
        if not self._is_ready and select.select([out], [], [], 0)[0]:
            try:
                pickle.load(out)  # noqa: S301 - its greeting
            except (EOFError, OSError, pickle.UnpicklingError):
                raise self._died() from None
            self._is_ready = True
        return self._is_ready

    @property
    def is_busy(self) -> bool:
        """Whether something was asked that was not answered."""
        return bool(self._ahead)

    @property
    def has_room(self) -> bool:
        """Whether another group may be asked for."""
        return len(self._ahead) < MOST_AHEAD

    def put(self, group: Sequence[Wanted]) -> None:
        """Ask for some files.

        Raises:
            Died: the process has ended.
        """
        assert self._process.stdin is not None
        self._ahead.append(group)
        try:
            pickle.dump(group, self._process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
        except OSError:
            raise self._died() from None

    def get(self) -> list[Taken]:
        """Wait for the oldest group.

        Raises:
            Died: the process has ended.
        """
        assert self._process.stdout is not None
        try:
            taken: list[Taken] = pickle.load(self._process.stdout)  # noqa: S301 - from our own process
        except (EOFError, OSError, pickle.UnpicklingError):
            raise self._died() from None
        self._ahead.popleft()
        return taken

    def close(self) -> None:
        """End the process at once; what was not answered is nobody's."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what stands in it cannot be written any more
                    pipe.close()

    def _died(self) -> Died:
        lost = list(self._ahead)
        self._ahead.clear()
        self.close()
        return Died(lost)
