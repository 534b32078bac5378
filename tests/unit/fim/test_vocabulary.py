"""Token healing: what may come when part of a word is already there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.fim.vocabulary import Vocabulary, gives_back

PIECES = [b"", b"re", b"ret", b"return", b" return", b"r", b"urn", b"\n", b":\n", b"x", b"\xff"]
VOCABULARY = Vocabulary(PIECES)


def ids(*texts: bytes) -> list[int]:
    return [PIECES.index(text) for text in texts]


def test_starting_with() -> None:
    assert sorted(VOCABULARY.starting_with(b"re")) == sorted(ids(b"re", b"ret", b"return"))
    assert list(VOCABULARY.starting_with(b"\xff")) == ids(b"\xff")
    assert list(VOCABULARY.starting_with(b"zz")) == []


def test_allowed_are_those_that_agree() -> None:
    assert sorted(VOCABULARY.allowed(b"ret")) == sorted(ids(b"ret", b"return", b"re", b"r"))


@pytest.mark.parametrize(
    ("tokens", "stay", "text"),
    [
        ([b"x", b"ret"], [b"x"], b"ret"),
        ([b"x", b"ret", b"urn"], [b"x"], b"return"),  # together they begin one token
        ([b"x", b":\n"], [b"x", b":\n"], b""),  # a line's end stays
        ([b""], [b""], b""),  # a marker stays
        ([], [], b""),
    ],
)
def test_take_back(tokens: list[bytes], stay: list[bytes], text: bytes) -> None:
    assert VOCABULARY.take_back(ids(*tokens)) == (ids(*stay), text)


pieces = st.lists(st.binary(min_size=1, max_size=3), min_size=1, max_size=20, unique=True)


@given(pieces, st.data())
def test_what_is_taken_back_can_be_written_again(some: list[bytes], data: st.DataObject) -> None:
    vocabulary = Vocabulary([b"", *some])
    tokens = data.draw(st.lists(st.integers(1, len(some)), max_size=8))
    stay, text = vocabulary.take_back(tokens)
    assert stay == tokens[: len(stay)]
    assert b"".join(vocabulary.pieces[t] for t in tokens[len(stay) :]) == text
    for token in tokens[len(stay) :]:  # the way back is open at every step
        assert token in vocabulary.allowed(text)
        text = text[len(vocabulary.pieces[token]) :]


@given(pieces, st.binary(min_size=1, max_size=4))
def test_allowed_agrees_with_a_slow_search(some: list[bytes], text: bytes) -> None:
    vocabulary = Vocabulary([b"", *some])
    slow = [
        token
        for token, piece in enumerate(vocabulary.pieces)
        if piece and (piece.startswith(text) or text.startswith(piece))
    ]
    assert sorted(vocabulary.allowed(text)) == slow


@pytest.mark.parametrize(
    ("change", "good"),
    [
        (lambda text: text, True),
        (lambda text: " " + text, True),
        (str.lower, False),
        (lambda text: text.replace("\t", " "), False),
        (lambda text: text.replace("\r\n", "\n"), False),
        (lambda text: text.replace("  ", " "), False),
        (lambda text: text.encode("ascii", "replace").decode(), False),
        (str.strip, False),
    ],
)
def test_a_tokenizer_must_give_back_its_text(change: Callable[[str], str], good: bool) -> None:
    def tokenize(text: str) -> list[int]:
        return list(change(text).encode())

    assert gives_back(tokenize, lambda token: bytes([token])) is good
