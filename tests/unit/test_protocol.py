"""Messages are checked when they arrive."""

from __future__ import annotations

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


def test_an_error_says_what_to_do() -> None:
    assert str(LcursorError("it broke", "Mend it")) == "it broke. Mend it"
    assert str(LcursorError("it broke")) == "it broke"
