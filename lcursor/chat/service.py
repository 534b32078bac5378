"""The chats of an editor: a method for each message of `protocol.chat`.

Owns the open chats and the running turns. No method blocks: an executor reads and writes files in
the order of the requests, each turn has its own thread, and requests that need no turn go to
`queries.py`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

from lcursor.chat import archive, attachments
from lcursor.chat.archive import Archive
from lcursor.chat.attachments import ChatQuestion, Gatherer, OpenCodebase
from lcursor.chat.chat_file import ChatFile, MakeOps
from lcursor.chat.conversation import Conversation, Op, amend_ops
from lcursor.chat.queries import ChatQueries
from lcursor.chat.server_calls import ServerCalls
from lcursor.chat.turn import ChatDeps, Turn
from lcursor.chat.views import INTERRUPTED, opened_message
from lcursor.config import ChatConfig
from lcursor.context import gather
from lcursor.context.codebase import Codebase, GrepSearch
from lcursor.context.items import Seen
from lcursor.context.servers import ServersOf, no_servers
from lcursor.errors import ChatDamaged, ChatMissing, LcursorError
from lcursor.executor import SerialExecutor
from lcursor.llm.pool import ModelPool
from lcursor.llm.slot_states import IDLE_S
from lcursor.project.redaction import encodable
from lcursor.project.root import root_of
from lcursor.protocol import chat as wire
from lcursor.reporting import Notify, error_message, report_error
from lcursor.run.run import Runs

STOP_S = 0.1
"""Time limit for a stopped turn to end."""
CLOSE_S = 0.3


P = TypeVar("P", bound=Mapping[str, Any])


def _queued(
    method: Callable[[ChatService, P], None],
) -> Callable[[ChatService, P], None]:
    """Wrap a method so that the service's executor runs it after earlier requests."""

    @wraps(method)
    def submit(service: ChatService, params: P) -> None:
        service._executor.submit(partial(method, service, params), params["id"])

    return submit


class ChatService:
    """The chats of one editor or one command line.

    Args:
        notify: sends a message of `protocol.chat.TO_LUA`, `error` or `log`, from any thread.
        codebase: returns the search of a project; None for a search without an index.
        servers_of: returns the MCP servers of a project.
        secrets: globs of files that are never read, in addition to the built-in ones.
        models: shared pool; None to create one.
        folder: of all chats; None for the default.
        server: folder of the local server of a created pool.
        on_busy: called, on any thread, when the first turn starts and when the last one ends.
        idle_s: idle time after which the server's KV cache is saved.
    """

    def __init__(
        self,
        config: ChatConfig,
        notify: Notify,
        codebase: OpenCodebase | None = None,
        *,
        servers_of: ServersOf = no_servers,
        secrets: Sequence[str] = (),
        models: ModelPool | None = None,
        folder: Path | None = None,
        server: Path | None = None,
        on_busy: Callable[[bool], None] = lambda _: None,
        idle_s: float = IDLE_S,
    ) -> None:
        self._notify = notify
        self._codebase, self._secrets = codebase, tuple(secrets)
        self._archive = Archive(folder)
        self._models = models or ModelPool(config, server, self._log, idle_s=idle_s)
        self._owns_models = models is None
        gatherer = Gatherer(self._open_codebase, self._secrets, config.rule_files, servers_of)
        self._deps = ChatDeps(config, self._models, gatherer, ServerCalls(servers_of), notify)
        self._lock = threading.Lock()
        self._files: dict[str, ChatFile] = {}
        self._turns: Runs[Turn] = Runs(on_busy)
        self._executor = SerialExecutor("lcursor-chat", self._on_error)
        self._queries = ChatQueries(
            self._deps, self._open_file, self._open_codebase, self._on_error
        )

    def handlers(self) -> dict[str, Callable[[Any], None]]:
        """Return the method for each message."""
        return {
            "chat.open": self.open,
            "chat.send": self.send,
            "chat.preview": self._queries.preview,
            "chat.stop": self.stop,
            "chat.list": self.list,
            "chat.rename": self.rename,
            "chat.delete": self.delete,
            "chat.branch": self.branch,
            "chat.amend": self.amend,
            "chat.use": self.use,
            "chat.compact": self.compact,
            "chat.expand": self.expand,
            "chat.complete": self._queries.complete,
            "server.ask": self._queries.server,
        }

    @_queued
    def open(self, params: wire.ChatOpen) -> None:
        """Show a chat, or create one; its file is created with its first message."""
        root = str(root_of(Path(params["path"] or ".").absolute()))
        key = params["chat"]
        if key == "last":
            key = self._archive.newest(root)
        file = self._open_file(key) if key else self._new_file(root)
        file.refresh()
        self._show(file, params["id"])
        if file.note:
            self._notify("error", error_message(ChatDamaged(file.note)))

    @_queued
    def send(self, params: wire.ChatSend) -> None:
        """Add a question to a chat, and start a turn that answers it."""
        file = self._open_file(params["chat"])
        root = file.chat.root
        if not params["call"]:
            servers = self._deps.gatherer.servers_of(Path(root))
            attachments.check_command(params["text"], root, servers)
        file.lock_turn()
        try:
            make = self._make_call if params["call"] else self._make_turn
            turn = make(file, params)
        except BaseException:
            file.unlock_turn()
            raise
        self._turns.start(turn)

    def stop(self, params: wire.ChatStop) -> None:
        """Stop a turn."""
        number = params["id"]

        def stop_now() -> None:
            if (turn := self._turns.find(number)) is not None:
                turn.stop()
                turn.leave(STOP_S)

        if (turn := self._turns.find(number)) is not None:
            turn.stop()
        self._executor.submit(stop_now)  # it may not have started yet

    @_queued
    def list(self, params: wire.ChatList) -> None:
        """List the chats of a project, or all."""
        path = params["path"]
        self._send_list(params["id"], str(root_of(Path(path))) if path else "")

    @_queued
    def rename(self, params: wire.ChatRename) -> None:
        """Change the title of a chat."""
        title = encodable(" ".join(params["title"].split()))
        self._change(params, lambda _: [{"op": "title", "title": title}])

    @_queued
    def delete(self, params: wire.ChatNamed) -> None:
        """Delete a chat with its saved KV states, and list the others."""
        key = params["chat"]
        for turn in self._turns.all():
            if turn.key == key:
                turn.stop()
                turn.leave(STOP_S)
        file = self._open_file(key)
        file.lock_turn()  # raises if an answer is being written
        try:
            if file.path.exists():
                self._archive.delete(key)
        finally:
            file.unlock_turn()
        with self._lock:
            self._files.pop(key, None)
        self._models.slot_states.erase(key)
        self._send_list(params["id"], file.chat.root)

    @_queued
    def branch(self, params: wire.ChatTurn) -> None:
        """Show another branch."""

        def make(chat: Conversation) -> Sequence[Op]:
            number = chat.sibling(params["number"], params["step"])
            while number in chat.shown:  # with the replies that were shown before
                number = chat.shown[number]
            return [{"op": "show", "number": number}]

        self._change(params, make)

    @_queued
    def amend(self, params: wire.ChatAmend) -> None:
        """Replace the text of an answer; the old one stays as another branch."""
        text = encodable(params["text"])
        self._change(params, lambda chat: amend_ops(chat, params["number"], text))

    @_queued
    def use(self, params: wire.ChatUse) -> None:
        """Change the model of a chat."""

        def make(_: Conversation) -> Sequence[Op]:
            self._models.check(params["model"])
            return [{"op": "model", "model": params["model"]}]

        self._change(params, make)

    @_queued
    def expand(self, params: wire.ChatAt) -> None:
        """Undo a summary, so that the prompt contains its messages again."""
        self._change(params, lambda _: [{"op": "expand", "number": params["number"]}])

    @_queued
    def compact(self, params: wire.ChatNamed) -> None:
        """Summarize a chat."""
        file = self._open_file(params["chat"])
        file.lock_turn()
        self._turns.start(Turn(params["id"], file, self._deps, self._turns, question_number=0))

    def record_edits(self, key: str, edits: Sequence[Mapping[str, Any]]) -> None:
        """Store accepted edits that came from a chat; see `conversation.AcceptedEdit`."""

        def make(chat: Conversation) -> Sequence[Op]:
            return [{"op": "edit", "after": chat.last, **each} for each in edits]

        def job() -> None:
            with contextlib.suppress(ChatMissing):  # it was deleted meanwhile
                self._open_file(key).change(make)

        self._executor.submit(job)

    def read_before(self, key: str, number: int) -> Sequence[Seen]:
        """Return the text in the prompt of a message, newest first.

        Blocks if the chat is not open; any thread.

        Raises:
            ChatMissing: there is no such chat.
            ChatFailed: it cannot be read.
        """
        return attachments.read_before(self._open_file(key).snapshot(), number)

    def root_of(self, key: str) -> str:
        """Return the root of a chat's project; blocks and raises like `read_before`."""
        return self._open_file(key).snapshot().root

    def close(self, *, is_leaving: bool = True) -> None:
        """Stop all turns, and store partial answers.

        Args:
            is_leaving: do the scheduled save of the KV state.
        """
        self._executor.finish()
        self._queries.close()
        for turn in self._turns.all():
            turn.stop(INTERRUPTED)
        self._turns.close(CLOSE_S)
        with self._lock:
            files = list(self._files.values())
        self._models.slot_states.close(CLOSE_S if is_leaving else 0.0)
        for file in files:
            file.close()
        if self._owns_models:
            self._models.close()

    def _make_turn(self, file: ChatFile, params: wire.ChatSend) -> Turn:
        """Store a question, or find the question to answer again."""
        make_turn = partial(
            Turn, params["id"], file, self._deps, self._turns, model=params["model"]
        )
        if not params["text"].strip():
            file.refresh()
            question_number = file.snapshot().question_of(params["after"])
            if not question_number:
                raise ChatMissing("there is no question to answer", "Ask one")
            stored = file.snapshot().messages[question_number]
            if stored.sent or stored.call:
                return make_turn(question_number=question_number)
            again = ChatQuestion(  # it ended before its context was gathered
                stored.text, params["path"], stored.attachments, params["dropped"]
            )
            return make_turn(question_number=question_number, question=again)
        text = encodable(params["text"])

        def make(chat: Conversation) -> Sequence[Op]:
            after = chat.resolve(params["after"])
            if params["after"] and not after:
                raise ChatMissing(
                    f"there is no message {params['after']} in this chat", "Open the chat again"
                )
            new: Op = {"op": "say", "number": chat.next_number, "parent": after, "text": text}
            return [{**new, "attachments": attached}]

        question = attachments.question_of(file.snapshot(), params)
        attached = gather.storable(
            question.attachments,
            root=Path(file.snapshot().root),
            secrets=self._secrets,
            dropped=question.dropped,
        )
        number = int(file.change(make, fsync=False)[-1]["number"])
        return make_turn(question_number=number, question=question)

    def _make_call(self, file: ChatFile, params: wire.ChatSend) -> Turn:
        """Store that a call is run; its result takes the place of a question."""
        file.refresh()
        after = params["after"]
        request = self._deps.calls.request(
            file.snapshot(), after, params["call"], params["choice"], params["text"]
        )

        def make(chat: Conversation) -> Sequence[Op]:
            new: Op = {"op": "say", "number": chat.next_number, "parent": after, "text": ""}
            return [{**new, "call": request.call.line}]

        number = int(file.change(make)[-1]["number"])
        return Turn(
            params["id"],
            file,
            self._deps,
            self._turns,
            question_number=number,
            request=request,
            model=params["model"],
        )

    def _log(self, words: str) -> None:
        self._notify("log", {"level": "info", "message": words})

    def _open_codebase(self, root: Path) -> Codebase:
        return self._codebase(root) if self._codebase else GrepSearch(root, self._secrets)

    def _change(self, params: Any, make: MakeOps) -> None:
        """Change a chat, and show it."""
        file = self._open_file(params["chat"])
        try:
            file.change(make)
        except (KeyError, ValueError):
            raise ChatMissing(
                "there is no such message in this chat", "Open the chat again"
            ) from None
        self._show(file, params["id"])

    def _show(self, file: ChatFile, number: int) -> None:
        chat = file.snapshot()
        names = self._models.names()
        known = self._models.known(chat.model or names[0]) if chat.model or names else None
        context = known.context_tokens if known else 0
        is_running = any(each.is_open for each in chat.branch()) and file.is_turn_running()
        call = "" if is_running else self._deps.calls.state(chat, chat.last)
        message = opened_message(chat, number, names, context, is_running=is_running, call=call)
        self._notify("chat.opened", message)

    def _send_list(self, number: int, root: str) -> None:
        rows, note = self._archive.rows(root)
        answer: wire.ChatListed = {
            "id": number,
            "chats": rows,
            "note": note,
        }
        self._notify("chat.listed", answer)

    def _new_file(self, root: str) -> ChatFile:
        key = archive.new_key()
        chat = Conversation(key=key, root=root)
        file = ChatFile(self._archive.path(key, root), chat, self._report)
        with self._lock:
            self._files[key] = file
        return file

    def _open_file(self, key: str) -> ChatFile:
        """Return an open chat, or open it.

        Raises:
            ChatMissing: there is none.
            ChatFailed: it cannot be read.
        """
        with self._lock:
            file = self._files.get(key)
        if file is None:
            file = ChatFile.open(self._archive.find(key), self._report)
            with self._lock:
                file = self._files.setdefault(key, file)
        return file

    def _report(self, error: LcursorError) -> None:
        self._notify("error", error_message(error))

    def _on_error(self, error: Exception, number: int) -> None:
        report_error(self._notify, error, number, "the chat request failed")
