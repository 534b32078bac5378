"""The front door of the chat: each message of `protocol_chat` has a method here.

Owns the chats that are open and the turns that run. Every method returns at once: what reads the
disk is done on one lane in the order in which it was asked for; each turn has a thread; what is
asked besides goes to `aside.py`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcursor import protocol_chat as wire
from lcursor.chat import archive, attach
from lcursor.chat.archive import Archive
from lcursor.chat.aside import Aside
from lcursor.chat.attach import Gatherer, Retrieve
from lcursor.chat.conversation import Conversation, Op, amended
from lcursor.chat.shown import GONE, opened, row
from lcursor.chat.stored import Stored
from lcursor.chat.turn import Tools, Turn
from lcursor.chat.warm import IDLE_S, Warmth
from lcursor.config import ChatConfig
from lcursor.errors import ChatDamaged, ChatMissing, LcursorError
from lcursor.executor import SerialExecutor
from lcursor.llm.pool import ModelPool
from lcursor.reporting import Notify, error_message, report_error

if TYPE_CHECKING:
    from lcursor.context.codebase import Codebase
    from lcursor.context.items import Seen

STOP_S = 0.1
"""A turn that was told to stop gets this long to say so itself."""
LEAVE_S = 0.3
AWAKE_SHARE = 0.9
"""Of the time after which a local server lets go of its memory: before that it surely has not."""


class ChatSlot:
    """The chats of one editor, or of one command line.

    Args:
        config: the settings.
        tell: sends a message of `protocol_chat.TO_LUA`, `error` or `log`, from any thread.
        codebase: returns what knows a project; None for a plain search.
        secrets: globs of files that are never read, besides the built-in ones.
        models: shared with others; None has models of its own.
        folder: of all chats, where they are not in the usual place.
        server: folder of the local server of models of its own.
        busy: told, on any thread, when a turn begins and none ran, and when the last has ended.
        idle_s: after which what the server has read is saved.
    """

    def __init__(
        self,
        config: ChatConfig,
        tell: Notify,
        codebase: Retrieve | None = None,
        *,
        secrets: Sequence[str] = (),
        models: ModelPool | None = None,
        folder: Path | None = None,
        server: Path | None = None,
        busy: Callable[[bool], None] = lambda _: None,
        idle_s: float = IDLE_S,
    ) -> None:
        self._tell, self._busy = tell, busy
        self._codebase, self._secrets = codebase, tuple(secrets)
        self._archive = Archive(folder)
        self._models = models or ModelPool(config, server, self._log)
        self._owns_models = models is None
        awake_s = config.idle_minutes * 60 * AWAKE_SHARE
        self._warmth = Warmth(self._models.slot_path, idle_s, self._models.is_asleep, awake_s)
        gatherer = Gatherer(self._knows, self._secrets, config.rules)
        self._tools = Tools(config, self._models, gatherer, self._warmth, tell)
        self._lock = threading.Lock()
        self._chats: dict[str, Stored] = {}
        self._turns: dict[int, Turn] = {}
        self._front = SerialExecutor("lcursor-chat", self._failed)
        self._aside = Aside(self._tools, self._stored, self._knows, self._failed)
        self._models.add_listener(self._server_says, self._warmth.hush)

    def handlers(self) -> dict[str, Callable[[Any], None]]:
        """Return which method answers which message."""
        return {
            "chat.open": self.open,
            "chat.send": self.send,
            "chat.bill": self._aside.bill,
            "chat.stop": self.stop,
            "chat.list": self.list,
            "chat.rename": self.rename,
            "chat.delete": self.delete,
            "chat.branch": self.branch,
            "chat.amend": self.amend,
            "chat.use": self.use,
            "chat.compact": self.compact,
            "chat.expand": self.expand,
            "chat.complete": self._aside.complete,
            "server.ask": self._aside.server,
        }

    def open(self, params: wire.ChatOpen) -> None:
        """Show a chat, or begin one; it is in the archive once something was said in it."""

        def job() -> None:
            from lcursor.project.root import root_of

            root = str(root_of(Path(params["path"] or ".").absolute()))
            key = params["chat"]
            if key == "last":
                key = self._archive.newest(root)
            stored = self._stored(key) if key else self._new(root)
            stored.refresh()
            self._show(stored, params["id"])
            if stored.note:
                self._tell("error", error_message(ChatDamaged(stored.note)))

        self._front.submit(job, params["id"])
        self._aside.load()

    def send(self, params: wire.ChatSend) -> None:
        """Say something, and have it answered."""
        self._front.submit(partial(self._send, params), params["id"])

    def stop(self, params: wire.ChatStop) -> None:
        """Stop a turn."""
        with self._lock:
            turn = self._turns.get(params["id"])
        if turn is None:  # it has not begun yet, or it has ended
            self._front.submit(partial(self._stop_late, params["id"]))
            return
        turn.stop()
        self._front.submit(partial(turn.leave, STOP_S))

    def list(self, params: wire.ChatList) -> None:
        """List the chats of a project, or all."""

        def job() -> None:
            from lcursor.project.root import root_of

            path = params["path"]
            self._listed(params["id"], str(root_of(Path(path))) if path else "")

        self._front.submit(job, params["id"])

    def rename(self, params: wire.ChatRename) -> None:
        """Give a chat another title."""
        title = attach.clean(" ".join(params["title"].split()))
        self._change(params, lambda _: [{"op": "title", "title": title}])

    def delete(self, params: wire.ChatNamed) -> None:
        """Delete a chat for good, and what a server has kept of it; the rest is listed."""

        def job() -> None:
            key = params["chat"]
            with self._lock:
                stored = self._chats.get(key)
                turns = [turn for turn in self._turns.values() if turn.key == key]
            for turn in turns:
                turn.stop()
                turn.leave(STOP_S)
            root = stored.chat.root if stored else ""
            if stored is None:
                root = self._stored(key).chat.root
                stored = self._chats[key]
            stored.hold()  # nobody is answered in it, here or elsewhere
            try:
                if stored.path.exists():
                    self._archive.delete(key)
            finally:
                stored.let_go()
            with self._lock:
                self._chats.pop(key, None)
            self._warmth.erase(key)
            self._listed(params["id"], root)

        self._front.submit(job, params["id"])

    def branch(self, params: wire.ChatTurn) -> None:
        """Show another branch."""

        def make(chat: Conversation) -> Sequence[Op]:
            number = chat.step(params["number"], params["step"])
            while number in chat.shown:  # with what was shown behind it before
                number = chat.shown[number]
            return [{"op": "show", "number": number}]

        self._change(params, make)

    def amend(self, params: wire.ChatAmend) -> None:
        """Put another text in the place of an answer; the old one stays beside it."""
        text = attach.clean(params["text"])
        self._change(params, lambda chat: amended(chat, params["number"], text))

    def use(self, params: wire.ChatUse) -> None:
        """Talk to another model from now on."""

        def make(_: Conversation) -> Sequence[Op]:
            self._models.check(params["model"])
            return [{"op": "model", "model": params["model"]}]

        self._change(params, make)

    def expand(self, params: wire.ChatAt) -> None:
        """Have the messages themselves in the prompt again, instead of their summary."""
        self._change(params, lambda _: [{"op": "expand", "number": params["number"]}])

    def compact(self, params: wire.ChatNamed) -> None:
        """Summarize what there is."""

        def job() -> None:
            stored = self._stored(params["chat"])
            stored.hold()
            self._begin(Turn(params["id"], stored, self._tools, asked=0, ended=self._after))

        self._front.submit(job, params["id"])

    def edited(self, key: str, edits: Sequence[Mapping[str, Any]]) -> None:
        """Write down changes of files that came out of a chat, as `conversation.Edit` has them."""

        def make(chat: Conversation) -> Sequence[Op]:
            return [{"op": "edit", "after": chat.last, **each} for each in edits]

        def job() -> None:
            with contextlib.suppress(ChatMissing):  # it was deleted meanwhile
                self._stored(key).change(make)

        self._front.submit(job)

    def seen(self, key: str, number: int) -> Sequence[Seen]:
        """Return what the model had read when it wrote a message, the newest first.

        Blocks for the disk where the chat is not open; any thread.

        Raises:
            ChatMissing: there is no such chat.
            ChatFailed: it cannot be read.
        """
        from lcursor.chat import seen

        return seen.seen(self._stored(key).snapshot(), number)

    def close(self, *, is_leaving: bool = True) -> None:
        """End all turns, and keep what was said; waits no longer than a moment.

        Args:
            is_leaving: what a server has read and nobody saved yet is saved now.
        """
        self._front.close(LEAVE_S)  # what was asked just now is written down at least
        self._aside.close()
        with self._lock:
            turns, chats = list(self._turns.values()), list(self._chats.values())
        for turn in turns:
            turn.stop(GONE)
        for turn in turns:
            turn.leave(LEAVE_S)
        self._warmth.close(LEAVE_S if is_leaving else 0.0)
        for stored in chats:
            stored.close()
        self._models.remove_listener(self._server_says)
        if self._owns_models:
            self._models.close()

    def _send(self, params: wire.ChatSend) -> None:
        """Thread: the front lane."""
        stored = self._stored(params["chat"])
        attach.refuse_mistyped(params["text"], stored.chat.root)
        stored.hold()
        try:
            turn = self._asked(stored, params)
        except BaseException:
            stored.let_go()
            raise
        self._begin(turn)

    def _asked(self, stored: Stored, params: wire.ChatSend) -> Turn:
        """Write a question down, or find the one that is answered again."""
        text = params["text"]
        make_turn = partial(
            Turn, params["id"], stored, self._tools, model=params["model"], ended=self._after
        )
        if not text.strip():
            stored.refresh()
            if not (asked := stored.snapshot().question(params["after"])):
                raise ChatMissing("there is no question to answer", "Ask one")
            return make_turn(asked=asked)
        text = attach.clean(text)

        def make(chat: Conversation) -> Sequence[Op]:
            after = chat.place(params["after"])
            if params["after"] and not after:
                raise ChatMissing(
                    f"there is no message {params['after']} in this chat", "Open the chat again"
                )
            return [{"op": "say", "number": chat.next_number, "parent": after, "text": text}]

        number = int(stored.change(make, is_firm=False)[-1]["number"])
        return make_turn(asked=number, question=attach.asked(stored.snapshot(), params))

    def _begin(self, turn: Turn) -> None:
        with self._lock:
            is_first = not self._turns
            self._turns[turn.number] = turn
        if is_first:
            self._busy(True)
        turn.start()

    def _after(self, turn: Turn) -> None:
        """Thread: a turn's."""
        with self._lock:
            is_last = self._turns.pop(turn.number, None) is not None and not self._turns
        if is_last:
            self._busy(False)

    def _stop_late(self, number: int) -> None:
        with self._lock:
            turn = self._turns.get(number)
        if turn is not None:
            turn.stop()
            turn.leave(STOP_S)

    def _server_says(self, words: str) -> bool:
        """Thread: of who waits for the server."""
        thread = threading.current_thread()
        with self._lock:
            turns = [turn for turn in self._turns.values() if turn.runs_on(thread)]
        for turn in turns:
            turn.server_says(words)
        return bool(turns)

    def _log(self, words: str) -> None:
        self._tell("log", {"level": "info", "message": words})

    def _knows(self, root: Path) -> Codebase:
        from lcursor.context.codebase import Grep

        return self._codebase(root) if self._codebase else Grep(root, self._secrets)

    def _change(self, params: Any, make: Callable[[Conversation], Sequence[Op]]) -> None:
        """Change a chat, and show what it is then."""

        def job() -> None:
            stored = self._stored(params["chat"])
            try:
                stored.change(make)
            except (KeyError, ValueError):
                raise ChatMissing(
                    "there is no such message in this chat", "Open the chat again"
                ) from None
            self._show(stored, params["id"])

        self._front.submit(job, params["id"])

    def _show(self, stored: Stored, number: int) -> None:
        chat = stored.snapshot()
        names = self._models.names()
        context = 0
        if chat.model or names:
            known = self._models.known(chat.model or names[0])
            context = known.context_tokens if known else 0
        is_written = any(each.is_open for each in chat.line()) and stored.is_written()
        self._tell("chat.opened", opened(chat, number, names, context, is_written=is_written))

    def _listed(self, number: int, root: str) -> None:
        rows, note = self._archive.rows(root)
        answer: wire.ChatListed = {
            "id": number,
            "chats": [row(each) for each in rows],
            "note": note,
        }
        self._tell("chat.listed", answer)

    def _new(self, root: str) -> Stored:
        key = archive.new_key()
        chat = Conversation(key=key, root=root)
        stored = Stored(self._archive.path(key, root), chat, self._complain)
        with self._lock:
            self._chats[key] = stored
        return stored

    def _stored(self, key: str) -> Stored:
        """Return an open chat, or open it.

        Raises:
            ChatMissing: there is none.
            ChatFailed: it cannot be read.
        """
        with self._lock:
            stored = self._chats.get(key)
        if stored is None:
            stored = Stored.open(self._archive.find(key), self._complain)
            with self._lock:
                stored = self._chats.setdefault(key, stored)
        return stored

    def _complain(self, error: LcursorError) -> None:
        self._tell("error", error_message(error))

    def _failed(self, error: Exception, number: int) -> None:
        """Thread: a lane's."""
        report_error(self._tell, error, number, "the chat could not do that")
