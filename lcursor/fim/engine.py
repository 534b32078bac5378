"""One request on its sequence: prompt in, text out, the KV cache kept for the next one.

Owns the model, its context and the shadow of the cache. Runs on the scheduler's thread alone;
`abort` may be set from any.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lcursor.catalog import gguf
from lcursor.catalog.hardware import physical_cores
from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled, EngineFailed
from lcursor.fim import families, llama, prompt, trim
from lcursor.fim.cells import Cells
from lcursor.fim.families import Resolved

SLICE_TOKENS = 128
"""Prompt tokens read between two looks at the abort flag, where the GPU does not poll it."""

Reason = Literal["end", "line", "tokens", "time", "trimmed", "cancelled"]
OnText = Callable[[str], None]


@dataclass(slots=True)
class Result:
    """A finished suggestion and what it cost."""

    text: str = ""
    reason: Reason = "end"
    prompt_tokens: int = 0
    reused_tokens: int = 0
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

    def __init__(
        self, path: Path, family: str, config: CompletionConfig, progress: llama.Progress
    ) -> None:
        gguf.check_for_completion(path)
        self.config = config
        self.model = llama.Model(path, config.gpu_layers, progress)
        self._pieces: dict[int, bytes] = {}
        try:
            self.family: Resolved = families.resolve(family, self.model.tokenize)
            self._context = llama.Context(self.model, self._size())
        except Exception:
            self.model.close()
            raise
        self._cells = Cells()
        self._bos = self.model.bos if self.model.add_bos else None
        self._warm()

    @property
    def abort(self) -> llama.Abort:
        """The flag that stops the running request; any thread may set it."""
        return self._context.abort

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
        result.prompt_tokens = len(built.tokens)
        result.reused_tokens = self._read(built.tokens)
        result.prompt_ms = _ms_since(started)
        self._write(facts, started, on_text, result)
        result.total_ms = _ms_since(started)
        return result

    def _write(self, facts: trim.Around, started: float, on_text: OnText, result: Result) -> None:
        """Decode greedily; the cache then holds the prompt and what was written."""
        suggestion, data, text = trim.Suggestion(facts), b"", ""
        began = time.perf_counter()
        result.reason = "tokens"
        for number in range(self.config.max_tokens):
            logits = self._context.logits()
            token = llama.argmax(logits)
            if number == 0:
                result.confidence = llama.probability(logits, token)
            if token in self.family.stops or self.model.is_end(token):
                result.reason = "end"
                break
            data += self._piece(token)
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
            self._decode([token])
        result.text = suggestion.finish(text)

    def _read(self, tokens: tuple[int, ...]) -> int:
        """Bring the cache to hold exactly these tokens; return how many it had."""
        kept = self._cells.common(tokens)
        if not self._context.remove(0, kept):
            raise EngineFailed("this model's cache cannot be cut", "Choose another model")
        self._cells.cut(kept)
        for start in range(kept, len(tokens), SLICE_TOKENS):
            self._decode(tokens[start : start + SLICE_TOKENS])
        return kept

    def _decode(self, tokens: tuple[int, ...] | list[int]) -> None:
        """Read tokens behind the last one; keep the shadow true whatever happens."""
        if self.abort.is_set():
            raise Cancelled("a newer request came")
        try:
            self._context.decode(tokens, len(self._cells))
        except Exception:
            length = min(self._context.length(), len(self._cells))
            self._context.remove(0, length)
            self._cells.cut(length)
            raise
        self._cells.add(tokens)

    def _piece(self, token: int) -> bytes:
        piece = self._pieces.get(token)
        if piece is None:
            piece = self._pieces[token] = self.model.piece(token)
        return piece

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
        self._decode([next(iter(self.family.ids.values()))])


def _ms_since(start: float) -> float:
    return (time.perf_counter() - start) * 1000
