"""What a definition looks like in each language: one query of tree-sitter for each.

Data, of which the queries stand in patterns_*.py. In a query, the capture `@name` is the
definition's name and the other one its kind; `@_scope` is what it belongs to where it does not
stand in it, and other captures with `_` only serve a condition. Of two patterns that match one
name, the one that stands first counts. Checked by a sample of each language in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lcursor.index import patterns_compiled, patterns_data, patterns_scripting


@dataclass(frozen=True, slots=True)
class Definitions:
    """How the definitions of a language are found."""

    query: str
    most_depth: int = -1
    """Deepest level at which a pattern may begin; -1: any. Data has too much below."""
    has_clauses: bool = False
    """One function is written as several, one below the other."""


CLASSES: Final = frozenset(
    {
        "class",
        "enum",
        "extension",
        "impl",
        "interface",
        "object",
        "protocol",
        "struct",
        "trait",
        "union",
    }
)
"""Kinds whose functions are methods."""

CONTAINERS: Final = CLASSES | {"module"}
"""Kinds that get an outline where they are cut into several chunks."""

_QUERIES: Final = {
    **patterns_compiled.QUERIES,
    **patterns_scripting.QUERIES,
    **patterns_data.QUERIES,
}
_MOST_DEPTH: Final = {"json": 0, "yaml": 1, "toml": 2}
_HAVE_CLAUSES: Final = frozenset({"elixir", "haskell"})

DEFINITIONS: Final[dict[str, Definitions]] = {
    language: Definitions(query, _MOST_DEPTH.get(language, -1), language in _HAVE_CLAUSES)
    for language, query in _QUERIES.items()
}
