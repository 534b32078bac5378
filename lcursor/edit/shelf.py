"""The turns of all projects that this editor has: proposed, decided, written, taken back.

Owns which ledger a turn is in. Writes files only in `write` and `revert`, by the rooms that do so
as a whole or not at all. Blocks for the disk; on one lane, but for `begin`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lcursor import protocol_edit as wire
from lcursor.edit.records import FileChange, Lines
from lcursor.edit.sources import Sources, project_of
from lcursor.edit.turns import resume, revert, writing
from lcursor.edit.turns.ledger import Ledger
from lcursor.errors import EditMissing, LcursorError

Edited = Callable[[str, Sequence[Mapping[str, Any]]], None]
"""Given the key of a chat and what was done, as `ChatSlot.edited` takes it."""
Say = Callable[[str], None]


class Shelf:
    """The ledgers.

    Args:
        folder: of all ledgers, where they are not in the usual place.
        complain: told what cannot be written down.
        edited: told of changes that came out of a chat and were taken.
        note: told, in words, what was found to be broken off and was taken back.
    """

    def __init__(
        self,
        folder: Path | None,
        complain: Callable[[LcursorError], None],
        edited: Edited = lambda _chat, _edits: None,
        note: Say = lambda _: None,
    ) -> None:
        self._folder, self._complain = folder, complain
        self._edited, self._note = edited, note
        self._lock = threading.Lock()
        self._ledgers: dict[Path, Ledger] = {}
        self._places: dict[str, Ledger] = {}
        self._resumed: dict[str, tuple[FileChange, ...]] = {}
        """Turns that were had again: for the texts as they are now, and not as they were."""

    def begin(
        self,
        root: Path,
        title: str,
        files: Sequence[FileChange],
        chat: str,
        bases: Mapping[str, Lines],
    ) -> str:
        """Write a proposal down; return its key. Thread: any."""
        ledger = self._ledger(root)
        key = ledger.begin(title, files, chat, bases)
        with self._lock:
            self._places[key] = ledger
        return key

    def decided(self, params: wire.EditDecided) -> None:
        """Write down what the user took and refused, also into the chat that it came from.

        Raises:
            EditMissing: there is no such turn.
        """
        ledger = self._of(params["turn"], params["path"])
        ledger.decided(params)
        chat = ledger.turn(params["turn"]).chat
        if chat and params["accepted"]:
            texts = Sources(Path(ledger.root))
            name = texts.name(params["path"])
            did = "taken back again" if params["is_undone"] else "accepted"
            self._edited(chat, [edited(name, hunk, did) for hunk in params["accepted"]])

    def write(self, params: wire.EditWrite) -> wire.EditWritten:
        """Make changes of files on disk; say which, or why none."""
        answer: wire.EditWritten = {
            "id": params["id"],
            "turn": params["turn"],
            "paths": [],
            "problem": "",
        }
        try:
            paths = params["paths"]
            ledger = self._of(params["turn"], paths[0] if paths else "")
            turn = ledger.turn(params["turn"])
            waiting = self._resumed.get(turn.key) or ledger.open_files(turn.key)
            files = [each for each in waiting if each.path in paths]
            missing = sorted(set(paths) - {each.path for each in files})
            if missing:
                names = ", ".join(missing)
                raise EditMissing(f"nothing of this turn waits for {names}", "See :LCursor edits")
            done = writing.write(
                files, ledger.root, outside=params["outside"], record=ledger, key=turn.key
            )
            self._resumed.pop(turn.key, None)
        except LcursorError as error:
            answer["problem"] = ". ".join(filter(None, (error.message, error.hint)))
            return answer
        answer["paths"] = list(done)
        if turn.chat:
            texts = Sources(Path(ledger.root))
            self._edited(turn.chat, [_of_file(each, texts) for each in files])
        return answer

    def revert(self, params: wire.EditRevert) -> wire.EditReverted:
        """Take a turn back or make it again on disk; return what is to be done in buffers.

        Raises:
            EditMissing: there is none that can be.
            LcursorError: it cannot be.
        """
        ledger = self._of(params["turn"], params["path"])
        found = revert.revert(ledger, params["turn"], params["do"], params["buffers"])
        texts = Sources(Path(ledger.root), params["buffers"])
        return {
            "id": params["id"],
            "turn": found.key,
            "title": found.title,
            "do": params["do"],
            "files": [texts.to_wire(each) for each in found.files],
            "paths": list(found.paths),
            "problems": list(found.problems),
        }

    def rows(self, params: wire.EditTurns) -> wire.EditTurned:
        """Return the turns of a project."""
        ledger = self._of("", params["path"])
        return {
            "id": params["id"],
            "turns": ledger.rows(),
            "undo": ledger.undo_key(),
            "redo": ledger.redo_key(),
        }

    def resume(self, params: wire.EditResume) -> wire.EditProposed:
        """Return what is open of a turn, for the texts as they are now.

        Raises:
            EditMissing: there is no such turn.
        """
        ledger = self._of(params["turn"], params["path"])
        turn = ledger.turn(params["turn"])
        found = resume.resume(ledger, turn.key, params["buffers"])
        self._resumed[turn.key] = found.files
        texts = Sources(Path(ledger.root), params["buffers"])
        return {
            "id": params["id"],
            "turn": turn.key,
            "title": turn.title,
            "alternative": 1,
            "files": [texts.to_wire(each) for each in found.files],
            "note": "\n".join(found.problems),
            "attempts": 0,
            "chat": turn.chat,
        }

    def _of(self, key: str, path: str) -> Ledger:
        """Return the ledger that has a turn, or that of a path's project."""
        with self._lock:
            found = self._places.get(key)
        return found or self._ledger(project_of(path))

    def _ledger(self, root: Path) -> Ledger:
        """Return the ledger of a project; what was broken off there is taken back first."""
        with self._lock:
            found = self._ledgers.get(root)
            if found is None:
                found = self._ledgers[root] = Ledger(root, self._folder, self._complain)
                for words in writing.recover(root, found):
                    self._note(words)
        return found


def edited(name: str, hunk: wire.EditHunk, did: str) -> dict[str, Any]:
    """Return a change that was taken, as a chat remembers it."""
    old, new = len(hunk["old"]), len(hunk["new"])
    return {
        "name": name,
        "first_row": hunk["row"],
        "rows": new,
        "what": f"{did}: {_words(old, new)}",
    }


def _of_file(change: FileChange, texts: Sources) -> dict[str, Any]:
    """Return what was done to a whole file, as a chat remembers it."""
    first = change.changes[0].first_row if change.changes else 0
    old = sum(len(each.old) for each in change.changes)
    new = sum(len(each.new) for each in change.changes)
    what = f"{change.kind}: {_words(old, new)}"
    if change.to:
        what = f"renamed to {texts.name(change.to)}"
    return {"name": texts.name(change.path), "first_row": first, "rows": new, "what": what}


def _words(old: int, new: int) -> str:
    if not old:
        return f"{new} line{'s' * (new != 1)} added"
    if not new:
        return f"{old} line{'s' * (old != 1)} deleted"
    return f"{old} line{'s' * (old != 1)} became {new}"
