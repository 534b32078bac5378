"""Signals for ranking the results of a sentence: agreement of comments, and crowding of vectors.

Among near chunks, one whose comments have all words of the sentence is more likely meant; one that
has many near neighbours is less likely meant. Pure functions; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lcursor.index.words import RUN, STOP, parts, stem

PROSE_LANGUAGES = frozenset({"text", "markdown", "html"})
"""Languages that are prose as a whole."""
LANGUAGES = frozenset(
    {"python", "javascript", "typescript", "java", "rust", "golang", "ruby", "php", "lua", "bash"}
)
"""Names of languages, which sentences have and comments do not."""
CACHED_WORDS = 50_000
NEIGHBOURS = 10
MAX_CHARS = 4_000
"""Characters of a chunk that are searched for comments."""
_COMMENTS = re.compile(
    r"""["'/<#;%-](?:"""  # a set of first letters is faster than alternatives
    r'''(?<=")""(?P<double>.*?)(?:"""|\Z)'''
    r"""|(?<=')''(?P<single>.*?)(?:'''|\Z)"""
    r"|(?<=/)\*+(?P<block>.*?)(?:\*/|\Z)"
    r"|(?<=-)-\[\[(?P<lua>.*?)(?:\]\]|\Z)"
    r"|(?<=<)!--(?P<markup>.*?)(?:-->|\Z)"
    r"|(?<!\S[#/;%-])(?:(?<=#)#*|(?<=/)//?!?|(?<=-)-+|(?<=;);*|(?<=%)%*)\s(?P<line>[^\n]*))",
    re.S,
)


def prose(text: str, language: str = "") -> str:
    """Return the comments and docstrings of some code, or all of a text."""
    text = text[:MAX_CHARS]
    if language in PROSE_LANGUAGES:
        return text
    return "\n".join(match[match.lastgroup or 0] for match in _COMMENTS.finditer(text))


def forms(question: str) -> list[str]:
    """Return each word of a question, without stop words, and its stem if that differs.

    So a comment with the very word agrees more than one with another form of it.
    """
    runs = [run.lower() for run in RUN.findall(question)]
    runs = [run for run in runs if run not in STOP and run not in LANGUAGES]
    found = dict.fromkeys(form for run in runs for form in (run, stem(run)))
    return list(found)


def agreement(question: Sequence[str], text: str) -> float:
    """Return the share of a question's forms that are in a text, squared to favor found all.

    Args:
        question: from `forms`.
        text: from `prose`.
    """
    if not question or not text:
        return 0.0
    heads = {form[:2] for form in question}
    found = {
        form
        for run in set(RUN.findall(text))
        # A plain word and its stem begin with the same letters, so most can be skipped.
        if run[:2].lower() in heads or not _is_plain(run)
        for form in _forms(run)
    }
    share = sum(form in found for form in question) / len(question)
    return share * share


def crowding(vectors: NDArray[np.float32], nearest: int = NEIGHBOURS) -> NDArray[np.float32]:
    """Return the mean cosine of each vector with its nearest others.

    This is the correction of hubs in cross-domain similarity local scaling (Conneau and others,
    2018), among the results instead of all vectors.

    Args:
        vectors: rows of length one.
        nearest: number of others.
    """
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


@lru_cache(CACHED_WORDS)
def _forms(run: str) -> tuple[str, ...]:
    words = (run.lower(), *parts(run))
    return tuple({*words, *map(stem, words)})
