"""Rows of files that several mentions bring go in once. Pure, but for resolving links."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from lcursor.context.items import Item

OF_FILES: Final = frozenset({"file", "dir", "buffer", "symbol", "codebase"})
"""What holds rows of a file, which need not be in twice."""


def once(items: Sequence[Item], dropped: Collection[str]) -> list[Item]:
    """Return items without those whose rows are in already, as part of another one."""
    found: dict[str, Item] = {}
    for item in items:
        before = found.get(item.key)
        if before is None or (before.is_left_out and not item.is_left_out):
            found[item.key] = item
    spans: dict[str, list[Item]] = {}
    for item in found.values():
        if item.kind in OF_FILES and item.path and item.text and item.key not in dropped:
            spans.setdefault(os.path.realpath(item.path), []).append(item)
    for those in spans.values():
        kept = _widest(those)
        for item in those:
            by = kept.get(item.key)
            if by is None:
                continue
            if by.first_row == item.first_row and by.end_row == item.end_row:
                del found[item.key]  # the same once more
            else:
                note = f"its rows are in with {by.name}"
                found[item.key] = replace(item, text="", note=note, is_left_out=True)
    return list(found.values())


def _widest(items: Sequence[Item]) -> dict[str, Item]:
    """Return which items of one file lie in which other one."""
    wide = sorted(
        (item for item in items if item.kind != "codebase"),  # an outline has not all of its rows
        key=lambda item: (item.first_row, -item.end_row),
    )
    order = {item.key: number for number, item in enumerate(wide)}
    inside: dict[str, Item] = {}
    for item in items:
        for other in wide:
            is_before = order[other.key] < order.get(item.key, len(wide))
            if (
                other.key != item.key
                and is_before
                and other.first_row <= item.first_row
                and item.end_row <= other.end_row
            ):
                inside[item.key] = other
                break
    return inside
