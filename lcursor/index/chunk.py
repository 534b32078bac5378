"""Split a text into chunks, which are searched and embedded, and find its definitions.

    read("a.py", "def f():\n    pass\n").chunks  # [Chunk(first_row=0, end_row=2, kind="code", ...)]

Every row that is not empty is in exactly one chunk of kind `code` or `lines`; classes that do not
fit into one chunk have an outline as well. Text that cannot be parsed is split by rows. Pure; any
thread.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final

from lcursor.code import grammars, languages, structure
from lcursor.code.outline import outline
from lcursor.code.structure import CONTAINERS, SCOPE, Definition
from lcursor.index import split
from lcursor.index.records import Chunk, ChunkKind, Parsed, Symbol

_CPP: Final = re.compile(
    r"^\s*(?:class\s+\w+|namespace\b|template\s*<|using\s+\w+|public:|private:|extern\s+\"C\+\+\")",
    re.MULTILINE,
)
"""Text that is in headers of C++ and not of C."""


def embedded(path: str, chunk: Chunk) -> str:
    """Return the text of a chunk that is embedded: `file name > scope`, and its own text.

    The folders are left out, so that a moved file keeps its vectors. With the whole path sentences
    are found no better (MRR .585, with the name .584, on `eval queries`), without the name worse
    (.540); the words of the folders are in the lexical index.
    """
    return _embedded(path, chunk.scope, chunk.text)


def _embedded(path: str, scope: str, text: str) -> str:
    name = path.rpartition("/")[2]
    return f"{name}{SCOPE}{scope}\n{text}" if scope else f"{name}\n{text}"


def read(path: str, text: str) -> Parsed:
    """Return a file's language, chunks and definitions; parses 2 to 3 MB/s.

    Args:
        path: relative to the project; its extension gives the language, and its name is part of
            each digest.
        text: of the file. Rows end at a line feed, as in Neovim.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    language = languages.detect(path, lines[0] if lines else "")
    if language == "c" and path.endswith(".h") and _CPP.search(text):
        language = "cpp"
    if not text.strip():
        return Parsed(language, (), ())
    sums = split.weigh(lines)
    data = text.encode("utf-8", "replace")
    root = grammars.parse(language, data)
    kind: ChunkKind
    if root is None:
        kind, found = "lines", structure.definitions_in_lines(language, lines)
        cuts = split.by_rows(lines, 0, len(lines))
    else:
        kind, found = "code", structure.definitions_in_tree(language, root, data, lines)
        cuts = split.by_nodes(root, lines, sums) if sums[-1] > split.MAX_CHARS else []
    inside = structure.group_by_parent(found)
    spans = split.fill(cuts, sums)
    chunks = []
    for first, end in spans:
        scope = structure.scope_at(inside, sums, first, end)
        chunks.append(_chunk(path, first, end, "\n".join(lines[first:end]), scope, kind))
    chunks += _outlines(path, found, inside, lines, spans)
    symbols = [Symbol(item.name, item.kind, item.name_row, item.end, item.scope) for item in found]
    return Parsed(language, chunks, symbols)


def _chunk(path: str, first: int, end: int, text: str, scope: str, kind: ChunkKind) -> Chunk:
    whole = _embedded(path, scope, text).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(whole, digest_size=16).digest()
    return Chunk(first, end, text, scope, kind, digest)


def _outlines(
    path: str,
    found: Sequence[Definition],
    inside: Mapping[int, Sequence[Definition]],
    lines: Sequence[str],
    spans: Sequence[tuple[int, int]],
) -> list[Chunk]:
    """Return an outline of each class that is not in one chunk."""
    ends = [end for _, end in spans]
    chunks = []
    for item in found:
        if item.kind not in CONTAINERS or item.place not in inside:
            continue
        holder = bisect_right(ends, item.first)
        if holder >= len(ends) or item.end <= ends[holder]:
            continue
        members = [
            (member.first, structure.signature_end(member, lines), member.end)
            for member in inside[item.place]
            if member.kind in CONTAINERS or member.kind in {"function", "method"}
        ]
        text = outline(lines, item.first, item.end, members)
        chunks.append(_chunk(path, item.first, item.end, text, item.path, "outline"))
    return chunks
