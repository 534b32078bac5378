"""The messages of the index."""

from __future__ import annotations

from typing import Literal, TypedDict

from lcursor.protocol.session import Empty

IndexPhase = Literal[
    "absent", "idle", "surveying", "reading", "embedding", "ready", "paused", "failed"
]
"""What the worker of an index does: `idle` until indexing is requested, `paused` while the user
types, `absent` if there is no worker."""


class IndexPath(TypedDict):
    """A file was entered, which starts the index of its project; or it was written."""

    path: str  # absolute


class IndexBegin(TypedDict):
    """Index the project of a path, and keep the index up to date; see `index.state`."""

    id: int
    path: str  # absolute: of a file or a folder in it
    is_confirmed: bool  # even a home directory or one above it
    rebuild: bool  # from the start


class IndexAsk(TypedDict):
    """A request about a path or its project."""

    id: int
    path: str


class IndexSearch(TypedDict):
    """Search; a newer search supersedes an older one."""

    id: int
    path: str
    text: str  # words or a name, with the filters `path:`, `lang:` and `kind:`
    limit: int
    mode: Literal["lexical", "vector", "hybrid"]


class IndexSymbols(TypedDict):
    """Find definitions by the beginning of their name."""

    id: int
    path: str
    name: str
    limit: int


class IndexBuffer(TypedDict):
    """The unsaved text of a buffer, for searches."""

    path: str
    is_changed: bool  # false if it is saved or closed; `text` is ignored then
    text: str


class IndexRow(TypedDict):
    """A row of a report: a language, or a reason why files are left out."""

    name: str
    files: int
    bytes: int
    examples: list[str]


class IndexReported(TypedDict):
    """What indexing a project would read; the answer to `index.report`."""

    id: int
    root: str
    files: int
    bytes: int
    seconds: float  # an estimate for the lexical index; -1 if unknown
    embed_seconds: float  # an estimate for all embeddings, in addition
    languages: list[IndexRow]
    ignored: list[IndexRow]
    is_home: bool  # a home directory or above, probably by mistake
    is_begun: bool  # it is indexed already


class IndexExplained(TypedDict):
    """Why a file is not in the index; the answer to `index.why`."""

    id: int
    path: str  # relative to the root
    root: str
    reason: str  # empty if it is, or would be


class IndexHit(TypedDict):
    """A result of a search."""

    path: str  # absolute
    name: str  # relative to the root
    first_row: int
    end_row: int
    scope: str
    kind: str  # of a definition; else empty
    language: str
    text: str
    score: float
    parts: dict[str, float]  # of the score
    is_stale: bool  # the file has changed since it was read


class IndexFound(TypedDict):
    """The answer to `index.search` and `index.symbols`."""

    id: int
    root: str
    query: str
    hits: list[IndexHit]  # best first
    ms: float  # measured in the host
    note: str  # why it may be incomplete; empty if everything is indexed


class IndexState(TypedDict):
    """The state of a project's index."""

    root: str
    phase: IndexPhase
    detail: str
    done: int  # files while reading, chunks while embedding
    total: int  # 0 if unknown
    seconds_left: float  # an estimate; -1 if unknown
    files: int
    chunks: int
    symbols: int
    embedded: int  # chunks that have a vector
    embedder: str  # empty if there is none
    embedder_note: str  # why there is none
    watching: str  # how changes are noticed: `watching`, `polling`, or empty for rarely
    remarks: list[str]  # problems that were repaired, newest last
    memory_bytes: int  # of the worker
    pid: int  # of the worker; 0 for none


TO_PYTHON: dict[str, type] = {
    "index.enter": IndexPath,
    "index.saved": IndexPath,
    "index.begin": IndexBegin,
    "index.report": IndexAsk,
    "index.why": IndexAsk,
    "index.search": IndexSearch,
    "index.symbols": IndexSymbols,
    "index.buffer": IndexBuffer,
    "index.typing": Empty,
}
TO_LUA: dict[str, type] = {
    "index.state": IndexState,
    "index.reported": IndexReported,
    "index.explained": IndexExplained,
    "index.found": IndexFound,
}
