"""Completion by a server: the same prompt, sent as text, and the same rules for the answer.

Runs on the scheduler's thread; any thread
may set `abort`, which closes the connection at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace

from lcursor.code import estimate
from lcursor.config import CompletionConfig, ModelConfig
from lcursor.errors import ConfigInvalid, LcursorError, ModelUnsuitable
from lcursor.fim import families, placement, prompt_text, trim
from lcursor.fim.completion_apis import Piece
from lcursor.fim.completion_server import CompletionServer
from lcursor.fim.context_ring import ContextRing, Query
from lcursor.fim.families import FAMILIES, Family
from lcursor.fim.prompt import File, Source
from lcursor.fim.prompt_text import TextPrompt
from lcursor.fim.result import OnText, Reason, Result, ms_since


class Endpoint:
    """A server that completes; a `Backend`.

    Nothing is sent before `connect`, or the first `complete`.

    Args:
        config: the settings.
        server: the model that completes.
        ring: source of chunks of other files.

    Attributes:
        read_tokens: prompt tokens that the last request evaluated, if the server reports them.
        warnings, threshold, is_machine_busy: not used.

    Raises:
        ConfigInvalid: the address is not valid.
        KeyMissing: the configured source has no key.
        ModelUnsuitable: the provider's models only chat.
    """

    def __init__(
        self, config: CompletionConfig, server: ModelConfig, ring: ContextRing | None = None
    ) -> None:
        self._server, self.ring = server, ring
        self.configure(config)
        self.read_tokens = 0
        self.warnings: list[LcursorError] = []
        self.threshold = 0.0
        self.is_machine_busy = False
        self._family: Family | None = None
        self._query: Query | None = None
        chats_only = server.provider if not server.family else ""
        chats_only = "anthropic" if server.api == "anthropic" else chats_only
        if chats_only:
            raise ModelUnsuitable(
                f"models of {chats_only} answer in chats and edits, and cannot complete",
                "Set completion.model to a model that can fill in the middle",
            )
        self._connection = CompletionServer(
            server, lambda name: families.family_of(name) is not None
        )
        self.abort = self._connection.abort

    @property
    def model(self) -> str:
        """Name of the model; "" before `connect`."""
        return self._connection.model

    @property
    def is_connected(self) -> bool:
        """Whether the API and the model of the server are known."""
        return bool(self._family and self._connection.api)

    @property
    def description(self) -> str:
        """Model, API and address, in one line."""
        family = self._family.name if self._family else "?"
        api, address = self._connection.api or "?", self._connection.name
        return f"{self.model or 'no model'} ({family}) by {api} at {address}"

    @property
    def name(self) -> str:
        """See `description`."""
        return self.description

    def configure(self, config: CompletionConfig) -> None:
        """Apply settings that need no new connection; see `completer.needs_reload`."""
        cells = self._server.context_tokens or config.context_tokens
        self.config = placement.resolve(replace(config, context_tokens=cells), "server")

    def warm(self, source: Source) -> None:
        """Do nothing: a request that nobody sees would cost as much as any other."""

    def measure_speed(self) -> str:
        """Do nothing: the speed of other machines is not stored."""
        return ""

    def save(self) -> None:
        """Do nothing: the server has its own cache."""

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def idle(self) -> bool:
        """Admit one chunk of another file; return whether there was one."""
        if self.ring is None:
            return False
        if self._query:
            self.ring.retrieve(self._query)
        return self.ring.admit()

    def alternatives(self, typed: str = "") -> list[str]:
        """Return no alternatives, because servers report no probabilities to branch at."""
        return []

    def connect(self) -> None:
        """Detect the API and the model of the server.

        Raises:
            ServerError: there is no answer, or no supported API.
            ConfigInvalid, ModelUnsuitable: the model or its family is ambiguous.
            Cancelled: `abort` was set.
        """
        self._family = None
        self._connection.connect()
        self._family = self._family_of(self._connection.model)

    def complete(
        self,
        source: Source,
        on_text: OnText,
        *,
        single_line: bool = False,
        bypass_cache: bool = True,
    ) -> Result:
        """Send a prompt, and read the answer until a rule or a budget ends it.

        See `engine.Engine.complete`.

        Raises:
            Cancelled: `abort` was set.
            ServerError: see `Client`.
        """
        started = time.perf_counter()
        self.read_tokens = 0
        if not self.is_connected or self._connection.is_stale:
            self.connect()
        assert self._family is not None
        built = self._build(source, self._family, single_line)
        result = Result(prompt_tokens=estimate.tokens(built.text))
        most = self.config.max_lines
        cursor = trim.cursor_context(built.prefix, built.suffix, single_line, most, source.path)
        with closing(self._connection.stream(built, self.config)) as pieces:
            self._read(pieces, built, cursor, on_text, result, started)
        result.total_ms = ms_since(started)
        return result

    def _build(self, source: Source, family: Family, single_line: bool) -> TextPrompt:
        budget, others = self.config.files_tokens, tuple[File, ...]()
        if self.ring is not None and budget:
            self._query = Query.of(source)
            others = self.ring.layout(self._query, budget, estimate.tokens)
        return prompt_text.text(
            source,
            family,
            prefix_tokens=self.config.prefix_tokens,
            suffix_tokens=self.config.suffix_tokens,
            single_line=single_line,
            files=others,
            files_tokens=budget,
        )

    def _read(
        self,
        pieces: Iterable[Piece],
        built: TextPrompt,
        cursor: trim.CursorContext,
        on_text: OnText,
        result: Result,
        started: float,
    ) -> None:
        """Read an answer into a result."""
        suggestion, written, text, began = trim.Suggestion(cursor), "", "", 0.0
        for piece in pieces:
            if piece.prompt_tokens >= 0:
                result.prompt_tokens = piece.prompt_tokens
            if piece.read_tokens >= 0:
                result.read_tokens = self.read_tokens = piece.read_tokens
            if piece.text and not began:
                began, result.prompt_ms = time.perf_counter(), ms_since(started)
            result.generated_tokens += bool(piece.text)
            written += piece.text
            is_done = piece.reason is not None
            text, is_over = prompt_text.before_stop(written, built.stops, is_done=is_done)
            if suggestion.grow(text):
                result.first_ms = result.first_ms or ms_since(started)
                on_text(suggestion.text)
            if is_over or trim.ended(text, cursor):
                by_rule: Reason = "end" if is_over else "trimmed"
                result.reason = "line" if cursor.single_line else by_rule
                break
            if piece.reason is not None:
                result.reason = piece.reason
                break
            if began and ms_since(began) > self.config.budget_ms:
                result.reason = "time"
                break
        else:  # the stream ended without a reason
            text, _ = prompt_text.before_stop(written, built.stops, is_done=True)
        if result.reason in {"tokens", "time"}:
            text = trim.cut(text, cursor)
        result.text, result.replace_bytes = suggestion.finish(text), suggestion.replace_bytes
        if result.text and not result.first_ms:
            result.first_ms = ms_since(started)

    def _family_of(self, model: str) -> Family:
        wanted, setting = self._server.family, f"{self._server.setting}family"
        hint = f"Set {setting} to one of {', '.join(FAMILIES)}"
        if wanted and wanted not in FAMILIES:
            raise ConfigInvalid(f"{setting}: there is no family {wanted!r}", hint)
        family = FAMILIES[wanted] if wanted else families.family_of(model)
        if family is None:
            raise ModelUnsuitable(f"the FIM family of {model!r} is unknown", hint)
        return family
