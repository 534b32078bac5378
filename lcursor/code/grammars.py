"""Parse source code with tree-sitter, and find definitions with a query.

The only importer of tree_sitter and of the grammar wheels; each grammar is loaded on first use.
`queries/LANGUAGE.scm` has the query of each language, like tree-sitter's `tags.scm`: `@name`
captures the name of a definition, `@definition.KIND` all of it, `@_scope` the owner of a definition
outside of it (the receiver type of a Go method); other captures with a leading `_` only serve a
predicate. If several patterns match one name, the first in the file wins. `; inherits: NAME` in the
first line prepends the patterns of another file.

Each language has its own wheel: 27 for the stable ABI, 7 MB together. The bundle
`tree-sitter-language-pack` has 170 languages in 20 MB (0.13.0), and later versions download at run
time. Without a compatible wheel, callers fall back to line-based definitions. Any thread: each
thread has its own parsers.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Language, Parser, Query
    from tree_sitter import Node as Node
    from tree_sitter import Tree as Tree

QUERIES: Final = Path(__file__).parent / "queries"
LANGUAGES: Final = frozenset(path.stem for path in QUERIES.glob("*.scm")) - {"ecma"}
"""Languages with a grammar; `ecma.scm` is shared by JavaScript and TypeScript."""

MODULES: Final = {
    "csharp": ("tree_sitter_c_sharp", "language"),
    "ocaml": ("tree_sitter_ocaml", "language_ocaml"),
    "ocaml_interface": ("tree_sitter_ocaml", "language_ocaml_interface"),
    "php": ("tree_sitter_php", "language_php"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
}
"""Language -> module and function, if not `tree_sitter_<language>.language`."""

MAX_QUERY_DEPTH: Final = {"json": 0, "yaml": 1, "toml": 2}
"""Maximum depth at which a pattern may start: deeper, data files have too many nodes."""
INHERITS: Final = "; inherits: "
DEFINITION: Final = "definition."

MAX_DEFINITIONS: Final = 20_000
"""A file with more is treated as data."""
MAX_PARSE_S: Final = 4.0
"""CPU time for one file: a megabyte takes a third of a second, the worst case minutes."""
MAX_TOKENS: Final = 3000
"""Maximum of anonymous children (brackets, stars) of one node; no real program has more."""
MAX_NAME_CHARS: Final = 120
SLICE_BYTES: Final = 1 << 14
"""Bytes parsed or searched in one call, which holds the interpreter lock."""

SMALL_BYTES: Final = 1 << 12
"""A text up to this size is parsed in one call, in less than a millisecond."""

_here = threading.local()


@cache
def _grammar(language: str) -> Language | None:
    if language not in LANGUAGES:
        return None
    module, function = MODULES.get(language, (f"tree_sitter_{language}", "language"))
    try:
        from tree_sitter import Language

        return Language(getattr(importlib.import_module(module), function)())
    except (ImportError, AttributeError, ValueError):  # ValueError: an incompatible ABI
        return None


@cache
def _query(language: str) -> Query | None:
    grammar = _grammar(language)
    if grammar is None:
        return None
    from tree_sitter import Query

    query: Query = Query(grammar, _source(language))
    return query


def _source(language: str) -> str:
    """Return a language's query, after the query that it inherits."""
    text = (QUERIES / f"{language}.scm").read_text("utf-8")
    first = text.partition("\n")[0]
    if first.startswith(INHERITS):
        return f"{_source(first.removeprefix(INHERITS))}\n{text}"
    return text


def parser(language: str) -> Parser | None:
    """Return this thread's parser of a language; None without a grammar."""
    parsers: dict[str, Parser] | None = getattr(_here, "parsers", None)
    if parsers is None:
        parsers = _here.parsers = {}
    if language not in parsers:
        grammar = _grammar(language)
        if grammar is None:
            return None
        from tree_sitter import Parser

        parsers[language] = Parser(grammar)
    return parsers[language]


class DefinitionNode(NamedTuple):
    """A definition in a tree."""

    node: Node
    name: str
    name_row: int
    kind: str
    owner: str
    """Name of the type that it belongs to without being inside of it, as for a Go method."""


def parse(language: str, data: bytes) -> Node | None:
    """Return the root of a text's syntax tree; None without a grammar, or after a timeout.

    Cost: about 3 MB/s; other threads can run meanwhile.
    """
    tree = parse_tree(language, data)
    return tree.root_node if tree is not None else None


def parse_tree(language: str, data: bytes, old: Tree | None = None) -> Tree | None:
    """Return a text's syntax tree; None without a grammar, or after a timeout.

    Args:
        old: the tree of an earlier version, edited to have the positions of this one; what did not
            change is taken from it, which is some 20 times faster in a long file.
    """
    own_parser = parser(language)
    if own_parser is None:
        return None
    options: dict[str, Any] = {} if old is None else {"old_tree": old}
    stop_s = time.thread_time() + MAX_PARSE_S
    if len(data) <= SMALL_BYTES:
        return own_parser.parse(data, **options)
    try:
        return own_parser.parse(
            lambda at, _point: data[at : at + SLICE_BYTES],
            progress_callback=lambda _at, _has_error: time.thread_time() > stop_s,
            **options,
        )
    except ValueError:  # stopped by the timeout
        own_parser.reset()
        return None


def definitions(
    language: str, root: Node, data: bytes, within: tuple[int, int] | None = None
) -> list[DefinitionNode]:
    """Return the definitions in a tree, in source order, outer before inner.

    Args:
        within: byte range that a definition must overlap; None for all.
    """
    query = _query(language)
    if query is None or (root.has_error and _is_garbage(root)):
        return []
    best: dict[int, tuple[int, Node, Node, str, Node | None]] = {}
    for pattern, captures in _matches(query, root, MAX_QUERY_DEPTH.get(language, -1), within):
        names = captures.get("name")
        capture = next((key for key in captures if key.startswith(DEFINITION)), "")
        if not names or not capture:
            continue
        at = names[0].start_byte
        if at not in best or pattern < best[at][0]:  # the more specific pattern comes first
            owner = captures.get("_scope")
            node, kind = captures[capture][0], capture.removeprefix(DEFINITION)
            best[at] = (pattern, node, names[0], kind, owner[0] if owner else None)
            if len(best) >= MAX_DEFINITIONS:
                break
    tags = []
    for at, (_, node, name, kind, holder) in best.items():
        owner_name = _name(holder, data).partition("<")[0] if holder is not None else ""
        row = name.start_point[0]
        item = DefinitionNode(node, _name(name, data), row, kind, owner_name)
        tags.append((node.start_byte, -node.end_byte, at, item))
    tags.sort(key=lambda row: row[:3])
    return [item for *_, item in tags]


def _is_garbage(root: Node) -> bool:
    """Return whether a node has thousands of children, nearly all of them anonymous.

    A query searches the next named sibling of each, which takes a minute for 100,000 stars.
    """
    work = [root]
    while work:
        node = work.pop()
        if node.child_count - 4 * node.named_child_count > MAX_TOKENS:
            return True
        work += [child for child in node.children if child.descendant_count > MAX_TOKENS]
    return False


def _name(node: Node, data: bytes) -> str:
    # `node.text` would call the read callback again, slice by slice.
    text = data[node.start_byte : node.end_byte].decode("utf-8", "replace")
    if node.type == "simple_symbol":
        text = text.lstrip(":")
    return " ".join(text.split()).strip("\"'`")[:MAX_NAME_CHARS]


def _matches(
    query: Query, root: Node, max_depth: int, within: tuple[int, int] | None
) -> Iterator[tuple[int, dict[str, list[Node]]]]:
    """Yield matches, slice by slice; a match that spans several slices is repeated."""
    from tree_sitter import QueryCursor

    first, end = within or (0, root.end_byte)
    for start in range(first, end, SLICE_BYTES):
        cursor = QueryCursor(query, match_limit=4096)
        if max_depth >= 0:
            cursor.set_max_start_depth(max_depth)
        cursor.set_byte_range(start, min(start + SLICE_BYTES, end))
        yield from cursor.matches(root)
