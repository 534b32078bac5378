"""Messages are checked when they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, is_typeddict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor import protocol
from lcursor.errors import LcursorError, MessageInvalid

GOOD = {"protocol": 1, "version": "0.1.0", "config": {}}


def test_a_good_message_passes_unchanged() -> None:
    assert protocol.check("hello", GOOD) is GOOD


def test_unknown_fields_pass() -> None:
    assert protocol.check("fim.cancel", {"id": 1, "new": True})["new"]


@pytest.mark.parametrize("empty", [[], {}])
def test_an_empty_lua_table_is_a_table(empty: object) -> None:
    assert protocol.check("shutdown", empty) == {}


@pytest.mark.parametrize(
    ("method", "params", "complaint"),
    [
        ("nothing", {}, "unknown message"),
        ("hello", 3, "expected a table"),
        ("hello", {"protocol": 1, "version": "x"}, "'config' is missing"),
        ("hello", {**GOOD, "protocol": "1"}, "'protocol' is not of type int"),
        ("hello", {**GOOD, "protocol": True}, "'protocol' is not of type int"),
        ("hello", {**GOOD, "config": 1}, "'config' is no"),
        ("fim.cancel", {"id": 1.5}, "'id' is not of type int"),
    ],
)
def test_bad_messages(method: str, params: object, complaint: str) -> None:
    with pytest.raises(MessageInvalid, match=complaint):
        protocol.check(method, params)


def test_a_literal_is_checked() -> None:
    state = {"state": "ready", "detail": "", "progress": 1}
    assert protocol.check("state", state, protocol.TO_LUA)
    with pytest.raises(MessageInvalid, match="'state'"):
        protocol.check("state", {**state, "state": "dancing"}, protocol.TO_LUA)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.sampled_from([*protocol.TO_PYTHON, "x"]), json)
def test_anything_is_either_a_message_or_rejected(method: str, params: object) -> None:
    try:
        checked = protocol.check(method, params)
    except MessageInvalid:
        return
    assert set(protocol.fields(protocol.TO_PYTHON[method])) <= set(checked)


def example(hint: Any, name: str) -> Any:
    """Return a value of a type, with one value in each list."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return args[0]
    if origin is list:
        return [example(args[0], name)]
    if origin is dict:
        return {}
    if is_typeddict(hint):
        return {name: example(kind, name) for name, kind in protocol.fields(hint).items()}
    return "/a" if name in protocol.PATHS else {int: 1, float: 0.5, bool: True, str: "x"}[hint]


def spoiled(value: Any, name: str = "") -> Iterator[Any]:
    """Yield copies of a value in which one part is missing or of another type."""
    yield None
    yield b"x"
    if name in protocol.PATHS and isinstance(value, str):
        yield from ("/a\0b", "/" * 5000, "\ud800")
    if isinstance(value, dict):
        for key, one in value.items():
            rest = {**value}
            del rest[key]
            yield rest
            yield from ({**value, key: each} for each in spoiled(one, key))
    elif isinstance(value, list):
        yield from ([value[0], each] for each in spoiled(value[0], name))
        yield {"a": 1}


@pytest.mark.parametrize("method", protocol.TO_PYTHON)
def test_a_wrong_part_of_a_message_is_found_wherever_it_is(method: str) -> None:
    whole = example(protocol.TO_PYTHON[method], "")
    assert protocol.check(method, whole) == whole
    for params in spoiled(whole):
        with pytest.raises(MessageInvalid):
            protocol.check(method, params)


def test_a_path_may_have_any_byte_but_zero() -> None:
    for path in ("", "/a b\n", "/\udcff", "/é💥", "/" * 4095):
        assert protocol.check("index.enter", {"path": path})


def test_an_error_says_what_to_do() -> None:
    assert str(LcursorError("it broke", "Mend it")) == "it broke. Mend it"
    assert str(LcursorError("it broke")) == "it broke"
