"""Split code and queries into terms for lexical search.

    terms("opening files")  # ["open", "fil"], which are also terms of `openFile`

The terms of an identifier are itself and the stems of its parts. Pure functions for any text; any
thread.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence

from lcursor.index.records import Chunk

RUN = re.compile(r"\w+")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""Scripts without spaces between words."""
ESCAPE = re.compile(r"[\ud800-\udfff]")

DEFINED = re.compile(
    r"\b(?:def|class|function|fn|func|fun|struct|enum|trait|interface|module|type|impl|macro|sub)"
    r"[ \t]+([A-Za-z_][\w.:]*)"
)
"""Definitions in most languages, approximately; their names count twice."""
_NAMES = (
    r"(?:python|lua|javascript|typescript|java|golang|rust|ruby|php|perl|bash|swift|kotlin|scala"
    r"|haskell|c\+\+|c#)[ ]?[23]?"
)
LANGUAGE = re.compile(rf"\b(?:in|using|with) {_NAMES}(?!\S)|^{_NAMES} |(?<=\S) {_NAMES}$", re.I)
"""Language names, as in `open a file in python`, which do not distinguish chunks of a project."""

MAX_WORD_CHARS = 80
"""Longer words are treated as data."""
MAX_TERMS = 64
"""Maximum terms of a query, which may be a pasted file."""
IDENTIFIER_COUNT, MAX_IDENTIFIERS = 3, 6
"""Weight of whole identifiers in a query, and their maximum number, to exclude pasted code."""
PATH_PARTS = 3
CACHED_WORDS = 200_000
CACHED_STEMS = 50_000

STOP = frozenset(
    RUN.findall(
        """
        a about also am an and are as at be been being but can cannot could did do does doing for
        had has have having he her here his how i is its just like me my of on or our please s
        she should so some such t than that the their them then there these they this those to too
        us very was we were what when where which while who whose why will with would you your
        """
    )
)
"""Words without value for a search."""
DULL = frozenset(
    RUN.findall(
        """
        code codes python function functions method methods class classes def self return implement
        implemented implements implementation handle handles handled find show get gets set using
        use used uses way file files import
        """
    )
)
"""Words of little value, which do not count as names of files or definitions."""

QUALIFIED = re.compile(r"[^\W\d]\w*(?:(?:::|\.|->|#|\\)[^\W\d]\w*)+")
NAME = re.compile(r"[^\W\d]\w*")
VOWEL = re.compile("[aeiouy]")
DOTS = re.compile(r"::|\.|->|#|\\")


def index_text(path: str, chunk: Chunk) -> str:
    """Return the terms to store for a chunk, separated by spaces.

    Takes about 1 ms for 10,000 words; each word is split once per process.
    """
    folders = path.split("/")
    stem = folders.pop().split(".", 1)[0] or path
    defined = " ".join(DEFINED.findall(chunk.text))  # so these names count twice
    head = f"{' '.join(folders[-PATH_PARTS:])} {stem} {stem} {chunk.scope} {defined}"
    return " ".join(_terms(head + "\n" + chunk.text))


def terms(query: str) -> list[str]:
    """Return the terms of a query, without stop words unless it has no others.

    Each occurs once, but whole identifiers `IDENTIFIER_COUNT` times, because many chunks contain
    their parts.
    """
    plain = _without_language(_plain(query))
    runs = [run for run in RUN.findall(plain) if len(run) <= MAX_WORD_CHARS]
    meaningful = [run for run in runs if run.lower() not in STOP]
    found: dict[str, int] = {}
    for run in meaningful or runs:
        first, *others = split(run)
        is_whole = bool(whole(run))
        found[first] = IDENTIFIER_COUNT if is_whole else found.get(first, 1)
        for part in _useful(others) if is_whole else others:
            found.setdefault(part, 1)
    few = list(found.items())[:MAX_TERMS]
    if sum(times > 1 for _, times in few) > MAX_IDENTIFIERS:
        return [term for term, _ in few]
    return [term for term, times in few for _ in range(times)]


def whole(name: str) -> str:
    """Return the term for a whole identifier; "" for a plain word."""
    first, *others = split(name)
    return first if others and not WIDE.search(name) else ""


def keywords(query: str) -> list[str]:
    """Return the words of a query that may be in the name of a file or definition."""
    found: dict[str, None] = {}
    for run in RUN.findall(_without_language(_plain(query))):
        for part in parts(run) or [run.lower()]:
            if len(part) > 2 and part not in STOP and part not in DULL:
                found[part] = None
    return list(found)


def names(query: str) -> list[str]:
    """Return the likely identifiers in a query: `parse_url`, `HTTPServer`, `os.walk`."""
    found: dict[str, None] = {}
    for word in _plain(query).split():
        bare = word.strip("`'\"()[]{}<>,;:!?.*&@").split("(", 1)[0]
        if QUALIFIED.fullmatch(bare):
            if "." not in bare or not _is_prose(bare):
                found[bare] = None
        elif NAME.fullmatch(bare) and _is_coded(bare):
            found[bare] = None
    return list(found)


def is_symbol_like(query: str) -> bool:
    """Return whether a query consists only of a name."""
    bare = bare_name(query)
    if QUALIFIED.fullmatch(bare):
        return True
    return bool(NAME.fullmatch(bare)) and (bare != bare.lower() or "_" in bare or bare != query)


def bare_name(query: str) -> str:
    """Return the name in `@name`, `name()` or `` `name` ``."""
    return re.sub(r"\(.*\)$", "", query.strip().strip("`'\"@ ")).strip("`'\" ")


def last_name(name: str) -> str:
    """Return the last part of a qualified name."""
    return DOTS.split(name)[-1]


def scope_names(name: str) -> list[str]:
    """Return the parts of a qualified name before its last one, outermost first."""
    return DOTS.split(name)[:-1]


def parts(run: str) -> list[str]:
    """Return the words in an identifier, in lower case and without accents."""
    if not run.isascii():
        apart = unicodedata.normalize("NFKD", run)
        run = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return [part.lower() for part in PART.findall(run)]


def split(run: str) -> list[str]:
    """Return the terms of a word: the stems of its parts, and itself if it has several."""
    return _form(run).split(" ")


@functools.lru_cache(maxsize=CACHED_STEMS)
def stem(word: str) -> str:
    """Return the stem of a word, so that its forms become equal; short words are unchanged."""
    if len(word) <= 3 or not word.isascii():
        return word
    base = word
    for ending, instead in ENDINGS:
        if not word.endswith(ending):
            continue
        base = word[: -len(ending)] + instead
        if _is_form(base, ending):
            break
        base = word
    if len(base) > 3 and _is_double(base):
        return base[:-1]
    return base[:-1] if len(base) > 3 and base[-1] == "e" else base


def _is_form(base: str, ending: str) -> bool:
    """Return whether a word without its ending is a plausible stem; `str` of `string` is not."""
    if not VOWEL.search(base):
        return False
    if ending not in AGENTS:
        return len(base) >= 3
    if ending.startswith("o"):
        return len(base) >= 4 and base[-1] in "st"
    return len(base) >= (5 if _is_double(base) and base[-1] in "ft" else 4)


def _is_double(base: str) -> bool:
    return base[-1:] == base[-2:-1] and base[-1:] not in "aeiouls"


AGENTS = frozenset({"er", "or", "ers", "ors"})
ENDINGS = (
    ("izations", "iz"), ("ization", "iz"), ("izers", "iz"), ("izer", "iz"), ("ations", "at"),
    ("ation", "at"), ("ities", "ity"), ("ments", ""), ("ment", ""), ("nesses", ""), ("ness", ""),
    ("ions", ""), ("ion", ""), ("ings", ""), ("ing", ""), ("ies", "y"), ("ied", "y"),
    ("ators", "at"), ("ator", "at"), ("ers", ""), ("ors", ""), ("er", ""), ("or", ""),
    ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("es", "e"), ("ed", ""),
    ("ss", "ss"), ("us", "us"), ("is", "is"), ("s", ""),
)  # fmt: skip
"""Endings and their replacements, the longest first."""


def _is_coded(word: str) -> bool:
    if "_" in word.strip("_") or word.startswith("_"):
        return True
    return not word.isupper() and word[1:] != word[1:].lower()


def _is_prose(bare: str) -> bool:
    return bare.lower() in {"e.g", "i.e", "a.k.a"} or bare.rsplit(".", 1)[1] in {"py", "js", "md"}


def _without_language(query: str) -> str:
    less = LANGUAGE.sub(" ", query)
    return less if len(less.split()) > 1 else query


def _plain(text: str) -> str:
    return text if text.isascii() else ESCAPE.sub(" ", text)


def _terms(text: str) -> Iterable[str]:
    for run in RUN.findall(_plain(text)):
        if len(run) <= MAX_WORD_CHARS and (form := _form(run)):
            yield form


def _useful(others: Sequence[str]) -> list[str]:
    """Return the parts of an identifier that are useful for a search, unlike `x` or `256`."""
    return [part for part in others if len(part) > 1 and not part.isdigit()]


@functools.lru_cache(maxsize=CACHED_WORDS)
def _form(run: str) -> str:
    """Return the terms of one word, separated by spaces; cached, because code repeats words."""
    pieces = parts(run)
    found = dict.fromkeys([run.lower().strip("_") or run] if len(pieces) != 1 else [])
    for piece in pieces:
        if piece.isdigit() and len(piece) < 2 and len(pieces) > 1:
            continue
        for term in _pairs(piece) if WIDE.fullmatch(piece) else (stem(piece),):
            found[term] = None
    return " ".join(found)


def _pairs(piece: str) -> list[str]:
    """Return the pairs of adjacent characters in a text without spaces."""
    return [piece[at : at + 2] for at in range(max(len(piece) - 1, 1))]
