"""Damage files as disks, crashes, and people with an editor do."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lcursor.storage import stored

BLOCK = 64
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**70, 1.5, float("inf"), "", "text", "\0", "\ud800", "../../x", [], [1],
    ["a"], [[[]]], {}, {"a": 1},
)  # fmt: skip
"""Values that replace others in JSON."""


def damage(data: bytes, chance: random.Random) -> bytes:
    """Return a damaged content."""
    return chance.choice(KINDS)(data, chance) if data else chance.randbytes(9)


def _flipped(data: bytes, chance: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 5, 50))):
        found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def _truncated(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def _zeroed(data: bytes, chance: random.Random) -> bytes:
    first = chance.randrange(len(data))
    last = min(first + chance.choice((1, BLOCK, 4096)), len(data))
    return data[:first] + bytes(last - first) + data[last:]


def _noisy(data: bytes, chance: random.Random) -> bytes:
    first = chance.randrange(len(data))
    last = min(first + BLOCK, len(data))
    return data[:first] + chance.randbytes(last - first) + data[last:]


def _inserted(data: bytes, chance: random.Random) -> bytes:
    first = chance.randrange(len(data))
    return data[:first] + chance.randbytes(chance.randrange(1, 9)) + data[first:]


def _without_line(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def _line_twice(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))
    return b"".join(lines)


def _lines_swapped(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]
    return b"".join(lines)


def _other_value(data: bytes, chance: random.Random) -> bytes:
    """Replace a value in JSON; the line is valid, or has no checksum as in older versions."""
    lines = data.splitlines()
    at = chance.randrange(len(lines))
    try:
        row = json.loads(lines[at])
    except ValueError:
        return _noisy(data, chance)
    is_line = isinstance(row, dict) and row.pop("crc", None) is not None
    places = list(_places(row))
    if not places:
        return _noisy(data, chance)
    holder, key = chance.choice(places)
    if chance.random() < 0.2 and isinstance(holder, dict):
        del holder[key]
    else:
        holder[key] = chance.choice(VALUES)
    is_summed = is_line and chance.random() < 0.5
    lines[at] = stored.encode_line(row)[:-1] if is_summed else json.dumps(row).encode()
    return b"\n".join(lines) + (b"\n" if data.endswith(b"\n") else b"")


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each table or list in a value with each key in it."""
    if isinstance(value, (dict, list)):
        for key, inner in [*(value.items() if isinstance(value, dict) else enumerate(value))]:
            yield value, key
            yield from _places(inner)


KINDS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flipped, _flipped, _truncated, _zeroed, _noisy, _inserted, _without_line, _line_twice,
    _lines_swapped, _other_value, _other_value, _other_value, _other_value,
)  # fmt: skip


def damage_one(folder: Path, chance: random.Random) -> str:
    """Damage a file of a folder; return a description."""
    path = chance.choice([each for each in sorted(folder.rglob("*")) if each.is_file()])
    data = path.read_bytes()
    made = damage(data, chance)
    path.write_bytes(made)
    return f"{path.relative_to(folder)}: {len(data)} -> {len(made)} bytes"
