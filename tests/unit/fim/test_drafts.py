"""Guesses of the next tokens from what was written before."""

from __future__ import annotations

import pytest

from lcursor.fim import drafts
from lcursor.fim.drafts import Generated, guess, join, resume


@pytest.mark.parametrize(
    ("parts", "recent", "wanted"),
    [
        ([[1, 2, 3, 4]], [1, 2], [3, 4]),
        ([[1, 2, 3, 4]], [9, 2], []),  # a single token says too little
        ([[1, 2, 3, 4]], [2], []),
        ([[1, 2, 3], [1, 2, 4]], [1, 2], [4]),  # the newest
        ([[7, 1, 2, 3], [8, 1, 2, 4]], [7, 1, 2], [3]),  # the longest, though older
        ([[6, 7, 8, 1, 2, 3], [7, 8, 1, 2, 4]], [6, 7, 8, 1, 2], [4]),  # four are enough
        ([[1, 2], [3, 4]], [1, 2], []),  # nothing stands behind it in its part
        ([[1, 2, 3], [1, 2]], [1, 2], [3]),
        ([[1, 2, 3, 4, 5, 6]], [1, 2], [3, 4, 5]),  # no more than asked for
        ([], [1, 2], []),
    ],
)
def test_guess(parts: list[list[int]], recent: list[int], wanted: list[int]) -> None:
    assert guess(join(*parts), recent, 3) == wanted


def written(before: bytes, *pieces: bytes) -> Generated:
    return Generated(before, range(len(pieces)), pieces)


CALL = written(b"y = ", b"find", b"(a", b",", b" b", b")")


@pytest.mark.parametrize(
    ("before", "heal", "wanted"),
    [
        (b"y = ", b"", [0, 1, 2, 3, 4]),  # the same place
        (b"y = find", b"", [1, 2, 3, 4]),  # further on
        (b"y = find(x,", b"", []),  # one byte says too little
        (b"y = find(x,", b" b", [3, 4]),  # with what must be written next it is enough
        (b"y = find(x", b", c", []),
        (b"y = find(x, b", b")", [4]),
        (b"z", b"", []),
        (b"y =", b" find", []),  # the suggestion begins behind the blank
    ],
)
def test_resume(before: bytes, heal: bytes, wanted: list[int]) -> None:
    assert resume(CALL, before, heal) == wanted


def test_the_longest_agreement_is_resumed() -> None:
    twice = written(b"", b"a,", b" b,", b" c,", b" b,", b" d")
    assert resume(twice, b"x b,", b"") == [2, 3, 4]
    assert resume(twice, b"c, b,", b"") == [4]


def test_nothing_is_compared_beyond_a_limit() -> None:
    long = b"x" * 2 * drafts.MAX_SAME_BYTES
    assert resume(written(long, b"a", b"b"), long, b"") == [0, 1]
