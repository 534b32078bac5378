"""The words of code and of questions: what the full-text index stores and what it is asked.

An identifier is itself and the stems of its parts; a question is split the same way, so that
`opening files` finds `openFile`. Pure functions of text, safe for any input, from any thread.
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
"""Scripts that put no blanks between words."""
ESCAPE = re.compile(r"[\ud800-\udfff]")

DEFINED = re.compile(
    r"\b(?:def|class|function|fn|func|fun|struct|enum|trait|interface|module|type|impl|macro|sub)"
    r"[ \t]+([A-Za-z_][\w.:]*)"
)
"""What definitions look like in most languages, near enough to count their names twice."""
_NAMES = (
    r"(?:python|lua|javascript|typescript|java|golang|rust|ruby|php|perl|bash|swift|kotlin|scala"
    r"|haskell|c\+\+|c#)[ ]?[23]?"
)
LANGUAGE = re.compile(rf"\b(?:in|using|with) {_NAMES}(?!\S)|^{_NAMES} |(?<=\S) {_NAMES}$", re.I)
"""`… in python`: true of all that is found in a project, or of nothing."""

LONGEST_RUN = 80
"""Characters; what is longer is data."""
MOST_TERMS = 64
"""Of a question: a pasted file must not become a query of ten thousand words."""
WHOLE, MOST_WHOLE = 3, 6
"""So many times a whole identifier counts, and of so many: a piece of code has only those."""
PATH_PARTS = 3
KNOWN_WORDS = 200_000
KNOWN_STEMS = 50_000

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
"""Words that say nothing of what is looked for."""
DULL = frozenset(
    RUN.findall(
        """
        code codes python function functions method methods class classes def self return implement
        implemented implements implementation handle handles handled find show get gets set using
        use used uses way file files import
        """
    )
)
"""Words that say little: they do not count as a name of what is looked for."""

QUALIFIED = re.compile(r"[^\W\d]\w*(?:(?:::|\.|->|#|\\)[^\W\d]\w*)+")
NAME = re.compile(r"[^\W\d]\w*")
VOWEL = re.compile("[aeiouy]")
DOTS = re.compile(r"::|\.|->|#|\\")

_forms: dict[str, str] = {}
"""What each run became: code has few words, many times."""


def index_text(path: str, chunk: Chunk) -> str:
    """Return the terms that the full-text index stores for a chunk.

    Cost: about 1 ms for 10,000 words; each word is split once a process.
    """
    folders = path.split("/")
    stem = folders.pop().split(".", 1)[0] or path
    named = " ".join(DEFINED.findall(chunk.text))  # what a chunk defines counts twice
    head = f"{' '.join(folders[-PATH_PARTS:])} {stem} {stem} {chunk.scope} {named}"
    return " ".join(_terms(head + "\n" + chunk.text))


def terms(query: str) -> list[str]:
    """Return the terms of a question, without those that say nothing.

    A question of such words alone keeps them. Each is there once, but for the few identifiers of a
    question: whole, they count `WHOLE` times, since their parts are found in much that is not
    meant.
    """
    plain = _without_language(_plain(query))
    runs = [run for run in RUN.findall(plain) if len(run) <= LONGEST_RUN]
    telling = [run for run in runs if run.lower() not in STOP]
    found: dict[str, int] = {}
    for run in telling or runs:
        first, *others = split(run)
        is_whole = bool(whole(run))
        found[first] = WHOLE if is_whole else found.get(first, 1)
        for part in _telling(others) if is_whole else others:
            found.setdefault(part, 1)
    few = list(found.items())[:MOST_TERMS]
    if sum(times > 1 for _, times in few) > MOST_WHOLE:
        return [term for term, _ in few]
    return [term for term, times in few for _ in range(times)]


def whole(name: str) -> str:
    """Return the term that only a whole identifier has; "" where it is a plain word."""
    first, *others = split(name)
    return first if others and not WIDE.search(name) else ""


def keywords(query: str) -> list[str]:
    """Return the plain words of a question that may name a file or a definition."""
    found: dict[str, None] = {}
    for run in RUN.findall(_without_language(_plain(query))):
        for part in parts(run) or [run.lower()]:
            if len(part) > 2 and part not in STOP and part not in DULL:
                found[part] = None
    return list(found)


def names(query: str) -> list[str]:
    """Return what looks like a name of code in a question: `parse_url`, `HTTPServer`, `os.walk`."""
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
    """Tell whether a question is the name of a definition, and nothing else."""
    bare = bare_name(query)
    if QUALIFIED.fullmatch(bare):
        return True
    return bool(NAME.fullmatch(bare)) and (bare != bare.lower() or "_" in bare or bare != query)


def bare_name(query: str) -> str:
    """Return a question without what people put around a name: `@name`, `name()`, `` `name` ``."""
    return re.sub(r"\(.*\)$", "", query.strip().strip("`'\"@ ")).strip("`'\" ")


def last_name(name: str) -> str:
    """Return the last part of a qualified name."""
    return DOTS.split(name)[-1]


def scope_names(name: str) -> list[str]:
    """Return the parts of a qualified name before its last, outermost first."""
    return DOTS.split(name)[:-1]


def parts(run: str) -> list[str]:
    """Return the words that an identifier is made of, in lower case and without accents."""
    if not run.isascii():
        apart = unicodedata.normalize("NFKD", run)
        run = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return [part.lower() for part in PART.findall(run)]


def split(run: str) -> list[str]:
    """Return an identifier of several parts, and the stems of its parts, in lower case."""
    return _form(run).split(" ")


@functools.lru_cache(maxsize=KNOWN_STEMS)
def stem(word: str) -> str:
    """Return a word without its ending, so that its forms are alike; short words stay."""
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
    """Tell whether what is left without an ending can be a word: not of `string`, `author`."""
    if not VOWEL.search(base):
        return False
    if ending not in AGENTS:
        return len(base) >= 3
    if ending.startswith("o"):
        return len(base) >= 4 and base[-1] in "st"
    return len(base) >= (5 if _is_double(base) and base[-1] in "ft" else 4)


def _is_double(base: str) -> bool:
    """Tell whether a word ends in a consonant that was doubled for its ending: `runn`."""
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
"""The longest first; what an ending is replaced by keeps the forms of a word together."""


def _is_coded(word: str) -> bool:
    """Tell whether a word is written as only code writes it."""
    if "_" in word.strip("_") or word.startswith("_"):
        return True
    return not word.isupper() and word[1:] != word[1:].lower()


def _is_prose(bare: str) -> bool:
    return bare.lower() in {"e.g", "i.e", "a.k.a"} or bare.rsplit(".", 1)[1] in {"py", "js", "md"}


def _without_language(query: str) -> str:
    """Return a sentence without the name of a language that it only mentions."""
    less = LANGUAGE.sub(" ", query)
    return less if len(less.split()) > 1 else query


def _plain(text: str) -> str:
    return text if text.isascii() else ESCAPE.sub(" ", text)


def _terms(text: str) -> Iterable[str]:
    if len(_forms) > KNOWN_WORDS:
        _forms.clear()
    known = _forms
    for run in RUN.findall(_plain(text)):
        form = known.get(run)
        if form is None:
            if len(run) > LONGEST_RUN:
                continue
            form = _form(run)
        if form:
            yield form


def _telling(others: Sequence[str]) -> list[str]:
    """Return the parts of an identifier that are worth asking for alone: no `x`, no `256`."""
    return [part for part in others if len(part) > 1 and not part.isdigit()]


def _form(run: str) -> str:
    """Return the terms of one run of letters, with blanks between."""
    form = _forms.get(run)
    if form is None:
        pieces = parts(run)
        found = dict.fromkeys([run.lower().strip("_") or run] if len(pieces) != 1 else [])
        for piece in pieces:
            if piece.isdigit() and len(piece) < 2 and len(pieces) > 1:
                continue
            for term in _pairs(piece) if WIDE.fullmatch(piece) else (stem(piece),):
                found[term] = None
        form = _forms[run] = " ".join(found)
    return form


def _pairs(piece: str) -> list[str]:
    """Return each two neighbours of a text without blanks."""
    return [piece[at : at + 2] for at in range(max(len(piece) - 1, 1))]
