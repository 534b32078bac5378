"""The service of edits: each message of `protocol_edit` has a method here.

Owns the edits that run, each on a thread of its own, several at once. Every method returns at once:
what is written down, or to files, is done on one lane in the order in which it was asked for.
Nothing is changed in a buffer here, and in a file only when the editor says so.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lcursor import protocol_edit as wire
from lcursor.config import EditConfig
from lcursor.context.codebase import Codebase, Grep
from lcursor.edit import applying, commit, many, one, project
from lcursor.edit.histories import Edited, Histories
from lcursor.edit.job import End, Job
from lcursor.edit.permission import Permissions
from lcursor.edit.tools import Alternatives, Retrieve, Sees, Tools
from lcursor.errors import LcursorError
from lcursor.executor import SerialExecutor
from lcursor.llm.pool import ModelPool
from lcursor.reporting import Notify, error_message, report_error

STOP_S = 0.1
"""An edit that was told to stop gets this long to say so itself."""
LEAVE_S = 0.3
MAX_REMEMBERED = 64
"""Edits that another alternative can be asked for."""
Work = Callable[[Job], End]


class EditService:
    """The edits of one editor.

    Args:
        config: the settings.
        tell: sends a message of `protocol_edit.TO_LUA`, `error` or `log`, from any thread.
        models: that write; shared with the chat, and closed by who made them.
        codebase: returns what knows a project; None for a plain search.
        secrets: globs of files that are never read, besides the built-in ones.
        folder: of all histories, where they are not in the usual place.
        busy: told, on any thread, when an edit works and none did, and when the last one stops to.
        chat_edited: told, on the lane's thread, which changes out of a chat were taken.
        chat_seen: asked, on an edit's thread, what the model had read when it wrote a message.
    """

    def __init__(
        self,
        config: EditConfig,
        tell: Notify,
        models: ModelPool,
        codebase: Retrieve | None = None,
        *,
        secrets: Sequence[str] = (),
        folder: Path | None = None,
        busy: Callable[[bool], None] = lambda _: None,
        chat_edited: Edited = lambda _chat, _edits: None,
        chat_seen: Sees = lambda _chat, _message: (),
    ) -> None:
        self._tell, self._models, self._busy = tell, models, busy
        self._codebase, self._secrets = codebase, tuple(secrets)
        self._histories = Histories(folder, self._complain, chat_edited, self._note)
        self._tools = Tools(
            config,
            models,
            self._knows,
            self._secrets,
            self._histories,
            Permissions(folder),
            partial(models.claim_cache, self._server_says),
            chat_seen,
        )
        self._lock = threading.Lock()
        self._jobs: dict[int, Job] = {}
        self._working = 0
        self._known: OrderedDict[int, Alternatives] = OrderedDict()
        self._front = SerialExecutor("lcursor-edits", self._failed)
        models.add_listener(self._server_says)

    def handlers(self) -> dict[str, Callable[[Any], None]]:
        """Return which method answers which message."""
        return {
            "edit.ask": self.ask,
            "edit.many": self.many,
            "edit.apply": self.apply,
            "edit.choose": self.choose,
            "edit.carry_out": self.carry_out,
            "edit.looked": self.looked,
            "edit.stop": self.stop,
            "edit.decided": self.decided,
            "edit.write": self.write,
            "edit.revert": self.revert,
            "edit.turns": self.turns,
            "edit.resume": self.resume,
            "edit.commit": self.commit,
        }

    def ask(self, params: wire.EditAsk) -> None:
        """Have a region, or what a plan names, written anew."""
        if params["scope"] == "project":
            self._begin(params["id"], lambda job: project.ask(job, self._tools, params), params)
            return
        earlier = self._alternatives(params["id"], params["again"])
        self._begin(params["id"], lambda job: one.ask(job, self._tools, params, earlier), params)

    def many(self, params: wire.EditMany) -> None:
        """Have the same done at many places."""
        self._begin(params["id"], lambda job: many.many(job, self._tools, params), params)

    def apply(self, params: wire.EditApply) -> None:
        """Make changes of files of what someone wrote."""
        self._begin(params["id"], lambda job: applying.apply(job, self._tools, params))

    def commit(self, params: wire.EditCommit) -> None:
        """Write a commit message."""
        self._begin(params["id"], lambda job: commit.ask(job, self._tools, params))

    def choose(self, params: wire.EditChoose) -> None:
        """Take the answer to a question."""
        self._answer(params["id"], params["choice"])

    def carry_out(self, params: wire.EditCarryOut) -> None:
        """Go on with a plan."""
        self._answer(params["id"], tuple(params["dropped"]))

    def looked(self, params: wire.EditLooked) -> None:
        """Take what language servers say of a proposal."""
        with self._lock:
            job = self._jobs.get(params["id"])
        if job is not None:
            job.looked(params)

    def stop(self, params: wire.EditStop) -> None:
        """Stop an edit at once."""
        with self._lock:
            job = self._jobs.get(params["id"])
        if job is not None:
            job.stop()
            threading.Thread(target=job.leave, args=(STOP_S,), daemon=True).start()

    def decided(self, params: wire.EditDecided) -> None:
        """Write down what the user took and refused."""
        self._front.submit(partial(self._histories.decided, params))

    def write(self, params: wire.EditWrite) -> None:
        """Make changes in files that no buffer has open."""
        self._front.submit(
            lambda: self._tell("edit.written", self._histories.write(params)), params["id"]
        )

    def revert(self, params: wire.EditRevert) -> None:
        """Take a turn back, or make it again."""

        def job() -> None:
            self._tell("edit.reverted", self._histories.revert(params))

        self._front.submit(job, params["id"])

    def turns(self, params: wire.EditTurns) -> None:
        """List the turns of a project."""
        self._front.submit(
            lambda: self._tell("edit.turned", self._histories.rows(params)), params["id"]
        )

    def resume(self, params: wire.EditResume) -> None:
        """Propose again what was open when an editor ended."""

        def job() -> None:
            self._tell("edit.proposed", self._histories.resume(params))

        self._front.submit(job, params["id"])

    def close(self) -> None:
        """End all edits; what was decided is written down. Waits no longer than a moment."""
        self._front.close(LEAVE_S)
        with self._lock:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.stop()
        for job in jobs:
            job.leave(LEAVE_S)
        self._models.remove_listener(self._server_says)

    def _begin(
        self, number: int, work: Work, params: wire.EditAsk | wire.EditMany | None = None
    ) -> None:
        served = params["served"] if params else ()
        job = Job(number, self._tell, work, self._works, self._after, served)
        with self._lock:
            self._jobs[number] = job
        job.start()

    def _answer(self, number: int, what: object) -> None:
        with self._lock:
            job = self._jobs.get(number)
        if job is not None:
            job.answer(what)

    def _alternatives(self, number: int, again: int) -> Alternatives:
        """Return what was proposed for the edit that this one is another try of."""
        with self._lock:
            found = self._known.get(again) or Alternatives()
            self._known[number] = found
            while len(self._known) > MAX_REMEMBERED:
                self._known.popitem(last=False)
        return found

    def _works(self, is_working: bool) -> None:
        """Thread: an edit's."""
        with self._lock:
            before = self._working
            self._working += 1 if is_working else -1
            is_changed = not before or not self._working
        if is_changed:
            self._busy(is_working)

    def _after(self, job: Job) -> None:
        """Thread: any."""
        with self._lock:
            self._jobs.pop(job.number, None)

    def _server_says(self, words: str) -> bool:
        """Thread: of who waits for the server."""
        thread = threading.current_thread()
        with self._lock:
            jobs = [job for job in self._jobs.values() if job.runs_on(thread)]
        for job in jobs:
            job.progress("server", words)
        return bool(jobs)

    def _knows(self, root: Path) -> Codebase:
        return self._codebase(root) if self._codebase else Grep(root, self._secrets)

    def _note(self, words: str) -> None:
        self._tell("log", {"level": "warn", "message": words})

    def _complain(self, error: LcursorError) -> None:
        self._tell("error", error_message(error))

    def _failed(self, error: Exception, number: int) -> None:
        """Thread: the lane's."""
        report_error(self._tell, error, number, "the edit could not be done")
