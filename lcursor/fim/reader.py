"""Lay out prompts, evaluate them up to their logits, and save them.

Owns the size of the window, the chunks of other files in the prompt, the slots, and their copies on
disk. Generates nothing. Runs only on the engine's thread.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from lcursor.config import CompletionConfig
from lcursor.fim import llama, prompt, trim
from lcursor.fim.families import Resolved
from lcursor.fim.kv import KvPlan, KVShadow
from lcursor.fim.kv_disk import MAX_STATE_BYTES, KVDiskCache, SavedSlot
from lcursor.fim.prompt import File, SmallWindow
from lcursor.fim.result import Completion, Result, Window
from lcursor.fim.short_window import ShortWindow
from lcursor.fim.slots import SLICE_TOKENS, Slots
from lcursor.fim.vocabulary import Vocabulary

MIN_SAVED_TOKENS = 96
"""Minimum evaluation that a file on disk must save for it to be written or read."""
MIN_WINDOW = 64
"""Minimum tokens before the cursor when memory is low."""
GROW_AFTER = 200
"""Requests without a memory error after which a halved window is doubled again."""
MAX_CACHED_TEXTS = 256
"""Number of texts whose tokens are cached."""
NAMES_TOKENS = 64
"""Tokens reserved for the names of the project and the file, and for markers."""


class Windows(NamedTuple):
    """Budgets of prompts for an early answer; the full window is evaluated in idle time.

    Attributes:
        immediate: tokens that a request may evaluate before its answer.
        suffix: tokens after the cursor that are evaluated first of the full window.
        short: window for the first answer at a cold position.
    """

    immediate: int
    suffix: int
    short: SmallWindow


ON_CPU = Windows(32, 24, SmallWindow(48, 32, 2, 4, 80))
ON_GPU = Windows(512, 128, SmallWindow(768, 256, 2, 8, 256))


class PromptReader:
    """Lays prompts out and evaluates them.

    Args:
        kv_disk: where slots are saved, if the settings want it.
        heals: whether token healing is on.

    Attributes:
        splices: whether a keystroke may keep the suffix in place; if not, every prompt is
            evaluated exactly.
        window: window of an answer; "staged" uses a smaller one if the full window is not yet
            evaluated.
        heals: see above.
        vocabulary: needed for token healing; set once it has been read.
        files: chunks of other files in the current prompt.
        files_tokens: budget for other files and the file's own imports.
    """

    splices = True
    window: Literal["staged", "full", "short"] = "staged"
    vocabulary: Vocabulary | None = None
    files: tuple[File, ...] = ()

    def __init__(
        self,
        model: llama.Model,
        context: llama.Context,
        family: Resolved,
        config: CompletionConfig,
        kv_disk: KVDiskCache,
        *,
        on_gpu: bool,
        heals: bool,
    ) -> None:
        self._model, self._context, self._family, self._config = model, context, family, config
        self._disk, self.heals = kv_disk, heals
        self.files_tokens = config.files_tokens
        self.slots = Slots(context, context.batch_tokens if on_gpu else SLICE_TOKENS)
        self._windows = ON_GPU if on_gpu else ON_CPU
        self._shrunk = 1
        self._since_shrunk = 0
        self._last_prompt: prompt.Prompt | None = None
        self._cached: frozenset[int] = frozenset()
        self._on_disk: dict[tuple[str, str], KVShadow] = {}
        self._bos = model.bos if model.add_bos else None

        @lru_cache(maxsize=MAX_CACHED_TEXTS)  # most texts do not change with a key
        def tokens(text: str, special: bool) -> tuple[int, ...]:
            return tuple(model.tokenize(text, special))

        def tokenize(text: str, special: bool = False) -> list[int]:
            return list(tokens(text, special))

        self._tokenize = tokenize
        self._short = ShortWindow(self._windows.short, family, tokenize, self._bos, self.slots.cost)

    def configure(self, config: CompletionConfig) -> None:
        """Apply new budgets."""
        self._config = config
        self.files_tokens = config.files_tokens

    @property
    def kv_disk(self) -> KVDiskCache | None:
        """Where slots are saved; None saves nothing."""
        return self._disk if self._config.save_cache else None

    @property
    def prefix_tokens(self) -> int:
        """Maximum tokens before the cursor, so that prompt and suggestion fit the cache."""
        behind = self._config.suffix_tokens + self._config.max_tokens
        available = self._context.cells - self.files_tokens - behind - NAMES_TOKENS
        return max(min(self._config.prefix_tokens, available) // self._shrunk, 1)

    def shrink(self) -> bool:
        """Halve the window before the cursor; return False if it would become too small."""
        if self.prefix_tokens // 2 < MIN_WINDOW:
            return False
        self._shrunk *= 2
        self._since_shrunk = 0
        for slot in self.slots.all():
            slot.clear()
        return True

    def grow_back(self) -> None:
        """Count a request that had enough memory; after `GROW_AFTER`, undo one `shrink`."""
        self._since_shrunk += 1
        if self._shrunk > 1 and self._since_shrunk >= GROW_AFTER:
            self._shrunk //= 2
            self._since_shrunk = 0

    def forget(self) -> None:
        """Empty the slots, so that the next prompt is evaluated like the first one."""
        self._short.forget()
        for slot in self.slots.all():
            slot.clear()

    def full_prompt(
        self, source: prompt.Source, files: tuple[File, ...] | None = None
    ) -> prompt.Prompt:
        """Lay out the full window, with given chunks of files instead of the current ones."""
        return prompt.build(
            source,
            self._family,
            self._tokenize,
            prefix_tokens=self.prefix_tokens,
            suffix_tokens=self._config.suffix_tokens,
            bos=self._bos,
            files=self.files if files is None else files,
            files_tokens=self.files_tokens,
        )

    def lay_out(self, source: prompt.Source, single_line: bool) -> Completion:
        """Lay out a completion with a prompt that can be evaluated quickly."""
        full = self.full_prompt(source)
        limit = self._config.max_lines
        cursor = trim.cursor_context(full.prefix, full.suffix, single_line, limit, source.path)
        full, forced = self._back_off(full)
        window, chosen = self._choose(source, full)
        result = Result(window=window)
        return Completion(source, single_line, chosen, forced, cursor, result, full, window)

    def lay_out_full(self, completion: Completion) -> Completion:
        """Lay out a completion again, with the full window."""
        full = self.lay_out(completion.source, completion.single_line)
        return dataclasses.replace(
            full, prompt=full.full_prompt, window="full", result=Result(window="full")
        )

    def _back_off(self, built: prompt.Prompt) -> tuple[prompt.Prompt, bytes]:
        """Remove the last tokens for token healing; return also their bytes."""
        if not self.heals or not self.vocabulary:
            return built, b""
        before, forced = self.vocabulary.back_off(built.before)
        return dataclasses.replace(built, before=tuple(before)), forced

    def _heal(self, built: prompt.Prompt) -> prompt.Prompt:
        return self._back_off(built)[0]

    def _choose(self, source: prompt.Source, full: prompt.Prompt) -> tuple[Window, prompt.Prompt]:
        """Return the largest prompt that is cheap enough, or else the cheapest one."""
        slots, windows = self.slots, self._windows
        if self.window == "full" or (
            self.window == "staged" and slots.cost(full) <= windows.immediate
        ):
            return "full", full
        short = self._short.lay_out(source, self._heal)
        if self.window == "short":
            return "short", short
        fuller: list[tuple[Window, prompt.Prompt]] = [("full", full)]
        if full.after:
            fuller.append(("short", slots.shorten(full, windows.suffix)))
        allowed = max(windows.immediate, slots.cost(short))
        cheap = (each for each in fuller if slots.cost(each[1]) <= allowed)
        return next(cheap, ("short", short))

    def prefill(self, built: prompt.Prompt, exact: bool = False, draft: Sequence[int] = ()) -> None:
        """Evaluate the new part of a prompt, and cache its logits; see `SlotCache.prefill`."""
        plan = self.slots.prefill(built, exact=exact or not self.splices, draft=draft)
        self._cached, self._last_prompt = _cached(built, plan), built
        self.cache_logits()

    def cache_logits(self) -> None:
        """Cache the logits after the prompt, unless they are cached already."""
        slot = self.slots.current
        if slot.read_tokens or slot.prompt_logits is None:
            slot.prompt_logits = self._context.logits(slot.row).copy()

    def last_prompt(self) -> list[tuple[int, bytes, bool]]:
        """Return each token of the last prompt, its bytes or marker, and whether it was cached."""
        if self._last_prompt is None:
            return []
        names = {token: f"<{name}>".encode() for name, token in self._family.ids.items()}
        return [
            (token, self._model.piece(token) or names.get(token, b"<?>"), number in self._cached)
            for number, token in enumerate(self._last_prompt.tokens)
        ]

    def save(self, completion: Completion) -> None:
        """Save the current slot, if the file on disk lacks much of it."""
        source, full, slot = completion.source, completion.full_prompt, self.slots.current
        key = (source.root, source.path)
        if self.kv_disk is None or not source.root or slot.shadow.cost(full) > len(full.middle):
            return
        if self._on_disk.get(key, KVShadow()).cost(full) < MIN_SAVED_TOKENS:
            return
        state = self._context.state(slot.sequences.full, MAX_STATE_BYTES)
        saved = SavedSlot(slot.shadow, self.files, state)
        if state and self.kv_disk.save(*key, saved, self._context.abort.is_set):
            self._on_disk[key] = slot.shadow.copy()

    def load_saved(self, completion: Completion) -> Completion:
        """Load the slot of a file from disk, if that saves most of the evaluation.

        Returns:
            The completion, laid out again if a slot was loaded; with the saved chunks of other
            files, if there are none now.
        """
        source, cost = completion.source, self.slots.cost(completion.full_prompt)
        key = (source.root, source.path)
        known = self._on_disk.get(key)
        if self.kv_disk is None or not source.root or cost < MIN_SAVED_TOKENS:
            return completion
        if known and known.cost(completion.full_prompt) + MIN_SAVED_TOKENS > cost:
            return completion
        saved = self.kv_disk.load(*key)
        if saved is None:
            return completion
        self._on_disk[key] = saved.shadow
        before = self.files
        self.files = self.files or saved.files
        full = self.lay_out(source, completion.single_line).full_prompt
        if saved.shadow.cost(full) + MIN_SAVED_TOKENS <= cost:
            self.slots.restore(saved.shadow, saved.state)
            return self.lay_out(source, completion.single_line)
        self.files = before
        return completion


def _cached(built: prompt.Prompt, plan: KvPlan) -> frozenset[int]:
    """Return the indexes of the prompt's tokens that were cached."""
    if not plan.keep_suffix:
        return frozenset(range(plan.keep))
    behind = len(built.before) + (built.marker is not None)
    end = behind + len(built.after) - plan.extend + (len(built.middle) if plan.keep_tail else 0)
    return frozenset([*range(plan.keep), *range(behind, end)])
