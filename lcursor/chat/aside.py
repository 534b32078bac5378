"""What is asked beside the turns of a chat: bills, completions, what the local server does.

Owns a lane for each of the first two, on which the newest question counts, and a thread for each
thing that is done to a server, as that takes its time. Every method returns at once; nothing here
changes a chat.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lcursor import protocol_chat as wire
from lcursor.chat import attach, prompt
from lcursor.chat.attach import Retrieve
from lcursor.chat.stored import Stored
from lcursor.chat.turn import Tools
from lcursor.errors import LcursorError
from lcursor.executor import OnError, SerialExecutor
from lcursor.llm import tokens
from lcursor.llm.pool import status_message
from lcursor.llm.tokens import Counter


class Aside:
    """Answers what needs no turn.

    Args:
        tools: what all turns share.
        stored: returns a chat by its key; raises `ChatMissing` or `ChatFailed`.
        knows: returns what knows a project.
        failed: told, on any thread, what an answer raised, and to which question.
    """

    def __init__(
        self,
        tools: Tools,
        stored: Callable[[str], Stored],
        knows: Retrieve,
        failed: OnError,
    ) -> None:
        self._tools, self._stored, self._knows, self._failed = tools, stored, knows, failed
        self._tell, self._models = tools.tell, tools.models
        self._bills = self._words = 0
        self._bill_lane = SerialExecutor("lcursor-chat-bill", failed)
        self._word_lane = SerialExecutor("lcursor-chat-words", failed)
        self._starting = threading.Event()
        """Set to wait no longer for a server that starts."""

    def bill(self, params: wire.ChatBill) -> None:
        """Say what would be sent, and what it costs; the newest question only."""
        self._bills = params["id"]
        self._bill_lane.submit(partial(self._bill, params), params["id"])

    def complete(self, params: wire.ChatComplete) -> None:
        """Say what could stand after `@` or `/`; the newest question only."""
        self._words = params["id"]
        self._word_lane.submit(partial(self._complete, params), params["id"])

    def server(self, params: wire.ServerAsk) -> None:
        """Say how the local server is, or have something done to it."""
        self._thread(partial(self._serve, params), params["id"])

    def load(self) -> None:
        """Import what the first question will need, while it is typed."""
        self._word_lane.submit(_load)

    def close(self) -> None:
        """Wait for nothing any more."""
        self._bill_lane.close(0)
        self._word_lane.close(0)
        self._starting.set()

    def _bill(self, params: wire.ChatBill) -> None:
        """Thread: the lane of bills."""
        if params["id"] != self._bills:
            return
        stored = self._stored(params["chat"])
        chat = stored.snapshot()
        last = chat.place(params["after"])
        question = attach.asked(chat, params)
        name = self._models.choose(params["model"], chat.model, question.text)
        known = self._models.known(name)
        limit = known.context_tokens if known else 0
        may_see = self._models.may_see(name, question.text)
        found = self._tools.gatherer.gather(
            chat, last, question, threading.Event(), limit, with_screen=may_see
        )
        if known is None:
            self._thread(partial(self._warm_up, name, self._starting))
        counter = known.counter if known else Counter()
        receipt = attach.receipt(found, counter.text)
        lines, _ = attach.bill(chat, last, found.text, receipt, counter)
        total, _ = counter.messages(prompt.with_question(chat, last, found.sent()))
        limit = (
            tokens.prompt_limit(known.context_tokens, self._tools.config.max_tokens) if known else 0
        )
        answer: wire.ChatBilled = {
            "id": params["id"],
            "chat": params["chat"],
            "items": lines,
            "total_tokens": total,
            "limit_tokens": limit,
        }
        self._tell("chat.billed", answer)

    def _warm_up(self, name: str, cancel: threading.Event) -> None:
        """Have a server started that will be asked soon; who asks hears what is wrong with it."""
        try:
            self._models.connect(name, cancel)
        except LcursorError as error:
            self._tell("log", {"level": "info", "message": str(error)})

    def _complete(self, params: wire.ChatComplete) -> None:
        """Thread: the lane of completions."""
        from lcursor.context import complete
        from lcursor.project.root import root_of

        if params["id"] != self._words:
            return
        root = root_of(Path(params["path"] or ".").absolute())
        words = complete.complete(root, params["word"], self._knows(root))
        answer: wire.ChatCompleted = {"id": params["id"], "words": list(words)}
        self._tell("chat.completed", answer)

    def _serve(self, params: wire.ServerAsk) -> None:
        """Thread: its own, as a server that is loaded takes its time."""
        server, do = self._models.local_server(), params["do"]
        if do in ("stop", "restart"):
            self._starting.set()
            self._starting = threading.Event()
        cancel = self._starting
        if do == "start":
            server.ensure(cancel)
        elif do == "stop":
            server.stop()
        elif do == "restart":
            server.restart(cancel)
        self._tell("server.told", status_message(server.status(), params["id"]))

    def _thread(self, job: Callable[[], None], number: int = 0) -> None:
        """Do a job on a thread of its own."""

        def run() -> None:
            try:
                job()
            except Exception as error:  # noqa: BLE001 - the root of the thread
                self._failed(error, number)

        threading.Thread(target=run, name="lcursor-chat-aside", daemon=True).start()


def _load() -> None:
    """Import what the first question will need, while it is typed."""
    from lcursor.context import complete, gather, layout  # noqa: F401
    from lcursor.llm import client, models, server  # noqa: F401
