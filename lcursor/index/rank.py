"""Rank chunks: fuse the lists of a search by the kind of the query, then apply rules.

Pure arithmetic on scores and paths. A score is the sum of its named `parts`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from lcursor.index.query import Kind, Query
from lcursor.index.words import keywords, parts, stem

Leg = Literal["lexical", "vector", "symbol", "recent"]
Scored = Sequence[tuple[int, float]]
"""Chunks and their scores in one list, best first."""


class Weights(NamedTuple):
    """The weights of the lists."""

    lexical: float
    vector: float
    symbol: float
    recent: float


WEIGHTS: dict[Kind, Weights] = {
    "symbol": Weights(lexical=0.7, vector=0.2, symbol=1.0, recent=0.1),
    "word": Weights(lexical=0.6, vector=0.4, symbol=0.8, recent=0.1),
    "mixed": Weights(lexical=0.5, vector=0.6, symbol=0.6, recent=0.05),
    "text": Weights(lexical=0.2, vector=1.0, symbol=0.0, recent=0.05),
}
"""Weights by the kind of the query: words find names best, vectors find sentences best."""

COSINE_SPAN = 0.3
"""Distance from the best cosine of a list at which a vector counts nothing.

The median distance of the 100th vector in CoSQA; a share of the list's own range would lower the
second of two similar chunks to 0.
"""

K = 60
"""Constant of the reciprocal rank of recent files."""

DEFINITION: dict[Kind, float] = {"symbol": 3.0, "word": 2.0, "mixed": 1.5, "text": 0.0}
"""Bonus for the definition of the requested name, as a multiple of the best score."""
LITERAL = 4.0
"""Bonus for a chunk with an undefined identifier of the query, even in tests."""
DEFINITION_FILE = 1.5
"""Factor of the bonus for a definition whose file has the same name."""
PATH: dict[Kind, float] = {"symbol": 0.0, "word": 0.3, "mixed": 0.3, "text": 0.5}
"""Bonus for a path with all words of the query, as a multiple of the best score."""
FILE = 0.05
"""Bonus for the best chunk of the file with the highest sum, as a multiple of the best score."""

TESTS = re.compile(
    r"(?:^|/)(?:tests?|spec|specs|__tests__|testdata|fixtures|idlelib/idle_test|[^/]*_tests?)/"
    r"|(?:^|/)(?:test_[^/]*|[^/]*_test|[^/]*_spec|[^/]*\.(?:test|spec)|conftest)\.\w+$"
)
ASIDE = re.compile(
    r"(?:^|/)(?:compat|_compat|legacy|examples?|samples?|demos?|vendor|vendored|third_party"
    r"|amalgamated|_vendor)/|(?:^|/)(?:_?compat|amalgamation)\.\w+$"
)
FACADE = re.compile(r"(?:^|/)(?:__init__\.py|package-info\.java|mod\.rs|index\.[jt]sx?)$")
PROSE = re.compile(
    r"(?<!CMakeLists)\.(?:md|mdx|markdown|rst|adoc|txt|org)$|(?:^|/)(?:CHANGELOG|CONTRIBUTING|LICENSE|README)$"
)
DECLARED = re.compile(r"\.d\.[cm]?ts$|\.pyi$")
TEST_FACTOR = 0.3
PENALTIES: tuple[tuple[str, re.Pattern[str], float], ...] = (
    ("tests", TESTS, TEST_FACTOR),
    ("aside", ASIDE, 0.3),
    ("facade", FACADE, 0.5),
    ("declared", DECLARED, 0.7),
    ("prose", PROSE, 0.6),
)
"""Paths that are rarely wanted: name in the parts, pattern, factor of the score."""
TEST_SCOPE = re.compile(r"(?:\w+_)?tests?(?= > |$)")
"""Scopes of tests inside of a file with code, like `mod tests` in Rust."""
BARE = 0.7
"""Factor of a chunk without a definition: imports, licences, documentation of a module."""
MIN_PREFIX = 3
"""Minimum common prefix of two words that count as equal."""
CACHED_PATHS = 20_000
ABOUT: Mapping[str, re.Pattern[str]] = {
    "tests": re.compile(
        r"\b(?:tests?|testing|tested|fixtures?|mocks?|spec|pytest|unittest)\b", re.I
    ),
    "prose": re.compile(
        r"\b(?:docs?|documentation|documented|readme|changelog|release notes|guide|tutorial"
        r"|licen[cs]e|contribut\w+)\b",
        re.I,
    ),
}
"""Words of a query that asks for such paths; they are not lowered then."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about a chunk that the rules use."""

    path: str
    definition: float = 0.0
    """How likely it defines the requested name, 0 to 1."""
    name: str = ""
    """The name that it defines."""
    is_literal: bool = False
    """Whether it contains the requested identifier, which has no definition."""
    scope: str = ""
    is_bare: bool = False
    """Whether it is code in which no definition begins, and in no definition itself."""


@dataclass(slots=True)
class Ranked:
    """A chunk with its score and the parts of the score."""

    id: int
    score: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, amount: float) -> None:
        """Add a named amount to the score."""
        if amount:
            self.score += amount
            self.parts[name] = self.parts.get(name, 0.0) + amount


def fuse(legs: Mapping[Leg, Scored], kind: Kind) -> dict[int, Ranked]:
    """Add up the weighted scores of each chunk, each list scaled to 1.

    Ranks instead of scores would lose the differences between chunks.
    """
    weights = WEIGHTS[kind]._asdict()
    found: dict[int, Ranked] = {}
    for leg, scored in legs.items():
        for chunk, share in _shares(leg, scored):
            found.setdefault(chunk, Ranked(chunk)).add(leg, weights[leg] * share)
    return found


def _shares(leg: Leg, scored: Scored) -> list[tuple[int, float]]:
    """Return the score of each chunk of a list as a share, 1 for the best."""
    if not scored:
        return []
    if leg == "recent":
        return [
            (chunk, (K + 1) / (K + number)) for number, (chunk, _) in enumerate(scored, start=1)
        ]
    top = scored[0][1]
    if leg == "vector":
        return [(chunk, max(0.0, 1 - (top - score) / COSINE_SPAN)) for chunk, score in scored]
    return [(chunk, score / top if top > 0 else 1.0) for chunk, score in scored]


def rank(
    query: Query, legs: Mapping[Leg, Scored], facts: Mapping[int, Facts], *, has_rules: bool = True
) -> list[Ranked]:
    """Return the chunks that are in `facts`, best first.

    Args:
        legs: the lists; `recent` only raises chunks of the others.
    """
    candidates = {chunk for leg, scored in legs.items() if leg != "recent" for chunk, _ in scored}
    fused = fuse(legs, query.kind)
    found = [fused[chunk] for chunk in fused if chunk in facts and chunk in candidates]
    if found and has_rules:
        _lift(query, found, facts)
        _cohere(found, facts)
        _penalize(query, found, facts)
    return sorted(found, key=_order)


def _order(one: Ranked) -> tuple[float, int]:
    return -one.score, one.id


def _lift(query: Query, found: Sequence[Ranked], facts: Mapping[int, Facts]) -> None:
    best = max(one.score for one in found)
    by_name = PATH[query.kind] * best
    wanted = {stem(word) for word in keywords(query.text)} if by_name else set()
    shares = {path: share(wanted, path) for path in {facts[one.id].path for one in found}}
    for one in found:
        about = facts[one.id]
        if about.definition:
            amount = DEFINITION[query.kind] * best * about.definition
            one.add("definition", amount)
            if about.name and has_same_name(about.path, about.name):
                one.add("named file", amount * (DEFINITION_FILE - 1))
        if about.is_literal:
            one.add("literal", LITERAL * best)
        one.add("path", by_name * shares[about.path])


def _cohere(found: Sequence[Ranked], facts: Mapping[int, Facts]) -> None:
    """Add a bonus to the best chunk of each file, by the sum of the file's scores."""
    best = max(one.score for one in found)
    sums: dict[str, float] = {}
    first: dict[str, Ranked] = {}
    for one in sorted(found, key=_order):
        path = facts[one.id].path
        sums[path] = sums.get(path, 0.0) + one.score
        first.setdefault(path, one)
    most = max(sums.values())
    for path, one in first.items():
        if most > 0:
            one.add("file", FILE * best * sums[path] / most)


def _penalize(query: Query, found: Iterable[Ranked], facts: Mapping[int, Facts]) -> None:
    """Lower chunks that are rarely wanted, unless the query names them."""
    named = {name for path in query.filters.paths for name, _ in penalties(f"{path}/")}
    named |= {name for name, pattern in ABOUT.items() if pattern.search(query.text)}
    for one in found:
        about = facts[one.id]
        factors = dict(penalties(about.path))
        if TEST_SCOPE.match(about.scope):
            factors.setdefault("tests", TEST_FACTOR)
        if about.is_bare and "prose" not in factors:
            factors["bare"] = BARE
        for name, factor in factors.items():
            if name not in named:
                one.add(name, one.score * (factor - 1))


@functools.lru_cache(maxsize=CACHED_PATHS)
def penalties(path: str) -> tuple[tuple[str, float], ...]:
    """Return the names of the penalties of a path, and their factors."""
    return tuple((name, factor) for name, pattern, factor in PENALTIES if pattern.search(path))


def has_same_name(path: str, name: str) -> bool:
    """Return whether a file has the name of a definition: `http_client.py` and `HTTPClient`."""
    return _stem_of(path).replace("_", "").replace("-", "").lower() == name.replace("_", "").lower()


def share(wanted: Collection[str], path: str) -> float:
    """Return the share of some words in the names of a file and its folder, 0 to 1.

    Two words count as equal if one is a prefix of the other.
    """
    if not wanted:
        return 0.0
    found, prefixes = _words_of(path)
    hits = sum(
        word in found or word in prefixes or not found.isdisjoint(_prefixes(word))
        for word in wanted
    )
    return hits / len(wanted)


@functools.lru_cache(maxsize=CACHED_PATHS)
def _words_of(path: str) -> tuple[frozenset[str], frozenset[str]]:
    folder = path.rpartition("/")[0].rpartition("/")[2]
    found = {stem(part) for text in (_stem_of(path), folder) for part in parts(text)}
    return frozenset(found), frozenset(start for word in found for start in _prefixes(word))


@functools.lru_cache(maxsize=CACHED_PATHS)
def _prefixes(word: str) -> frozenset[str]:
    return frozenset(word[:end] for end in range(MIN_PREFIX, len(word) + 1))


def _stem_of(path: str) -> str:
    return path.rpartition("/")[2].split(".", 1)[0]
