"""Read and write protobuf messages without a schema, as far as ONNX files need it.

A message is a list of numbered fields. Pure functions of bytes that do not copy large values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

Value: TypeAlias = "int | bytes | memoryview"
Field: TypeAlias = "tuple[int, Value]"

_VARINT, _BYTES = 0, 2


def fields(message: bytes | memoryview) -> Iterator[Field]:
    """Yield the fields of a message: integers as they are, the rest as views of bytes.

    Raises:
        ValueError: it is no such message.
    """
    view = memoryview(message)
    at, end = 0, len(view)
    while at < end:
        key, at = _varint(view, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(view, at)
            yield number, value
            continue
        if kind != _BYTES:  # numbers of a fixed size are only within what is not looked at
            raise ValueError(f"a field of an unknown kind ({kind})")
        size, at = _varint(view, at)
        if at + size > end:
            raise ValueError("it ends in the middle of a field")
        yield number, view[at : at + size]
        at += size


def packed(value: bytes | memoryview) -> list[int]:
    """Return the integers that lie in one field, without numbers of their own."""
    view, at, found = memoryview(value), 0, []
    while at < len(view):
        number, at = _varint(view, at)
        found.append(number)
    return found


def message(parts: Iterable[Field]) -> bytes:
    """Return a message of some fields."""
    found = bytearray()
    for number, value in parts:
        if isinstance(value, int):
            found += _number(number << 3 | _VARINT) + _number(value)
        else:
            found += _number(number << 3 | _BYTES) + _number(len(value))
            found += value
    return bytes(found)


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(view) or shift > 63:
            raise ValueError("it ends in the middle of a number")
        byte = view[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def _number(value: int) -> bytes:
    value &= (1 << 64) - 1  # a negative one has ten bytes
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
