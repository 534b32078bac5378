"""Find tools by words: BM25 over their names, arguments and descriptions. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lcursor.index import words
from lcursor.mcp.client.records import ServerTool
from lcursor.mcp.client.synonyms import PHRASES, SYNONYMS

NAME_WEIGHT: Final = 3.0
SERVER_WEIGHT: Final = 2.0
SUMMARY_WEIGHT: Final = 1.5
ARGUMENT_WEIGHT: Final = 1.0
TEXT_WEIGHT: Final = 0.5
"""Of what follows the first line, and of descriptions of arguments."""
MAX_TEXT: Final = 2000
PREFIX_CHARS: Final = 4
"""A word counts partly for a longer one that it begins: `repo` for `repository`."""
PREFIX_SHARE: Final = 0.6
SYNONYM_SHARE: Final = 0.6
K1: Final = 1.2
B: Final = 0.5


def rank(tools: Sequence[ServerTool], query: str, limit: int) -> list[ServerTool]:
    """Return the tools that fit a query best, without those that do not fit at all."""
    found = scores(tools, query)
    order = sorted(range(len(tools)), key=lambda at: (-found[at], tools[at].key))
    return [tools[at] for at in order[:limit] if found[at] > 0]


def scores(tools: Sequence[ServerTool], query: str) -> list[float]:
    """Return how well each tool fits a query."""
    documents = [_counts(tool) for tool in tools]
    lengths = [sum(each.values()) for each in documents]
    mean = sum(lengths) / max(len(lengths), 1)
    totals = [0.0] * len(tools)
    for term in dict.fromkeys(_terms(query)):
        found = [_count_all(counts, term) for counts in documents]
        having = sum(count > 0 for count in found)
        weight = math.log(1 + (len(tools) - having + 0.5) / (having + 0.5))
        for at, count in enumerate(found):
            size = 1 - B + B * lengths[at] / mean if mean else 1.0
            totals[at] += weight * count * (K1 + 1) / (count + K1 * size)
    return totals


def _counts(tool: ServerTool) -> Counter[str]:
    """Return the weighted number of each term of a tool."""
    counts: Counter[str] = Counter()
    first, _, rest = tool.description.strip()[:MAX_TEXT].partition("\n")
    _add(counts, tool.name, NAME_WEIGHT)
    _add(counts, tool.server, SERVER_WEIGHT)
    _add(counts, first, SUMMARY_WEIGHT)
    _add(counts, rest, TEXT_WEIGHT)
    properties = tool.schema.get("properties")
    for name, schema in properties.items() if isinstance(properties, Mapping) else ():
        _add(counts, name, ARGUMENT_WEIGHT)
        _add(counts, _description(schema), TEXT_WEIGHT)
    return counts


def _add(counts: Counter[str], text: str, weight: float) -> None:
    for term in dict.fromkeys(_terms(text)):
        counts[term] += weight  # type: ignore[assignment] # a weighted count


def _count_all(counts: Mapping[str, float], term: str) -> float:
    """Return the weighted number of a term, or of a word with the same meaning."""
    others = (SYNONYM_SHARE * counts.get(each, 0.0) for each in SYNONYMS.get(term, ()))
    return max(_count(counts, term), max(others, default=0.0))


def _count(counts: Mapping[str, float], term: str) -> float:
    exact = counts.get(term, 0.0)
    if exact or len(term) < PREFIX_CHARS:
        return exact
    return PREFIX_SHARE * max(
        (
            count
            for other, count in counts.items()
            if len(other) >= PREFIX_CHARS and (other.startswith(term) or term.startswith(other))
        ),
        default=0.0,
    )


def _terms(text: str) -> list[str]:
    """Return the stems of the words in a text, without those that say nothing."""
    runs = words.RUN.findall(text.encode("utf-8", "ignore").decode())
    runs = [word for run in runs for word in PHRASES.get(run.lower(), run).split()]
    parts = [part for run in runs for part in words.parts(run)]
    return [words.stem(part) for part in parts if part not in words.STOP]


def _description(schema: Any) -> str:
    text = schema.get("description") if isinstance(schema, Mapping) else ""
    return text[:MAX_TEXT] if isinstance(text, str) else ""
