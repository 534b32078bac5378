"""One request on its sequence: prompt in, text out, the KV cache kept for the next one.

Owns the model, its context, the cache and the vocabulary, which a thread of its own reads once.
Runs on the scheduler's thread alone; `abort` may be set from any.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from lcursor.catalog import gguf
from lcursor.config import CompletionConfig
from lcursor.errors import LcursorError, OutOfMemory, TokenizerOdd
from lcursor.fim import devices, families, likelihood, llama, placement, prompt, vocabulary
from lcursor.fim.completion_cache import CompletionCache, Entry
from lcursor.fim.context_ring import ContextRing, Query
from lcursor.fim.families import Resolved
from lcursor.fim.files import File
from lcursor.fim.generation import Generator, Place, ignore_text, ms_since
from lcursor.fim.kv_disk import KVDiskCache, default_folder
from lcursor.fim.reader import Reader
from lcursor.fim.result import OnText
from lcursor.fim.result import Result as Result
from lcursor.fim.slots import context_size
from lcursor.fim.vocabulary import Vocabulary, round_trips
from lcursor.fim.writer import MAX_GUESSES

VOCABULARY_S = 0.05
"""Time that a piece of idle work waits for the vocabulary."""

MIN_STALE = 16
"""Prefix tokens that must have changed before the suffix's beginning is read again."""

GUESSES_ON_CPU, GUESSES_ON_GPU = 3, MAX_GUESSES
"""Tokens guessed a pass: 4 cost a CPU 1.6 times one, 8 cost a GPU little more than one."""


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

    ring: ContextRing | None = None
    """Where pieces of other files come from."""
    on_improved: Callable[[Result], None] | None = None
    """Called in idle time with the answer of the full window to a request that was answered from a
    short one, also where it is the same; on the engine's thread."""

    def __init__(
        self, path: Path, family: str, config: CompletionConfig, progress: llama.Progress
    ) -> None:
        head = gguf.check_for_completion(path)
        self.warnings: list[LcursorError] = []
        """What the user should know though all goes on; whoever tells it empties the list."""
        self._on_gpu = llama.has_gpu() and config.gpu_layers != 0
        free_bytes = devices.free_bytes(config.main_gpu) if self._on_gpu else None
        self.config = self._resolve(config)
        try:
            if self._on_gpu:
                # Another Neovim may have its model there.
                cells = placement.fitting_cells(head, self.config, free_bytes)
                self.config = self._resolve(dataclasses.replace(config, context_tokens=cells))
            self._load(path, family, progress)
        except OutOfMemory:
            if not self._on_gpu:
                raise
            advice = placement.advice(head, path.name, self.config, free_bytes)
            self._on_gpu = False
            self.config = self._resolve(config)
            self._load(path, family, progress)
            advice.message += "; it runs on the CPU instead"
            self.warnings.append(advice)

    def _resolve(self, config: CompletionConfig) -> CompletionConfig:
        return placement.resolve(config, "gpu" if self._on_gpu else "cpu")

    def _load(self, path: Path, family: str, progress: llama.Progress) -> None:
        with ExitStack() as opened:
            self._open(path, family, progress, opened)
            self._opened = opened.pop_all()

    def _open(self, path: Path, family: str, progress: llama.Progress, opened: ExitStack) -> None:
        """Load the model and read a first token; `opened` frees all of it."""
        config = self.config
        gpu_layers = config.gpu_layers if self._on_gpu else 0
        self.model = llama.Model(path, gpu_layers, progress, config.main_gpu)
        opened.callback(self.model.close)
        self.family: Resolved = families.resolve(family, self.model.tokenize)
        size = context_size(config, self._on_gpu, self.model.n_ctx_train)
        self._context = llama.Context(self.model, size)
        opened.callback(self._context.close)
        self._disk = KVDiskCache(default_folder(), self._fingerprint())
        self.reader = Reader(self.model, self._context, self.family, config, self._on_gpu)
        self.reader.kv_disk = self._disk if config.save_cache else None
        self._slots = self.reader.slots
        self._generator = Generator(
            self.model, self._context, self._slots, self.family, config, self._max_guesses
        )
        self._generator.threshold = config.min_confidence
        self._next_files: tuple[File, ...] | None = None
        self._completion_cache = CompletionCache()
        self._latest: Place | None = None
        self._is_behind = False
        self._read_ahead: prompt.Source | None = None
        self._has_told_shrink = False
        if not round_trips(self.model.tokenize, self.model.piece):
            self.reader.heals = False
            self.warnings.append(TokenizerOdd(f"{path.name} does not give back the text it reads"))
        self._warm_up()
        self._is_closing = False
        self._vocabulary = threading.Thread(target=self._read_vocabulary, daemon=True)
        found = Vocabulary.load(vocabulary.default_folder(), self._fingerprint())
        if found is not None and len(found) == self.model.n_vocab:
            self._use(found)
        else:
            self._vocabulary.start()

    def configure(self, config: CompletionConfig) -> None:
        """Apply settings that do not need the model to be loaded again."""
        cells = self.config.context_tokens  # these were made
        config = self._resolve(dataclasses.replace(config, context_tokens=cells))
        self.config = config
        self.reader.configure(config)
        self.reader.kv_disk = self._disk if config.save_cache else None
        self._generator.configure(config)
        self.threshold = config.min_confidence
        self._completion_cache.clear()
        self._latest = self._next_files = self._read_ahead = None

    @property
    def threshold(self) -> float:
        """Confidence below which nothing is shown, 0 to 1; see `generation.Generator`."""
        return self._generator.threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        if value != self._generator.threshold:
            self._generator.threshold = value
            self._completion_cache.clear()

    @property
    def abort(self) -> llama.Abort:
        """The flag that stops the running request; any thread may set it."""
        return self._context.abort

    @property
    def read_tokens(self) -> int:
        """Tokens of the prompt that the last request read, also when it was stopped."""
        return self._slots.current.read_tokens

    def close(self) -> None:
        """Free the cache and the weights."""
        self._is_closing = True
        if self._vocabulary.is_alive():
            self._vocabulary.join()
        self._opened.close()

    def complete(
        self,
        source: prompt.Source,
        on_text: OnText,
        *,
        single_line: bool = False,
        bypass_cache: bool = False,
    ) -> Result:
        """Read what is new of the prompt, then write until a rule or a budget says stop.

        Args:
            source: the text around the cursor.
            on_text: told all text so far, each time it has grown.
            single_line: write no newline.
            bypass_cache: ask the model even where the answer is known.

        Returns:
            The suggestion; its text begins with everything that `on_text` was told.

        Raises:
            Cancelled: `abort` was set.
            EngineFailed, OutOfMemory: see `llama.Context.decode`.
        """
        while True:
            try:
                result = self._complete(source, on_text, single_line, bypass_cache)
            except OutOfMemory as error:
                self._narrow(error)
            else:
                self.reader.grow_back()
                return result

    def _narrow(self, error: OutOfMemory) -> None:
        """Read half as much before the cursor from now on, and remark on it once.

        Raises:
            OutOfMemory: the error, where that is too little.
        """
        if not self.reader.shrink():
            raise error
        self._completion_cache.clear()
        window = self.reader.prefix_tokens
        error.message += f"; only {window} tokens before the cursor are read for a while"
        if not self._has_told_shrink:
            self._has_told_shrink = True
            self.warnings.append(error)

    def _complete(
        self, source: prompt.Source, on_text: OnText, single_line: bool, bypass_cache: bool
    ) -> Result:
        started = time.perf_counter()
        known = None if bypass_cache else self._completion_cache.find(source, single_line)
        if known:
            return self._known(*known, source, on_text, started)
        place = self.reader.recover(self.reader.place(source, single_line))
        with self.abort.between_batches():  # the next request goes on with what was read
            draft = self._generator.draft(place)
            self.reader.prefill(place.built, draft=draft[: self._max_guesses])
        result = place.result
        result.window = "full" if place.built is place.whole else "short"
        result.prompt_tokens = len(place.built.tokens)
        result.read_tokens, result.prompt_passes = self.read_tokens, self._slots.current.passes
        result.prompt_ms = ms_since(started)
        self._generator.write(place, on_text, started, draft)
        result.total_ms = ms_since(started)
        self._latest, self._is_behind = place, False
        self._remember(place, is_ahead=False)
        return result

    def alternatives(self, typed: str = "") -> list[str]:
        """Return other texts for the last request that was completed, the likelier first.

        They part from it at the token of its first line that was least certain.

        Args:
            typed: what of the answer has been typed since; they begin with it too.

        Raises:
            Cancelled, EngineFailed, OutOfMemory: see `complete`.
        """
        place = self._latest
        if place is None or place.result.replace_bytes:  # the others would have to replace as much
            return []
        text = place.result.text
        if typed:
            source = dataclasses.replace(place.source, prefix=place.source.prefix + typed)
            place = self.reader.place(source, place.single_line)
        self.reader.prefill(place.built)
        main = place
        if not main.result.tokens:  # it was known, and nobody knows how sure the model was
            main = dataclasses.replace(place, result=Result())
            self._generator.write(main, ignore_text, time.perf_counter(), threshold=0.0)
        texts = [text.removeprefix(typed), main.result.text]
        back = self._slots.ahead(place.built)
        try:
            others = self._generator.write_others(main)
            texts += [other.text for other in others if not other.replace_bytes]
        finally:
            back()
        unlike = [typed + each for each in dict.fromkeys(texts) if each]
        return unlike[1:] if text else unlike

    def warm(self, source: prompt.Source) -> None:
        """Read what a request at this place would have to read first.

        Raises:
            Cancelled, EngineFailed, OutOfMemory: see `complete`.
        """
        self._latest = None
        place = self.reader.recover(self.reader.place(source, single_line=False))
        self.reader.prefill(place.built)

    def idle(self) -> bool:
        """Do one piece of what makes later requests better; return whether there is more.

        The vocabulary is waited for; then the full window of the last request is read, where a
        short one was answered from, and the request is answered again; then what comes after the
        present suggestion is accepted; then the suffix behind what was typed since; then one more
        piece of another file. At the end the cells are put on the disk.

        Raises:
            Cancelled: `abort` was set.
        """
        if self._vocabulary.is_alive():
            self._vocabulary.join(VOCABULARY_S)
            return True
        latest = self._latest
        if latest is None:
            return False
        if self._is_behind:  # the last answer was known, so the model has not read its prompt
            self.reader.prefill(latest.built)
            self._is_behind = False
            return True
        if latest.built is not latest.whole:
            try:
                self._improve(latest)
            except OutOfMemory as error:
                self._narrow(error)
                self._latest = None
            return True
        if (
            latest.result.text
            and not latest.result.replace_bytes
            and self._read_ahead != latest.source
        ):
            self._read_ahead = latest.source
            self._accept_ahead(latest)
            return True
        if self._slots.current.shadow.stale >= MIN_STALE:
            self.reader.prefill(latest.built, exact=True)
            return True
        if self._admit(latest):
            return True
        self.save()
        return False

    def _improve(self, place: Place) -> None:
        """Read the full window of a place, and answer from it what was answered from a short one.

        What an abort leaves of it is gone on with the next time.
        """
        if self._slots.cost(place.whole) > len(place.whole.tokens) // 2:
            self._take_files(place)
        # The prompt and what to write first must agree: either may have changed since the request.
        place = self.reader.place(place.source, place.single_line)
        self.reader.prefill(place.whole)
        better = dataclasses.replace(place, built=place.whole, result=Result())
        draft = self._generator.draft(better)
        self._generator.write(better, ignore_text, time.perf_counter(), draft)
        self._latest = better
        self._remember(better, is_ahead=False)
        if self.on_improved:
            self.on_improved(better.result)

    def _take_files(self, place: Place) -> None:
        """Let all pieces of other files into a prompt that must be read anyway."""
        if self.ring is None:
            return
        query = Query.of(place.source)
        self.ring.retrieve(query)
        while self.ring.admit():
            pass
        self.reader.files = self.ring.layout(query, self.reader.files_tokens, self._count)
        self._next_files = None

    def save(self) -> None:
        """Put what was read for the last request on the disk, if much of it is not there."""
        if self._latest and not self._is_behind and self._latest.built is self._latest.whole:
            self.reader.save(self._latest)

    def _fingerprint(self) -> str:
        """Return what cells depend on besides the tokens."""
        stat = self.model.path.stat()
        file = f"{self.model.path.name} {stat.st_size} {stat.st_mtime_ns}"
        made = f"{llama.version()} {self._on_gpu} {self.config.kv_type}"
        return f"{file} {self.model.description} {made}"

    def _read_vocabulary(self) -> None:
        """Read the text of each token and keep it for the next start. Thread: its own."""
        model, fingerprint = self.model, self._fingerprint()
        found = vocabulary.read(model.piece, model.n_vocab, lambda: self._is_closing)
        if found is not None:
            self._use(found)
            found.save(vocabulary.default_folder(), fingerprint)

    def _use(self, found: Vocabulary) -> None:
        self._generator.vocabulary = found  # first, since it must have what the reader relies on
        self.reader.vocabulary = found

    def _accept_ahead(self, place: Place) -> None:
        """Find out what comes when the suggestion is accepted, before it is."""
        source = place.source
        after = dataclasses.replace(source, prefix=source.prefix + place.result.text)
        if self._completion_cache.find(after, place.single_line):
            return
        ahead = self.reader.place(after, place.single_line)
        back = self._slots.ahead(ahead.built)
        try:
            self.reader.cache_logits()
            self._generator.write(ahead, ignore_text, time.perf_counter())
        finally:
            back()
        self._remember(ahead, is_ahead=True)

    def _admit(self, place: Place) -> bool:
        """Let one more piece of another file into the prompt, once all of it has been read.

        Until then the old prompt serves, in its own seat.
        """
        if self.ring is None:
            return False
        if self._next_files is None:
            query = Query.of(place.source)
            self.ring.retrieve(query)
            if not self.ring.admit():
                return False
            found = self.ring.layout(query, self.reader.files_tokens, self._count)
            if found == self.reader.files:
                return True
            self._next_files = found
        built = self.reader.built(place.source, self._next_files)
        self._slots.ahead(built)
        self.reader.cache_logits()
        self.reader.files, self._next_files = self._next_files, None
        self._latest = None
        self._completion_cache.clear()
        return True

    def _count(self, text: str) -> int:
        return len(self.model.tokenize(text))

    def _known(
        self, text: str, known: Entry, source: prompt.Source, on_text: OnText, started: float
    ) -> Result:
        """Answer with what was found out before."""
        self._is_behind = True
        result = Result(
            text=text,
            confidence=known.confidence,
            replace_bytes=known.replace_bytes,
            reason=known.reason,
        )
        result.source = "speculation" if known.is_ahead else "cache"
        if text:
            result.first_ms = ms_since(started)
            on_text(text)
        result.total_ms = ms_since(started)
        place = self.reader.place(source, known.single_line)
        self._latest = dataclasses.replace(place, result=result)
        return result

    def _remember(self, place: Place, is_ahead: bool) -> None:
        result = place.result
        if result.reason == "time":  # with more time there would be more
            return
        self._completion_cache.add(
            Entry(
                place.source,
                place.single_line,
                result.text,
                result.confidence,
                result.replace_bytes,
                result.reason,
                is_ahead,
            )
        )

    @property
    def description(self) -> str:
        """The model, where it runs and how much it reads, in one line."""
        return (
            f"{self.model.path.name} ({self.model.description}) on the "
            f"{'GPU' if self._on_gpu else 'CPU'}: {self._context.cells} cells, "
            f"{self.reader.prefix_tokens} tokens before the cursor, "
            f"{self.config.suffix_tokens} after it, {self.config.files_tokens} of other files"
        )

    def last_prompt(self) -> list[tuple[int, bytes, bool]]:
        """Return each token of the last prompt, its bytes or marker, and whether it was kept."""
        return self.reader.last()

    def nll(self, source: prompt.Source, text: str) -> list[float]:
        """Return how surprised the model is by each token of a text at the cursor, in nats.

        The prompt is brought as `complete` would, `splices` included; nothing is healed.

        Raises:
            Cancelled: `abort` was set.
            EngineFailed, OutOfMemory: see `llama.Context.decode`.
        """
        self.reader.prefill(self.reader.built(source))
        logits = self._slots.current.prompt_logits
        losses = []
        for token in self.model.tokenize(text):
            if logits is None:
                break
            losses.append(likelihood.nll(logits, token))
            self._slots.append([token])
            logits = self._context.logits()
        return losses

    @property
    def _max_guesses(self) -> int:
        return GUESSES_ON_GPU if self._on_gpu else GUESSES_ON_CPU

    def _warm_up(self) -> None:
        """Read one token, so that the first request does not pay for page faults and graphs."""
        token = next(iter(self.family.ids.values()))
        self.reader.prefill(prompt.Prompt((token,), None, (), (token,), "", ""))
