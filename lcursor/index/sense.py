"""What a piece of code says of itself in words, and how far a question says the same.

Pure functions of text, from any thread. For a question in plain words the nearness of vectors leads
and this confirms it: among near pieces, one whose comment has all the words is more surely meant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from lcursor.index.words import RUN, STOP, parts, stem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PROSE_LANGUAGES = frozenset({"text", "markdown", "html"})
"""All of it is meant for people."""
LANGUAGES = frozenset(
    {"python", "javascript", "typescript", "java", "rust", "golang", "ruby", "php", "lua", "bash"}
)
"""A question says them of the code, the code does not of itself."""
KNOWN_WORDS = 50_000
NEIGHBOURS = 10
MOST_CHARACTERS = 4_000
"""Of a piece, that are looked at."""
_COMMENTS = re.compile(
    r"""["'/<#;%-](?:"""  # one set of letters to begin with is looked for faster than alternatives
    r'''(?<=")""(?P<double>.*?)(?:"""|\Z)'''
    r"""|(?<=')''(?P<single>.*?)(?:'''|\Z)"""
    r"|(?<=/)\*+(?P<block>.*?)(?:\*/|\Z)"
    r"|(?<=-)-\[\[(?P<lua>.*?)(?:\]\]|\Z)"
    r"|(?<=<)!--(?P<markup>.*?)(?:-->|\Z)"
    r"|(?<!\S[#/;%-])(?:(?<=#)#*|(?<=/)//?!?|(?<=-)-+|(?<=;);*|(?<=%)%*)\s(?P<line>[^\n]*))",
    re.S,
)


def prose(text: str, language: str = "") -> str:
    """Return the comments and docstrings of a piece of code, or all of a text."""
    text = text[:MOST_CHARACTERS]
    if language in PROSE_LANGUAGES:
        return text
    return "\n".join(match[match.lastgroup or 0] for match in _COMMENTS.finditer(text))


def forms(question: str) -> list[str]:
    """Return each telling word of a question as it is, and its stem where that is another.

    So a comment that has the very word agrees more than one that has its stem.
    """
    runs = [run.lower() for run in RUN.findall(question)]
    telling = [run for run in runs if run not in STOP and run not in LANGUAGES]
    found = dict.fromkeys(form for run in telling for form in (run, stem(run)))
    return list(found)


def agreement(question: Sequence[str], said: str) -> float:
    """Return the share of a question's forms that a text has, squared: having all is what tells.

    Args:
        question: its `forms`.
        said: what `prose` gave.
    """
    if not question or not said:
        return 0.0
    heads = {form[:2] for form in question}
    having = {
        form
        for run in set(RUN.findall(said))
        # A plain word and its stem begin alike: most need not be looked at.
        if run[:2].lower() in heads or not _is_plain(run)
        for form in _forms(run)
    }
    share = sum(form in having for form in question) / len(question)
    return share * share


def crowding(vectors: NDArray[np.float32], nearest: int = NEIGHBOURS) -> NDArray[np.float32]:
    """Return how near each vector is to its nearest others, on average.

    Args:
        vectors: rows of length one.
        nearest: how many others.

    Source: the correction of "hubs" in cross-domain similarity local scaling (Conneau and others,
    2018), with the vectors that were found in the place of all.
    """
    import numpy as np

    count = min(nearest, len(vectors) - 1)
    if count < 1:
        return np.zeros(len(vectors), np.float32)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -2.0)
    best = np.partition(cosines, -count, axis=1)[:, -count:]
    mean: NDArray[np.float32] = best.mean(axis=1, dtype=np.float32)
    return mean


def _is_plain(run: str) -> bool:
    return run.isascii() and run.isalpha() and (run[1:].islower() or len(run) == 1)


@lru_cache(KNOWN_WORDS)
def _forms(run: str) -> tuple[str, ...]:
    words = (run.lower(), *parts(run))
    return tuple({*words, *map(stem, words)})
