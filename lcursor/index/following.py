"""The watcher of a running project, begun with its first survey.

Owns the watcher; called on the pipeline's thread. A watcher that cannot be begun is a remark: all
files are looked at from time to time then.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lcursor.errors import LcursorError

if TYPE_CHECKING:
    from lcursor.index.watch import Changes, Watcher
    from lcursor.project.listing import Survey


class Following:
    """Follows the files of a project.

    Args:
        root: of the project.
        changed: told what changed. Thread: the watcher's.
        remark: told what went wrong and was mended.
    """

    def __init__(
        self, root: Path, changed: Callable[[Changes], None], remark: Callable[[str], None]
    ) -> None:
        self._root, self._changed, self._remark = root, changed, remark
        self._watcher: Watcher | None = None
        self._is_failed = False

    def follow(self, survey: Survey) -> None:
        """Watch what the first survey found; a watcher that runs keeps up by itself."""
        if self._watcher is None:
            try:
                from lcursor.index.watch import Watcher

                self._watcher = Watcher(self._root, survey, self._changed, self._remark)
            except (LcursorError, ImportError, OSError) as error:
                if not self._is_failed:
                    self._remark(f"changes are seen every few minutes only: {error}")
                self._is_failed = True

    @property
    def how(self) -> str:
        """How changes are seen, in a word: `watching`, `polling`; empty where they are not."""
        if self._watcher is None:
            return ""
        return "polling" if self._watcher.is_polling else "watching"

    def stop(self) -> None:
        """End the watcher's threads."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()
