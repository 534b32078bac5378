"""Mangle quoted code as models do: both sides of a change in the same way.

Each function returns None where it does not apply to a change.
"""

from __future__ import annotations

import difflib
import html
import random
from collections.abc import Callable

Sides = tuple[list[str], list[str]]


def common(old: list[str], new: list[str]) -> set[str]:
    """Return the lines that both sides have."""
    return {*old} & {*new}


def dedent(old: list[str], new: list[str], rng: random.Random) -> Sides | None:
    """Remove the common indentation."""
    del rng
    filled = [line for line in (*old, *new) if line.strip()]
    least = min(len(line) - len(line.lstrip(" ")) for line in filled)
    return ([line[least:] for line in old], [line[least:] for line in new]) if least else None


def deeper(old: list[str], new: list[str], rng: random.Random) -> Sides | None:
    """Indent every line further."""
    by = " " * rng.choice((2, 4))
    return [by + x if x.strip() else x for x in old], [by + x if x.strip() else x for x in new]


def tabs(old: list[str], new: list[str], rng: random.Random) -> Sides | None:
    """Indent with tabs."""
    del rng
    levels = {len(x) - len(x.lstrip(" ")) for x in (*old, *new) if x.strip()}
    kept = {len(x) - len(x.lstrip(" ")) for x in old if x.strip()}
    if any(level % 4 for level in levels) or len(kept) < 2 or not any(levels):
        return None

    def made(line: str) -> str:
        bare = line.lstrip(" ")
        return "\t" * ((len(line) - len(bare)) // 4) + bare

    return [made(x) for x in old], [made(x) for x in new]


def halved(old: list[str], new: list[str], rng: random.Random) -> Sides | None:
    """Indent with half the spaces."""
    del rng
    levels = {len(x) - len(x.lstrip(" ")) for x in (*old, *new) if x.strip()}
    kept = {len(x) - len(x.lstrip(" ")) for x in old if x.strip()}
    if any(level % 4 for level in levels) or len(kept) < 2 or not any(levels):
        return None

    def made(line: str) -> str:
        bare = line.lstrip(" ")
        return " " * ((len(line) - len(bare)) // 2) + bare

    return [made(x) for x in old], [made(x) for x in new]


def trailing(old: list[str], new: list[str], rng: random.Random) -> Sides | None:
    """Add trailing spaces to unchanged lines."""
    both = common(old, new)
    chosen = {x for x in sorted(both) if x.strip() and rng.random() < 0.6}
    return (
        (
            [x + "  " if x in chosen else x for x in old],
            [x + "  " if x in chosen else x for x in new],
        )
        if chosen
        else None
    )


def no_blanks(old: list[str], new: list[str], rng: random.Random) -> Sides | None:
    """Drop empty lines."""
    del rng
    blank_old, blank_new = [not x.strip() for x in old], [not x.strip() for x in new]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal" and (any(blank_old[a:b]) or any(blank_new[c:d])):
            return None
        neighbours = [*old[max(a - 1, 0) : a], *old[b : b + 1]]
        if tag == "insert" and any(not x.strip() for x in neighbours):
            return None  # the side of the empty line is ambiguous
    if not any(blank_old):
        return None
    return [x for x in old if x.strip()], [x for x in new if x.strip()]


def quotes(old: list[str], new: list[str], rng: random.Random) -> Sides | None:
    """Write unchanged strings in single quotes."""
    del rng
    chosen = {x for x in common(old, new) if '"' in x and "'" not in x and '"""' not in x}
    if not chosen:
        return None
    turn = {x: x.replace('"', "'") for x in chosen}
    return [turn.get(x, x) for x in old], [turn.get(x, x) for x in new]


def escaped(old: list[str], new: list[str], rng: random.Random) -> Sides | None:
    """Escape HTML characters."""
    del rng
    if not any(mark in x for x in old for mark in "<>&"):
        return None
    return [html.escape(x, False) for x in old], [html.escape(x, False) for x in new]


def first_bare(old: list[str], new: list[str], rng: random.Random) -> Sides | None:
    """Remove the indentation of the first line only."""
    del rng
    if old[0] != new[0] or old[0] == old[0].lstrip() or not old[0].strip():
        return None
    own = len(old[0]) - len(old[0].lstrip())
    if any(len(x) - len(x.lstrip()) <= own for x in old[1:] if x.strip()):
        return None
    return [old[0].lstrip(), *old[1:]], [new[0].lstrip(), *new[1:]]


MANGLES: dict[str, Callable[[list[str], list[str], random.Random], Sides | None]] = {
    "plain": lambda old, new, rng: (old, new),
    "dedent": dedent,
    "deeper": deeper,
    "tabs": tabs,
    "halved": halved,
    "trailing": trailing,
    "no_blanks": no_blanks,
    "quotes": quotes,
    "escaped": escaped,
    "first_bare": first_bare,
}
