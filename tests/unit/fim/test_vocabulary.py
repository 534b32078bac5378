"""Token healing: what may come when part of a word is already there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.fim.vocabulary import MAX_FILES, Vocabulary, round_trips

PIECES = [b"", b"re", b"ret", b"return", b" return", b"r", b"urn", b"\n", b":\n", b"x", b"\xff"]
VOCABULARY = Vocabulary.build(PIECES)


def ids(*texts: bytes) -> list[int]:
    return [PIECES.index(text) for text in texts]


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
def test_tokens_are_removed_from_the_end_of_a_prompt(
    tokens: list[bytes], stay: list[bytes], text: bytes
) -> None:
    assert VOCABULARY.back_off(ids(*tokens)) == (ids(*stay), text)


pieces = st.lists(st.binary(min_size=1, max_size=3), min_size=1, max_size=20, unique=True)


@given(pieces, st.data())
def test_removed_tokens_can_be_written_again(some: list[bytes], data: st.DataObject) -> None:
    vocabulary = Vocabulary.build([b"", *some])
    tokens = data.draw(st.lists(st.integers(1, len(some)), max_size=8))
    stay, text = vocabulary.back_off(tokens)
    assert stay == tokens[: len(stay)]
    assert b"".join(vocabulary.piece(t) for t in tokens[len(stay) :]) == text
    for token in tokens[len(stay) :]:  # the way back is open at every step
        assert token in vocabulary.allowed(text)
        text = text[len(vocabulary.piece(token)) :]


@given(pieces, st.binary(min_size=1, max_size=4))
def test_allowed_agrees_with_a_slow_search(some: list[bytes], text: bytes) -> None:
    vocabulary = Vocabulary.build([b"", *some])
    slow = [
        token
        for token, piece in enumerate([b"", *some])
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

    assert round_trips(tokenize, lambda token: bytes([token])) is good


def test_a_saved_vocabulary_is_loaded_unchanged(tmp_path: Path) -> None:
    VOCABULARY.save(tmp_path / "made", "model 1")
    loaded = Vocabulary.load(tmp_path / "made", "model 1")
    assert loaded is not None
    assert [loaded.piece(token) for token in range(len(loaded))] == PIECES
    for text in (b"re", b"ret", b"\xff", b"zz"):
        assert list(loaded.allowed(text)) == list(VOCABULARY.allowed(text))


@pytest.mark.parametrize("at", [0, 30, 60, -1])
def test_a_damaged_file_is_deleted(tmp_path: Path, at: int) -> None:
    VOCABULARY.save(tmp_path, "model 1")
    [path] = tmp_path.iterdir()
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    assert Vocabulary.load(tmp_path, "model 1") is None
    assert not path.exists()


def test_another_model_has_another_file(tmp_path: Path) -> None:
    VOCABULARY.save(tmp_path, "model 1")
    [path] = tmp_path.iterdir()
    assert Vocabulary.load(tmp_path, "model 2") is None
    assert path.exists()


def test_the_files_used_longest_ago_are_deleted(tmp_path: Path) -> None:
    for number in range(MAX_FILES):
        VOCABULARY.save(tmp_path, f"model {number}")
    for path in tmp_path.iterdir():
        os.utime(path, (1, 1))
    assert Vocabulary.load(tmp_path, "model 0")
    for number in range(MAX_FILES, 2 * MAX_FILES - 1):
        VOCABULARY.save(tmp_path, f"model {number}")
    assert len(list(tmp_path.iterdir())) == MAX_FILES
    assert Vocabulary.load(tmp_path, "model 0")
    assert not Vocabulary.load(tmp_path, "model 1")
