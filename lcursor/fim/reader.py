"""From a source to the logits behind its prompt: what is laid out, what is read, what is kept.

Owns the window's size, the pieces of other files, the seats and what of them is on disk. Writes
nothing of a suggestion. Runs on the engine's thread alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from lcursor.config import CompletionConfig
from lcursor.fim import llama, prompt, trim
from lcursor.fim.families import Resolved
from lcursor.fim.files import File, FileTokens
from lcursor.fim.generation import Place
from lcursor.fim.kv import KVShadow, Plan
from lcursor.fim.kv_disk import MAX_STATE_BYTES, KVDiskCache, SavedSlot
from lcursor.fim.result import Result
from lcursor.fim.slot_cache import SLICE_TOKENS, cost
from lcursor.fim.slots import Slots
from lcursor.fim.vocabulary import Vocabulary

WORTH_SAVING = 96
"""Tokens that the next start must be spared by writing a file of cells anew."""
MIN_WINDOW = 64
"""Tokens before the cursor, to which the window may shrink where memory is short."""
GROW_AFTER = 200
"""Requests without a lack of memory after which a window that was halved is doubled again."""
MAX_CACHED_TEXTS = 128
"""Texts whose tokens are kept."""
NAMES_TOKENS = 64
"""Kept free for the names of the project and the file, and for markers."""


class Stage(NamedTuple):
    """What is read at once, for an answer now; the full window is read in idle time."""

    at_once: int
    """Tokens that a request may read of the full window."""
    prefix: int
    """Tokens before the cursor in the short window."""
    suffix: int
    """Tokens behind the cursor in the short window."""
    related: int
    """Tokens of lines elsewhere in the file that share words with the cursor's."""


ON_CPU, ON_GPU = Stage(32, 48, 24, 72), Stage(512, 768, 128, 256)


class Reader:
    """Reads prompts.

    Args:
        model: tokenizes.
        context: its cache.
        family: lays prompts out.
        config: budgets, resolved for the machine.
    """

    kv_disk: KVDiskCache | None = None
    """Where cells outlive this process; None keeps them in memory."""

    splices = True
    """Whether a keystroke may keep the suffix where it is; off, every prompt is read exactly."""
    window: Literal["staged", "full", "short"] = "staged"
    """What a request is answered from: "staged" takes the short window where the full one is yet
    to be read."""
    heals = True
    """Whether the token at the cursor is taken back and written anew."""
    vocabulary: Vocabulary | None = None
    """What healing needs, once it is there."""
    files: tuple[File, ...] = ()
    """Pieces of other files that the prompt has now."""

    def __init__(
        self,
        model: llama.Model,
        context: llama.Context,
        family: Resolved,
        config: CompletionConfig,
        on_gpu: bool,
    ) -> None:
        self._model, self._context, self._family, self._config = model, context, family, config
        self.files_tokens = config.files_tokens
        """Most tokens of other files, and of the file's own top."""
        self.slots = Slots(context, context.batch_tokens if on_gpu else SLICE_TOKENS)
        self._stage = ON_GPU if on_gpu else ON_CPU
        # Of the last short window: its file, the row where it began, the tokens behind the cursor.
        self._last_short: tuple[str, int, Sequence[int]] = ("", -1, ())
        self._file_tokens = FileTokens()
        self._shrunk = 1
        self._since_shrunk = 0
        self._prompt: prompt.Prompt | None = None
        self._kept: frozenset[int] = frozenset()
        self._on_disk: dict[tuple[str, str], KVShadow] = {}
        self._bos = model.bos if model.add_bos else None

        self._cached_tokens = lru_cache(maxsize=MAX_CACHED_TEXTS)(
            lambda text, special: tuple(model.tokenize(text, special))
        )

    def _tokenize(self, text: str, special: bool = False) -> list[int]:
        """Tokenize a text, or return what came of it: most texts are the same at the next key."""
        return list(self._cached_tokens(text, special))

    def configure(self, config: CompletionConfig) -> None:
        """Apply other budgets."""
        self._config = config
        self.files_tokens = config.files_tokens

    @property
    def prefix_tokens(self) -> int:
        """Most tokens before the cursor, so that prompt and suggestion fit the cache."""
        behind = self._config.suffix_tokens + self._config.max_tokens
        room = self._context.cells - self.files_tokens - behind - NAMES_TOKENS
        return max(min(self._config.prefix_tokens, room) // self._shrunk, 1)

    def shrink(self) -> bool:
        """Read half as much before the cursor; False where that is too little."""
        if self.prefix_tokens // 2 < MIN_WINDOW:
            return False
        self._shrunk *= 2
        self._since_shrunk = 0
        for cache in self.slots.all():
            cache.clear()
        return True

    def grow_back(self) -> None:
        """Count a request that had memory enough; in time, read as much as before `shrink`."""
        self._since_shrunk += 1
        if self._shrunk > 1 and self._since_shrunk >= GROW_AFTER:
            self._shrunk //= 2
            self._since_shrunk = 0

    def built(self, source: prompt.Source, others: tuple[File, ...] | None = None) -> prompt.Prompt:
        """Lay out a prompt, with other pieces of files than those of now where some are given."""
        return prompt.build(
            source,
            self._family,
            self._tokenize,
            prefix_tokens=self.prefix_tokens,
            suffix_tokens=self._config.suffix_tokens,
            bos=self._bos,
            files=self.files if others is None else others,
            files_tokens=self.files_tokens,
            cache=self._file_tokens,
        )

    def place(self, source: prompt.Source, single_line: bool) -> Place:
        """Lay out a prompt that can be read soon, with all that is needed to write behind it."""
        whole = self.built(source)
        most = self._config.max_lines
        cursor = trim.cursor_context(whole.prefix, whole.suffix, single_line, most, source.path)
        whole, heal = self._heal(whole)
        built = whole
        if self.window == "staged":
            built = self._soonest(source, whole)
        elif self.window == "short":
            built = self._short(source)
        return Place(source, single_line, built, heal, cursor, Result(), whole)

    def _heal(self, built: prompt.Prompt) -> tuple[prompt.Prompt, bytes]:
        """Take the token at the cursor back; return the prompt and the bytes to write first."""
        if not self.heals or not self.vocabulary:
            return built, b""
        before, heal = self.vocabulary.back_off(built.before)
        return dataclasses.replace(built, before=tuple(before)), heal

    def _soonest(self, source: prompt.Source, whole: prompt.Prompt) -> prompt.Prompt:
        """Return the fullest prompt that can be read at once, or else the one that costs least."""
        slots, at_once = self.slots, self._stage.at_once
        if slots.cost(whole) <= at_once:
            return whole
        least = self._short(source)
        allowed = max(at_once, slots.cost(least))
        fuller = [whole]
        if whole.after:
            fuller.append(slots.shorten(whole, self._stage.suffix))
        return next((each for each in fuller if slots.cost(each) <= allowed), least)

    def _short(self, source: prompt.Source) -> prompt.Prompt:
        """Lay out the short window: as much of the one before as makes it cheap, or a new one."""
        path, old_row, old_suffix = self._last_short
        budget = self._stage.suffix + self._stage.related
        suffix = prompt.short_suffix(source, self._tokenize, budget)
        least, row = self._build_short(source, suffix, -1)
        self._last_short = (source.path, row, suffix)
        for behind in (suffix, old_suffix) if path == source.path else ():
            built, row = self._build_short(source, behind, old_row)
            has_grown = len(built.before) >= prompt.GROWTH * self._stage.prefix
            if not has_grown and self.slots.cost(built) < self.slots.cost(least):
                least, self._last_short = built, (path, row, behind)
        return least

    def _build_short(
        self, source: prompt.Source, suffix: Sequence[int], first_row: int
    ) -> tuple[prompt.Prompt, int]:
        built, row = prompt.build_short(
            source,
            self._family,
            self._tokenize,
            prefix_tokens=self._stage.prefix,
            suffix=suffix,
            first_row=first_row,
            bos=self._bos,
        )
        return self._heal(built)[0], row

    def prefill(self, built: prompt.Prompt, exact: bool = False, draft: Sequence[int] = ()) -> None:
        """Read what is new of a prompt, and keep the logits behind it.

        Args:
            built: the prompt.
            exact: see `SlotCache.prefill`.
            ahead: tokens that may follow; see `SlotCache.prefill`.
        """
        plan = self.slots.prefill(built, exact=exact or not self.splices, draft=draft)
        self._kept, self._prompt = _kept(built, plan), built
        self.cache_logits()

    def cache_logits(self) -> None:
        """Keep the logits behind the prompt, unless nothing was read because they are kept."""
        slot = self.slots.current
        if slot.read_tokens or slot.prompt_logits is None:
            slot.prompt_logits = self._context.logits(slot.row).copy()

    def last(self) -> list[tuple[int, bytes, bool]]:
        """Return each token of the last prompt, its bytes or marker, and whether it was kept."""
        if self._prompt is None:
            return []
        names = {token: f"<{name}>".encode() for name, token in self._family.ids.items()}
        return [
            (token, self._model.piece(token) or names.get(token, b"<?>"), number in self._kept)
            for number, token in enumerate(self._prompt.tokens)
        ]

    def save(self, place: Place) -> None:
        """Put the cells of a place's file on the disk, if much of them is not there.

        Raises:
            Cancelled: `abort` was set; what was on the disk stays.
        """
        source, whole, slot = place.source, place.whole, self.slots.current
        key = (source.root, source.path)
        if self.kv_disk is None or not source.root or slot.cost(whole) > len(whole.middle):
            return
        if cost(self._on_disk.get(key, KVShadow()), whole) < WORTH_SAVING:
            return
        state = slot.state(MAX_STATE_BYTES)
        saved = SavedSlot(slot.shadow, self.files, state)
        if state and self.kv_disk.save(*key, saved, self._context.abort.is_set):
            self._on_disk[key] = slot.shadow.copy()

    def recover(self, place: Place) -> Place:
        """Take the cells of a place from the disk, where that spares most of the reading.

        Returns:
            The place; with the pieces of other files that stood before it then, if there are none
            now.
        """
        source, now = place.source, self.slots.cost(place.whole)
        key = (source.root, source.path)
        known = self._on_disk.get(key)
        if self.kv_disk is None or not source.root or now < WORTH_SAVING:
            return place
        if known and cost(known, place.whole) + WORTH_SAVING > now:
            return place
        saved = self.kv_disk.load(*key)
        if saved is None:
            return place
        self._on_disk[key] = saved.cells
        before = self.files
        self.files = self.files or saved.files
        whole = self.place(source, place.single_line).whole
        if cost(saved.cells, whole) + WORTH_SAVING <= now:
            self.slots.restore(saved.cells, saved.state)
            return self.place(source, place.single_line)
        self.files = before
        return place


def _kept(built: prompt.Prompt, plan: Plan) -> frozenset[int]:
    """Return which tokens of a prompt, by number, were in the cache already."""
    if plan.kind == "exact":
        return frozenset(range(plan.keep))
    behind = len(built.before) + (built.marker is not None)
    end = behind + len(built.after) - plan.extend + (len(built.middle) if plan.keep_tail else 0)
    return frozenset([*range(plan.keep), *range(behind, end)])
