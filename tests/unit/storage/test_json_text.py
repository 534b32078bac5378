"""JSON that somebody else wrote is a value or a ValueError."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.storage import json_text


@pytest.mark.parametrize(
    "text", ["[" * 200_000, b"[" * 200_000, '{"a":' * 200_000, "", b"\xff", "9" * 100_000, "[1"]
)
def test_what_cannot_be_read_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_text.parse(text)


@given(st.binary() | st.text())
def test_any_text_is_a_value_or_a_value_error(text: str | bytes) -> None:
    with contextlib.suppress(ValueError):
        json_text.parse(text)


def test_a_value_is_read() -> None:
    assert json_text.parse(b'{"a": [1, "\\u00e9"]}') == {"a": [1, "é"]}
