"""Completion by a server: the same prompt, sent as text; the answer goes through the same rules.

Has the interface of `engine.Engine` that the completer uses, and needs no llama.cpp. Runs on the
scheduler's thread; `abort` may be set from any thread, and closes the connection at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from lcursor.config import CompletionConfig
from lcursor.errors import (
    ConfigInvalid,
    LcursorError,
    ModelUnsuitable,
    ServerGarbled,
    ServerModelMissing,
    ServerUnreachable,
)
from lcursor.fim import placement, prompt_text, trim
from lcursor.fim.context_ring import ContextRing, Query
from lcursor.fim.dialects import DIALECTS, Dialect, Piece
from lcursor.fim.families import FAMILIES, Family, Resolved
from lcursor.fim.prompt import File, Source
from lcursor.fim.result import OnText, Reason, Result
from lcursor.http import detect, endpoint, sse
from lcursor.http.client import Call, Client
from lcursor.http.detect import Detected

SETTING = "completion.endpoint"
_NO_FAMILY = Family("", "psm", {}, "")


class Abort:
    """The flag that stops a request; it closes the connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._call: Call | None = None

    def set(self, *, immediately: bool = False) -> None:
        """Stop the running request, and those to come until `clear`, at once in any case.

        Thread: any.
        """
        with self._lock:
            self._is_set = True
            call = self._call
        if call is not None:
            call.close()

    def clear(self) -> None:
        """Let requests run again."""
        with self._lock:
            self._is_set = False

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._is_set

    @contextmanager
    def watching(self, call: Call) -> Iterator[Call]:
        """Close a call when the flag is set, and at the end in any case."""
        with self._lock:
            self._call = call
            is_late = self._is_set
        if is_late:
            call.close()
        try:
            yield call
        finally:
            with self._lock:
                self._call = None
            call.close()


class Endpoint:
    """A server that completes.

    Nothing is sent before `connect`, or the first `complete`.

    Args:
        config: the address, and the budgets.

    Raises:
        ConfigInvalid: the address is not valid.
        KeyMissing: the configured source has no key.
    """

    def __init__(self, config: CompletionConfig) -> None:
        self.config = placement.resolve(config, "server")
        self.abort = Abort()
        self.read_tokens = 0
        """Prompt tokens that the last request evaluated, as far as the server reports them."""
        self.ring: ContextRing | None = None
        self.warnings: list[LcursorError] = []
        """Always empty; see `engine.Engine`."""
        self.threshold = 0.0
        """Not used, as servers report no probabilities; see `engine.Engine`."""
        self.model = ""
        self._dialect: Dialect | None = None
        self._family: Family | None = None
        self._latest: prompt_text.TextPrompt | None = None
        self._asked: Query | None = None
        base = endpoint.check_url(config.endpoint_url, f"{SETTING}_url")
        key = endpoint.read_key(config.endpoint_key_env, config.endpoint_key_command, SETTING)
        # Addresses of OpenAI-like servers are written with the version and without.
        self._has_key = bool(key)
        self._client = Client(base.removesuffix("/v1"), key, SETTING)

    @property
    def is_connected(self) -> bool:
        """Whether the API and the model of the server are known."""
        return self._family is not None

    @property
    def description(self) -> str:
        """Model, API and address, in one line."""
        api = next((name for name, one in DIALECTS.items() if one is self._dialect), "?")
        family = self._family.name if self._family else "?"
        return f"{self.model or 'no model'} ({family}) by {api} at {self._client.name}"

    def configure(self, config: CompletionConfig) -> None:
        """Apply settings that need no new connection; see `completer.NEEDS_SERVER`."""
        self.config = placement.resolve(config, "server")

    def save(self) -> None:
        """Do nothing: the server has its own cache; see `engine.Engine`."""

    def close(self) -> None:
        """Close the connections."""
        self.abort.set()
        self._client.close()

    def idle(self) -> bool:
        """Admit one piece of another file; return whether there was one."""
        if self.ring is None:
            return False
        if self._asked:
            self.ring.retrieve(self._asked)
        return self.ring.admit()

    def alternatives(self, typed: str = "") -> list[str]:
        """Return nothing: without probabilities there is no token to branch at."""
        return []

    @property
    def family(self) -> Resolved:
        """The family, with the marker numbers of `last_prompt` as ids."""
        family = self._family or _NO_FAMILY
        return Resolved(family, {name: at for at, name in enumerate(family.markers)}, frozenset())

    def last_prompt(self) -> list[tuple[int, bytes, bool]]:
        """Return the last prompt in pieces: a marker's number or -1, the text, and False.

        The last says that the piece was not cached, as only the server knows that.
        """
        pieces = self._latest.pieces if self._latest else ()
        numbers = {text: at for at, text in enumerate(self.family.family.markers.values())}
        return [
            (numbers.get(text, -1) if is_marker else -1, text.encode("utf-8", "replace"), False)
            for text, is_marker in pieces
        ]

    def connect(self) -> None:
        """Detect the API and the model of the server.

        Raises:
            ServerError: nothing answers, or with no supported API.
            ConfigInvalid, ModelUnsuitable: the model or its family is ambiguous.
            Cancelled: `abort` was set.
        """
        self._dialect, names = self._find()
        model = self.config.endpoint_model or self._only(names)
        self._family = self._family_of(model)
        self.model = model

    def complete(
        self,
        source: Source,
        on_text: OnText,
        *,
        single_line: bool = False,
        bypass_cache: bool = True,
    ) -> Result:
        """Send a prompt, and read the answer until a rule or a budget ends it.

        Args:
            source: the text around the cursor.
            on_text: called with all text so far, each time it has grown.
            single_line: generate no newline.

        Returns:
            The suggestion; its text begins with everything that `on_text` was called with.

        Raises:
            Cancelled: `abort` was set.
            ServerError: see `Client`.
        """
        started = time.perf_counter()
        self.read_tokens = 0
        if not self.is_connected:
            self.connect()
        if self._dialect is None or self._family is None:
            raise ServerUnreachable(f"{self._client.name} is not known yet", "Try again")
        built = self._built(source, self._family, single_line)
        body = self._dialect.body(built, self.model, self.config)
        result = Result(prompt_tokens=prompt_text.tokens(built.text))
        most = self.config.max_lines
        cursor = trim.cursor_context(built.prefix, built.suffix, single_line, most, source.path)
        try:
            with self.abort.watching(self._client.stream(self._dialect.path, body)) as call:
                self._write(call, self._dialect, built, cursor, on_text, result, started)
        except (ServerUnreachable, ServerModelMissing):
            self._family = None  # another server may answer next time
            raise
        result.total_ms = _ms_since(started)
        return result

    def _built(self, source: Source, family: Family, single_line: bool) -> prompt_text.TextPrompt:
        budget = self.config.files_tokens
        others: tuple[File, ...] = ()
        if self.ring is not None and budget:
            self._asked = Query.of(source)
            others = self.ring.layout(self._asked, budget, prompt_text.tokens)
        self._latest = prompt_text.text(
            source,
            family,
            prefix_tokens=self.config.prefix_tokens,
            suffix_tokens=self.config.suffix_tokens,
            single_line=single_line,
            files=others,
            files_tokens=budget,
        )
        return self._latest

    def _write(
        self,
        call: Call,
        dialect: Dialect,
        built: prompt_text.TextPrompt,
        cursor: trim.CursorContext,
        on_text: OnText,
        result: Result,
        started: float,
    ) -> None:
        suggestion, written, text, began = trim.Suggestion(cursor), "", "", 0.0
        has_reply = False
        for found in sse.objects(call, self._client.name):
            has_reply = True
            piece = dialect.read(found)
            self._count(piece, result)
            if piece.text and not began:
                began, result.prompt_ms = time.perf_counter(), _ms_since(started)
            result.generated_tokens += bool(piece.text)
            written += piece.text
            is_done = piece.reason is not None
            text, is_over = prompt_text.before_stop(written, built.stops, is_done=is_done)
            if suggestion.grow(text):
                result.first_ms = result.first_ms or _ms_since(started)
                on_text(suggestion.text)
            if is_over or trim.ended(text, cursor):
                by_rule: Reason = "end" if is_over else "trimmed"
                result.reason = "line" if cursor.single_line else by_rule
                break
            if piece.reason is not None:
                result.reason = piece.reason
                break
            if began and _ms_since(began) > self.config.budget_ms:
                result.reason = "time"
                break
        else:  # the stream ended without a reason
            text, _ = prompt_text.before_stop(written, built.stops, is_done=True)
        if not has_reply:
            raise ServerGarbled(f"{self._client.name} answers with nothing", sse.HINT)
        if result.reason in {"tokens", "time"}:
            text = trim.cut(text, cursor)
        result.text, result.replace_bytes = suggestion.finish(text), suggestion.replace_bytes
        if result.text and not result.first_ms:
            result.first_ms = _ms_since(started)

    def _count(self, piece: Piece, result: Result) -> None:
        if piece.prompt_tokens >= 0:
            result.prompt_tokens = piece.prompt_tokens
        if piece.read_tokens >= 0:
            result.read_tokens = self.read_tokens = piece.read_tokens

    def _find(self) -> tuple[Dialect, list[str]]:
        """Return the API of the server, and the models it lists."""
        wanted = self.config.endpoint_api
        if wanted not in ("auto", *DIALECTS):
            raise ConfigInvalid(
                f"{SETTING}_api: there is no {wanted!r}",
                f"Set it to one of auto, {', '.join(DIALECTS)}",
            )
        for name, dialect in DIALECTS.items():
            if name == wanted:
                return dialect, self._names(dialect)
        found = detect.detect(self._ask, has_key=self._has_key)
        if found is None:
            raise detect.unknown_server(self._client.name, SETTING)
        return DIALECTS[found.kind], self._names(DIALECTS[found.kind], found)

    def _names(self, dialect: Dialect, found: Detected | None = None) -> list[str]:
        if found is not None and found.path == dialect.models:
            return list(dialect.names(found.reply))
        try:
            return list(dialect.names(self._ask(dialect.models)))
        except ServerGarbled:
            if self.config.endpoint_model:
                return []  # a gateway may not list its models
            raise

    def _ask(self, path: str) -> dict[str, object]:
        with self.abort.watching(self._client.request(path)) as call:
            return call.json()

    def _only(self, names: list[str]) -> str:
        """Return the only model that can be meant."""
        known = [name for name in names if prompt_text.family_of(name)]
        candidates = names if len(names) == 1 else known
        if len(candidates) == 1:
            return candidates[0]
        if not names:
            raise ServerModelMissing(
                f"{self._client.name} names no model", f"Name one in {SETTING}_model"
            )
        raise ConfigInvalid(
            f"{self._client.name} has several models: {', '.join(names[:8])}",
            f"Name one in {SETTING}_model",
        )

    def _family_of(self, model: str) -> Family:
        wanted = self.config.endpoint_family
        hint = f"Set {SETTING}_family to one of {', '.join(FAMILIES)}"
        if wanted and wanted not in FAMILIES:
            raise ConfigInvalid(f"{SETTING}_family: there is no family {wanted!r}", hint)
        family = FAMILIES[wanted] if wanted else prompt_text.family_of(model)
        if family is None:
            raise ModelUnsuitable(f"the name {model!r} does not say how to ask for a middle", hint)
        return family


def _ms_since(start: float) -> float:
    return (time.perf_counter() - start) * 1000
