"""Next edits by a model: asks a server to rewrite the lines around the cursor.

A model of the manifest or a file gets a local server of its own, which ends some time after its
last user.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from lcursor.catalog import store
from lcursor.code import estimate
from lcursor.config import ChatConfig, CompletionConfig, ModelConfig, NextEditConfig
from lcursor.errors import Cancelled, ConfigInvalid, LcursorError
from lcursor.executor import SerialExecutor
from lcursor.fim.completion_server import CompletionServer
from lcursor.fim.prompt_text import TextPrompt, before_stop
from lcursor.llm.server import LocalServer
from lcursor.llm.server_state import default_folder
from lcursor.next_edit import families, window
from lcursor.next_edit.families import Family
from lcursor.next_edit.predict import checked
from lcursor.next_edit.records import Edit, Lines, Proposal, Texts
from lcursor.reporting import Notify, error_message, report_error

THREAD = "lcursor-next-edit-model"
CLOSE_S = 0.5
MAX_S = 20.0
"""Time limit of an answer; later nobody waits for it."""
RETRY_S = 60.0
"""Time without questions after a failure."""
CONTEXT_TOKENS = 4096
MAX_PROMPT_TOKENS = 3000
EXTRA_TOKENS = 128
"""An answer may be that much longer than the window."""
QUICK_S = 0.5
"""Time of an answer up to which windows elsewhere are asked about, too: that of a GPU."""
MAX_ELSEWHERE = 10


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """The place of a window; two with equal fields have the same answer."""

    path: str
    lines: Lines
    edits: tuple[Edit, ...]
    row: int
    column: int
    """In characters."""


class NextEditModel:
    """Asks one model; a new question cancels an older one.

    Args:
        config: names the model.
        completion: name of the completion model, for which memory is reserved.
        notify: sends a message to Neovim, from any thread.
    """

    def __init__(self, config: NextEditConfig, completion: str, notify: Notify) -> None:
        self._config, self._completion, self._notify = config, completion, notify
        self._lock = threading.Lock()
        self._question: ModelQuestion | None = None
        self._found: list[Proposal] | None = None
        self._answer: Callable[[list[Proposal]], None] = lambda _: None
        self._cancel = threading.Event()
        self._server: LocalServer | None = None
        self._connection: CompletionServer | None = None
        self._connected: ModelConfig | None = None
        self._failure, self._retry_s = "", 0.0
        self._executor = SerialExecutor(
            THREAD, lambda error, _: report_error(notify, error, 0, "the next-edit model failed")
        )

    def ask(
        self, question: ModelQuestion, texts: Texts, answer: Callable[[list[Proposal]], None]
    ) -> None:
        """Find proposals in the window around a place.

        A question equal to the last one is not asked again. Thread: any.

        Args:
            answer: called once, on any thread, if there are proposals and no newer question.
        """
        with self._lock:
            self._answer = answer
            if question == self._question:
                known = self._found
            else:
                known, self._question, self._found = None, question, None
                self._stop()
                cancel = self._cancel = threading.Event()
                self._executor.submit(lambda: self._run(question, texts, cancel))
        if known:
            answer(known)

    def cancel(self) -> None:
        """Stop the running question. Thread: any."""
        with self._lock:
            self._question = None
            self._stop()

    def close(self) -> None:
        """Close the connection, and stop using the local server."""
        self.cancel()
        self._executor.submit(self._close)
        self._executor.finish(CLOSE_S)

    def _stop(self) -> None:
        self._cancel.set()
        if self._connection is not None:
            self._connection.abort.set()

    def _close(self) -> None:
        for each in (self._connection, self._server):
            if each is not None:
                each.close()

    def _run(self, question: ModelQuestion, texts: Texts, cancel: threading.Event) -> None:
        if cancel.is_set() or time.monotonic() < self._retry_s:
            return
        try:
            found = self._find(question, texts, cancel)
        except Cancelled:
            return
        except LcursorError as error:
            self._retry_s = time.monotonic() + RETRY_S
            if str(error) != self._failure:
                self._notify("error", error_message(error))
            self._failure = str(error)
            return
        self._failure = ""
        with self._lock:
            if question is not self._question:
                return
            self._found, answer = found, self._answer
        if found:
            answer(found)

    def _find(
        self, question: ModelQuestion, texts: Texts, cancel: threading.Event
    ) -> list[Proposal]:
        """Ask about the window at the cursor; if nothing changes there, about others."""
        connection, family = self._connect(cancel)
        started_s = time.monotonic()
        first = family.prompt(texts, question.edits, question.path, question.row, question.column)
        found = self._rewritten(connection, family, question, texts, first)
        is_quick = time.monotonic() - started_s <= QUICK_S
        if found or first is None or not is_quick or question.edits[-1].path != question.path:
            return found
        rows = window.other_rows(question.lines, question.edits[-1], first.first_row, first.end_row)
        for row in rows[:MAX_ELSEWHERE]:
            if cancel.is_set():
                raise Cancelled("a newer question came")
            prompt = family.prompt(texts, question.edits, question.path, row, 0)
            found = self._rewritten(connection, family, question, texts, prompt)
            if found:
                return found
        return []

    def _rewritten(
        self,
        connection: CompletionServer,
        family: Family,
        question: ModelQuestion,
        texts: Texts,
        prompt: window.WindowPrompt | None,
    ) -> list[Proposal]:
        """Return the proposals in the answer to a prompt."""
        path, edits = question.path, question.edits
        if prompt is None or estimate.tokens(prompt.text) > MAX_PROMPT_TOKENS:
            return []
        old = window.without_returns(question.lines[prompt.first_row : prompt.end_row])
        written = _written(connection, prompt, estimate.tokens("\n".join(old)) + EXTRA_TOKENS)
        new = family.parse(written, old) if written is not None else None
        if new is None:
            return []
        found = window.proposals(texts, edits, path, prompt, new, self._config.model)
        return checked(texts, edits, found)

    def _connect(self, cancel: threading.Event) -> tuple[CompletionServer, Family]:
        """Return the connection and the model's family; starts the local server if necessary."""
        server = self._config.endpoint or self._local(cancel)
        if self._connection is None or server != self._connected:
            if self._connection is not None:
                self._connection.close()
            self._connected = server
            self._connection = CompletionServer(server, lambda name: bool(families.family_of(name)))
        connection = self._connection
        connection.abort.clear()
        if cancel.is_set():
            raise Cancelled("a newer question came")
        if not connection.api:
            connection.connect()
        name = server.family or families.family_of(connection.model)
        if name not in families.FAMILIES:
            known = " or ".join(families.FAMILIES)
            raise ConfigInvalid(
                f"next_edit.model: {connection.model!r} is of no known family of next-edit models",
                f"Set models.NAME.family to {known}, or choose another model",
            )
        return connection, families.FAMILIES[name]

    def _local(self, cancel: threading.Event) -> ModelConfig:
        """Return the address of the local server, which it starts if necessary."""
        path = store.resolve(self._config.model, "next_edit")
        if self._server is None:
            config = ChatConfig(model=str(path), context_tokens=CONTEXT_TOKENS)
            folder = default_folder()
            self._server = LocalServer(
                config, folder.with_name(f"{folder.name}-next-edit"), self._log, self._completion
            )
        target = self._server.ensure(cancel)
        return ModelConfig(self._config.model, url=target.url, api="llama.cpp")

    def _log(self, words: str) -> None:
        self._notify("log", {"level": "info", "message": words})


def _written(
    connection: CompletionServer, prompt: window.WindowPrompt, max_tokens: int
) -> str | None:
    """Return the answer to a prompt; None if it is not complete."""
    sent = TextPrompt(((prompt.text, False),), prompt.stops, "", "")
    settings = CompletionConfig(max_tokens=max_tokens, context_tokens=CONTEXT_TOKENS)
    written, ends_s = "", time.monotonic() + MAX_S
    with closing(connection.stream(sent, settings)) as pieces:
        for piece in pieces:
            written += piece.text
            text, is_over = before_stop(written, prompt.stops, is_done=True)
            if is_over or piece.reason == "end":
                return text
            if piece.reason is not None or time.monotonic() > ends_s:
                return None
    return None
