"""Split a text into chunks, which are searched and embedded, and find its definitions.

    read("a.py", "def f():\n    pass\n").chunks  # [Chunk(first_row=0, end_row=2, kind="code", ...)]

Every non-empty row is in exactly one chunk of kind `code` or `lines`; classes that do not fit into
one chunk also have an outline. Text that cannot be parsed is split by rows. Pure; any thread.

The first step finds the rows where a chunk may start, each with a level (0 is best), and descends
only into nodes that are too large for one chunk. The second step fills chunks from the top.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from lcursor.code import grammars, languages, structure
from lcursor.code.outline import outline
from lcursor.code.structure import CONTAINERS, SCOPE, Definition
from lcursor.index.records import Chunk, ChunkKind, Parsed, Symbol

if TYPE_CHECKING:
    from lcursor.code.grammars import Node

MAX_CHARS: Final = 1500
"""Maximum non-blank characters of a chunk with several rows."""
GOOD_CHARS: Final = 700
"""From this size on, a chunk ends at the best cut."""
MIN_CHARS: Final = 250
"""From this size on, it may also end at a cut that is better by two levels."""
MAX_DEPTH: Final = 60
"""Deeper nodes are split by rows: a sum of ten thousand terms nests ten thousand times."""

GLUED: Final = frozenset({
    "annotation", "attribute", "attribute_item", "attribute_list", "block_comment", "comment",
    "decorator", "doc_comment", "haddock", "line_comment", "modifiers", "multiline_comment",
    "pragma", "signature",
})  # fmt: skip
"""Nodes that belong to the node directly below them."""

Cut = tuple[int, int]
"""A row where a chunk may start, and its level; lower is better."""

_CPP: Final = re.compile(
    r"^\s*(?:class\s+\w+|namespace\b|template\s*<|using\s+\w+|public:|private:|extern\s+\"C\+\+\")",
    re.MULTILINE,
)
"""Text in headers of C++ but not of C."""


def embedded(path: str, chunk: Chunk) -> str:
    """Return the text to embed for a chunk: `file name > scope`, and its own text.

    Folders are left out, so that a moved file keeps its vectors. For sentences, the whole path is
    not better (MRR .585 instead of .584 on `eval queries`), and no name is worse (.540); the
    lexical index has the words of the folders.
    """
    return _embedded(path, chunk.scope, chunk.text)


def _embedded(path: str, scope: str, text: str) -> str:
    name = path.rpartition("/")[2]
    return f"{name}{SCOPE}{scope}\n{text}" if scope else f"{name}\n{text}"


def read(path: str, text: str) -> Parsed:
    """Return a file's language, chunks and definitions; parses 2 to 3 MB/s.

    Rows end at a line feed, as in Neovim. The file's name is part of each digest.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    language = languages.detect(path, lines[0] if lines else "")
    if language == "c" and path.endswith(".h") and _CPP.search(text):
        language = "cpp"
    if not text.strip():
        return Parsed(language, (), ())
    sums = weigh(lines)
    data = text.encode("utf-8", "replace")
    root = grammars.parse(language, data)
    kind: ChunkKind
    if root is None:
        kind, found = "lines", structure.definitions_in_lines(language, lines)
        cuts = cuts_by_rows(lines, 0, len(lines))
    else:
        kind, found = "code", structure.definitions_in_tree(language, root, data, lines)
        cuts = cuts_by_nodes(root, lines, sums) if sums[-1] > MAX_CHARS else []
    inside = structure.group_by_parent(found)
    spans = fill(cuts, sums)
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
        if item.kind not in CONTAINERS or item.index not in inside:
            continue
        holder = bisect_right(ends, item.first)
        if holder >= len(ends) or item.end <= ends[holder]:
            continue
        members = [
            (member.first, structure.signature_end(member, lines), member.end)
            for member in inside[item.index]
            if member.kind in CONTAINERS or member.kind in {"function", "method"}
        ]
        text = outline(lines, item.first, item.end, members)
        chunks.append(_chunk(path, item.first, item.end, text, item.path, "outline"))
    return chunks


# Where to split


def weigh(lines: Sequence[str]) -> list[int]:
    """Return the number of non-blank characters before each row, and before the end."""
    sizes = [len(line) - line.count(" ") - line.count("\t") for line in lines]
    return list(accumulate(sizes, initial=0))


def cuts_by_rows(lines: Sequence[str], first: int, end: int, base: int = 0) -> list[Cut]:
    """Return each row after the first as a cut; the best are unindented rows after empty ones."""
    cuts = []
    for row in range(first + 1, end):
        line = lines[row]
        if not line or line.isspace():
            continue
        after_gap = not lines[row - 1].strip()
        level = (0 if after_gap else 2) + (1 if line[0] in " \t" else 0)
        cuts.append((row, base + level))
    return cuts


def cuts_by_nodes(root: Node, lines: Sequence[str], sums: Sequence[int]) -> list[Cut]:
    """Return the cuts in a syntax tree, ordered by row.

    Only visits the children of nodes that are larger than one chunk.
    """
    cuts: list[Cut] = []
    work = [(root, 0, len(lines), 0, 0)]
    while work:
        node, first, end, level, depth = work.pop()
        if depth >= MAX_DEPTH:
            cuts += cuts_by_rows(lines, first, end, level)
            continue
        found = _between_children(node, lines, first, end, level)
        if not found and node.child_count == 0:
            cuts += cuts_by_rows(lines, first, end, level)
            continue
        cuts += [(row, rank) for row, rank, _ in found if row > first]
        below = level + 2 if any(row > first for row, _, _ in found) else level
        for at, (row, _, largest) in enumerate(found):
            stop = found[at + 1][0] if at + 1 < len(found) else end
            if sums[stop] - sums[row] > MAX_CHARS and stop - row > 1:
                work.append((largest, row, stop, below, depth + 1))
    cuts.sort()
    return cuts


def _between_children(
    node: Node, lines: Sequence[str], first: int, end: int, level: int
) -> list[tuple[int, int, Node]]:
    """Return the parts of a node: first row, level and largest child."""
    margin = _indent(lines[first])
    parts: list[tuple[int, int, Node]] = []
    row, rank = first, level
    largest, max_rows = node, -1
    last_row, is_glued, is_first = first, False, True
    for child in node.children:
        start, stop = child.start_point, child.end_point
        start_row = start[0]
        end_row = stop[0] if stop[1] or stop[0] == start_row else stop[0] - 1
        if start_row >= end:
            break
        if start_row > last_row and child.is_named:
            text = lines[start_row]
            head = is_first and (_indent(text) > margin or text.lstrip()[:1] in "{[(")
            touches = start_row == last_row + 1
            if not head and not (is_glued and touches and child.type not in GLUED):
                parts.append((row, rank, largest))
                row = start_row
                rank = level + (0 if not lines[start_row - 1].strip() else 1)
                if is_glued and touches:
                    rank += 2
                max_rows = -1
            is_first = False
        if end_row - start_row > max_rows:
            largest, max_rows = child, end_row - start_row
        if end_row >= last_row:
            last_row = end_row
            is_glued = child.type in GLUED
    if largest is node:  # no children at all
        return []
    parts.append((row, rank, largest))
    return parts


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def fill(cuts: Sequence[Cut], sums: Sequence[int]) -> list[tuple[int, int]]:
    """Return the chunks as pairs of first row and end row, which cover all rows.

    Chunks are filled from the top, so that an edit moves no boundary above it. As each ends at its
    best cut and not at the last possible one, few boundaries below it move.
    """
    end = len(sums) - 1
    chunks: list[tuple[int, int]] = []
    rows = [row for row, _ in cuts]
    first = 0
    while first < end:
        if sums[end] - sums[first] <= MAX_CHARS:
            chunks.append((first, end))
            break
        # The last row that fits; blank rows at the limit have no size.
        limit = bisect_right(sums, sums[first] + MAX_CHARS, first) - 1
        low, high = bisect_right(rows, first), bisect_right(rows, limit)
        stop = _best(cuts, low, high, sums, first)
        if stop < 0:  # nothing fits: use the next cut
            stop = rows[high] if high < len(rows) else end
            if stop > first + 1 and sums[stop] - sums[first] > MAX_CHARS:
                stop = max(first + 1, limit)
        chunks.append((first, stop))
        first = stop
    return chunks


def _best(cuts: Sequence[Cut], low: int, high: int, sums: Sequence[int], first: int) -> int:
    """Return the row of the best cut in a range; -1 if there is none."""
    late_row, late_level = -1, 1 << 30
    early_row, early_level = -1, 1 << 30
    for row, level in cuts[low:high]:
        size = sums[row] - sums[first]
        if size >= GOOD_CHARS:
            if level <= late_level:
                late_row, late_level = row, level
        elif size >= MIN_CHARS and level <= early_level:
            early_row, early_level = row, level
    if early_row >= 0 and early_level <= late_level - 2:
        return early_row
    if late_row >= 0:
        return late_row
    # There are only small parts before a large one.
    return max((row for row, _ in cuts[low:high] if sums[row] > sums[first]), default=-1)
