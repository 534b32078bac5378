"""The project's index as what knows the codebase; a plain search where it does not answer.

Holds a client and owns none: who gives it closes it. Never starts a worker: a client that would is
the giver's decision. Blocks; any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from lcursor.context.codebase import Codebase, Grep, meant
from lcursor.context.items import Definition, Piece, Receipt
from lcursor.errors import Cancelled, LcursorError
from lcursor.index import words
from lcursor.index.client import Client
from lcursor.process.run import Cancel

ANSWER_S = 8.0
LOOK_EVERY_S = 0.02
"""How often one that waits looks whether the answer is still wanted."""
WHY = {
    "lexical": "its words",
    "vector": "its meaning",
    "symbol": "a definition that is named",
    "recent": "looked at lately",
}
"""The parts of a score that say why something was found; each other is a rule's correction."""
LEAST_SHARE = 0.1
"""Of the greatest part, for a part that is told."""


class Asked(Protocol):
    """What of the index's client is used here."""

    def call(self, do: Any, **params: Any) -> Mapping[str, Any]:
        """Ask, and wait for the answer."""


class Indexed:
    """An index that may not be there.

    Args:
        client: of the project's worker, `lcursor.index.client.Client`; one with `start=False`
            starts none. What the user calls secret has been said to it.
        beside: asked where the index does not answer; None is nothing.
    """

    def __init__(self, client: Asked, beside: Codebase | None = None) -> None:
        self._client, self._beside = client, beside

    @classmethod
    def of(cls, root: Path, *, start: bool = False, secrets: Sequence[str] = ()) -> Indexed:
        """Return the index of a project that nobody holds a client of, for the command line.

        Args:
            root: of the project.
            start: whether a worker may be started where none runs.
            secrets: globs that the user calls secret.
        """
        client = Client(root, start=start)
        if secrets:
            client.tell("secrets", globs=list(secrets))
        return cls(client, Grep(root, secrets))

    def find(self, text: str, tokens: int, cancel: Cancel | None = None) -> Receipt:
        """Return what the index finds; else what the plain search finds, and why it was asked."""
        try:
            said = self._ask(cancel, "retrieve", text=text, tokens=tokens, mode="hybrid")
            note = self._note(cancel)
        except Cancelled:
            raise
        except LcursorError as error:
            if self._beside is None:
                return Receipt(note=str(error))
            found = self._beside.find(text, tokens, cancel)
            note = f"found by words alone: {error.message}"
            return Receipt(found.used, found.left_out, found.tokens, note)
        used = tuple(_piece(hit, _why(hit)) for hit in said["used"])
        left_out = tuple(_piece(hit, hit["reason"]) for hit in said["left_out"])
        return Receipt(used, left_out, said["tokens"], note)

    def symbols(
        self, name: str, limit: int = 20, *, prefix: bool = False, cancel: Cancel | None = None
    ) -> Sequence[Definition]:
        """Return the definitions of a name that the index has, else those that are searched."""
        last = words.last_name(name)
        try:
            said = self._ask(cancel, "symbols", name=last, limit=limit * 4, prefix=prefix)
        except Cancelled:
            raise
        except LcursorError:
            if self._beside is None:
                return []
            return self._beside.symbols(name, limit, prefix=prefix, cancel=cancel)
        found = [
            Definition(
                one["path"],
                one["name"],
                one["kind"],
                one["first_row"],
                one["end_row"],
                one["scope"],
            )
            for one in said["symbols"]
        ]
        return meant(found, name)[:limit]

    def _ask(self, cancel: Cancel | None, do: str, **params: Any) -> Mapping[str, Any]:
        """Ask, and stop waiting when nobody wants to know any more.

        Raises:
            Cancelled: `cancel` said so; the answer comes, and nobody hears it.
            LcursorError: there is no answer.
        """
        if cancel is None:
            return self._client.call(do, timeout_s=ANSWER_S, **params)
        box: SimpleQueue[Mapping[str, Any] | BaseException] = SimpleQueue()

        def ask() -> None:
            try:
                box.put(self._client.call(do, timeout_s=ANSWER_S, **params))
            except BaseException as error:  # noqa: BLE001 - the root of a thread; raised below
                box.put(error)

        threading.Thread(target=ask, name="lcursor-ask-index", daemon=True).start()
        while not cancel():
            try:
                said = box.get(timeout=LOOK_EVERY_S)
            except Empty:
                continue
            if isinstance(said, BaseException):
                raise said
            return said
        raise Cancelled("gathering the context was stopped")

    def _note(self, cancel: Cancel | None) -> str:
        """Return why there may be more to find some day."""
        state = self._ask(cancel, "status")
        phase, done, total = state.get("phase"), state.get("done", 0), state.get("total", 0)
        if phase in {"surveying", "reading"}:
            return f"only {done} of {total} files are indexed yet"
        if phase == "embedding":
            return f"only {done} of {total} pieces can be found by meaning yet"
        return ""


def _piece(hit: Mapping[str, Any], why: str) -> Piece:
    return Piece(
        hit["path"],
        hit["first_row"],
        hit["end_row"],
        hit["text"],
        why,
        hit.get("scope", ""),
        float(hit.get("score", 0.0)),
    )


def _why(hit: Mapping[str, Any]) -> str:
    """Return in words what made a score, the weightiest first."""
    parts = {name: value for name, value in hit.get("parts", {}).items() if name in WHY}
    greatest = max(parts.values(), default=0.0)
    told = sorted(
        (name for name, value in parts.items() if value > LEAST_SHARE * greatest),
        key=lambda name: -parts[name],
    )
    why = ", ".join(WHY[name] for name in told) or "like the question"
    return f"{why}; the file has changed since" if hit.get("is_stale") else why
