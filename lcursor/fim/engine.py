"""The in-process engine: completes a prompt, and keeps the KV cache for the next request.

Owns the model, its context, the slots and the vocabulary, which a separate thread reads once. Runs
only on the scheduler's thread; any thread may set `abort`.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from lcursor.catalog import gguf
from lcursor.config import CompletionConfig
from lcursor.errors import LcursorError, OutOfMemory, TokenizerOdd
from lcursor.fim import confidence, families, gpus, kv_disk, llama, placement, speed, vocabulary
from lcursor.fim.backend import OnImproved, Progress
from lcursor.fim.context_ring import ContextRing, Query
from lcursor.fim.drafts import MAX_GUESSES
from lcursor.fim.families import Resolved
from lcursor.fim.generation import Generator, ignore_text
from lcursor.fim.kv_disk import KVDiskCache
from lcursor.fim.prompt import File, Prompt, Source
from lcursor.fim.reader import PromptReader
from lcursor.fim.result import Completion, CompletionCache, OnText, ms_since
from lcursor.fim.result import Result as Result
from lcursor.fim.slots import context_size
from lcursor.fim.vocabulary import Vocabulary, round_trips

VOCABULARY_S = 0.05
"""Time limit of one step of idle work that waits for the vocabulary."""

MIN_STALE = 16
"""Changed prefix tokens after which idle work evaluates the start of the suffix again."""

GUESSES_ON_CPU, GUESSES_ON_GPU = 3, MAX_GUESSES
"""Tokens guessed per pass: 4 cost a CPU 1.6 times one, 8 cost a GPU little more than one."""


class Engine:
    """A loaded model that completes; a `Backend`.

    Args:
        path: the GGUF file.
        family: name of its family; "" to detect it.
        progress: called with the progress of the load.
        ring: source of chunks of other files.
        on_improved: called with better answers of idle time.

    Attributes:
        is_connected: True, because there is no server.

    Raises:
        ModelCorrupt, ModelUnsuitable, OutOfMemory, Cancelled: see `llama.Model`.
    """

    is_connected = True

    def __init__(
        self,
        path: Path,
        family: str,
        config: CompletionConfig,
        progress: Progress,
        ring: ContextRing | None = None,
        on_improved: OnImproved | None = None,
    ) -> None:
        self.ring, self.on_improved = ring, on_improved
        self._is_machine_busy = False
        head = gguf.check_for_completion(path)
        self.warnings: list[LcursorError] = []
        self._on_gpu = llama.has_gpu() and config.gpu_layers != 0
        free_bytes: int | None = None
        self.config = self._resolve(config)
        try:
            if self._on_gpu:
                # Another Neovim may have its model there.
                free_bytes = gpus.free_bytes(config.main_gpu)
                cells = placement.fitting_cells(head, self.config, free_bytes)
                self.config = self._resolve(dataclasses.replace(config, context_tokens=cells))
            self._load(path, family, progress)
        except OutOfMemory:
            if not self._on_gpu:
                raise
            advice = placement.advice(head, path.name, self.config, free_bytes)
            self._on_gpu = False
            idle_minutes = self.config.idle_minutes  # then the GPU is tried again
            self.config = dataclasses.replace(self._resolve(config), idle_minutes=idle_minutes)
            self._load(path, family, progress)
            advice.message += "; it runs on the CPU instead"
            self.warnings.append(advice)

    def _resolve(self, config: CompletionConfig) -> CompletionConfig:
        return placement.resolve(config, "gpu" if self._on_gpu else "cpu")

    def _load(self, path: Path, family: str, progress: Progress) -> None:
        with ExitStack() as opened:
            self._open(path, family, progress, opened)
            self._opened = opened.pop_all()

    def _open(self, path: Path, family: str, progress: Progress, opened: ExitStack) -> None:
        """Load the model and evaluate a first token; `opened` frees everything."""
        config = self.config
        gpu_layers = config.gpu_layers if self._on_gpu else 0
        self.model = llama.Model(path, gpu_layers, progress, config.main_gpu)
        opened.callback(self.model.close)
        self.family: Resolved = families.resolve(family, self.model.tokenize)
        size = context_size(config, self._on_gpu, self.model.n_ctx_train)
        self._threads = size.threads
        self._context = self._new_context(size)
        opened.callback(self._context.close)
        self.abort = self._context.abort
        heals = round_trips(self.model.tokenize, self.model.piece)
        if not heals:
            self.warnings.append(TokenizerOdd(f"{path.name} does not reproduce its input"))
        self.reader = PromptReader(
            self.model,
            self._context,
            self.family,
            config,
            KVDiskCache(kv_disk.default_folder(), f"{self._fingerprint()} {config.excluded}"),
            on_gpu=self._on_gpu,
            heals=heals,
        )
        self._slots = self.reader.slots
        self._guesses = GUESSES_ON_GPU if self._on_gpu else GUESSES_ON_CPU
        self._generator = Generator(
            self.model, self._context, self._slots, self.family, config, self._guesses
        )
        self._next_files: tuple[File, ...] | None = None
        self._completions = CompletionCache()
        self._latest: Completion | None = None
        self._is_behind = False  # the last answer was cached, and its prompt not evaluated
        self._read_ahead: Source | None = None
        self._has_warned_of_shrink = False
        self._warm_up()
        self._is_closing = False
        self._vocabulary = threading.Thread(target=self._read_vocabulary, daemon=True)
        found = Vocabulary.load(vocabulary.default_folder(), self._fingerprint())
        if found is not None and len(found) == self.model.n_vocab:
            self._use(found)
        else:
            self._vocabulary.start()

    def _new_context(self, size: llama.ContextSize) -> llama.Context:
        return llama.Context(self.model, size)

    def configure(self, config: CompletionConfig) -> None:
        """Apply settings that do not require reloading the model."""
        cells = self.config.context_tokens  # these were allocated
        config = self._resolve(dataclasses.replace(config, context_tokens=cells))
        self.config = config
        self.reader.configure(config)
        self._generator.configure(config)
        self.threshold = config.min_confidence
        self._completions.clear()
        self._latest = self._next_files = self._read_ahead = None

    @property
    def threshold(self) -> float:
        """Confidence below which nothing is shown, 0 to 1; see `generation.Generator`."""
        return self._generator.threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        if value != self._generator.threshold:
            self._generator.threshold = value
            self._completions.clear()

    @property
    def is_machine_busy(self) -> bool:
        """Whether other programs use all cores.

        A CPU then evaluates with half of the threads, because all of them wait for the slowest one
        many times in each pass. Idle work only improves an answer.
        """
        return self._is_machine_busy

    @is_machine_busy.setter
    def is_machine_busy(self, value: bool) -> None:
        if value != self._is_machine_busy:
            self._is_machine_busy = value
            if not self._on_gpu:
                self._context.use_threads(max(self._threads // 2, 1) if value else self._threads)

    @property
    def read_tokens(self) -> int:
        """Prompt tokens that the last request evaluated, even if it was stopped."""
        return self._slots.current.read_tokens

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.model.path.name

    def connect(self) -> None:
        """Do nothing: there is no server."""

    def measure_speed(self) -> str:
        """Measure and store the speed, if none is stored; return a line for the log.

        Raises:
            LcursorError, Cancelled: see `speed.measure`.
        """
        found = speed.measure_once(self.model, self.abort)
        return f"{self.name} {found.describe()}" if found else ""

    def close(self) -> None:
        """Free the cache and the weights."""
        self._is_closing = True
        if self._vocabulary.is_alive():
            self._vocabulary.join()
        self._opened.close()

    def complete(
        self,
        source: Source,
        on_text: OnText,
        *,
        single_line: bool = False,
        bypass_cache: bool = False,
    ) -> Result:
        """Evaluate the new part of the prompt, then generate until a rule or a budget ends it.

        Args:
            source: the text around the cursor.
            on_text: called with the whole text each time it grows.
            single_line: generate no newline.
            bypass_cache: generate even if the answer is cached.

        Returns:
            The suggestion; its text starts with every text passed to `on_text`.

        Raises:
            Cancelled: `abort` was set.
            EngineFailed, OutOfMemory: see `llama.Context.decode`.
        """
        while True:
            try:
                result = self._complete(source, on_text, single_line, bypass_cache)
                self.reader.grow_back()
                return result
            except OutOfMemory as error:
                self._shrink(error)

    def _shrink(self, error: OutOfMemory) -> None:
        """Halve the window before the cursor, and warn once; raise if it would be too small."""
        if not self.reader.shrink():
            raise error
        self._completions.clear()
        window = self.reader.prefix_tokens
        error.message += f"; the window before the cursor is now {window} tokens for a while"
        if not self._has_warned_of_shrink:
            self._has_warned_of_shrink = True
            self.warnings.append(error)

    def _complete(
        self, source: Source, on_text: OnText, single_line: bool, bypass_cache: bool
    ) -> Result:
        started = time.perf_counter()
        cached = None if bypass_cache else self._completions.find(source, single_line)
        if cached:
            cached.total_ms = ms_since(started)
            if cached.text:
                cached.first_ms = cached.total_ms
                on_text(cached.text)
            completion, self._is_behind = self.reader.lay_out(source, single_line), True
            cached.window = completion.window
            self._latest = dataclasses.replace(completion, result=cached)
            return cached
        completion = self.reader.load_saved(self.reader.lay_out(source, single_line))
        with self.abort.between_batches():  # the next request continues from what was evaluated
            draft = self._generator.draft(completion)
            self.reader.prefill(completion.prompt, draft=draft[: self._guesses])
        result = completion.result
        result.prompt_tokens = len(completion.prompt.tokens)
        result.read_tokens, result.prompt_passes = self.read_tokens, self._slots.current.passes
        result.prompt_ms = ms_since(started)
        self._generator.generate(completion, on_text, started, draft)
        result.total_ms = ms_since(started)
        self._latest, self._is_behind = completion, False
        self._cache(completion)
        return result

    def _cache(self, completion: Completion, *, is_ahead: bool = False) -> None:
        if completion.result.reason != "time":  # incomplete
            self._completions.add(
                completion.source, completion.single_line, completion.result, is_ahead
            )

    def alternatives(self, typed: str = "") -> list[str]:
        """Return other texts for the last request that was completed, the most likely first.

        They branch off at the least certain token of its first line.

        Args:
            typed: part of the answer that was typed since, with which they must start, too.
        """
        latest = self._latest
        # Alternatives would have to replace the same bytes.
        if latest is None or latest.result.replace_bytes:
            return []
        text = latest.result.text
        if typed:
            source = dataclasses.replace(latest.source, prefix=latest.source.prefix + typed)
            latest = self.reader.lay_out(source, latest.single_line)
        self.reader.prefill(latest.prompt)
        main = latest
        if not main.result.tokens:  # cached without token probabilities
            main = dataclasses.replace(latest, result=Result())
            self._generator.generate(main, ignore_text, time.perf_counter(), threshold=0.0)
        texts = [text.removeprefix(typed)]
        restore_current = self._slots.prefill_ahead(latest.prompt)
        try:
            others = [main.result, *self._generator.generate_alternatives(main)]
            texts += [other.text for other in others if not other.replace_bytes]
        finally:
            restore_current()
        distinct = [typed + each for each in dict.fromkeys(texts) if each]
        return distinct[1:] if text else distinct

    def warm(self, source: Source) -> None:
        """Evaluate the prompts that a request at this position will need."""
        self._latest = None
        completion = self.reader.load_saved(self.reader.lay_out(source, single_line=False))
        self.reader.prefill(completion.prompt)
        if completion.window == "short" and not self._on_gpu:
            self.reader.prefill(completion.full_prompt)

    def idle(self) -> bool:
        """Do one step of work for later requests; return whether there is more.

        The steps, in order: wait for the vocabulary; evaluate the prompt of an answer that came
        from the cache; repeat a request whose answer ran out of time or used a smaller window, with
        a larger one; generate the text after the suggestion, in case it is accepted; evaluate the
        suffix again after the typed text; admit one chunk of another file; save the KV cache.
        """
        if self._vocabulary.is_alive():
            self._vocabulary.join(VOCABULARY_S)
            return True
        latest = self._latest
        if latest is None:
            return False
        if self._is_behind:
            self.reader.prefill(latest.prompt)
            self._is_behind = False
            return True
        if latest.window != "full" or latest.result.reason == "time":
            try:
                self._improve(latest)
            except OutOfMemory as error:
                self._shrink(error)
                self._latest = None
            return True
        if self.is_machine_busy:
            return False
        result = latest.result
        if result.text and not result.replace_bytes and self._read_ahead != latest.source:
            self._read_ahead = latest.source
            self._complete_ahead(latest)
            return True
        if self._slots.current.shadow.stale >= MIN_STALE:
            self.reader.prefill(latest.prompt, exact=True)
            return True
        if self._admit_file(latest):
            return True
        self.save()
        return False

    def _improve(self, completion: Completion) -> None:
        """Answer a request again, with the full window and without a time limit.

        After an abort, the next call reuses the evaluated part.
        """
        if self._slots.cost(completion.full_prompt) > len(completion.full_prompt.tokens) // 2:
            self._admit_all_files(completion)
        better = self.reader.lay_out_full(completion)
        self.reader.prefill(better.prompt)
        draft = self._generator.draft(better)
        self._generator.generate(better, ignore_text, time.perf_counter(), draft, is_idle=True)
        self._latest = better
        if better.result.text or not completion.result.text:  # otherwise keep the first answer
            self._cache(better)
        if self.on_improved:
            self.on_improved(better.result)

    def _complete_ahead(self, completion: Completion) -> None:
        """Generate and cache the text after the suggestion, in case it is accepted."""
        source = completion.source
        after = dataclasses.replace(source, prefix=source.prefix + completion.result.text)
        if self._completions.find(after, completion.single_line):
            return
        ahead = self.reader.lay_out(after, completion.single_line)
        restore_current = self._slots.prefill_ahead(ahead.prompt)
        try:
            self.reader.cache_logits()
            self._generator.generate(ahead, ignore_text, time.perf_counter(), is_idle=True)
        finally:
            restore_current()
        self._cache(ahead, is_ahead=True)

    def _admit_all_files(self, completion: Completion) -> None:
        """Admit all chunks of other files to a prompt that must be evaluated anyway."""
        if self.ring is None:
            return
        query = Query.of(completion.source)
        self.ring.retrieve(query)
        while self.ring.admit():
            pass
        self.reader.files = self.ring.layout(query, self.reader.files_tokens, self._count)
        self._next_files = None

    def _admit_file(self, completion: Completion) -> bool:
        """Admit one chunk of another file; return whether there was any.

        The old prompt stays in use, in its own slot, until the new one is evaluated.
        """
        if self.ring is None:
            return False
        if self._next_files is None:
            query = Query.of(completion.source)
            self.ring.retrieve(query)
            if not self.ring.admit():
                return False
            found = self.ring.layout(query, self.reader.files_tokens, self._count)
            if found == self.reader.files:
                return True
            self._next_files = found
        self._slots.prefill_ahead(self.reader.full_prompt(completion.source, self._next_files))
        self.reader.cache_logits()
        self.reader.files, self._next_files = self._next_files, None
        self._latest = None
        self._completions.clear()
        return True

    def save(self) -> None:
        """Save the slot of the last request, if the file on disk lacks much of it."""
        latest = self._latest
        if latest and not self._is_behind and latest.window == "full":
            self.reader.save(latest)

    def _count(self, text: str) -> int:
        return len(self.model.tokenize(text))

    def _fingerprint(self) -> str:
        """Return a string with everything besides the tokens that the KV data depends on."""
        stat = self.model.path.stat()
        file = f"{self.model.path.name} {stat.st_size} {stat.st_mtime_ns}"
        made = f"{llama.version()} {self._on_gpu} {self.config.kv_type}"
        return f"{file} {self.model.description} {made}"

    def _read_vocabulary(self) -> None:
        """Read the text of each token and save it for the next start. Thread: its own."""
        model, fingerprint = self.model, self._fingerprint()
        found = vocabulary.read(model.piece, model.n_vocab, lambda: self._is_closing)
        if found is not None:
            self._use(found)
            found.save(vocabulary.default_folder(), fingerprint)

    def _use(self, found: Vocabulary) -> None:
        self._generator.vocabulary = found  # set first, because the reader's prompts rely on it
        self.reader.vocabulary = found

    @property
    def description(self) -> str:
        """The model, its device and its budgets, in one line."""
        return (
            f"{self.model.path.name} ({self.model.description}) on the "
            f"{'GPU' if self._on_gpu else 'CPU'}: {self._context.cells} cells, "
            f"{self.reader.prefix_tokens} tokens before the cursor, "
            f"{self.config.suffix_tokens} after it, {self.config.files_tokens} of other files"
        )

    def last_prompt(self) -> list[tuple[int, bytes, bool]]:
        """Return each token of the last prompt, its bytes or marker, and whether it was cached."""
        return self.reader.last_prompt()

    def nll(self, source: Source, text: str) -> list[float]:
        """Return the negative log-likelihood of each token of a text at the cursor, in nats.

        The prompt is the same as for `complete`, but without token healing.
        """
        self.reader.prefill(self.reader.full_prompt(source))
        logits = self._slots.current.prompt_logits
        losses = []
        for token in self.model.tokenize(text):
            if logits is None:
                break
            losses.append(confidence.nll(logits, token))
            self._slots.append([token])
            logits = self._context.logits()
        return losses

    def _warm_up(self) -> None:
        """Evaluate one token, so that page faults and graphs do not delay the first request."""
        token = next(iter(self.family.ids.values()))
        self.reader.prefill(Prompt((token,), None, (), (token,), "", ""))
