"""A small model of llama.cpp: a KV cache with its rules, and a model that continues known texts.

`FakeContext` models cells with positions and sequences: a batch must follow the last position of
its sequence, and a cell's position is shared by all sequences that it is in. Tokens of `FakeModel`
are bytes, and markers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lcursor.catalog import gguf
from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled, OutOfMemory
from lcursor.fim import llama
from lcursor.fim.engine import Engine
from lcursor.fim.families import FAMILIES
from lcursor.fim.llama import ContextSize

MARKERS = FAMILIES["qwen2.5-coder"].markers
END = 256 + len(MARKERS)
N_VOCAB = END + 1
IDS = {name: 256 + number for number, name in enumerate(MARKERS)}
LIKELY, OTHER = 0.9, 0.05
"""Probabilities of the best continuation of a text, and of each other one."""


class Flag:
    """An abort flag that sets itself after it was read a number of times.

    Attributes:
        is_immediate: whether it is set also between two batches.
    """

    def __init__(self) -> None:
        self.looks_left = -1
        self.is_immediate = False
        self._holds = 0

    @contextmanager
    def between_batches(self) -> Iterator[None]:
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1

    def is_set(self) -> bool:
        if self._holds and not self.is_immediate:
            return False
        if self.looks_left > 0:
            self.looks_left -= 1
        return self.looks_left == 0

    def set(self) -> None:
        self.looks_left = 0

    def clear(self) -> None:
        self.looks_left = -1


class FakeModel:
    """A model whose tokens are bytes.

    Args:
        path: any file.
        known: what it continues: the end of a text, and its continuations, the likeliest first.
    """

    bos, add_bos, n_ctx_train, n_vocab = 0, False, 0, N_VOCAB
    description = "fake"

    def __init__(self, path: Path, known: Mapping[str, Sequence[str]]) -> None:
        self.path, self.known = path, known

    def tokenize(self, text: str, special: bool = False) -> list[int]:
        for name, spelling in MARKERS.items():
            if special and text == spelling:
                return [IDS[name]]
        return list(text.encode("utf-8", "surrogateescape"))

    def piece(self, token: int) -> bytes:
        return bytes([token]) if token < 256 else b""

    def is_end(self, token: int) -> bool:
        return token == END

    def close(self) -> None:
        pass

    def next_tokens(self, tokens: Sequence[int]) -> list[int]:
        """Return the tokens that may follow a prompt and what was generated, the likeliest first.

        The text is that before the cursor and that behind the middle marker.
        """
        before, _, generated = _split(tokens, IDS["suf"], IDS["mid"])
        text = before + generated
        found = dict[int, None]()
        for end, continuations in self.known.items():
            at = text.rfind(end.encode())
            written = text[at + len(end.encode()) :]
            for each in map(str.encode, continuations) if at >= 0 else ():
                if each.startswith(written):
                    found[[*each, END][len(written)]] = None
        return [*found] or [END]


class FakeContext:
    """A KV cache of a number of cells.

    Args:
        room: cells that it has; fewer may be left to it later.
        model: gives the logits; without one there are none.

    Attributes:
        batches: number of tokens of each batch that was decoded.
        threads: number of threads that evaluate.
    """

    batch_tokens = 512

    def __init__(self, room: int = 10_000, model: FakeModel | None = None) -> None:
        self.room = self.cells = room
        self.held: list[tuple[int, int, set[int]]] = []  # token, position, sequences
        self.abort = Flag()
        self.batches: list[int] = []
        self.threads = 0
        self._model = model
        self._outputs: list[tuple[list[int], int]] = []  # for each token of the last batch: a
        # sequence, and how many tokens of it are up to this one

    @classmethod
    def open(cls, model: FakeModel, size: ContextSize) -> FakeContext:
        """Replace `llama.Context`."""
        opened = cls(size.cells, model)
        opened.threads = size.threads
        return opened

    def close(self) -> None:
        pass

    def use_threads(self, count: int) -> None:
        self.threads = count

    def decode(
        self, tokens: Sequence[int], position: int, sequence: int = 0, outputs: int = 1
    ) -> None:
        assert 0 < outputs <= len(tokens) <= self.batch_tokens
        if len(self.held) + len(tokens) > self.room:
            raise OutOfMemory("full")
        last = self.length(sequence)
        assert position == last, f"sequence {sequence} ends at {last}, batch begins at {position}"
        for start in range(0, len(tokens), 2):  # what was computed before an abort stays
            if self.abort.is_set():
                raise Cancelled("aborted inside")
            for i, token in enumerate(tokens[start : start + 2], start):
                self.held.append((token, position + i, {sequence}))
        self.batches.append(len(tokens))
        if self._model:
            whole = [token for _, token in self.of(sequence)]
            self._outputs = [(whole, len(whole) - i) for i in reversed(range(len(tokens)))]

    def decode_each(self, tokens: Sequence[tuple[int, int, int]]) -> None:
        outputs = list[tuple[list[int], int]]()
        for token, position, sequence in tokens:
            self.decode([token], position, sequence)
            outputs += self._outputs
        self._outputs = outputs

    def logits(self, number: int = -1) -> np.ndarray[Any, Any]:
        assert self._model is not None
        logits = np.full(N_VOCAB, np.log(1e-6), np.float32)
        tokens, count = self._outputs[number]
        for rank, token in enumerate(self._model.next_tokens(tokens[:count])):
            logits[token] = np.log(OTHER if rank else LIKELY)
        return logits

    def remove(self, sequence: int, start: int, end: int = -1) -> bool:
        for _, position, owners in self.held:
            if position >= start and (end < 0 or position < end):
                owners.discard(sequence)
        self.held = [cell for cell in self.held if cell[2]]
        return True

    def copy(self, source: int, target: int, start: int, end: int) -> None:
        for _, position, owners in self.held:
            if source in owners and start <= position < end:
                owners.add(target)

    def move(self, sequence: int, start: int, end: int, by: int) -> None:
        for i, (token, position, owners) in enumerate(self.held):
            if sequence in owners and position >= start and (end < 0 or position < end):
                assert owners == {sequence}, "a shift moves the cell for every sequence"
                self.held[i] = (token, position + by, owners)

    def length(self, sequence: int = 0) -> int:
        return max((p for _, p, owners in self.held if sequence in owners), default=-1) + 1

    def state(self, sequence: int, max_bytes: int) -> memoryview:
        return memoryview(json.dumps(self.of(sequence)).encode())

    def restore(self, sequence: int, state: bytes | memoryview) -> bool:
        held = json.loads(bytes(state))
        if len(self.held) + len(held) > self.room:
            return False
        self.remove(sequence, 0)
        self.held += [(token, position, {sequence}) for position, token in held]
        return True

    def of(self, sequence: int) -> list[tuple[int, int]]:
        """Return (position, token) of a sequence, in order."""
        return sorted((p, token) for token, p, owners in self.held if sequence in owners)


def opener(known: Mapping[str, Sequence[str]]) -> Callable[..., FakeModel]:
    """Return a replacement for `llama.Model`."""

    def load(path: Path, gpu_layers: int, progress: object, main_gpu: int = -1) -> FakeModel:
        return FakeModel(path, known)

    return load


@contextmanager
def engines(
    monkeypatch: pytest.MonkeyPatch, folder: Path, known: Mapping[str, Sequence[str]]
) -> Iterator[Callable[..., Engine]]:
    """Open engines with a model that continues texts; close them at the end."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setattr(gguf, "check_for_completion", lambda path: None)
    monkeypatch.setattr(llama, "has_gpu", lambda: False)
    monkeypatch.setattr(llama, "Model", opener(known))
    monkeypatch.setattr(llama, "Context", FakeContext.open)
    path = folder / "model.gguf"
    path.touch()
    opened = []

    def start(config: CompletionConfig, family: str = "qwen2.5-coder") -> Engine:
        engine = Engine(path, family, config, lambda fraction: True)
        opened.append(engine)
        while engine._vocabulary.is_alive():
            engine._vocabulary.join()
        return engine

    yield start
    for engine in opened:
        engine.close()


def _split(tokens: Sequence[int], *markers: int) -> list[bytes]:
    """Return the text before, between and behind the last of each marker."""
    parts, rest = list[bytes](), list(tokens)
    for marker in reversed(markers):
        at = len(rest) - 1 - rest[::-1].index(marker) if marker in rest else len(rest)
        parts.insert(0, bytes(token for token in rest[at + 1 :] if token < 256))
        rest = rest[:at]
    return [bytes(token for token in rest if token < 256), *parts]
