"""From a source to the logits behind its prompt: what is laid out, what is read, what is kept.

Owns the window's size, the pieces of other files, the seats and what of them is on disk. Writes
nothing of a suggestion. Runs on the engine's thread alone.
"""

from __future__ import annotations

import dataclasses

from lcursor.config import CompletionConfig
from lcursor.fim import llama, prompt, trim
from lcursor.fim.author import Place
from lcursor.fim.cache import cost
from lcursor.fim.cells import Cells, Plan
from lcursor.fim.families import Resolved
from lcursor.fim.files import File, FileTokens, budget
from lcursor.fim.result import Result
from lcursor.fim.seats import Seats
from lcursor.fim.vocabulary import Vocabulary
from lcursor.fim.warmth import MAX_STATE_BYTES, Saved, Warmth

WORTH_SAVING = 96
"""Tokens that the next start must be spared by writing a file of cells anew."""
LEAST_WINDOW = 64
"""Tokens before the cursor, to which the window may shrink where memory is short."""
GROW_AFTER = 200
"""Requests without a lack of memory after which a window that was halved is doubled again."""
NAMES_TOKENS = 64
"""Kept free for the names of the project and the file, and for markers."""


class Reader:
    """Reads prompts.

    Args:
        model: tokenizes.
        context: its cache.
        family: lays prompts out.
        config: budgets.
        on_gpu: whether reading is cheap.
    """

    warmth: Warmth | None = None
    """Where cells outlive this process; None keeps them in memory."""

    splices = True
    """Whether a keystroke may keep the suffix where it is; off, every prompt is read exactly."""
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
        self._on_gpu = on_gpu
        self.files_tokens = budget(config.files_tokens, on_gpu)
        """Most tokens of other files, and of the file's own top."""
        self.seats = Seats(context)
        self._file_tokens = FileTokens()
        self._shrunk = 1
        self._since_shrunk = 0
        self._prompt: prompt.Prompt | None = None
        self._kept: frozenset[int] = frozenset()
        self._on_disk: dict[tuple[str, str], Cells] = {}
        self._bos = model.bos if model.add_bos else None

    def configure(self, config: CompletionConfig) -> None:
        """Apply other budgets."""
        self._config = config
        self.files_tokens = budget(config.files_tokens, self._on_gpu)

    @property
    def prefix_tokens(self) -> int:
        """Most tokens before the cursor, so that prompt and suggestion fit the cache."""
        behind = self._config.suffix_tokens + self._config.max_tokens
        room = self._context.cells - self.files_tokens - behind - NAMES_TOKENS
        return max(min(self._config.prefix_tokens, room) // self._shrunk, 1)

    def shrink(self) -> bool:
        """Read half as much before the cursor; False where that is too little."""
        if self.prefix_tokens // 2 < LEAST_WINDOW:
            return False
        self._shrunk *= 2
        self._since_shrunk = 0
        for cache in self.seats.all():
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
            self._model.tokenize,
            prefix_tokens=self.prefix_tokens,
            suffix_tokens=self._config.suffix_tokens,
            bos=self._bos,
            files=self.files if others is None else others,
            files_tokens=self.files_tokens,
            cache=self._file_tokens,
        )

    def place(self, source: prompt.Source, single_line: bool) -> Place:
        """Lay out a prompt with all that is needed to write behind it."""
        built = self.built(source)
        most = self._config.max_lines
        facts = trim.around(built.prefix, built.suffix, single_line, most, source.path)
        heal = b""
        if self.heals and self.vocabulary:
            before, heal = self.vocabulary.take_back(built.before)
            built = dataclasses.replace(built, before=tuple(before))
        return Place(source, single_line, built, heal, facts, Result())

    def bring(self, built: prompt.Prompt, exact: bool = False) -> None:
        """Read what is new of a prompt, and keep the logits behind it."""
        plan = self.seats.bring(built, exact=exact or not self.splices)
        self._kept, self._prompt = _kept(built, plan), built
        self.hold_logits()

    def hold_logits(self) -> None:
        """Keep the logits behind the prompt, unless nothing was read because they are kept."""
        seat = self.seats.current
        if seat.read_tokens or seat.first_logits is None:
            seat.first_logits = self._context.logits().copy()

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
        source, built, seat = place.source, place.built, self.seats.current
        key = (source.root, source.path)
        if self.warmth is None or not source.root or seat.cost(built) > len(built.middle):
            return
        if cost(self._on_disk.get(key, Cells()), built) < WORTH_SAVING:
            return
        state = seat.state(MAX_STATE_BYTES)
        saved = Saved(seat.cells, self.files, state)
        if state and self.warmth.save(*key, saved, self._context.abort.is_set):
            self._on_disk[key] = seat.cells.copy()

    def recover(self, place: Place) -> Place:
        """Take the cells of a place from the disk, where that spares most of the reading.

        Returns:
            The place; with the pieces of other files that stood before it then, if there are none
            now.
        """
        source, now = place.source, self.seats.cost(place.built)
        key = (source.root, source.path)
        known = self._on_disk.get(key)
        if self.warmth is None or not source.root or now < WORTH_SAVING:
            return place
        if known and cost(known, place.built) + WORTH_SAVING > now:
            return place
        saved = self.warmth.load(*key)
        if saved is None:
            return place
        self._on_disk[key] = saved.cells
        before = self.files
        self.files = self.files or saved.files
        then = self.place(source, place.single_line)
        if cost(saved.cells, then.built) + WORTH_SAVING <= now:
            self.seats.restore(saved.cells, saved.state)
            return then
        self.files = before
        return place


def _kept(built: prompt.Prompt, plan: Plan) -> frozenset[int]:
    """Return which tokens of a prompt, by number, were in the cache already."""
    if plan.kind == "exact":
        return frozenset(range(plan.keep))
    behind = len(built.before) + (built.marker is not None)
    end = len(built.tokens) - (0 if plan.keep_tail else len(built.middle))
    return frozenset([*range(plan.keep), *range(behind, end)])
