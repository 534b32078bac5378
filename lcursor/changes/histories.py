"""The edit histories of all projects of an editor, which answer the messages about turns.

Blocks for the disk; on one thread, except for `begin`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lcursor.changes import guards, undo
from lcursor.changes.history import History, project_folder
from lcursor.changes.records import FileChange, Lines
from lcursor.changes.sources import Sources, project_of
from lcursor.changes.write import recover, write
from lcursor.errors import EditMissing, EditRejected, LcursorError
from lcursor.protocol import edit as wire

ChatEdited = Callable[[str, Sequence[Mapping[str, Any]]], None]
"""Called with the key of a chat and its accepted changes."""


class Histories:
    """The histories.

    Args:
        folder: of all histories; None for the default.
        on_error: called with storage errors.
        on_edited: called with the accepted changes of a chat.
        warn: called with a message about an interrupted write.
    """

    def __init__(
        self,
        folder: Path | None,
        on_error: Callable[[LcursorError], None],
        on_edited: ChatEdited = lambda _chat, _edits: None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._folder, self._on_error = folder, on_error
        self._on_edited, self._warn = on_edited, warn
        self._lock = threading.Lock()
        self._histories: dict[Path, History] = {}
        self._of_turns: dict[str, History] = {}

    def begin(
        self,
        root: Path,
        title: str,
        files: Sequence[FileChange],
        chat: str,
        bases: Mapping[str, Lines],
        run: str = "",
    ) -> str:
        """Record a proposal, with its guarded files marked; return its key. Thread: any.

        Args:
            run: key of the agent's run that made it.
        """
        history = self._history(root)
        key = history.begin(title, guards.marked(root, files), chat, bases, run)
        with self._lock:
            self._of_turns[key] = history
        return key

    def proposed(self, key: str) -> list[FileChange]:
        """Return the changes of a recorded proposal, to be shown. Thread: any."""
        return [each.change for each in self._find(key, "").turn(key).files]

    def decided(self, params: wire.EditDecided) -> None:
        """Record the user's decisions, also in the chat that the changes came from."""
        history = self._find(params["turn"], params["path"])
        history.decided(params)
        chat = history.turn(params["turn"]).chat
        if chat and params["accepted"]:
            name = Sources(Path(history.root)).name(params["path"])
            did = "undone" if params["is_undone"] else "accepted"
            self._on_edited(chat, [_edited_hunk(name, hunk, did) for hunk in params["accepted"]])

    def renamed(self, params: wire.EditRenamed) -> None:
        """Record that the buffer of a file got another name."""
        history = self._find(params["turn"], params["path"])
        history.renamed(params["turn"], params["path"], params["to"])

    def write(self, params: wire.EditWrite) -> wire.EditWritten:
        """Write changes to files on disk; return the changed paths, or the problem."""
        answer: wire.EditWritten = {
            "id": params["id"],
            "turn": params["turn"],
            "paths": [],
            "problem": "",
        }
        try:
            paths = params["paths"]
            history = self._find(params["turn"], paths[0] if paths else "")
            turn = history.turn(params["turn"])
            undo.rebase_saved(history, turn.key, paths)
            files = [each for each in history.open_files(turn.key) if each.path in paths]
            missing = sorted(set(paths) - {each.path for each in files})
            if missing:
                names = ", ".join(missing)
                raise EditMissing(
                    f"this edit has no open hunks in {names}", "See :LCursor edit list"
                )
            guarded = [each.path for each in files if each.is_guarded]
            if guarded and len(files) > 1:
                raise EditRejected(
                    f"{', '.join(guarded)}: it runs code by itself, so it is not written together "
                    "with other files",
                    "Open it, and accept its hunks",
                )
            done = write(files, history, turn.key, outside=params["outside"])
        except LcursorError as error:
            answer["problem"] = ". ".join(filter(None, (error.message, error.hint)))
            return answer
        answer["paths"] = list(done)
        if turn.chat:
            texts = Sources(Path(history.root))
            self._on_edited(turn.chat, [_edited_file(each, texts) for each in files])
        return answer

    def revert(self, params: wire.EditRevert) -> wire.EditReverted:
        """Undo or redo a turn on disk; return the changes for buffers."""
        history = self._find(params["turn"], params["path"])
        reverted = undo.revert(history, params["turn"], params["do"], params["buffers"])
        texts = Sources(Path(history.root), params["buffers"])
        return {
            "id": params["id"],
            "turn": reverted.key,
            "title": reverted.title,
            "do": params["do"],
            "files": [texts.to_wire(each) for each in reverted.files],
            "paths": list(reverted.paths),
            "problems": list(reverted.problems),
        }

    def rows(self, params: wire.EditTurns) -> wire.EditTurned:
        """Return the turns of a project."""
        history = self._find("", params["path"])
        return {
            "id": params["id"],
            "turns": history.rows(),
            "undo": history.undo_key(),
            "redo": history.redo_key(),
        }

    def resume(self, params: wire.EditResume) -> wire.EditProposed:
        """Return the open hunks of a turn, for the current texts."""
        history = self._find(params["turn"], params["path"])
        turn = history.turn(params["turn"])
        resumed = undo.resume(history, turn.key, params["buffers"])
        texts = Sources(Path(history.root), params["buffers"])
        return {
            "id": params["id"],
            "turn": turn.key,
            "title": turn.title,
            "alternative": 1,
            "files": [texts.to_wire(each) for each in resumed.files],
            "note": "\n".join(resumed.problems),
            "attempts": 0,
            "chat": turn.chat,
        }

    def _find(self, key: str, path: str) -> History:
        """Return the history that has a turn, or the history of a path's project.

        The turn may be one of a project around that of the path.
        """
        with self._lock:
            found = self._of_turns.get(key)
        if found is not None:
            return found
        root = project_of(path)
        for each in (root, *root.parents) if key else ():
            if (project_folder(each, self._folder) / "turns" / f"{key}.json").exists():
                history = self._history(each)
                with self._lock:
                    self._of_turns[key] = history
                return history
        return self._history(root)

    def _history(self, root: Path) -> History:
        """Return the history of a project, after finishing interrupted writes."""
        with self._lock:
            history = self._histories.get(root)
            if history is None:
                history = self._histories[root] = History(root, self._folder, self._on_error)
                for words in recover(history):
                    self._warn(words)
        return history


def _edited_hunk(name: str, hunk: wire.EditHunk, did: str) -> dict[str, Any]:
    """Return the record of an accepted hunk for a chat."""
    what = f"{did}: {_words(len(hunk['old']), len(hunk['new']))}"
    return {"name": name, "first_row": hunk["row"], "rows": len(hunk["new"]), "what": what}


def _edited_file(change: FileChange, texts: Sources) -> dict[str, Any]:
    """Return the record of a changed file for a chat."""
    first = change.changes[0].first_row if change.changes else 0
    old = sum(len(each.old) for each in change.changes)
    new = sum(len(each.new) for each in change.changes)
    what = f"renamed to {texts.name(change.to)}" if change.to else f"{change.kind}: "
    what += "" if change.to else _words(old, new)
    return {"name": texts.name(change.path), "first_row": first, "rows": new, "what": what}


def _words(old: int, new: int) -> str:
    if not old:
        return f"{new} line{'s' * (new != 1)} added"
    if not new:
        return f"{old} line{'s' * (old != 1)} deleted"
    return f"{old} line{'s' * (old != 1)} became {new}"
