"""The shadow of the KV cache, and what is evaluated for which change of the prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.fim.kv import (
    GAP,
    MAX_STALE,
    MIN_KEPT_SUFFIX,
    REFRESH_TOKENS,
    KVShadow,
    Plan,
    common_length,
)
from lcursor.fim.prompt import Prompt

SUF, MID = 100, 101
SAME = tuple(range(MIN_KEPT_SUFFIX))

tokens = st.lists(st.integers(0, 3), max_size=12)


@given(tokens, tokens)
def test_common_length_is_the_longest_common_start(one: list[int], other: list[int]) -> None:
    length = common_length(one, other)
    assert one[:length] == other[:length]
    assert one[length : length + 1] != other[length : length + 1] or one[length:] == []


def prompt(before: list[int], after: tuple[int, ...]) -> Prompt:
    return Prompt(tuple(before), SUF, after, (MID,), "", "")


def shadow_of(prefix: list[int], suffix: tuple[int, ...], stale: int = 0) -> KVShadow:
    """Return the shadow after an exact evaluation of a prompt."""
    shadow = KVShadow()
    shadow.prefix, shadow.suffix, shadow.has_marker = list(prefix), suffix, True
    shadow.suffix_at, shadow.tail, shadow.stale = len(prefix) + 1 + GAP, [MID], stale
    return shadow


@pytest.mark.parametrize(
    ("shadow", "before", "after", "plan", "cost"),
    [
        (KVShadow(), [1, 2], (3,), Plan("exact", 0), 5),
        # typing keeps the suffix
        (shadow_of([1, 2], (3,)), [1, 2, 5], (3,), Plan("splice", 2, keep_suffix=1), 3),
        # nothing new keeps the tail
        (
            shadow_of([1, 2], (3,)),
            [1, 2],
            (3,),
            Plan("splice", 2, keep_tail=True, keep_suffix=1),
            0,
        ),
        # another suffix is evaluated, also if it has a short beginning in common
        (shadow_of([1, 2], (3,)), [1, 2, 5], (4,), Plan("exact", 2), 4),
        (shadow_of([1, 2], (3, 4)), [1, 2], (3, 5), Plan("exact", 2), 4),
        # a longer suffix is evaluated from where the cached one ends
        (
            shadow_of([1, 2], (3,)),
            [1, 2, 5],
            (3, 4, 6),
            Plan("splice", 2, keep_suffix=1, extend=2),
            5,
        ),
        (shadow_of([1, 2], (3,)), [1, 2], (3, 4), Plan("splice", 2, keep_suffix=1, extend=1), 2),
        # of a suffix whose end changes, a long beginning stays
        (
            shadow_of([1, 2], (*SAME, 7, 8)),
            [1, 2, 5],
            (*SAME, 9),
            Plan("splice", 2, keep_suffix=len(SAME), extend=1),
            4,
        ),
        (shadow_of([1, 2], (*SAME, 7)), [1, 2], SAME, Plan("splice", 2, keep_suffix=len(SAME)), 1),
    ],
)
def test_plan(
    shadow: KVShadow, before: list[int], after: tuple[int, ...], plan: Plan, cost: int
) -> None:
    assert shadow.plan(prompt(before, after)) == plan
    assert shadow.cost(prompt(before, after)) == cost


def test_a_full_gap_is_widened() -> None:
    shadow = shadow_of([1, 2], (3,))
    shadow.suffix_at = 4
    assert shadow.plan(prompt([1, 2, 5], (3,))).widen == 0
    assert shadow.plan(prompt([1, 2, 5, 6], (3,))).widen == GAP + 1


@pytest.mark.parametrize(
    ("cached", "stale", "before", "too_stale"),
    [
        ([1], MAX_STALE - 1, [1, 2], False),
        ([1], MAX_STALE, [1, 2], True),
        ([1] * (MAX_STALE + 2), 0, [1], True),
    ],
)
def test_after_many_changes_the_suffix_is_too_stale(
    cached: list[int], stale: int, before: list[int], too_stale: bool
) -> None:
    long, short = tuple(range(REFRESH_TOKENS + 1)), (3,)
    assert shadow_of(cached, long, stale).plan(prompt(before, long)).too_stale == too_stale
    kind = "exact" if too_stale else "splice"
    assert shadow_of(cached, short, stale).plan(prompt(before, short)).kind == kind


def test_a_slot_in_which_a_prompt_was_begun_stays_the_cheapest_for_it() -> None:
    """An unrelated prompt may have the same short suffix."""
    wanted = prompt([9] * 500, (3,))
    begun = shadow_of([1, 2], (3,))
    assert begun.plan(wanted).kind == "exact"
    begun.prefix, begun.suffix, begun.has_marker = [9] * 64, None, False
    assert begun.cost(wanted) < KVShadow().cost(wanted)


def test_another_middle_is_evaluated() -> None:
    shadow = shadow_of([1, 2], ())
    shadow.has_marker, shadow.tail = False, [3]
    for middle, keeps in ((3, True), (4, False)):
        wanted = Prompt((1, 2), None, (), (middle,), "", "")
        assert shadow.plan(wanted).keep_tail == keeps
