"""The service of edits, with a method for each message of `protocol.edit`.

No method blocks. Each edit runs on its own thread; an executor writes the history and files in
the order of the messages. Files only change at the editor's request.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lcursor.changes.histories import ChatEdited, Histories
from lcursor.changes.records import FileChange, Lines
from lcursor.config import AgentConfig, EditConfig
from lcursor.context.codebase import Codebase, GrepSearch
from lcursor.context.items import Seen
from lcursor.context.servers import ServersOf, no_servers
from lcursor.edit import apply_reply, commit, known_changes, multi_edit, region_edit
from lcursor.edit.region_edit import EarlierProposals
from lcursor.edit.run import EditOutcome, EditRun
from lcursor.edit.session import EditDeps, short_title
from lcursor.errors import LcursorError
from lcursor.executor import SerialExecutor
from lcursor.llm.pool import ModelPool
from lcursor.protocol import edit as wire
from lcursor.reporting import Notify, error_message, report_error
from lcursor.run.run import Runs
from lcursor.workspace.approval import CheckApprovals

STOP_S = 0.1
"""Time limit for a stopped edit to end."""
LEAVE_S = 0.3
MAX_REMEMBERED = 64
"""Number of recent edits for which alternatives can be requested."""


class EditService:
    """The edits of one editor.

    Args:
        config: the settings.
        send: sends a message, from any thread.
        models: shared with the chat, and closed by their owner.
        codebase: returns the search of a project; None for a search without an index.
        secrets: globs of files that are never read, in addition to the built-in ones.
        agent: settings of agents: what commands in a sandbox see.
        folder: of all histories; None for the default.
        busy: called on any thread when the first edit starts to work, and when the last one stops.
        chat_edited: called with the accepted changes of a chat.
        chat_seen: returns the text in the prompt of a chat message.
        servers_of: returns the MCP servers whose resources and prompts an instruction may use.
        chat_root: returns the root of a chat's project; "" if there is no such chat.
    """

    def __init__(
        self,
        config: EditConfig,
        send: Notify,
        models: ModelPool,
        codebase: Callable[[Path], Codebase] | None = None,
        *,
        secrets: Sequence[str] = (),
        agent: AgentConfig | None = None,
        folder: Path | None = None,
        busy: Callable[[bool], None] = lambda _: None,
        chat_edited: ChatEdited = lambda _chat, _edits: None,
        chat_seen: Callable[[str, int], Sequence[Seen]] = lambda _chat, _message: (),
        servers_of: ServersOf = no_servers,
        chat_root: Callable[[str], str] = lambda _chat: "",
    ) -> None:
        self._send, self._models = send, models
        self._histories = Histories(folder, self._report, chat_edited, self._warn)
        self._services = EditDeps(
            config,
            models,
            codebase or (lambda root: GrepSearch(root, tuple(secrets))),
            tuple(secrets),
            self._histories,
            CheckApprovals(folder, secrets),
            models.claim_cache,
            agent or AgentConfig(),
            chat_seen,
            servers_of,
            chat_root,
        )
        self._lock = threading.Lock()
        self._runs: Runs[EditRun] = Runs(busy)
        self._alternatives: OrderedDict[int, EarlierProposals] = OrderedDict()
        self._writer = SerialExecutor("lcursor-edits", self._on_writer_error)

    def handlers(self) -> dict[str, Callable[[Any], None]]:
        """Return the method for each message."""
        histories, write = self._histories, self._write
        return {
            "edit.ask": self.ask,
            "edit.many": lambda params: self._start(params, multi_edit.edit_locations),
            "edit.apply": lambda params: self._start(params, apply_reply.apply),
            "edit.propose": lambda params: self._start(params, known_changes.propose),
            "edit.commit": lambda params: self._start(params, commit.ask),
            "edit.choose": lambda params: self._answer(params, params["choice"]),
            "edit.stop": self.stop,
            "edit.decided": lambda params: self._writer.submit(partial(histories.decided, params)),
            "edit.renamed": lambda params: self._writer.submit(partial(histories.renamed, params)),
            "edit.write": lambda params: write("edit.written", histories.write, params),
            "edit.revert": lambda params: write("edit.reverted", histories.revert, params),
            "edit.turns": lambda params: write("edit.turned", histories.rows, params),
            "edit.resume": lambda params: write("edit.proposed", histories.resume, params),
        }

    def ask(self, params: wire.EditAsk) -> None:
        """Edit a region."""
        number = params["id"]
        with self._lock:
            earlier = self._alternatives.get(params["again"]) or EarlierProposals()
            self._alternatives[number] = earlier
            while len(self._alternatives) > MAX_REMEMBERED:
                self._alternatives.popitem(last=False)

        def edit(run: EditRun, services: EditDeps, params: wire.EditAsk) -> EditOutcome:
            return region_edit.edit_region(run, services, params, earlier)

        self._start(params, edit)

    def record(
        self,
        root: Path,
        title: str,
        files: Sequence[FileChange],
        bases: Mapping[str, Lines],
        run: str = "",
    ) -> str:
        """Record changes as a turn, whose hunks `edit.resume` shows. Thread: any.

        Args:
            bases: the lines that the changes refer to, by path.
            run: key of the agent's run that made them.

        Returns:
            The key of the turn.
        """
        return self._histories.begin(root, short_title(title), files, "", bases, run)

    def stop(self, params: wire.EditStop) -> None:
        """Stop an edit at once."""
        self._runs.stop(params["id"], STOP_S)

    def close(self) -> None:
        """Write the history, and stop all edits."""
        self._writer.finish()
        self._runs.close(LEAVE_S)

    def _start(self, params: Any, edit: Callable[[EditRun, EditDeps, Any], EditOutcome]) -> None:
        def work(run: EditRun) -> EditOutcome:
            return edit(run, self._services, params)

        self._runs.start(EditRun(params["id"], self._send, self._runs, work))

    def _answer(self, params: Mapping[str, Any], answer: object) -> None:
        if run := self._runs.find(params["id"]):
            run.answer(answer)

    def _write(self, reply: str, method: Callable[[Any], Any], params: Any) -> None:
        """Call a method after earlier writes, and send its result."""
        self._writer.submit(lambda: self._send(reply, method(params)), params["id"])

    def _warn(self, message: str) -> None:
        self._send("log", {"level": "warn", "message": message})

    def _report(self, error: LcursorError) -> None:
        self._send("error", error_message(error))

    def _on_writer_error(self, error: Exception, number: int) -> None:
        """Thread: the writer's."""
        report_error(self._send, error, number, "the edit failed")
