"""Guesses of the next tokens, and the batches in which they are verified."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lcursor.fim import drafts
from lcursor.fim.drafts import MAX_GUESSES, DraftVerifier, Generated, guess, join, resume
from lcursor.fim.prompt import Prompt


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
def test_guessed_tokens(parts: list[list[int]], recent: list[int], wanted: list[int]) -> None:
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
def test_tokens_of_the_last_suggestion_that_may_follow(
    before: bytes, heal: bytes, wanted: list[int]
) -> None:
    assert resume(CALL, before, heal) == wanted


def test_the_longest_agreement_is_resumed() -> None:
    twice = written(b"", b"a,", b" b,", b" c,", b" b,", b" d")
    assert resume(twice, b"x b,", b"") == [2, 3, 4]
    assert resume(twice, b"c, b,", b"") == [4]


def test_nothing_is_compared_beyond_a_limit() -> None:
    long = b"x" * 2 * drafts.MAX_SAME_BYTES
    assert resume(written(long, b"a", b"b"), long, b"") == [0, 1]


LINE = (1, 2, 3, 4, 5)
PROMPT = Prompt((*LINE, 9, 9, 9, 1, 2), None, (), (8,), "", "")


class Tail:
    """Stands for the slots and the context: keeps the batches, and gives logits by their row."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.shadow = SimpleNamespace(tail=list(PROMPT.middle))
        self.current, self.row = self, 0

    def append(self, tokens: list[int]) -> None:
        self.batches.append(list(tokens))
        self.shadow.tail += tokens

    def truncate_tail(self, keep: int) -> None:
        del self.shadow.tail[keep:]

    def logits(self, row: int) -> np.ndarray[Any, Any]:
        return np.array([len(self.batches), row], np.float32)


def verifier(tail: Tail, guesses: int, draft: tuple[int, ...] = ()) -> DraftVerifier:
    context: Any = tail
    return DraftVerifier(context, context, PROMPT, (), guesses, draft)


def test_each_batch_with_guesses_has_one_width_on_a_gpu() -> None:
    tail = Tail()
    verify = verifier(tail, MAX_GUESSES)
    assert list(verify.read(3)) == [1, 0]
    assert tail.batches == [[3, 4, 5, 9, 9, 9, 1, 2]]
    verify.discard_draft()
    verify = verifier(tail, MAX_GUESSES)
    verify.read(7)
    verify.read(1)  # nothing follows in the text
    assert [len(batch) for batch in tail.batches[1:]] == [1, 1]


def test_tokens_that_fill_a_batch_are_never_written() -> None:
    tail = Tail()
    verify = verifier(tail, MAX_GUESSES, draft=(3, 4))
    verify.read(3)
    assert tail.batches == [[3, *[4] * MAX_GUESSES]]
    assert list(verify.read(4)) == [1, 1], "a guess that is right costs no batch"
    assert list(verify.read(6)) == [2, 0]
    assert tail.shadow.tail[:4] == [8, 3, 4, 6]
    verify.discard_draft()
    assert tail.shadow.tail == [8, 3, 4, 6]


def test_a_batch_is_filled_up_with_the_last_guess() -> None:
    tail = Tail()
    verifier(tail, MAX_GUESSES, draft=(3, 4, 5)).read(3)
    assert tail.batches == [[3, 4, *[5] * (MAX_GUESSES - 1)]]


@pytest.mark.parametrize(("guesses", "batch"), [(3, [3, 4, 5, 9]), (2, [3, 4, 5]), (0, [3])])
def test_on_a_cpu_a_batch_is_as_wide_as_its_guesses(guesses: int, batch: list[int]) -> None:
    tail = Tail()
    verifier(tail, guesses).read(3)
    assert tail.batches == [batch]
    tail = Tail()
    verifier(tail, guesses, draft=(3, 4)).read(3)
    assert tail.batches == [batch[:2]]
