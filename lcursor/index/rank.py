"""From several ranked lists to one: scores weighted by what was asked, then the rules.

Pure arithmetic: reads no store and no text but paths. Each number that goes into a score stands in
its parts under its own name, and the parts add up to the score.
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
"""Chunks with what their leg says of them, the best first."""


class Weights(NamedTuple):
    """What a list counts for."""

    lexical: float
    vector: float
    symbol: float
    recent: float


WEIGHTS: dict[Kind, Weights] = {
    "symbol": Weights(lexical=0.7, vector=0.2, symbol=1.0, recent=0.1),
    "word": Weights(lexical=0.6, vector=0.4, symbol=0.8, recent=0.1),
    "mixed": Weights(lexical=0.5, vector=0.6, symbol=0.6, recent=0.05),
    "text": Weights(lexical=0.25, vector=1.0, symbol=0.0, recent=0.05),
}
"""By the kind of the question: names are found by their letters, sentences by their sense."""

AGREEMENT = 0.09
"""What full agreement of comments with a sentence is worth, as a cosine. More makes the words lead
where the sense should."""
CROWDING = 0.25
"""What is taken off for each of nearness to others, as a cosine. A piece that is like many is near
to many questions, and seldom the one that is meant."""
LEAST = 0.4
"""Score of the farthest vector of a list, where the nearest has 1: about what its rank would give,
so that the rules move as much here as there."""

K = 60
"""What is recent counts by its place, one `K`th less from each to the next."""

DEFINITION: dict[Kind, float] = {"symbol": 3.0, "word": 2.0, "mixed": 1.5, "text": 0.0}
"""Times the best score, for the chunk that defines what is asked for."""
LITERAL = 4.0
"""Times the best score, for what has an identifier that nothing defines: it is meant even among
tests, and before any part of it."""
DEFINITION_STEM = 1.5
"""Times that, where the file is called like it."""
STEM: dict[Kind, float] = {"symbol": 0.0, "word": 0.3, "mixed": 0.3, "text": 0.5}
"""Times the best score and the share of the question's words that the path has."""
FILE = 0.05
"""Times the best score, for the best chunk of the file with the most."""
SATURATION = 0.98
"""Times the score, for each chunk of the same file that stands before. Where whole files are the
answer, half is better; here the second chunk of the right file is often the one that is meant."""

TESTS = re.compile(
    r"(?:^|/)(?:tests?|spec|specs|__tests__|testdata|fixtures|idlelib/idle_test|[^/]*_tests?)/"
    r"|(?:^|/)(?:test_[^/]*|[^/]*_test|[^/]*_spec|[^/]*\.(?:test|spec)|conftest)\.\w+$"
)
ASIDE = re.compile(
    r"(?:^|/)(?:compat|_compat|legacy|examples?|samples?|demos?|vendor|vendored|third_party"
    r"|amalgamated|_vendor)/|(?:^|/)(?:_?compat|amalgamation)\.\w+$"
)
FACADE = re.compile(r"(?:^|/)(?:__init__\.py|package-info\.java|mod\.rs|index\.[jt]sx?)$")
DECLARED = re.compile(r"\.d\.[cm]?ts$|\.pyi$")
PENALTIES: tuple[tuple[str, re.Pattern[str], float], ...] = (
    ("tests", TESTS, 0.3),
    ("aside", ASIDE, 0.3),
    ("facade", FACADE, 0.5),
    ("declared", DECLARED, 0.7),
)
"""What is seldom meant: its name in the parts, the paths, what the score is multiplied by."""
LEAST_BEGINNING = 3
"""Letters that two words must have in common to be taken for one."""
PATHS = 20_000
"""That are remembered with what they are taken for."""
ABOUT_TESTS = re.compile(
    r"\b(?:tests?|testing|tested|fixtures?|mocks?|spec|pytest|unittest)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules need to know of a chunk."""

    path: str
    definition: float = 0.0
    """How surely it defines what is asked for, from 0 to 1."""
    name: str = ""
    """The name that it defines."""
    agreement: float = 0.0
    """How far its comments say what the question says, from 0 to 1."""
    crowding: float = 0.0
    """How near others are to it that were found as well, as a cosine."""
    is_literal: bool = False
    """Whether it has the identifier that is asked for, whole, and nothing defines that."""


@dataclass(slots=True)
class Ranked:
    """A chunk with its score and what made it."""

    id: int
    score: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, amount: float) -> None:
        """Add to the score, under a name."""
        if amount:
            self.score += amount
            self.parts[name] = self.parts.get(name, 0.0) + amount


def fuse(
    legs: Mapping[Leg, Scored], kind: Kind, weights: Weights | None = None
) -> dict[int, Ranked]:
    """Add up the weighted scores of each chunk, each list measured by its own best.

    Places would throw away how much better one is than the next: a word that only one chunk has,
    or a definition among uses.
    """
    counted = (weights or WEIGHTS[kind])._asdict()
    found: dict[int, Ranked] = {}
    for leg, scored in legs.items():
        for chunk, share in _measured(leg, scored):
            found.setdefault(chunk, Ranked(chunk)).add(leg, counted[leg] * share)
    return found


def _measured(leg: Leg, scored: Scored) -> list[tuple[int, float]]:
    """Return what each chunk of a list counts, over 0 to 1."""
    if not scored:
        return []
    if leg == "recent":
        return [(chunk, (K + 1) / (K + place)) for place, (chunk, _) in enumerate(scored, start=1)]
    top, floor = scored[0][1], scored[-1][1]
    if leg == "vector":
        unit = (1 - LEAST) / (top - floor) if top > floor else 0.0
        return [(chunk, 1 - unit * (top - score)) for chunk, score in scored]
    return [(chunk, score / top if top > 0 else 1.0) for chunk, score in scored]


def by_sense(legs: Mapping[Leg, Scored], facts: Mapping[int, Facts]) -> dict[int, Ranked]:
    """Score the chunks for a sentence: nearness of vectors, confirmed by words and by standing out.

    Ranks would throw away how much nearer one is than the next, and the list of the worse leg makes
    the better one worse: on CoSQA every reciprocal rank fusion of the two does.
    """
    near = dict(legs["vector"])
    top, floor = max(near.values()), min(near.values())
    known = [facts[chunk].crowding for chunk in near if chunk in facts and facts[chunk].crowding]
    usual = sum(known) / len(known) if known else 0.0
    unit = (1 - LEAST) / (top - floor)
    weight = WEIGHTS["text"]
    found: dict[int, Ranked] = {}
    for leg, scored in legs.items():
        for place, (chunk, _) in enumerate(scored, start=1):
            one = found.setdefault(chunk, Ranked(chunk))
            if leg == "recent":
                one.add(leg, weight.recent * (K + 1) / (K + place))
    for chunk, one in found.items():
        # Without a place among the nearest it is at most as near as the last of them.
        one.add("vector" if chunk in near else "lexical", LEAST)
        one.add("vector", unit * (near.get(chunk, floor) - floor))
        if chunk in facts:
            one.add("agreement", unit * AGREEMENT * facts[chunk].agreement)
            if crowd := facts[chunk].crowding:
                one.add("crowd", unit * CROWDING * (usual - crowd))
    return found


def rank(
    query: Query,
    legs: Mapping[Leg, Scored],
    facts: Mapping[int, Facts],
    *,
    has_rules: bool = True,
    weights: Weights | None = None,
) -> list[Ranked]:
    """Return the chunks that `facts` knows, the best first.

    Args:
        legs: the ranked lists; `recent` lifts what another one has and brings nothing by itself.
        has_rules: whether the rules have a say, or only the lists.
        weights: instead of those of the question's kind.
    """
    brought = {chunk for leg, scored in legs.items() if leg != "recent" for chunk, _ in scored}
    near = legs.get("vector", ())
    is_told_apart = bool(near) and near[0][1] > near[-1][1]
    if query.kind == "text" and weights is None and is_told_apart and legs.get("lexical"):
        fused = by_sense(legs, facts)
    else:
        fused = fuse(legs, query.kind, weights)
    found = [fused[chunk] for chunk in fused if chunk in facts and chunk in brought]
    if found and has_rules:
        _lift(query, found, facts)
        _cohere(found, facts)
        _penalize(query, found, facts)
        return _saturated(found, facts)
    return sorted(found, key=_order)


def _order(one: Ranked) -> tuple[float, int]:
    return -one.score, one.id


def _lift(query: Query, found: Sequence[Ranked], facts: Mapping[int, Facts]) -> None:
    """Lift definitions of what is asked for, and files that are called like it."""
    best = max(one.score for one in found)
    by_name = STEM[query.kind] * best
    wanted = {stem(word) for word in keywords(query.text)} if by_name else set()
    shares = {path: share(wanted, path) for path in {facts[one.id].path for one in found}}
    for one in found:
        about = facts[one.id]
        if about.definition:
            amount = DEFINITION[query.kind] * best * about.definition
            one.add("definition", amount)
            if about.name and same_stem(about.path, about.name):
                one.add("named file", amount * (DEFINITION_STEM - 1))
        if about.is_literal:
            one.add("literal", LITERAL * best)
        one.add("path", by_name * shares[about.path])


def _cohere(found: Sequence[Ranked], facts: Mapping[int, Facts]) -> None:
    """Lift the best chunk of a file by what the whole file has found."""
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
    """Lower what is seldom meant, unless the question is about it."""
    is_about_tests = bool(ABOUT_TESTS.search(query.text))
    asked = {name for path in query.filters.paths for name, _ in penalties(f"{path}/")}
    for one in found:
        for name, factor in penalties(facts[one.id].path):
            if name not in asked and not (name == "tests" and is_about_tests):
                one.add(name, one.score * (factor - 1))


@functools.lru_cache(maxsize=PATHS)
def penalties(path: str) -> tuple[tuple[str, float], ...]:
    """Return the names of the penalties of a path, and their factors."""
    return tuple((name, factor) for name, pattern, factor in PENALTIES if pattern.search(path))


def _saturated(found: Iterable[Ranked], facts: Mapping[int, Facts]) -> list[Ranked]:
    """Lower each further chunk of a file, so that one file is not the whole answer."""
    seen: dict[str, int] = {}
    for one in sorted(found, key=_order):
        path = facts[one.id].path
        before = seen.get(path, 0)
        seen[path] = before + 1
        one.add("same file", one.score * (SATURATION**before - 1))
    return sorted(found, key=_order)


def same_stem(path: str, name: str) -> bool:
    """Tell whether a file is called like a definition: `http_client.py` like `HTTPClient`."""
    return _stem_of(path).replace("_", "").replace("-", "").lower() == name.replace("_", "").lower()


def share(wanted: Collection[str], path: str) -> float:
    """Return the share of the words that the file's name or its folder's has, 0 to 1.

    A word is there too where it begins one that is there, or is begun by one.
    """
    if not wanted:
        return 0.0
    having, begun = _words_of(path)
    hits = sum(
        word in having or word in begun or not having.isdisjoint(_beginnings(word))
        for word in wanted
    )
    return hits / len(wanted)


@functools.lru_cache(maxsize=PATHS)
def _words_of(path: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of a path, and how they begin."""
    folder = path.rpartition("/")[0].rpartition("/")[2]
    found = {stem(part) for text in (_stem_of(path), folder) for part in parts(text)}
    return frozenset(found), frozenset(start for word in found for start in _beginnings(word))


@functools.lru_cache(maxsize=PATHS)
def _beginnings(word: str) -> frozenset[str]:
    return frozenset(word[:end] for end in range(LEAST_BEGINNING, len(word) + 1))


def _stem_of(path: str) -> str:
    return path.rpartition("/")[2].split(".", 1)[0]
