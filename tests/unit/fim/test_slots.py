"""The cache against a slow exact reference: any edits, any aborts, shadow and cells agree.

The context is `FakeContext`, a model of llama.cpp's own rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcursor.errors import Cancelled, OutOfMemory
from lcursor.fim import kv
from lcursor.fim.kv import GAP
from lcursor.fim.prompt import Prompt
from lcursor.fim.slots import SLICE_TOKENS, SequenceIds, SlotCache, Slots
from tests.fakes.llama import FakeContext

SUF, MID = 100, 101
FULL, PREFIX, _ = SequenceIds()


def prompt(before: Sequence[int], after: Sequence[int]) -> Prompt:
    return Prompt(tuple(before), SUF, tuple(after), (MID,), "", "")


def spm(before: Sequence[int]) -> Prompt:
    return Prompt(tuple(before), None, (), (MID,), "", "")


def agree(memory: FakeContext, cache: SlotCache) -> None:
    """Assert that the shadow says what the cells hold."""
    shadow, sequences = cache.shadow, cache.sequences
    assert memory.of(sequences.prefix) == list(enumerate(shadow.prefix))
    full = list(enumerate(shadow.prefix))
    if shadow.has_marker:
        full.append((len(shadow.prefix), SUF))
    if shadow.suffix is not None:
        body = [*shadow.suffix, *shadow.tail]
        full += [(shadow.suffix_at + i, token) for i, token in enumerate(body)]
    assert memory.of(sequences.full) == full
    assert memory.of(sequences.spare) == []
    positions = [position for position, _ in memory.of(sequences.full)]
    assert len(set(positions)) == len(positions)


KINDS = ["type", "delete", "paste", "move", "suffix", "below", "again", "write", "idle", "spm"]
texts = st.lists(st.integers(1, 4), max_size=40)
edits = st.tuples(
    st.sampled_from(KINDS),
    st.lists(st.integers(1, 4), min_size=1, max_size=30),
    st.integers(-1, 12),
)


@pytest.fixture(autouse=True, scope="module")
def keep_short_suffixes() -> Iterator[None]:
    """Keep the beginning of a suffix however short it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kv, "MIN_REUSED_SUFFIX", 1)
        yield


@settings(max_examples=300)
@given(texts, texts, st.lists(edits, max_size=25))
def test_one_slot_agrees_after_any_edits_and_aborts(
    before: list[int], after: list[int], steps: list[tuple[str, list[int], int]]
) -> None:
    memory = FakeContext()
    cache = SlotCache(memory)  # type: ignore[arg-type]
    for kind, some, patience in steps:
        if kind == "type":
            before = [*before, *some[:3]]
        elif kind == "delete":
            before = before[: -len(some)]
        elif kind == "paste":
            before = [*before[:2], *some, *before[2:]]
        elif kind == "move":
            before, after = [*before, *after[:3]], after[3:]
        elif kind == "suffix":
            after = some
        elif kind == "below":
            after = [*after[: -len(some)], *some[:2]]
        wanted = spm(before) if kind == "spm" else prompt(before, after)
        memory.abort.looks_left, memory.abort.is_immediate = patience, patience % 2 == 0
        try:
            cache.prefill(wanted, exact=kind == "idle")
            if kind == "write":
                cache.append(some)
                cache.truncate_tail(len(cache.shadow.tail) // 2 or 1)
        except Cancelled:
            agree(memory, cache)
            continue
        finally:
            memory.abort.looks_left = -1
        agree(memory, cache)
        assert cache.shadow.prefix == before
        expected = [*before, *([SUF] if wanted.marker else []), *wanted.after, MID]
        read = [token for _, token in memory.of(FULL)]
        assert read[: len(expected)] == expected


def prefill(cache: SlotCache, before: Sequence[int], after: Sequence[int]) -> int:
    cache.prefill(prompt(before, after))
    return cache.read_tokens


@pytest.fixture
def cache() -> SlotCache:
    return SlotCache(FakeContext())  # type: ignore[arg-type]


def test_an_exact_refresh_reads_the_suffix_and_makes_room_again(cache: SlotCache) -> None:
    before, after = list(range(1, 60)), list(range(200, 260))
    prefill(cache, before, after)
    prefill(cache, [*before, 7], after)
    cache.prefill(prompt([*before, 7], after), exact=True)
    assert cache.read_tokens == 1 + 60 + 1
    assert cache.shadow.stale == 0
    assert cache.shadow.suffix_at == 60 + 1 + GAP


def test_a_stopped_refresh_leaves_the_old_suffix_in_use() -> None:
    memory = FakeContext()
    cache = SlotCache(memory)  # type: ignore[arg-type]
    before, after = list(range(1, 60)), list(range(200, 260))
    prefill(cache, before, after)
    prefill(cache, [*before, 7], after)
    memory.abort.looks_left = 10
    with pytest.raises(Cancelled):
        cache.prefill(prompt([*before, 7], after), exact=True)
    memory.abort.looks_left = -1
    agree(memory, cache)
    assert prefill(cache, [*before, 7, 8], after) == 3


def test_a_family_without_a_middle_marker_goes_on_from_its_last_token() -> None:
    memory = FakeContext()
    cache = SlotCache(memory)  # type: ignore[arg-type]
    cache.prefill(Prompt((1, 2, 3), None, (), (), "", ""))
    assert [token for _, token in memory.of(FULL)] == [1, 2, 3]
    cache.prefill(Prompt((1, 2, 3, 4), None, (), (), "", ""))
    assert [token for _, token in memory.of(FULL)] == [1, 2, 3, 4]
    assert cache.read_tokens <= 2


@settings(max_examples=300)
@given(texts, texts, st.lists(edits, max_size=25))
def test_any_slots_agree_after_any_edits_forks_and_aborts(
    before: list[int], after: list[int], steps: list[tuple[str, list[int], int]]
) -> None:
    memory = FakeContext()
    slots = Slots(memory)  # type: ignore[arg-type]
    for kind, some, patience in steps:
        if kind == "type":
            before = [*before, *some[:3]]
        elif kind == "delete":
            before = before[: -len(some)]
        elif kind == "paste":
            before = [*before[:2], *some, *before[2:]]
        elif kind == "suffix":
            after = some
        elif kind == "below":
            after = [*after[: -len(some)], *some[:2]]
        elif kind == "spm":  # what stands in the cache comes from the disk as well
            there = slots.current
            assert slots.restore(there.shadow.copy(), memory.state(there.sequences.full, 1 << 20))
        wanted = prompt(before, after)
        memory.abort.looks_left, memory.abort.is_immediate = patience, patience % 2 == 0
        try:
            if kind in {"again", "move"}:  # reads ahead, and comes back or stays
                here = slots.current
                back = slots.prefill_ahead(prompt([*before, *some], after))
                if kind == "again":
                    back()
                    assert slots.current is here
                continue
            slots.prefill(wanted, exact=kind == "idle")
        except Cancelled:
            continue
        finally:
            memory.abort.looks_left = -1
            for cache in slots.all():
                agree(memory, cache)
        read = [token for _, token in memory.of(slots.current.sequences.full)]
        assert read == [*before, SUF, *after, MID]


def test_another_buffer_takes_another_slot_and_the_first_is_found_again() -> None:
    slots = Slots(FakeContext())  # type: ignore[arg-type]
    one, other = prompt(list(range(1, 60)), [70]), prompt(list(range(300, 360)), [80])
    slots.prefill(one)
    slots.prefill(other)
    assert slots.prefill(one).keep_tail
    assert slots.prefill(other).keep_tail


def test_a_full_cache_costs_the_other_slots_and_nothing_else() -> None:
    memory = FakeContext(room=150)
    slots = Slots(memory)  # type: ignore[arg-type]
    one, other = prompt(list(range(1, 60)), [70]), prompt(list(range(300, 390)), [80])
    slots.prefill(one)
    slots.prefill(other)
    assert not slots.prefill(one).keep_tail
    with pytest.raises(OutOfMemory):
        slots.prefill(prompt(list(range(500, 700)), [90]))
    assert slots.prefill(one).keep_suffix == 0


@settings(max_examples=100)
@given(texts, texts, st.lists(st.integers(1, 4), max_size=30), texts)
def test_a_restored_cache_is_used_further(
    before: list[int], after: list[int], typed: list[int], later: list[int]
) -> None:
    old = SlotCache(FakeContext())  # type: ignore[arg-type]
    old.prefill(prompt(before, after))
    old.prefill(prompt([*before, *typed], after))
    old.append([5, 6])
    memory = FakeContext()
    new = SlotCache(memory)  # type: ignore[arg-type]
    assert new.restore(old.shadow, old._context.state(old.sequences.full, 1 << 20))
    agree(memory, new)
    cost = new.shadow.cost(prompt([*before, *typed], after))
    new.prefill(prompt([*before, *typed], after))
    assert new.read_tokens == cost <= 2  # the middle marker, whose logits were not kept
    new.prefill(prompt([*before, *typed, *later], after))
    agree(memory, new)


def test_a_saved_state_that_does_not_fit_leaves_an_empty_cache() -> None:
    old = SlotCache(FakeContext())  # type: ignore[arg-type]
    old.prefill(prompt(range(1, 60), [70]))
    memory = FakeContext(room=50)
    new = SlotCache(memory)  # type: ignore[arg-type]
    assert not new.restore(old.shadow, old._context.state(old.sequences.full, 1 << 20))
    assert new.shadow.end == 0
    agree(memory, new)


def test_reading_far_ahead_leaves_the_present_prompt_as_it_was() -> None:
    memory = FakeContext()
    slots = Slots(memory)  # type: ignore[arg-type]
    before, after = list(range(1, 60)), list(range(200, 260))
    slots.prefill(prompt(before, after))
    far = prompt([*before, *range(300, 300 + 2 * GAP)], after)
    back = slots.prefill_ahead(far)
    back()
    for cache in slots.all():
        agree(memory, cache)
    assert slots.prefill(prompt(before, after)).keep_tail
    assert slots.prefill(far).keep_tail


def test_an_aborted_suffix_is_read_on_and_not_again() -> None:
    memory = FakeContext()
    cache = SlotCache(memory)  # type: ignore[arg-type]
    wanted = prompt(range(1, 60), range(200, 400))
    read = 0
    for typed in range(20):  # a key comes after each few slices
        memory.abort.looks_left = 20
        wanted = prompt([*range(1, 60), *range(500, 500 + typed)], range(200, 400))
        try:
            cache.prefill(wanted)
            read += cache.read_tokens
            break
        except Cancelled:
            read += cache.read_tokens
    assert cache.shadow.suffix == wanted.after
    assert read <= len(wanted.tokens) + 3 * typed


def test_a_stopped_prefix_is_kept_to_the_last_token_read() -> None:
    memory = FakeContext()
    cache = SlotCache(memory)  # type: ignore[arg-type]
    wanted = prompt(range(1, 100), range(200, 220))
    memory.abort.looks_left = 21  # inside the second slice
    with pytest.raises(Cancelled):
        cache.prefill(wanted)
    assert 32 < len(cache.shadow.prefix) < 64


def test_a_keystroke_takes_two_passes_and_one_without_a_suffix(cache: SlotCache) -> None:
    before, after = list(range(1, 60)), list(range(200, 260))
    prefill(cache, before, after)
    prefill(cache, [*before, 7], after)
    assert cache.passes == 2
    cache.prefill(spm(before))
    cache.prefill(spm([*before, 7]), draft=[8, 9])
    assert (cache.passes, cache.read_tokens) == (1, 2)
    assert cache.shadow.tail == [MID, 8, 9]
    assert cache.row == 1
    cache.truncate_tail(1)
    assert cache.prefill(spm([*before, 7])).keep_tail


def test_a_half_evaluated_prompt_is_continued_in_its_slot() -> None:
    memory = FakeContext()
    slots = Slots(memory)  # type: ignore[arg-type]
    short, whole = prompt(range(900, 960), [1]), prompt(range(1, 400), range(500, 560))
    slots.prefill(short)
    memory.abort.looks_left = 60
    with pytest.raises(Cancelled):
        slots.prefill(whole)
    memory.abort.looks_left = -1
    done = slots.current.read_tokens
    assert slots.prefill(short).keep_tail
    slots.prefill(whole)
    assert slots.current.read_tokens <= len(whole.tokens) - done + 2


def test_the_part_of_a_suffix_that_was_read_makes_a_prompt_cheap() -> None:
    slots = Slots(FakeContext())  # type: ignore[arg-type]
    whole = prompt(range(1, 100), range(500, 600))
    assert len(slots.shorten(whole, 24).after) == 24
    slots.prefill(prompt(range(1, 90), range(500, 540)))
    assert len(slots.shorten(whole, 24).after) == 40


@pytest.mark.parametrize(
    ("count", "batches"),
    [(64, [64]), (96, [96]), (97, [64, 33]), (160, [64, 96]), (161, [64, 64, 33])],
)
def test_a_short_rest_joins_the_last_batch(count: int, batches: list[int]) -> None:
    memory = FakeContext()
    cache = SlotCache(memory)  # type: ignore[arg-type]
    cache.prefill(spm(range(1, count)))
    assert memory.batches == batches
    assert (cache.passes, cache.row) == (len(batches), batches[-1] - 1)


@pytest.mark.parametrize(
    ("count", "same", "is_kept"),
    [
        (100, 47, True),  # too little in common: it is read elsewhere
        (100, 48, False),  # enough: what is different is lost
        (19, 9, True),  # of a short prompt, half is enough
        (19, 10, False),
        (200, 104, True),  # too much would be lost: a fork is read on
        (200, 105, False),
    ],
)
def test_the_slot_that_a_prompt_takes(count: int, same: int, is_kept: bool) -> None:
    slots = Slots(FakeContext())  # type: ignore[arg-type]
    first = spm(range(1, count + 1))
    slots.prefill(first)
    slots.prefill(spm([*range(1, same + 1), *range(1000, 1000 + count - same)]))
    assert slots.current.read_tokens == count + 1 - (0 if count < 200 and is_kept else same)
    assert slots.prefill(first).keep_tail is is_kept


def test_typing_beyond_the_gap_keeps_a_slot_with_the_same_suffix_correct() -> None:
    memory = FakeContext()
    slots = Slots(memory)  # type: ignore[arg-type]
    before, after = list(range(1, 60)), list(range(200, 260))
    slots.prefill(prompt(before, after))
    back = slots.prefill_ahead(prompt([*before, 7], after))
    assert len({id(slot.suffix_owner) for slot in slots.all()}) < len(slots.all())
    back()
    for number in range(2 * GAP):
        before = [*before, 300 + number]
        slots.prefill(prompt(before, after))
        for cache in slots.all():
            agree(memory, cache)


@pytest.mark.parametrize("slice_tokens", [SLICE_TOKENS, 512])
@pytest.mark.parametrize("draft", [0, 1, 300])
@pytest.mark.parametrize("length", [1, 63, 97, 511, 512, 513, 700, 768, 769, 1200, 1800, 2047])
def test_no_batch_is_larger_than_the_context_takes(
    length: int, draft: int, slice_tokens: int
) -> None:
    memory = FakeContext()
    cache = SlotCache(memory, slice_tokens=slice_tokens)  # type: ignore[arg-type]
    cache.prefill(spm(list(range(1, length))), draft=list(range(5000, 5000 + draft)))
    assert sum(memory.batches) >= length + draft  # the fake context rejects larger batches
    agree(memory, cache)
