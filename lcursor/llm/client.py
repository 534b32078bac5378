"""Send messages to a chat model on a server, and read its streamed answer.

Blocks the calling thread; any other thread can stop it. Independent of conversations: messages or
tokens are sent unchanged, in one request, repeated only if the server rejects an unknown field.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from lcursor.errors import (
    Cancelled,
    LcursorError,
    ServerBusy,
    ServerError,
    ServerFailed,
    ServerGarbled,
    ServerModelMissing,
    ServerUnreachable,
)
from lcursor.http import endpoint, sse
from lcursor.http.client import Call, Client, Limits
from lcursor.llm import overflow, providers, tokens, tool_calls
from lcursor.llm.admission import Admission, Admitted
from lcursor.llm.apis.api import Quirk
from lcursor.llm.apis.llama_server import LlamaServer, completion_request
from lcursor.llm.records import (
    Event,
    Finished,
    Message,
    Prompt,
    Queued,
    Reasoning,
    SamplingParams,
    Served,
    ServedModel,
    Text,
    TokenPrompt,
    Usage,
)
from lcursor.llm.streaming import ResponseReader
from lcursor.storage import json_text, stored

CONNECT_S = 10.0
ANSWER_S = 10.0
"""Time limit for a response that needs no computation; beside a build a server takes seconds."""
SILENCE_S = 600.0
"""Timeout between two parts of an answer. Prompt processing or a queue may take minutes, during
which most servers send nothing, and the user can stop at any time."""
MAX_BYTES = 256 << 20
"""Maximum size of an answer: 300 bytes per token, for a context of a million tokens."""
WAIT_S = 0.05
"""Interval in which a waiting request notices that it was closed."""
SAVE_S = 120.0
"""Time limit for saving or restoring a slot."""
REASONING_TOKENS = 16_000
"""Tokens for the reasoning of a hosted model, which counts as a part of its answer."""
MAX_COUNTS = 512
"""Number of cached token counts."""
MIN_READ_TOKENS = 64
"""Minimum prompt length to measure the speed of prompt processing."""
LOCAL = "chat"
"""`ServedModel.setting` of the local server."""
DEFAULTS = SamplingParams()
FULL = "other requests have filled the context of {name}"
ADVICE = (
    "Try :LCursor server restart, and see :LCursor server log "
    "(in a shell: python -m lcursor server restart, and log)"
)


class Stream:
    """A streamed answer; the request starts with the iteration, which is possible once.

    It ends with `Finished` or an exception, `Cancelled` after `close`. Thread: `close` on any.
    """

    def __init__(self, client: ChatClient, prompt: Prompt, sampling: SamplingParams) -> None:
        self._client, self._prompt, self._wish = client, prompt, sampling
        self._lock = threading.Lock()
        self._is_closed = False
        self._has_ended = False  # by the end mark of the stream
        self._call: Call | None = None
        self._admitted: Admitted | None = None
        self._reader: ResponseReader | None = None

    def usage(self) -> Usage:
        """Return the current token counts; exact if the server sends them with each token."""
        prompt = self._prompt
        if isinstance(prompt, TokenPrompt):
            prompt_tokens = len(prompt.ids)
        else:
            prompt_tokens = tokens.estimate(prompt)
        return self._reader.usage(prompt_tokens) if self._reader else Usage(prompt_tokens)

    def close(self) -> None:
        """Drop the connection at once, which stops the server."""
        with self._lock:
            self._is_closed = True
            call, admitted = self._call, self._admitted
        if call is not None:
            call.close()
        if admitted is not None:
            admitted.leave()

    def adopt(self, call: Call) -> Call:
        """Register a call with this answer, so that `close` also closes it."""
        with self._lock:
            self._call = call
            is_late = self._is_closed
        if is_late:
            call.close()
        return call

    def __iter__(self) -> Iterator[Event]:
        last: Event | None = None
        try:
            yield from self._wait_for_others()
            for event in self._events():
                if self._is_closed and not isinstance(event, Finished):
                    break
                last = event
                yield event
        except LcursorError as e:
            if not self._is_closed:
                raise self._client.explain(_as_failure(e, self._client)) from None
        finally:
            if not isinstance(last, Finished):
                self.close()
            elif self._admitted is not None:
                self._admitted.leave()
        if not isinstance(last, Finished):
            raise Cancelled("the answer was stopped")

    def _wait_for_others(self) -> Iterator[Event]:
        """Wait until the server has space for the request.

        Raises:
            Cancelled: it was closed meanwhile.
        """
        wish = self._wish
        with self._lock:
            tools = json.dumps(tool_calls.listed(wish.tools)) if wish.tools else ""
            prompt_tokens = self.usage().prompt_tokens + tokens.estimate(tools)
            admission = self._client.admission
            self._admitted = request = admission.enter(prompt_tokens, wish.max_tokens, wish.rank)
        if not request.is_running.is_set():
            yield Queued(is_waiting=True)
            while not request.is_running.wait(WAIT_S):
                if self._is_closed:
                    raise Cancelled("the answer was stopped")
            yield Queued(is_waiting=False)

    def _events(self) -> Iterator[Event]:
        client = self._client
        started, first = time.perf_counter(), 0.0
        while True:
            self._reader = reader = ResponseReader(client.name)
            call = client.begin(self, self._prompt, self._wish)
            chunk = providers.chunks(client.served)
            try:
                for found in sse.objects(self._lines(call), client.name):
                    for event in reader.feed(chunk(found)):
                        if not first and isinstance(event, (Text, Reasoning)):
                            first = time.perf_counter()
                        yield event
                    if reader.reason is not None:
                        call.drain()
                break
            except LcursorError as e:
                if reader.reason is not None:
                    break  # only counts may follow
                is_final = reader.has_begun or isinstance(self._prompt, TokenPrompt)
                if is_final or self._is_closed or not client.adapt(e):
                    raise
        yield from reader.finish()
        if not reader.has_begun:
            raise ServerGarbled(f"{client.name} sent an empty answer", client.advice)
        if reader.reason is None and not self._has_ended:
            raise ServerGarbled(f"{client.name} sent an incomplete answer", client.advice)
        call.drain()
        usage = _timed(self.usage(), started, first)
        client.record_speed(usage)
        yield Finished(reader.reason or "stop", usage)

    def _lines(self, call: Call) -> Iterator[bytes]:
        """Yield lines, and detect the end mark."""
        for line in call:
            self._has_ended = self._has_ended or line.replace(b" ", b"") == b"data:[DONE]"
            yield line


class ChatClient:
    """A model on a server. Creating it sends nothing. All methods on any thread."""

    def __init__(self, target: ServedModel) -> None:
        self.target = target
        root, self._api = endpoint.split_url(target.url)
        limits = Limits(CONNECT_S, ANSWER_S, SILENCE_S, MAX_BYTES)
        is_ours = target.setting == LOCAL
        self.advice = ADVICE if is_ours else sse.HINT
        """Hint after a failure."""
        name, advice = ("the local server", ADVICE) if is_ours else ("", "")
        headers = providers.headers(target)
        self._http = Client(root, target.key, target.setting, limits, advice, name, headers)
        self.name = self._http.name
        """The server's address for messages, or "the local server"."""
        self.admission = Admission()
        self.served: Served | None = None
        """The server's capabilities; None before the first probe."""
        self.prompt_speed = 0.0
        """Speed of prompt processing in tokens per millisecond; 0 before the first answer."""
        self._quirks: frozenset[Quirk] = frozenset()
        self._can_count = True
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Drop the connections, and stop running requests."""
        self._http.close()

    def probe(self) -> Served:
        """Query the server's capabilities and model.

        Raises:
            ServerError: nothing answers, or the server is unusable.
            ConfigInvalid: the settings do not name one of its models.
        """
        return self._probe(None)

    def stream(self, prompt: Prompt, sampling: SamplingParams = DEFAULTS) -> Stream:
        """Return an answer; iterating it raises `ServerError`, `ContextFull`, `ConfigInvalid`."""
        return Stream(self, prompt, sampling)

    def count(self, what: tokens.Countable, *, may_ask: bool = True) -> tuple[int, bool]:
        """Return the number of tokens, and whether the server's tokenizer counted them.

        Counts are cached, so that a file in two prompts is counted once.

        Args:
            may_ask: query the server if the count is not cached.
        """
        rows = what if isinstance(what, str) else [(each.role, each.text) for each in what]
        name = tokens.digest(repr(rows))
        with self._lock:
            count = self._counts.get(name)
        if count is None and may_ask and what and (count := self._ask_count(what)) is not None:
            with self._lock:
                self._counts[name] = count
                if len(self._counts) > MAX_COUNTS:
                    self._counts.pop(next(iter(self._counts)))  # the oldest
        return tokens.estimated(what) if count is None else (count, True)

    def apply_template(self, messages: Sequence[Message]) -> str:
        """Return a prompt in the format of the model, by a llama-server.

        Raises:
            ServerError: the server failed or cannot do this.
        """
        rows = tool_calls.openai_rows(providers.adapted(messages, self._quirks))
        return str(self._ask("/apply-template", {"messages": rows}).get("prompt") or "")

    def tokenize(self, text: str, *, is_template: bool = False) -> list[int]:
        """Return the tokens of a text, by a llama-server.

        Args:
            is_template: special tokens in the text count; otherwise they are plain text.

        Raises:
            ServerError: the server failed or cannot do this.
        """
        options = {"add_special": False, "parse_special": is_template}
        found = self._ask("/tokenize", {"content": text, **options}).get("tokens")
        return found if isinstance(found, list) else []

    def save_slot(self, filename: str) -> bool:
        """Save the KV cache of the last answer to a file in the server's own folder."""
        return self._slot_action("save", filename)

    def restore_slot(self, filename: str) -> bool:
        """Restore a file of `save_slot`; the next request with its beginning uses it."""
        return self._slot_action("restore", filename)

    def explain(self, error: LcursorError) -> LcursorError:
        """Return the error for the user, and update the known capabilities."""
        if not isinstance(error, ServerError):
            return error
        if self.target.key and self.target.key in error.message:
            error.message = error.message.replace(self.target.key, "…")
            error.args = (error.message,)
        if isinstance(error, (ServerUnreachable, ServerModelMissing)):
            self.served, self._can_count = None, True  # another server may answer next time
        if overflow.SHARED in error.message and self.target.setting == LOCAL:
            return ServerBusy(FULL.format(name=self.name), "Send it again")
        full = overflow.context_overflow(error, self.target.name)
        if full is not None and self.served is not None and full.context_tokens:
            self.served = replace(self.served, context_tokens=full.context_tokens)
        return full or error

    # For streams.

    def begin(self, stream: Stream, prompt: Prompt, sampling: SamplingParams) -> Call:
        """Send a request for an answer."""
        served = self.served or self._probe(stream)
        if isinstance(prompt, TokenPrompt):
            path, body = completion_request(served, prompt, sampling)
            return stream.adopt(self._http.stream(path, body))
        if self.target.is_hosted and sampling.max_tokens:
            sampling = replace(sampling, max_tokens=sampling.max_tokens + REASONING_TOKENS)
        path, body = providers.chat_request(served, self._api, prompt, sampling, self._quirks)
        return stream.adopt(self._http.stream(path, body))

    def adapt(self, error: LcursorError) -> bool:
        """Remember an unsupported field; return whether to repeat the request without it."""
        if (
            not isinstance(error, ServerFailed)
            or error.status not in providers.UNSUPPORTED_STATUSES
        ):
            return False
        quirk = providers.quirk_of(error.message, str(error.detail.get("param") or ""))
        if quirk is None or quirk in self._quirks:
            return False
        self._quirks |= {quirk}
        return True

    def record_speed(self, usage: Usage) -> None:
        """Record the speed of prompt processing."""
        read = usage.prompt_tokens - usage.cached_tokens
        if read >= MIN_READ_TOKENS and usage.prompt_ms > 0:
            self.prompt_speed = read / usage.prompt_ms

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._http.request(path, body).json()
        except ServerError as e:
            raise self.explain(e) from None

    def _probe(self, stream: Stream | None) -> Served:
        def ask(path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
            call = self._http.request(path, body)
            return (stream.adopt(call) if stream else call).json()

        try:
            self.served = served = providers.probe(self.target, self._api, ask, self.name)
        except ServerError as e:
            raise self.explain(e) from None
        if served.kind == LlamaServer.name:
            shared_tokens = served.context_tokens if self.target.setting == LOCAL else 0
            self.admission.resize(served.slots, shared_tokens)
        return served

    def _ask_count(self, what: tokens.Countable) -> int | None:
        """Return the server's count; None if it cannot count."""
        if not self._can_count:
            return None
        try:
            served = self.served or self._probe(None)
            if not served.can_count:
                return None
            return providers.count_tokens(
                served, what, self._quirks, lambda *words: self._http.request(*words).json()
            )
        except LcursorError as e:
            # A connection error may be temporary; a missing feature is permanent.
            self._can_count = not (isinstance(e, ServerError) and e.status in (400, 404, 405, 501))
            return None

    def _slot_action(self, action: Literal["save", "restore"], filename: str) -> bool:
        """Save the slot that was used last, or restore into the one that was used first."""
        try:
            served = self.served or self._probe(None)
            if not served.can_save_slots:
                return False
            listed = json_text.parse(b"\n".join(self._http.request("/slots")))
            idle = [each for each in listed if not each.get("is_processing")]
            choose = max if action == "save" else min
            slot = choose(idle, key=lambda each: each.get("id_task", -1))["id"]
            path = f"/slots/{slot}?action={action}"
            self._http.request(path, {"filename": filename}, SAVE_S).json()
        except (LcursorError, *stored.DAMAGE):
            return False
        return True


def _as_failure(error: LcursorError, client: ChatClient) -> LcursorError:
    """Return the error of a request that others ended, by closing the client, as a lost one."""
    if isinstance(error, Cancelled):
        return ServerUnreachable(f"the connection to {client.name} was closed", client.advice)
    return error


def _timed(usage: Usage, started: float, first: float) -> Usage:
    """Return usage with measured times if the server sends none."""
    if usage.prompt_ms or usage.answer_ms:
        return usage
    now = time.perf_counter()
    first = first or now
    return replace(usage, prompt_ms=(first - started) * 1000, answer_ms=(now - first) * 1000)
