"""The shadow of the KV cache, and what is read for which change of the prompt."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lcursor.fim.kv import GAP, MAX_STALE, WORTH_KEEPING, KVShadow, Plan, common

tokens = st.lists(st.integers(0, 3), max_size=12)


@given(tokens, tokens)
def test_common_is_the_longest_common_start(one: list[int], other: list[int]) -> None:
    length = common(one, other)
    assert one[:length] == other[:length]
    assert one[length : length + 1] != other[length : length + 1] or one[length:] == []


def held(prefix: list[int], suffix: tuple[int, ...], stale: int = 0) -> KVShadow:
    """A cache as an exact reading leaves it."""
    cells = KVShadow()
    cells.prefix, cells.suffix, cells.has_marker = list(prefix), suffix, True
    cells.suffix_at, cells.tail, cells.stale = len(prefix) + 1 + GAP, [9], stale
    return cells


def test_an_empty_cache_reads_all() -> None:
    assert KVShadow().plan([1, 2], (3,)) == Plan("exact", 0)


def test_typing_keeps_the_suffix() -> None:
    assert held([1, 2], (3,)).plan([1, 2, 5], (3,)) == Plan("splice", 2, keep_suffix=1)


def test_nothing_new_keeps_the_tail() -> None:
    assert held([1, 2], (3,)).plan([1, 2], (3,)) == Plan("splice", 2, keep_tail=True, keep_suffix=1)


def test_another_suffix_is_read() -> None:
    assert held([1, 2], (3,)).plan([1, 2, 5], (4,)).kind == "exact"


def test_a_full_gap_is_widened() -> None:
    cells = held([1, 2], (3,))
    cells.suffix_at = 4
    assert cells.plan([1, 2, 5], (3,)) == Plan("splice", 2, keep_suffix=1)
    assert cells.plan([1, 2, 5, 6], (3,)) == Plan("splice", 2, widen=GAP + 1, keep_suffix=1)


def test_a_longer_suffix_is_read_on() -> None:
    assert held([1, 2], (3,)).plan([1, 2, 5], (3, 4, 6)) == Plan(
        "splice", 2, keep_suffix=1, extend=2
    )
    assert held([1, 2], (3,)).plan([1, 2], (3, 4)) == Plan("splice", 2, keep_suffix=1, extend=1)


def test_of_a_suffix_whose_end_changes_the_beginning_stays() -> None:
    same = tuple(range(WORTH_KEEPING))
    plan = held([1, 2], (*same, 7, 8)).plan([1, 2, 5], (*same, 9))
    assert plan == Plan("splice", 2, keep_suffix=WORTH_KEEPING, extend=1)
    assert not held([1, 2], (*same, 7)).plan([1, 2], same).keep_tail


def test_a_short_common_beginning_of_two_suffixes_is_not_kept() -> None:
    assert held([1, 2], (3, 4)).plan([1, 2], (3, 5)).kind == "exact"


def test_after_many_changes_the_suffix_is_too_stale() -> None:
    assert not held([1], (3,), MAX_STALE - 1).plan([1, 2], (3,)).too_stale
    assert held([1], (3,), MAX_STALE).plan([1, 2], (3,)).too_stale
    assert held([1] * (MAX_STALE + 2), (3,)).plan([1], (3,)).too_stale


def test_another_token_to_go_on_from_is_read() -> None:
    cells = held([1, 2], ())
    cells.has_marker, cells.tail = False, [3]
    assert cells.plan([1, 2], (), [3], marker=False).keep_tail
    assert not cells.plan([1, 2], (), [4], marker=False).keep_tail
