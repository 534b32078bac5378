"""The models that chats and edits ask: their servers, found or started when they are needed first.

Owns the clients, one for each model, and the counts of texts with them. Shared by all who ask: what
a server says while it starts is heard by who waits for it. Blocks; any thread. What the servers are
and how they are started is the other rooms' of `lcursor.llm`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lcursor.config import ChatConfig
from lcursor.errors import Cancelled, LcursorError, ServerSlow, ServerUnreachable
from lcursor.llm.records import Served, Target, Usage
from lcursor.llm.tokens import Counter
from lcursor.protocol_chat import ServerTold

if TYPE_CHECKING:
    from lcursor.llm.client import ChatClient
    from lcursor.llm.server import LocalServer, Status

LEAST_READ = 64
"""Tokens of a prompt that say how fast one is read."""
PATIENCE_S = 60.0
"""For a server of ours to say what it is: one that slept may have to come back from the disk."""
T = TypeVar("T")
Says = Callable[[str], bool]
"""Given what a server says of its start, on the thread that waits for it; returns whether that is
one of its own."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A model that can be asked now."""

    name: str
    target: Target
    client: ChatClient
    served: Served
    counter: Counter
    server: str = ""
    """Which run of a server of ours this is: another one has nothing in its cache."""

    @property
    def context_tokens(self) -> int:
        """Of prompt and answer, the lesser of what user and server say; 0 where nobody does."""
        said = (self.target.context_tokens, self.served.context_tokens)
        return min((each for each in said if each > 0), default=0)


class Models:
    """The models of the settings.

    Args:
        config: the settings.
        folder: of the local server, where it is not in the usual place.
        tell: told what the local server does, in words, where nobody who listens waits for it.
        completion: name or path of the completion model, whose memory stays free.
    """

    def __init__(
        self,
        config: ChatConfig,
        folder: Path | None = None,
        tell: Callable[[str], None] = lambda _: None,
        completion: str = "",
    ) -> None:
        self.config = config
        self._listeners: list[Says] = []
        self._asked: list[Callable[[], None]] = []
        self._folder, self._tell, self._completion = folder, tell, completion
        self._known: dict[str, Reached] = {}
        self._pace: dict[str, float] = {}
        self._servers: dict[str, LocalServer] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def listen(self, says: Says, asked: Callable[[], None] = lambda: None) -> None:
        """Hear what servers say to one's own threads, and when others ask a model.

        Args:
            says: given the words; see `Says`.
            asked: told, on any thread, that someone else fills the server's cache now.
        """
        with self._lock:
            self._listeners.append(says)
            self._asked.append(asked)

    def leave(self, says: Says) -> None:
        """Listen no more."""
        with self._lock:
            at = self._listeners.index(says)
            del self._listeners[at], self._asked[at]

    def use(self, says: Says) -> None:
        """Tell those who listen besides one that a model is asked by it now."""
        with self._lock:
            pairs = zip(self._listeners, self._asked, strict=True)
            others = [asked for each, asked in pairs if each != says]
        for asked in others:
            asked()

    def names(self) -> list[str]:
        """Return the names that one can choose from; the first is what a new chat talks to."""
        from lcursor.llm import models

        return models.targets(self.config)

    def check(self, name: str) -> None:
        """See that there is a model of a name, where one can know; nothing is started or asked.

        Raises:
            ModelError: there is none, or it is none for a chat.
        """
        from lcursor.llm import models
        from lcursor.llm.lease import Folder

        living = Folder(self.server_folder).living()
        models.check(self.config, name, living.model if living else "")

    def choose(self, wished: str, own: str, question: str) -> str:
        """Return the name of the model that answers a question.

        Args:
            wished: for this question; "" for none.
            own: of the chat; "" for the default.
            question: by which one is chosen, where the settings say so.

        Raises:
            ConfigInvalid: there is no model at all.
        """
        from lcursor.llm import models

        return wished or models.route(self.config, question, own)

    def may_see(self, name: str, question: str) -> bool:
        """Return whether what is on the screen may go with a question that does not mention it.

        Args:
            name: of the model that answers; what leaves the machine was asked for.
            question: which small talk is not.
        """
        from lcursor.llm import models

        return models.is_near(self.config, name) and not models.is_talk(question)

    def known(self, name: str) -> Reached | None:
        """Return a model that was asked before; nothing is started for it."""
        with self._lock:
            return self._known.get(name)

    def reach(self, name: str, cancel: threading.Event) -> Reached:
        """Return a model that can be asked, after its server was found or started.

        Raises:
            Cancelled: `cancel` was set.
            LcursorError: there is no such model, or no server for it.
        """
        from lcursor.llm import models
        from lcursor.llm.client import ChatClient

        found, run = self.known(name), ""
        if models.is_remote(self.config, name):
            if found is not None:
                return found
            target = models.target(self.config, name)
        else:
            target = self.server(_own(name)).ensure(cancel)
            run = self._run()
            if found is not None and (found.target, found.server) == (target, run):
                return found
        client = ChatClient(target)
        try:
            served = self._served(client, bool(run), cancel)
            if cancel.is_set():
                raise Cancelled("the turn was stopped")
        except BaseException:
            client.close()
            raise
        reached = Reached(name, target, client, served, Counter(client), run)
        with self._lock:
            if self._is_closed:
                client.close()
                raise Cancelled("the models were let go of")
            old = self._known.get(name)
            is_same = old is not None and (old.target, old.server) == (target, run)
            if not is_same:
                self._known[name] = reached
        if old is not None and is_same:  # somebody else was first
            client.close()
            return old
        if old is not None:
            old.client.close()
        return reached

    def learn(self, name: str, usage: Usage) -> None:
        """Remember how fast a model read a prompt."""
        read = usage.prompt_tokens - usage.cached_tokens
        if read >= LEAST_READ and usage.prompt_ms > 0:
            self._pace[name] = read / usage.prompt_ms

    def learn_context(self, name: str, context_tokens: int) -> None:
        """Remember what a server that refused a prompt said of its context."""
        with self._lock:
            found = self._known.get(name)
            if found is not None and context_tokens > 0:
                served = replace(found.served, context_tokens=context_tokens)
                self._known[name] = replace(found, served=served)

    def pace(self, name: str) -> float:
        """Return how many tokens a model reads in a millisecond; 0 where nobody knows yet."""
        return self._pace.get(name, 0.0)

    def surely(
        self, reached: Reached, ask: Callable[[Reached], T], again: Callable[[], Reached]
    ) -> T:
        """Ask a model; once more where our own server went before it took the question.

        Args:
            reached: the model.
            ask: asks it.
            again: finds it anew, or starts it.

        Raises:
            LcursorError: as `ask` and `again` do.
        """
        try:
            return ask(reached)
        except ServerUnreachable:
            self.forget(reached)
            if not reached.server:
                raise
        return ask(again())

    def forget(self, reached: Reached) -> None:
        """Look again next time: the server did not answer as it should."""
        with self._lock:
            found = self._known.get(reached.name)
            if found is None or found.client is not reached.client:
                return  # somebody has looked again
            del self._known[reached.name]
            server = self._servers.get(_own(reached.name))
        if server is not None:
            server.recheck()
        found.client.close()

    def server(self, model: str) -> LocalServer:
        """Return the local server as one model's, "" the recommended; made when it is needed."""
        from lcursor.llm.server import LocalServer

        with self._lock:
            if model not in self._servers:
                config = replace(self.config, model=model)
                self._servers[model] = LocalServer(
                    config, self.server_folder, self._heard, completion=self._completion
                )
            return self._servers[model]

    def local_server(self) -> LocalServer:
        """Return the local server as the settings have it."""
        from lcursor.llm import models

        return self.server(_own(models.local(self.config)))

    @property
    def server_folder(self) -> Path:
        """Where the local server keeps what is its own."""
        from lcursor.llm.server import default_folder

        return self._folder or default_folder()

    def _served(self, client: ChatClient, is_ours: bool, cancel: threading.Event) -> Served:
        """Ask a server what it is; one of ours that slept may have to be read from the disk first.

        Raises:
            LcursorError: it does not say so, or not in time.
        """
        ends_s = time.monotonic() + (PATIENCE_S if is_ours else 0.0)
        while True:
            try:
                return client.probe()
            except ServerSlow:
                if cancel.is_set() or time.monotonic() > ends_s:
                    raise
                self._heard("it is slow to answer")

    def _heard(self, words: str) -> None:
        """Thread: of who waits for the server."""
        with self._lock:
            listeners = list(self._listeners)
        if not any(says(words) for says in listeners):
            self._tell(words)

    def _run(self) -> str:
        """Return what names this run of the local server."""
        from lcursor.llm.server_state import ServerFolder

        state = ServerFolder(self.server_folder).last()
        return (state.run or str(state.pid)) if state else ""

    def is_asleep(self, reached: Reached) -> bool:
        """Return whether a server of ours has let go of its model, and of what it had read."""
        if not reached.server:
            return False
        try:
            return self.local_server().status().state == "sleeping"
        except LcursorError:
            return False

    def slot_path(self, name: str) -> Path:
        """Return where a server of ours keeps a saved state."""
        return self.server_folder / "slots" / name

    def close(self) -> None:
        """Let go of all servers."""
        with self._lock:
            self._is_closed = True
            known, self._known = list(self._known.values()), {}
            servers = list(self._servers.values())
        for each in known:
            each.client.close()
        for server in servers:
            server.close()


def told(status: Status, number: int) -> ServerTold:
    """Return what a server's status says, as a message."""
    return {
        "id": number,
        "state": status.state,
        "lines": list(status.lines),
        "url": status.url,
        "pid": status.pid,
        "model": status.model,
        "log": status.log,
    }


def _own(name: str) -> str:
    """Return a name of `models` as the local server takes it."""
    from lcursor.llm import models

    return "" if name == models.LOCAL else name
