"""Small helpers for sequences: the file that `make demo` copies, opens and completes in.

It belongs to the demo, so that a change elsewhere in lcursor cannot change what the demo shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def chunks(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Yield the items in pieces of at most `size`.

    Raises:
        ValueError: the size is not positive.
    """
    if size < 1:
        raise ValueError(f"the size of a chunk must be positive, not {size}")
    for start in range(0, len(items), size):
        yield items[start : start + size]


def runs(items: Sequence[int]) -> list[tuple[int, int]]:
    """Return each value with how often it stands in a row."""
    found: list[tuple[int, int]] = []
    for item in items:
        if found and found[-1][0] == item:
            found[-1] = (item, found[-1][1] + 1)
        else:
            found.append((item, 1))
    return found


def insertion_point(items: Sequence[int], value: int) -> int:
    """Return where a value belongs in a sorted sequence."""
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the common start."""
    length = min(len(one), len(other))
    for i in range(length):
        if one[i] != other[i]:
            return i
    return length
