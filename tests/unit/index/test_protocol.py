"""What a client and the worker say to each other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor import errors
from lcursor.errors import LcursorError, MessageInvalid
from lcursor.index import protocol

texts = st.text() | st.binary().map(lambda data: data.decode("utf-8", "surrogateescape"))


@given(st.dictionaries(texts, texts | st.lists(texts) | st.integers() | st.none()))
def test_messages_are_decoded_as_they_were_encoded(message: dict[str, Any]) -> None:
    line = protocol.encode(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert line.isascii()
    assert protocol.decode(line) == message


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"3", b"\xff\xff", b"[" * 100_000, b'{"a":'])
def test_invalid_messages_are_rejected(line: bytes) -> None:
    with pytest.raises(MessageInvalid):
        protocol.decode(line)


def test_a_message_has_an_end() -> None:
    with pytest.raises(MessageInvalid, match="too long"):
        protocol.decode(b'"' + b"x" * protocol.MAX_BYTES + b'"')


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        ({"do": "search", "text": "x"}, {"text": "x", "limit": 20, "mode": "hybrid"}),
        (
            {"do": "search", "text": "x", "limit": 10**9, "mode": "lexical", "new": 1},
            {"text": "x", "limit": protocol.MAX_LIMIT, "mode": "lexical"},
        ),
        ({"do": "symbols", "name": "f"}, {"name": "f", "limit": 20, "prefix": False}),
        ({"do": "buffer", "path": "a", "text": None}, {"path": "a", "text": None}),
        ({"do": "recent", "paths": ["a"]}, {"paths": ["a"]}),
        ({"do": "secrets", "globs": ["*.vault"]}, {"globs": ["*.vault"]}),
        ({"do": "begin"}, {"confirmed": False, "rebuild": False}),
        ({"do": "status"}, {}),
    ],
)
def test_a_question_has_its_defaults(said: dict[str, Any], fields: dict[str, Any]) -> None:
    assert protocol.parse_request({"id": 4, **said}) == (4, said["do"], fields)


@pytest.mark.parametrize(
    "said",
    [
        {"do": "status"},
        {"id": True, "do": "status"},
        {"id": "4", "do": "status"},
        {"id": 4},
        {"id": 4, "do": "dance"},
        {"id": 4, "do": ["status"]},
        {"id": 4, "do": "search"},
        {"id": 4, "do": "secrets"},
    ],
)
def test_a_wrong_question_is_rejected(said: dict[str, Any]) -> None:
    with pytest.raises(MessageInvalid):
        protocol.parse_request(said)


@pytest.mark.parametrize("kind", errors.tree())
def test_an_error_keeps_its_class(kind: type[LcursorError]) -> None:
    error = kind.__new__(kind)
    LcursorError.__init__(error, "it failed", "do this")
    said = protocol.decode(protocol.encode(protocol.failure(3, error)))
    heard = protocol.to_error(said["error"])
    assert type(heard) is kind
    assert (heard.message, heard.hint) == ("it failed", "do this")
