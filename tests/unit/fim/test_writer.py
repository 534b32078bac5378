"""The batches that are read behind a prompt: how wide they are, and what they give."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lcursor.fim.prompt import Prompt
from lcursor.fim.writer import MAX_GUESSES, DraftVerifier

LINE = (1, 2, 3, 4, 5)
PROMPT = Prompt((*LINE, 9, 9, 9, 1, 2), None, (), (8,), "", "")


class Tail:
    """Stands for the seats and the context: keeps the batches, and gives logits by their row."""

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


def writer(tail: Tail, guesses: int, draft: tuple[int, ...] = ()) -> DraftVerifier:
    context: Any = tail
    return DraftVerifier(context, context, PROMPT, (), guesses, draft)


def test_each_batch_with_guesses_has_one_width_on_a_gpu() -> None:
    tail = Tail()
    write = writer(tail, MAX_GUESSES)
    assert list(write.read(3)) == [1, 0]
    assert tail.batches == [[3, 4, 5, 9, 9, 9, 1, 2]]
    write.discard_draft()
    write = writer(tail, MAX_GUESSES)
    write.read(7)
    write.read(1)  # nothing follows in the text
    assert [len(batch) for batch in tail.batches[1:]] == [1, 1]


def test_what_fills_a_batch_up_is_never_written() -> None:
    tail = Tail()
    write = writer(tail, MAX_GUESSES, draft=(3, 4))
    write.read(3)
    assert tail.batches == [[3, *[4] * MAX_GUESSES]]
    assert list(write.read(4)) == [1, 1], "a guess that is right costs no batch"
    assert list(write.read(6)) == [2, 0]
    assert tail.shadow.tail[:4] == [8, 3, 4, 6]
    write.discard_draft()
    assert tail.shadow.tail == [8, 3, 4, 6]


@pytest.mark.parametrize(("guesses", "batch"), [(3, [3, 4, 5, 9]), (2, [3, 4, 5]), (0, [3])])
def test_on_a_cpu_a_batch_is_as_wide_as_its_guesses(guesses: int, batch: list[int]) -> None:
    tail = Tail()
    writer(tail, guesses).read(3)
    assert tail.batches == [batch]
    tail = Tail()
    writer(tail, guesses, draft=(3, 4)).read(3)
    assert tail.batches == [batch[:2]]
