"""Requests that need no turn of a chat: token counts, completion of words, the local server.

Token counts and completion have an executor each, which skips outdated requests; each action on a
server has its own thread, since it takes long. No method blocks or changes a chat.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from lcursor.chat import prompt
from lcursor.chat.attachments import OpenCodebase, question_of, token_rows
from lcursor.chat.chat_file import ChatFile
from lcursor.chat.turn import ChatDeps
from lcursor.context import complete
from lcursor.errors import LcursorError
from lcursor.executor import OnError, SerialExecutor
from lcursor.llm import tokens
from lcursor.project.root import root_of
from lcursor.protocol import chat as wire


class ChatQueries:
    """Answers requests that need no turn.

    Args:
        open_file: returns a chat by its key; raises `ChatMissing` or `ChatFailed`.
    """

    def __init__(
        self,
        deps: ChatDeps,
        open_file: Callable[[str], ChatFile],
        codebase: OpenCodebase,
        on_error: OnError,
    ) -> None:
        self._deps, self._open_file = deps, open_file
        self._codebase, self._on_error = codebase, on_error
        self._newest_count = self._newest_completion = 0
        self._counting = SerialExecutor("lcursor-chat-count", on_error)
        self._completing = SerialExecutor("lcursor-chat-complete", on_error)
        self._cancel_start = threading.Event()
        """Set to stop waiting for a server that starts."""

    def preview(self, params: wire.ChatPreview) -> None:
        """Report the context of a question, and its tokens."""
        self._newest_count = params["id"]
        self._counting.submit(partial(self._count, params), params["id"])

    def complete(self, params: wire.ChatComplete) -> None:
        """Report the possible words after `@` or `/`."""
        self._newest_completion = params["id"]
        self._completing.submit(partial(self._complete, params), params["id"])

    def server(self, params: wire.ServerAsk) -> None:
        """Report the state of the local server, after starting, stopping or restarting it."""
        self._run_in_thread(partial(self._control_server, params), params["id"])

    def close(self) -> None:
        """Cancel everything; no answer is awaited."""
        self._newest_count = self._newest_completion = 0
        self._cancel_start.set()

    def _count(self, params: wire.ChatPreview) -> None:
        if params["id"] != self._newest_count:
            return
        models = self._deps.models
        chat = self._open_file(params["chat"]).snapshot()
        last = chat.resolve(params["after"])
        question = question_of(chat, params)
        name = models.choose(params["model"], chat.model)
        connection = models.known(name)
        context = connection.context_tokens if connection else 0
        gathered = self._deps.gatherer.gather(
            chat,
            last,
            question,
            threading.Event(),
            context,
            with_screen=models.may_see(name, question.text),
        )
        if connection is None:
            self._run_in_thread(partial(self._warm_up, name))
        count = connection.client.count if connection else tokens.estimated
        is_near = models.is_near(name)
        items = gathered.attached(count, is_near=is_near)
        rows, _ = token_rows(chat, last, gathered.text, items, count, is_near=is_near)
        total, _ = count(prompt.with_question(chat, last, gathered.sent_text()))
        answer: wire.ChatPreviewed = {
            "id": params["id"],
            "chat": params["chat"],
            "items": rows,
            "total_tokens": total,
            "limit_tokens": tokens.prompt_limit(context, self._deps.config.max_tokens),
        }
        self._deps.notify("chat.previewed", answer)

    def _warm_up(self, model: str) -> None:
        """Start the server in advance; errors are reported with the question itself."""
        try:
            self._deps.models.connect(model, self._cancel_start)
        except LcursorError as error:
            self._deps.notify("log", {"level": "info", "message": str(error)})

    def _complete(self, params: wire.ChatComplete) -> None:
        if params["id"] != self._newest_completion:
            return
        root = root_of(Path(params["path"] or ".").absolute())
        servers = self._deps.gatherer.servers_of(root)
        words = complete.complete(root, params["word"], self._codebase(root), servers)
        answer: wire.ChatCompleted = {"id": params["id"], "words": list(words)}
        self._deps.notify("chat.completed", answer)

    def _control_server(self, params: wire.ServerAsk) -> None:
        server, action = self._deps.models.local_server(), params["do"]
        if action in ("stop", "restart"):
            self._cancel_start.set()
            self._cancel_start = threading.Event()
        cancel = self._cancel_start
        if action == "start":
            server.ensure(cancel)
        elif action == "stop":
            server.stop()
        elif action == "restart":
            server.restart(cancel)
        self._deps.notify("server.status", {"id": params["id"], **asdict(server.status())})

    def _run_in_thread(self, job: Callable[[], None], number: int = 0) -> None:
        def run() -> None:
            try:
                job()
            except Exception as error:  # noqa: BLE001 - the root of the thread
                self._on_error(error, number)

        threading.Thread(target=run, name="lcursor-chat-query", daemon=True).start()
