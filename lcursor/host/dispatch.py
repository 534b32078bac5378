"""The table of message handlers. Runs on the event loop's thread; no handler blocks.

An invalid message is answered with an error; it never ends the host.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import lcursor
from lcursor import config, protocol
from lcursor.config_table import from_table
from lcursor.errors import LcursorError, MessageInvalid, ProtocolMismatch
from lcursor.fim import outcomes
from lcursor.fim.completer import Completer
from lcursor.fim.outcomes import OutcomeStore, Row, Rows
from lcursor.host.backends import open_backend
from lcursor.host.indexing import Indexing
from lcursor.host.next_edits import NextEdits
from lcursor.host.retriever import IndexRetriever
from lcursor.host.services import Services
from lcursor.http import endpoint
from lcursor.llm.server_state import ServerFolder, default_folder
from lcursor.protocol.fim import FimOutcome, FimRequest
from lcursor.protocol.next_edit import NextEditOutcome
from lcursor.protocol.session import Hello
from lcursor.reporting import Notify, error_message, report_error

Handler = Callable[[Any], None]


class Dispatch:
    """The handlers of all messages, and their services.

    Args:
        send: sends a message to Neovim, from any thread.
        stop: ends the host's loop.
    """

    def __init__(self, send: Notify, stop: Callable[[], None]) -> None:
        self._send, self._stop = send, stop
        self._completer: Completer | None = None
        self._outcomes = OutcomeStore(self._report, self._update_gates)
        self._index = index = Indexing(send)
        self._services = Services(send, index)
        self._next_edits = NextEdits(send)
        self._chat_server = ServerFolder(default_folder())
        self._latest = 0  # id of the last completion
        self.handlers: dict[str, Handler] = {
            "hello": self._hello,
            "config": self._config,
            "shutdown": lambda _: self._stop(),
            "fim.request": self._complete,
            "fim.warm": lambda params: self._slot().warm(params),
            "fim.cancel": lambda params: self._slot().cancel(params["id"]),
            "fim.more": lambda params: self._slot().find_alternatives(
                params["id"], params["typed"]
            ),
            "context.chunk": lambda params: self._slot().add_chunk(params),
            "fim.outcome": self._outcome,
            "stats.request": lambda _: self._outcomes.read(self._send_stats),
            "stats.reset": lambda _: self._outcomes.reset(self._send_stats),
            "index.enter": index.enter,
            "index.saved": index.saved,
            "index.begin": index.begin,
            "index.report": index.report,
            "index.why": index.why,
            "index.search": index.search,
            "index.symbols": index.symbols,
            "index.buffer": index.buffer,
            "index.typing": lambda _: index.typing(),
            "next_edit.predict": self._next_edits.predict,
            "next_edit.outcome": self._next_edit_outcome,
            **self._services.handlers(),
        }
        self._settings = config.Config()
        self._key_warning = ""
        self._has_hidden = False

    def __call__(self, method: str, params: object) -> None:
        """Handle one message."""
        try:
            self.handlers.get(method, _unknown)(protocol.check(method, params))
        except Exception as error:  # noqa: BLE001 - the root of every handler
            report_error(self._send, error, 0, f"{method} failed")

    def close(self) -> bool:
        """Close all parts; return whether the engine ended in time.

        A part is closed before those that it uses: agents, edits, chats, models (all by
        `Services`), next edits, outcomes, the index, the engine. Each first finishes the messages
        that it received (`SerialExecutor.finish`), so that nothing is lost, then stops its runs,
        which store what they have, then closes its files and connections.
        """
        self._services.close()
        self._next_edits.close()
        self._outcomes.close()
        self._index.close()
        return self._completer is None or self._completer.close()

    def _hello(self, params: Hello) -> None:
        self._send(
            "ready",
            {
                "protocol": protocol.PROTOCOL,
                "version": lcursor.__version__,
                "python": platform.python_version(),
                "pid": os.getpid(),
            },
        )
        if params["protocol"] != protocol.PROTOCOL:
            raise ProtocolMismatch(
                f"the plugin uses protocol {params['protocol']}, the host {protocol.PROTOCOL}",
                "Update the whole plugin, then restart Neovim",
            )
        self._settings = from_table(params["config"])
        self._configure()

    def _config(self, params: protocol.session.ConfigChanged) -> None:
        self._settings = from_table(params["config"])
        self._configure()

    def _configure(self) -> None:
        """Apply the settings to all services; the first call starts completion."""
        self._warn_of_exposed_keys()
        slot = self._settings.completion
        self._index.configure(self._settings.index, self._settings.privacy.exclude)
        self._services.configure(self._settings)
        self._next_edits.configure(self._settings)
        if self._completer:
            self._completer.configure(slot)
        else:
            retriever = IndexRetriever(self._index)
            self._completer = Completer(
                slot, self._send_completion, open_backend, retriever, measures_speed=True
            )
            self._completer.start()
            self._outcomes.refresh()

    def _warn_of_exposed_keys(self) -> None:
        """Warn, once per set of servers, of keys that are sent over plain HTTP."""
        urls = {
            model.setting: model.url
            for model in self._settings.chat.models
            if model.key_env or model.key_command
        }
        warning = endpoint.plaintext_warning(urls)
        words = str(warning or "")
        if warning is not None and words != self._key_warning:
            self._report(warning)
        self._key_warning = words

    def _complete(self, params: FimRequest) -> None:
        """Start a completion; the local chat server pauses until its end."""
        slot, self._latest = self._slot(), params["id"]
        if self._settings.completion.endpoint is None:
            self._chat_server.signal(is_begin=True)
        slot.request(params)

    def _send_completion(self, method: str, params: Any) -> None:
        """Send a message of the completer. Thread: any."""
        if method == "fim.done" and params["id"] == self._latest:
            self._chat_server.signal(is_begin=False)
        self._send(method, params)

    def _outcome(self, params: FimOutcome) -> None:
        names = {each.name for each in fields(Row)}
        values: dict[str, Any] = {name: value for name, value in params.items() if name in names}
        self._outcomes.add(Row(**{**values, "at_s": time.time()}))

    def _next_edit_outcome(self, params: NextEditOutcome) -> None:
        accepted, at_s = params["is_accepted"], time.time()
        self._outcomes.add(
            outcomes.next_edit_row(at_s, params["filetype"], params["kind"], is_accepted=accepted)
        )

    def _update_gates(self, rows: Rows) -> None:
        """Thread: the outcome store's."""
        found = outcomes.hidden(rows).items()
        hidden = [{"kind": kind, "filetype": name, "until_s": at_s} for (kind, name), at_s in found]
        if hidden or self._has_hidden:
            self._has_hidden = bool(hidden)
            self._send("next_edit.gate", {"hidden": hidden})
        if self._completer:
            self._completer.learn(outcomes.history(rows))

    def _send_stats(self, rows: Rows) -> None:
        """Thread: the outcome store's."""
        store, slot = self._outcomes, self._completer
        thresholds = slot.thresholds if slot else {}
        self._send("stats", outcomes.stats(rows, thresholds, str(store.path), store.problem))

    def _slot(self) -> Completer:
        if self._completer is None:
            raise MessageInvalid("a request came before hello", "Run :LCursor restart")
        return self._completer

    def _report(self, error: LcursorError) -> None:
        self._send("error", error_message(error))


def _unknown(_params: object) -> None:
    raise MessageInvalid("unknown message")
