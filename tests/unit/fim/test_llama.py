"""What is done around llama.cpp's calls, without a model."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from lcursor.fim import llama


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 1000])
def test_a_piece_is_whole_however_long_it_is(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    piece = bytes(65 + number % 26 for number in range(size))

    def to_piece(vocab: None, token: int, buffer: Any, room: int, *rest: object) -> int:
        if room < size:
            return -size
        ctypes.memmove(buffer, piece, size)
        return size

    monkeypatch.setattr("lcursor.fim.llama.L.llama_token_to_piece", to_piece)
    model = llama.Model.__new__(llama.Model)
    model._vocab = None
    assert model.piece(7) == piece
