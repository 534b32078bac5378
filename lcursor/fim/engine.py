"""One request on its sequence: prompt in, text out, the KV cache kept for the next one.

Owns the model, its context, the cache and the vocabulary. Runs on the scheduler's thread alone;
`abort` may be set from any.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lcursor.catalog import gguf
from lcursor.catalog.hardware import physical_cores
from lcursor.config import CompletionConfig
from lcursor.fim import families, llama, prompt, trim
from lcursor.fim.cache import Cache
from lcursor.fim.families import Resolved
from lcursor.fim.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PIECES_AT_ONCE = 8192
"""Tokens whose text is read between two looks at the mailbox; about 20 ms."""

Reason = Literal["end", "line", "tokens", "time", "trimmed", "cancelled"]
OnText = Callable[[str], None]


@dataclass(slots=True)
class Result:
    """A finished suggestion and what it cost."""

    text: str = ""
    reason: Reason = "end"
    prompt_tokens: int = 0
    read_tokens: int = 0
    generated_tokens: int = 0
    prompt_ms: float = 0.0
    first_ms: float = 0.0
    """From the start of the work to the first text; 0 when there was none."""
    total_ms: float = 0.0
    confidence: float = 0.0


class Engine:
    """A loaded model that completes.

    Args:
        path: the GGUF file.
        family: name of its family, "" to find out.
        config: budgets and placement.
        progress: told how far the load is.

    Raises:
        ModelCorrupt, ModelUnsuitable, OutOfMemory, Cancelled: see `llama.Model`.
    """

    splices = True
    """Whether a keystroke may keep the suffix where it is; off, every prompt is read exactly."""
    heals = True
    """Whether the token at the cursor is taken back and written anew."""

    def __init__(
        self, path: Path, family: str, config: CompletionConfig, progress: llama.Progress
    ) -> None:
        gguf.check_for_completion(path)
        self.config = config
        self.model = llama.Model(path, config.gpu_layers, progress)
        try:
            self.family: Resolved = families.resolve(family, self.model.tokenize)
            self._context = llama.Context(self.model, self._size())
        except Exception:
            self.model.close()
            raise
        self._pieces: list[bytes] = []
        self._vocabulary: Vocabulary | None = None
        self._cache = Cache(self._context)
        self._first_logits: NDArray[np.float32] | None = None
        self._latest: prompt.Prompt | None = None
        self._bos = self.model.bos if self.model.add_bos else None
        self._warm()

    @property
    def abort(self) -> llama.Abort:
        """The flag that stops the running request; any thread may set it."""
        return self._context.abort

    @property
    def read_tokens(self) -> int:
        """Tokens of the prompt that the last request read, also when it was stopped."""
        return self._cache.read_tokens

    def close(self) -> None:
        """Free the cache and the weights."""
        self._context.close()
        self.model.close()

    def complete(
        self, source: prompt.Source, on_text: OnText, *, single_line: bool = False
    ) -> Result:
        """Read what is new of the prompt, then write until a rule or a budget says stop.

        Args:
            source: the text around the cursor.
            on_text: told all text so far, each time it has grown.
            single_line: write no newline.

        Returns:
            The suggestion; its text begins with everything that `on_text` was told.

        Raises:
            Cancelled: `abort` was set.
            EngineFailed, OutOfMemory: see `llama.Context.decode`.
        """
        started = time.perf_counter()
        result = Result()
        built = prompt.build(
            source,
            self.family,
            self.model.tokenize,
            prefix_tokens=self._prefix_tokens,
            suffix_tokens=self.config.suffix_tokens,
            bos=self._bos,
        )
        facts = trim.around(built.prefix, built.suffix, single_line, self.config.max_lines)
        heal = b""
        if self.heals and self._vocabulary:
            before, heal = self._vocabulary.take_back(built.before)
            built = dataclasses.replace(built, before=tuple(before))
        result.prompt_tokens = len(built.tokens)
        self._bring(built)
        result.read_tokens = self.read_tokens
        result.prompt_ms = _ms_since(started)
        self._write(heal, facts, started, on_text, result)
        result.total_ms = _ms_since(started)
        return result

    def _bring(self, built: prompt.Prompt, exact: bool = False) -> None:
        """Read what is new of a prompt, and keep the logits behind it."""
        self._latest = built
        plan = self._cache.bring(built, exact=exact or not self.splices)
        if not plan.keep_tail or self._first_logits is None:
            self._first_logits = self._context.logits().copy()

    def idle(self) -> bool:
        """Do one piece of what makes later requests better; return whether there is more.

        First the vocabulary is read, by parts, then the suffix behind what was typed since.

        Raises:
            Cancelled: `abort` was set.
        """
        if self._vocabulary is None:
            start = len(self._pieces)
            for token in range(start, min(start + PIECES_AT_ONCE, self.model.n_vocab)):
                self._pieces.append(self.model.piece(token))
            if len(self._pieces) == self.model.n_vocab:
                self._vocabulary = Vocabulary(self._pieces)
            return True
        if self._latest is not None and self._cache.cells.stale:
            self._bring(self._latest, exact=True)
        return False

    def _write(
        self, heal: bytes, facts: trim.Around, started: float, on_text: OnText, result: Result
    ) -> None:
        """Decode greedily behind the prompt.

        Args:
            heal: text before the cursor that must be written first, as it was taken off the prompt.
        """
        suggestion, data, text = trim.Suggestion(facts), b"", ""
        began = time.perf_counter()
        result.reason = "tokens"
        logits = self._first_logits if self._first_logits is not None else self._context.logits()
        for number in range(self.config.max_tokens):
            among = self._vocabulary.allowed(heal) if heal and self._vocabulary else None
            token, share = llama.most_likely(logits, among)
            if number == 0:
                result.confidence = share
            if not heal and (token in self.family.stops or self.model.is_end(token)):
                result.reason = "end"
                break
            piece = self.model.piece(token)
            taken = min(len(piece), len(heal))
            heal = heal[taken:]
            data += piece[taken:]
            text = data.decode("utf-8", "ignore")
            result.generated_tokens += 1
            if suggestion.grow(text):
                result.first_ms = result.first_ms or _ms_since(started)
                on_text(suggestion.text)
            if trim.ended(text, facts):
                result.reason = "line" if facts.single_line else "trimmed"
                break
            if _ms_since(began) > self.config.budget_ms:
                result.reason = "time"
                break
            self._cache.write(token)
            logits = self._context.logits()
        result.text = suggestion.finish(text)

    @property
    def _prefix_tokens(self) -> int:
        """Most tokens before the cursor, so that prompt and suggestion fit the cache."""
        names = 64  # the repository's and the file's name, markers
        room = self._context.cells - self.config.suffix_tokens - self.config.max_tokens - names
        return max(min(self.config.prefix_tokens, room), 1)

    def _size(self) -> llama.ContextSize:
        on_gpu = llama.has_gpu() and self.config.gpu_layers != 0
        cells = min(self.config.context_tokens, self.model.n_ctx_train or 1 << 20)
        threads = self.config.threads or (2 if on_gpu else physical_cores())
        return llama.ContextSize(cells=cells, ubatch=256 if on_gpu else 64, threads=threads)

    def _warm(self) -> None:
        """Read one token, so that the first request does not pay for page faults and graphs."""
        token = next(iter(self.family.ids.values()))
        self._bring(prompt.Prompt((token,), None, (), (token,), "", ""))


def _ms_since(start: float) -> float:
    return (time.perf_counter() - start) * 1000
