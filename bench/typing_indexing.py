"""Type while lcursor indexes a library, for `bench typing --indexing`."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from pathlib import Path
from types import TracebackType

from bench.index_project import Copy
from bench.peer import Lcursor
from lcursor.drive.editor import Editor
from lcursor.errors import LcursorError

BUSY = frozenset({"surveying", "reading", "embedding", "paused"})
BEGIN = "require('lcursor.index').start() require('lcursor.index.survey').begin(...)"
STATE = """
for _, state in ipairs(require("lcursor.index").states()) do
  if state.root == ... then
    return { state.phase, state.pid }
  end
end
return { "", 0 }
"""
BEGUN_S = 30.0


class WhileIndexing(Lcursor):
    """lcursor right after it was told to index a project.

    Args:
        model: a completion model; "" for the default.
        source: the project; a copy of it is indexed.
    """

    def __init__(self, model: str, source: Path) -> None:
        super().__init__(model)
        self._folder = tempfile.TemporaryDirectory(
            prefix="lcursor-bench-", ignore_cleanup_errors=True
        )
        self._copy = Copy(source, Path(self._folder.name) / "indexed")
        self._pid = 0

    def __enter__(self) -> WhileIndexing:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._end_worker()
        self._folder.cleanup()

    def begin(self, editor: Editor) -> str:
        """Also start indexing, and wait until it runs; end the worker of an earlier editor."""
        self._end_worker()
        model = super().begin(editor)
        editor.lua(BEGIN, str(self._copy.root / self._copy.names[0]))
        deadline_s = time.monotonic() + BEGUN_S
        while self._phase(editor) not in BUSY:
            if time.monotonic() > deadline_s:
                raise LcursorError(
                    f"indexing did not start within {BEGUN_S:.0f} s", "See :LCursor log"
                )
            time.sleep(0.1)
        return model

    def drain(self, editor: Editor) -> None:
        """Wait for the last answers, and check that indexing is still running."""
        super().drain(editor)
        if self._phase(editor) not in BUSY:
            raise LcursorError("indexing ended before the typing did", "Name a larger project")

    def _end_worker(self) -> None:
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGTERM)
        self._pid = 0

    def _phase(self, editor: Editor) -> str:
        phase, self._pid = editor.lua(STATE, str(self._copy.root))
        return str(phase)
