"""How many tokens are evaluated after a change of the prompt, with llama.cpp's cache rules."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.errors import Cancelled
from lcursor.fim.kv import MAX_STALE, MIN_REUSED_SUFFIX, REFRESH_TOKENS, common_length
from lcursor.fim.prompt import Prompt
from lcursor.fim.slots import SlotCache
from tests.fakes.llama import FakeContext

SUF, MID = 1000, 1001
SAME = tuple(range(10, 10 + MIN_REUSED_SUFFIX))

tokens = st.lists(st.integers(0, 3), max_size=12)


@given(tokens, tokens)
def test_common_length_is_the_longest_common_start(one: list[int], other: list[int]) -> None:
    length = common_length(one, other)
    assert one[:length] == other[:length]
    assert one[length : length + 1] != other[length : length + 1] or one[length:] == []


@pytest.fixture
def cache() -> SlotCache:
    return SlotCache(FakeContext())  # type: ignore[arg-type]


def read(cache: SlotCache, before: Sequence[int], after: Sequence[int]) -> int:
    """Evaluate a prompt; return how many tokens were evaluated, which `cost` has to predict."""
    prompt = Prompt(tuple(before), SUF, tuple(after), (MID,), "", "")
    cost = cache.shadow.cost(prompt)
    cache.prefill(prompt)
    assert cache.read_tokens - cost in (0, 1)  # a refreshed suffix takes its marker again
    return cache.read_tokens


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        (((1, 2), (3,)), ((1, 2), (3,)), 0),
        (((1, 2), (3,)), ((1, 2, 5), (3,)), 3),  # typing keeps the suffix
        (((1, 2), (3,)), ((1, 2, 5), (4,)), 4),  # another suffix is evaluated
        (((1, 2), (3, 4)), ((1, 2), (3, 5)), 4),  # so is one with a short beginning in common
        (((1, 2), (3,)), ((1, 2), (3, 4)), 2),  # a longer one from where the cached one ends
        (((1, 2), (3,)), ((1, 2, 5), (3, 4, 6)), 5),
        (((1, 2), (*SAME, 7, 8)), ((1, 2, 5), (*SAME, 9)), 4),  # a long beginning stays
        (((1, 2), (*SAME, 7)), ((1, 2), SAME), 1),
    ],
)
def test_only_what_changed_is_evaluated(
    cache: SlotCache,
    first: tuple[tuple[int, ...], tuple[int, ...]],
    second: tuple[tuple[int, ...], tuple[int, ...]],
    count: int,
) -> None:
    assert read(cache, *first) == len(first[0]) + 1 + len(first[1]) + 1
    assert read(cache, *second) == count


@pytest.mark.parametrize(
    ("size", "count"),
    [
        (REFRESH_TOKENS + 1, 4 + REFRESH_TOKENS),  # its beginning, and the marker twice
        (1, 4),  # all of it
    ],
)
def test_after_many_changes_the_suffix_is_evaluated_again(
    cache: SlotCache, size: int, count: int
) -> None:
    before, after = [1], range(2000, 2000 + size)
    read(cache, before, after)
    for _ in range(MAX_STALE):
        before.append(2)
        assert read(cache, before, after) == 3
    before.append(2)
    assert read(cache, before, after) == count
    before.append(2)
    assert read(cache, before, after) == 3


def test_the_slot_in_which_a_prompt_was_begun_is_the_cheapest_for_it() -> None:
    """An unrelated prompt may have the same short suffix."""
    memory = FakeContext()
    begun, empty = SlotCache(memory), SlotCache(FakeContext())  # type: ignore[arg-type]
    wanted = Prompt((9,) * 500, SUF, (3,), (MID,), "", "")
    read(begun, (1, 2), (3,))
    memory.abort.looks_left = 60
    with pytest.raises(Cancelled):
        begun.prefill(wanted)
    assert begun.shadow.cost(wanted) < empty.shadow.cost(wanted)


def test_another_middle_is_evaluated(cache: SlotCache) -> None:
    counts = []
    for middle in (3, 3, 4):
        cache.prefill(Prompt((1, 2), None, (), (middle,), "", ""))
        counts.append(cache.read_tokens)
    assert counts == [3, 0, 1]
