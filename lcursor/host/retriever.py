"""Search the index for chunks that completion can use.

Sends a request to the project's worker if it runs, and forwards the answer. Thread: `ask` on the
engine's, the rest on the project's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from lcursor.fim.context_ring import Chunk, Found, Query
from lcursor.host.indexing import Indexing
from lcursor.host.project import Project

MAX_CHARS = 4_000
"""Maximum text before the cursor, and after it."""


class IndexRetriever:
    """Finds related chunks with the index; see `context_ring.Retriever`."""

    def __init__(self, indexing: Indexing) -> None:
        self._indexing = indexing

    def ask(self, query: Query, found: Found) -> None:
        """Start a search."""
        if query.root and query.path:
            self._indexing.find_related(
                query.root + query.path,
                query.prefix[-MAX_CHARS:],
                query.suffix[:MAX_CHARS],
                partial(self._on_hits, query.root, found),
            )

    def _on_hits(
        self, root: str, found: Found, project: Project, hits: Iterable[Mapping[str, Any]]
    ) -> None:
        found(chunks(root, project.root, hits))


def chunks(root: str, project: Path, hits: Iterable[Mapping[str, Any]]) -> list[Chunk]:
    """Return hits as chunks of a prompt.

    Args:
        root: the base of the prompt's paths.
        project: the base of the index's paths; they differ in a repository with several parts.
        hits: hits in the worker's format.
    """
    is_same = os.path.realpath(root) == str(project)
    found = []
    for hit in hits:
        path = hit["path"]
        if not is_same:
            path = os.path.relpath(project / path, os.path.realpath(root)).replace(os.sep, "/")
        if not path.startswith("../"):
            found.append(Chunk(path, hit["first_row"], hit["text"], "retrieved"))
    return found
