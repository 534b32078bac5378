"""The index as completion sees it: pieces of the project for a place in the code.

Asks the worker of the project, where one runs, and tells when it has answered; nothing is started
for it, and nobody waits. Thread: `ask` on the engine's, the rest on the lane of the project.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from lcursor.fim.chunks import Chunk
from lcursor.fim.context_ring import Found, Query
from lcursor.host.indexing import Indexing
from lcursor.host.project import Project

MAX_CHARS = 4_000
"""Of the text before the cursor and of that behind it: no more is looked at."""


class IndexRetriever:
    """Finds pieces of a project by its index.

    Args:
        indexing: knows the projects.
    """

    def __init__(self, indexing: Indexing) -> None:
        self._indexing = indexing

    def ask(self, query: Query, found: Found) -> None:
        """Have pieces found; see `context_ring.Retriever`."""
        if query.root and query.path:
            self._indexing.around(
                query.root + query.path,
                query.prefix[-MAX_CHARS:],
                query.suffix[:MAX_CHARS],
                partial(self._tell, query.root, found),
            )

    def _tell(
        self, root: str, found: Found, project: Project, hits: Iterable[Mapping[str, Any]]
    ) -> None:
        found(chunks(root, project.root, hits, time.monotonic() * 1000))


def chunks(
    root: str, project: Path, hits: Iterable[Mapping[str, Any]], now_ms: float
) -> list[Chunk]:
    """Return hits as pieces that a prompt may show.

    Args:
        root: what the model's paths are relative to.
        project: what the index's are relative to; the two differ where a repository has parts.
        hits: as they travel.
        now_ms: the time.
    """
    same = os.path.realpath(root) == str(project)
    found = []
    for hit in hits:
        path = hit["path"]
        if not same:
            path = os.path.relpath(project / path, os.path.realpath(root)).replace(os.sep, "/")
        if not path.startswith("../"):
            found.append(Chunk(path, hit["first_row"], hit["text"], "retrieved", now_ms))
    return found
