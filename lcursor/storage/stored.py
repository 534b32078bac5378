"""Read records from JSON that may be damaged or of another version. Pure.

A record is a dataclass; a value with another type than its field is refused, so that damage is
found where a file is read, not where a value is used.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from lcursor.storage import json_text

T = TypeVar("T")
DAMAGE = (ValueError, TypeError, KeyError)
"""What reading a damaged file may raise."""
MIN_INTEGER, MAX_INTEGER = -(1 << 63), (1 << 63) - 1
"""What fits into a message."""
_CHECKSUM = re.compile(rb',"crc":(\d+)\}')


def load(kind: type[T], row: object) -> T:
    """Return a record from JSON values; unknown fields are ignored.

    Raises:
        ValueError: a value is not of the type of its field.
        TypeError: a field is missing.
    """
    return cast("T", _reader(cast("Any", kind))(row))


def encode_line(row: Mapping[str, Any]) -> bytes:
    """Return a table as a line of JSON that ends with the checksum of what is before it."""
    body = json.dumps(row, separators=(",", ":")).encode()[:-1]
    return b'%s,"crc":%d}\n' % (body, zlib.crc32(body))


def decode_line(line: bytes) -> dict[str, Any]:
    """Return a table from a line; a line of an older version has no checksum.

    Raises:
        ValueError: it is damaged.
    """
    found = _CHECKSUM.search(line, max(line.rfind(b","), 0))
    if found and found.end() == len(line) and zlib.crc32(line[: found.start()]) != int(found[1]):
        raise ValueError("its checksum is wrong")
    row = json_text.parse(line)
    if not isinstance(row, dict):
        raise ValueError("it is not a table")
    row.pop("crc", None)
    return row


Reader = Callable[[object], object]


@cache
def _reader(hint: Any) -> Reader:
    """Return a function that converts a JSON value to a type, or raises ValueError."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value: value
    if origin is Literal:
        return _checked(hint, lambda value: isinstance(value, str) and value in args)
    if origin in (Union, UnionType):
        options = [_reader(each) for each in args]
        return lambda value: _first(hint, options, value)
    if is_dataclass(hint) or is_typeddict(hint):
        return _record_reader(hint)
    if origin in (tuple, list, Sequence, frozenset):
        return _list_reader(hint)
    if origin in (dict, Mapping):
        return _table_reader(hint)
    if hint is int:
        return _checked(hint, is_number)
    if hint is float:
        return _checked(hint, lambda v: is_number(v) or (isinstance(v, float) and isfinite(v)))
    assert hint in (str, bool, NoneType), hint
    return _checked(hint, lambda value: isinstance(value, hint))


def is_number(value: object) -> bool:
    """Return whether a value is an integer that fits into a message."""
    return type(value) is int and MIN_INTEGER <= value <= MAX_INTEGER


def _record_reader(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    names = [each.name for each in fields(kind)] if is_dataclass(kind) else list(hints)
    readers = {name: _reader(hints[name]) for name in names}
    is_dict = _checked(kind, lambda value: isinstance(value, dict))

    def read(row: object) -> object:
        table = cast("dict[str, Any]", is_dict(row))
        found = {name: read(table[name]) for name, read in readers.items() if name in table}
        if is_typeddict(kind) and len(found) < len(readers):
            raise TypeError(f"a field of {kind.__name__} is missing")
        return kind(**found)

    return read


def _table_reader(hint: Any) -> Reader:
    keys, values = map(_reader, get_args(hint))
    is_dict = _checked(hint, lambda value: isinstance(value, dict))

    def read(row: object) -> object:
        table = cast("dict[Any, Any]", is_dict(row))
        return {keys(name): values(each) for name, each in table.items()}

    return read


def _list_reader(hint: Any) -> Reader:
    origin, args = get_origin(hint), get_args(hint)
    is_list = _checked(hint, lambda value: isinstance(value, (list, tuple)))
    make = tuple if origin is Sequence else origin
    items = [_reader(each) for each in args if each is not ...]
    is_fixed = origin is tuple and ... not in args

    def read(row: object) -> object:
        values = cast("list[Any]", is_list(row))
        if is_fixed:
            return tuple(item(each) for item, each in zip(items, values, strict=True))
        return make(map(items[0], values))

    return read


def _checked(hint: Any, test: Callable[[Any], bool]) -> Reader:
    def read(value: object) -> object:
        if not test(value):
            raise ValueError(f"expected {hint}, found {type(value).__name__}")
        return value

    return read


def _first(hint: Any, options: Sequence[Reader], value: object) -> object:
    for option in options:
        try:
            return option(value)
        except DAMAGE:
            continue
    raise ValueError(f"expected {hint}, found {type(value).__name__}")
