"""The parts of an open index: store, readers, embedder, watcher and pipeline.

Connects them, and opens and closes them together, on the thread for slow requests. `searcher` is
for the search thread.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lcursor.index.chunk_embedder import ChunkEmbedder
from lcursor.index.following import Following
from lcursor.index.pipeline import Pipeline
from lcursor.index.search import Searcher
from lcursor.index.store import Store
from lcursor.index.throttle import Throttle
from lcursor.project.secrets import SecretGlobs

if TYPE_CHECKING:
    from lcursor.index.watch import Changes


class Opened:
    """The parts of one project's index.

    Args:
        root: of the project.
        folder: of the index.
        embedder: its name; "" is the default, "none" is none.
        throttle: pauses the bulk work.
        tell: called when the state changed, on the pipeline's thread.
        remark: called with a sentence about something that failed and was handled; any thread.
        own: files that the user calls secret.

    Raises:
        IndexFailed: the store cannot be opened.
    """

    def __init__(
        self,
        root: Path,
        folder: Path,
        embedder: str,
        throttle: Throttle,
        tell: Callable[[], None],
        remark: Callable[[str], None],
        own: SecretGlobs,
    ) -> None:
        self.store = Store(folder)
        self.reader, self.counter = self.store.reader(), self.store.reader()
        self.embedding = ChunkEmbedder(embedder, folder, self.store.reader())
        self.embedding.is_quiet = throttle.is_quiet
        self.following = Following(root, self._changed, remark)
        self.pipeline = Pipeline(
            root, self.store, throttle, tell, remark, self.embedding, self.following, own
        )
        self.store.database.on_damage = self.pipeline.begin
        self._searcher = Searcher(self.reader, None, None)
        self._has_vectors = False

    @property
    def embedder_name(self) -> str:
        """Name of the loaded embedder; empty if none is."""
        embedder = self.embedding.embedder
        return embedder.name if embedder else ""

    def searcher(self) -> Searcher:
        """Return the searcher: by words alone until an embedder is loaded."""
        if not self._has_vectors and self.embedding.embedder is not None:
            self._has_vectors = True
            self._searcher = Searcher(self.reader, self.embedding.vectors, self.embedding.embedder)
        return self._searcher

    def remarks(self) -> list[str]:
        """Return sentences about damage that was repaired."""
        return [*self.store.remarks, *self.embedding.remarks()]

    def close(self) -> None:
        """Stop all threads and close all files."""
        self.pipeline.stop()  # first, since it may be about to start a watcher
        self.following.stop()
        self.embedding.close()
        self.reader.close()
        self.counter.close()
        self.store.close()

    def _changed(self, changes: Changes) -> None:
        """Handle changed files, on the watcher's thread."""
        if changes.is_storm:
            self.pipeline.surveyed(changes.survey)
        else:
            self.pipeline.changed(changes.paths, is_judged=True)
