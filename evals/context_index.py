"""The slots of someone who has just opened a file in an indexed project, and looked at no other.

Owns an index of the repository, in a folder of its own, for the time of an eval.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from evals.calls import Call, Module
from evals.context import FilesOf
from lcursor.fim.context_ring import ContextRing, Found, Query
from lcursor.fim.prompt import File
from lcursor.host.retriever import MAX_CHARS, chunks
from lcursor.index import chunk, wire
from lcursor.index.around import around
from lcursor.index.records import FileState
from lcursor.index.search import Searcher
from lcursor.index.store import Store


@contextmanager
def indexed(modules: Mapping[str, Module]) -> Iterator[FilesOf]:
    """Give what chooses files by an index of a repository, by words and names alone."""
    with tempfile.TemporaryDirectory(prefix="lcursor-eval-") as folder:
        store = Store(Path(folder))
        try:
            state = FileState(0, 0, b"")
            store.put_many(
                (path, state, chunk.read(path, module.text)) for path, module in modules.items()
            )
            searcher = Searcher(store.reader(), None, None)

            def files_of(call: Call, tokens: int, count: Callable[[str], int]) -> tuple[File, ...]:
                query = Query(call.path, call.prefix, call.suffix)
                ring = ContextRing(_Index(searcher))
                ring.retrieve(query)
                ring.admit()
                return ring.layout(query, tokens, count)

            yield files_of
        finally:
            store.close()


class _Index:
    """Answers at once, as `host.retriever` does some time later."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    def ask(self, query: Query, found: Found) -> None:
        """Find pieces for a place."""
        before, after = query.prefix[-MAX_CHARS:], query.suffix[:MAX_CHARS]
        hits = around(self._searcher, query.path, before, after)
        found(chunks("/", Path("/"), [wire.hit(hit) for hit in hits], 0.0))
