"""The ledger of a project: its turns, on disk, so that each can be taken back after a restart.

Owns which turns there are, in `$XDG_DATA_HOME/lcursor/edits/PROJECT/turns.jsonl`; `oplog.py` has
the file, `turn.py` the state. Where the file cannot be written turns go on in memory, and only
files on disk are left alone. Old turns are forgotten. Any thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from lcursor import folders
from lcursor.edit.records import FileChange
from lcursor.edit.turns import turn as turns
from lcursor.edit.turns.oplog import Op, OpLog
from lcursor.edit.turns.turn import Done, Hunk, Turn, Turns
from lcursor.errors import EditMissing, LcursorError
from lcursor.protocol_edit import EditDecided, EditTurnRow

NAME = "turns.jsonl"
MOST_BYTES = 32 << 20
"""Of the file; then the oldest turns are forgotten until it has half of that."""
MOST_AGE_S = 90 * 86_400.0
LEAST_FORGOTTEN = 50
"""Turns that are too old, for which the file is written anew."""


def home() -> Path:
    """Return the folder of all ledgers; it need not exist."""
    return folders.data_home() / "edits"


def place(root: Path | str, folder: Path | None = None) -> Path:
    """Return the folder of a project's ledger; it need not exist."""
    real = os.path.realpath(root)
    word = re.sub(r"[^\w.-]+", "-", Path(real).name, flags=re.ASCII)[:32].strip("-.") or "root"
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return (folder or home()) / f"{word}-{digest}"


def new_key() -> str:
    """Return a name for a turn, which no other one has."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"


class Ledger:
    """The turns of a project.

    Args:
        root: of the project.
        folder: of all ledgers; by default `home()`.
        complain: told, on the thread of a change, that the file cannot be written; once for each
            time that it begins.
    """

    def __init__(
        self,
        root: Path | str,
        folder: Path | None = None,
        complain: Callable[[LcursorError], None] = lambda _: None,
    ) -> None:
        self.root = os.path.realpath(root)
        self.folder = place(self.root, folder)
        self.path = self.folder / NAME
        self._turns = Turns()
        self._log = OpLog(self.path, turns.VERSION, self._take, self._reset, complain)
        self._lock = self._log.lock
        self._forgotten = 0

    @property
    def note(self) -> str:
        """What was forgotten or could not be read; empty for nothing."""
        told = []
        if self._log.damaged:
            many = "line was" if self._log.damaged == 1 else "lines were"
            told.append(f"{self._log.damaged} damaged {many} left out ({self.path})")
        if self._forgotten:
            many = "turn was" if self._forgotten == 1 else "turns were"
            told.append(f"{self._forgotten} old {many} forgotten and cannot be taken back")
        return "; ".join(told)

    # What is done.

    def begin(
        self,
        title: str,
        files: Sequence[FileChange],
        chat: str = "",
        bases: Mapping[str, Sequence[str]] | None = None,
    ) -> str:
        """Note a proposal; return the key of its turn.

        Args:
            title: for lists.
            files: what it does to them.
            chat: key of the chat that it came from.
            bases: lines of files by their path, so that hunks still find their place when the
                editor ended with them.
        """
        key = new_key()
        rows = [turns.to_row(file, (bases or {}).get(file.path)) for file in files]
        words = " ".join(title.split())
        self._add(
            {"op": "begin", "v": turns.VERSION, "key": key, "title": words, "chat": chat}
            | {"at_s": time.time(), "files": rows}
        )
        return key

    def decided(self, said: EditDecided) -> None:
        """Note that the user took or refused hunks in a buffer, or took back what he had taken.

        Raises:
            EditMissing: there is no such turn, or nothing of that file in it.
        """
        path = self._recorded(said["turn"], (said["path"],))[said["path"]]
        self._add(
            {"op": "decided", "key": said["turn"], "path": path}
            | {"accepted": [dict(hunk) for hunk in said["accepted"]]}
            | {"rejected": [dict(change) for change in said["rejected"]]}
            | {"open": said["open"], "is_undone": said["is_undone"]}
        )

    def wrote(self, key: str, files: Sequence[Done], journal: str = "") -> None:
        """Note what was done to files on disk; with a journal, this is what makes it hold.

        Raises:
            EditMissing: there is no such turn, or nothing of such a file in it.
            EditUnsaved: it cannot be written down.
        """
        known = self._recorded(key, [done.path for done in files])
        rows = [turns.done_row(done) | {"path": known[done.path]} for done in files]
        self._add({"op": "wrote", "key": key, "journal": journal, "files": rows}, is_firm=True)

    def reverted(
        self, key: str, do: str, files: Mapping[str, Sequence[Hunk]], journal: str = ""
    ) -> None:
        """Note that a turn was taken back or made again.

        Args:
            key: of the turn.
            do: `undo` or `redo`.
            files: hunks by path, each as it would be found now.
            journal: of the writing.

        Raises:
            EditMissing: there is no such turn, or nothing of such a file in it.
            EditUnsaved: it cannot be written down.
        """
        known = self._recorded(key, list(files))
        rows = [
            {"path": known[path], "hunks": [asdict(hunk) for hunk in hunks]}
            for path, hunks in files.items()
        ]
        self._add(
            {"op": "reverted", "key": key, "do": do, "journal": journal, "files": rows},
            is_firm=True,
        )

    def close(self, key: str) -> None:
        """Note that open hunks of a turn are not wanted any more."""
        self.turn(key)
        self._add({"op": "closed", "key": key})

    # What there is.

    def turn(self, key: str) -> Turn:
        """Return a turn.

        Raises:
            EditMissing: there is none of that key.
        """
        with self._lock:
            self._refresh()
            found = self._turns.turns.get(key)
        if found is None:
            raise EditMissing(f"there is no turn {key}", "Choose one with :LCursor edits")
        return found

    def rows(self) -> list[EditTurnRow]:
        """Return the turns for a list, the newest first."""
        with self._lock:
            self._refresh()
            found = [*self._turns.turns.values()][::-1]
            return [
                {
                    "turn": turn.key,
                    "title": turn.title,
                    "state": turn.state,
                    "at_s": turn.at_s,
                    "paths": [
                        path
                        for file in turn.files
                        for path in (file.change.path, file.change.to)
                        if path
                    ],
                    "open": turn.open,
                }
                for turn in found
            ]

    def open_files(self, key: str) -> tuple[FileChange, ...]:
        """Return the files of a turn with hunks that wait, as proposed, without those accepted.

        The rows are of the base, as it was before any was accepted.

        Raises:
            EditMissing: there is no such turn.
        """
        found = self.turn(key)
        return tuple(
            FileChange(each.path, each.kind, each.to, each.base, file.rest())
            for file in found.files
            if file.open
            for each in (file.change,)
        )

    def undo_key(self) -> str:
        """Return the turn that an undo takes back; "" for none."""
        with self._lock:
            self._refresh()
            return self._turns.undo_key()

    def redo_key(self) -> str:
        """Return the turn that a redo makes again; "" for none."""
        with self._lock:
            self._refresh()
            return self._turns.redo_key()

    def is_settled(self, journal: str) -> bool:
        """Return whether what a journal of writing is about was noted here, and so holds."""
        with self._lock:
            self._refresh()
            return any(journal in turn.settled for turn in self._turns.turns.values())

    def _recorded(self, key: str, paths: Sequence[str]) -> dict[str, str]:
        """Return each of some paths as a turn has it; the editor may know a file by a link.

        Raises:
            EditMissing: there is no such turn, or nothing of such a file in it.
        """
        turn = self.turn(key)
        return {path: self._recorded_path(turn, path) for path in paths}

    def _recorded_path(self, turn: Turn, path: str) -> str:
        with contextlib.suppress(KeyError):
            return turn.file(path).change.path
        real = os.path.realpath(path)
        for change in (file.change for file in turn.files):
            if any(name and os.path.realpath(name) == real for name in (change.path, change.to)):
                return change.path
        raise EditMissing(
            f"the turn {turn.key} has nothing to do with {path}", "See :LCursor edits"
        )

    # The file.

    def _add(self, op: Op, *, is_firm: bool = False) -> None:
        self._shorten()
        self._log.add(op, is_firm=is_firm)

    def _take(self, op: Op) -> None:
        self._turns.apply(op)

    def _reset(self) -> None:
        self._turns = Turns()

    def _refresh(self) -> None:
        self._log.refresh()

    def _shorten(self) -> None:
        """Forget the oldest turns where they are too old, or too much."""
        with self._lock:
            limit_s = time.time() - MOST_AGE_S
            old = sum(turn.at_s < limit_s for turn in self._turns.turns.values())
            if self._log.size_bytes <= MOST_BYTES and old < LEAST_FORGOTTEN:
                return
            before = len(self._turns.turns)
            try:
                self._log.shorten(lambda known: self._kept(known, limit_s))
            except OSError:
                return  # it stays long
            self._refresh()
            self._forgotten += before - len(self._turns.turns)

    def _kept(self, known: Sequence[tuple[Op, int]], limit_s: float) -> list[Op]:
        """Return the operations of the newest turns, as many as have room.

        Turns that a newer version of lcursor wrote are kept: this one cannot judge them.
        """
        newer = {str(op.get("key")) for op, _ in known if op.get("v", 0) > turns.VERSION}
        sizes: dict[str, int] = {}
        for op, size in known:
            key = str(op.get("key"))
            sizes[key] = sizes.get(key, 0) + size
        kept, left = set[str](), MOST_BYTES // 2
        for turn in sorted(self._turns.turns.values(), key=lambda turn: -turn.at_s):
            left -= sizes.get(turn.key, 0)
            if left < 0 or turn.at_s < limit_s:
                break
            kept.add(turn.key)
        return [op for op, _ in known if str(op.get("key")) in kept | newer]
