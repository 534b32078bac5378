"""Token healing: the model's tokens as bytes, and which of them may come next.

The cursor is often inside of a text that the tokenizer would make one token, and a prompt that ends
in half a token misleads the model. So the last tokens are removed from the prompt, and the
generated text must start with their text. Immutable; any thread. Reading the pieces of a model
takes a second, so they are cached on disk.

Source: the idea and its name are Guidance's ("token healing").
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lcursor.storage import folders

if TYPE_CHECKING:
    from numpy.typing import NDArray


PROBE = 'def F(x):\n\treturn "é – 日本 \U0001f600" + x  # 1e-9\n\n    if x != {}:  \r\n'
"""Text that some tokenizers change: spaces, tabs, line ends, non-ASCII characters."""


MAGIC = b"lcursor vocabulary 1\n"
DIGEST_BYTES = 32
MAX_FILES = 4
"""Maximum vocabularies on disk, 2 MB each; the least recently used one is deleted first."""


class Vocabulary:
    """All pieces of a model, sorted.

    Args:
        text: the concatenated pieces of all tokens; markers have empty pieces.
        starts: offset of each piece, and the end of the last: int32 [n_vocab + 1].
        order: ids of the tokens with a piece, sorted by it: int32 [n].
    """

    def __init__(self, text: bytes, starts: NDArray[np.int32], order: NDArray[np.int32]) -> None:
        self._text, self._starts, self._order = text, starts, order
        self._tokens = order.astype(np.int64)

    @classmethod
    def build(cls, pieces: Sequence[bytes]) -> Vocabulary:
        """Sort the pieces of all tokens. Cost: 0.2 s for 152,000."""
        starts = np.zeros(len(pieces) + 1, dtype=np.int32)
        np.cumsum([len(piece) for piece in pieces], out=starts[1:])
        filled = (token for token, piece in enumerate(pieces) if piece)
        order = np.array(sorted(filled, key=pieces.__getitem__), dtype=np.int32)
        return cls(b"".join(pieces), starts, order)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def piece(self, token: int) -> bytes:
        """Return the bytes of a token; b"" for a marker."""
        return self._text[self._starts[token] : self._starts[token + 1]]

    def starting_with(self, text: bytes) -> NDArray[np.int64]:
        """Return the tokens whose piece starts with `text`: [n]."""
        after = _after(text)
        return self._tokens[self._find(text) : self._find(after) if after else None]

    def allowed(self, text: bytes) -> NDArray[np.int64]:
        """Return the tokens that may come next if the generated text must start with `text`: [n].

        Their pieces start with it, or are a prefix of it.
        """
        parts = [
            self._order[at]
            for size in range(1, len(text))
            if self._piece_at(at := self._find(text[:size])) == text[:size]
        ]
        return np.concatenate([self.starting_with(text), np.array(parts, dtype=np.int64)])

    def back_off(self, tokens: Sequence[int]) -> tuple[list[int], bytes]:
        """Remove the last tokens of a prompt that may be the start of one longer token.

        The removed tokens together are a prefix of a token in the vocabulary, so that typing inside
        a word does not change the other tokens. The end of a line always stays. Return the
        remaining tokens, and the required start of the generated text.
        """
        end, text = len(tokens), b""
        while end:
            piece = self.piece(tokens[end - 1])
            if not piece or piece.endswith((b"\n", b"\r")) or not self.begins(piece + text):
                break
            end, text = end - 1, piece + text
        return list(tokens[:end]), text

    def begins(self, text: bytes) -> bool:
        """Return whether any token starts with `text`."""
        return self._piece_at(self._find(text)).startswith(text)

    def _find(self, text: bytes) -> int:
        """Return the index, in sorted order, of the first piece not less than `text`."""
        return bisect_left(range(len(self._order)), text, key=self._piece_at)

    def _piece_at(self, number: int) -> bytes:
        return self.piece(self._order[number]) if number < len(self._order) else b""

    def save(self, folder: Path, fingerprint: str) -> None:
        """Write a file for `load`, and delete the oldest files of other models.

        Nothing is saved if the disk is full or read-only.
        """
        path = _path(folder, fingerprint)
        sizes = np.array([len(self._starts), len(self._order)], dtype=np.int32)
        parts = [sizes.tobytes(), self._starts.tobytes(), self._order.tobytes(), self._text]
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            folders.write_file(path, MAGIC, _digest(fingerprint, *parts), *parts)
            by_age = sorted(folder.glob(f"*{path.suffix}"), key=lambda each: each.stat().st_mtime)
            for old in by_age[:-MAX_FILES]:
                old.unlink(missing_ok=True)

    @classmethod
    def load(cls, folder: Path, fingerprint: str) -> Vocabulary | None:
        """Return the saved vocabulary of a model, or None; a damaged file is deleted.

        The fingerprint identifies the model and the version of its tokenizer. Cost: 5 ms for
        152,000 tokens.
        """
        path = _path(folder, fingerprint)
        try:
            data = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        head = len(MAGIC) + DIGEST_BYTES
        body = data[head:]
        if data[:head] != MAGIC + _digest(fingerprint, body):
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        [n_starts, n_order] = np.frombuffer(body, np.int32, 2)
        numbers = np.frombuffer(body, np.int32, n_starts + n_order, 8)
        return cls(body[8 + numbers.nbytes :], numbers[:n_starts], numbers[n_starts:])


def read(
    piece: Callable[[int], bytes], n_vocab: int, is_stopped: Callable[[], bool]
) -> Vocabulary | None:
    """Read all pieces of a model, 0.9 s for 152,000 tokens; return None if stopped."""
    pieces = []
    for token in range(n_vocab):
        if is_stopped():
            return None
        pieces.append(piece(token))
    return Vocabulary.build(pieces)


def default_folder() -> Path:
    """Return `$XDG_CACHE_HOME/lcursor/vocabulary`."""
    return folders.cache_home() / "vocabulary"


def _path(folder: Path, fingerprint: str) -> Path:
    return folder / f"{hashlib.sha256(fingerprint.encode()).hexdigest()[:20]}.vocabulary"


def _digest(fingerprint: str, *parts: bytes) -> bytes:
    digest = hashlib.blake2b(fingerprint.encode(), digest_size=DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return digest.digest()


def round_trips(tokenize: Callable[[str], list[int]], piece: Callable[[int], bytes]) -> bool:
    """Return whether tokenizing a text and joining the pieces restores it, as healing requires.

    A space that a tokenizer adds before every text is harmless.
    """
    back = b"".join(map(piece, tokenize(PROBE)))
    return back.removeprefix(b" ") == PROBE.encode()


def _after(text: bytes) -> bytes:
    """Return the smallest bytes above all bytes with the prefix `text`; b"" if there are none."""
    while text and text[-1] == 0xFF:
        text = text[:-1]
    return text[:-1] + bytes([text[-1] + 1]) if text else b""
