"""What is done around llama.cpp's calls, with a tiny model at most."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

from lcursor.catalog import selftest_model
from lcursor.errors import ModelUnsuitable
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


def test_an_unknown_architecture_is_said_in_the_words_of_llama_cpp(tmp_path: Path) -> None:
    path = tmp_path / "odd.gguf"
    selftest_model.write(path)
    path.write_bytes(path.read_bytes().replace(b"qwen2", b"qwen0"))
    with pytest.raises(ModelUnsuitable, match="unknown model architecture: 'qwen0'"):
        llama.Model(path, 0, lambda _: True)
