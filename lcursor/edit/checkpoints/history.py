"""The history of a project's edits, on disk, so that each can be undone after a restart.

The turns are in `$XDG_DATA_HOME/lcursor/edits/PROJECT/history.jsonl`, with images of files next to
it; `oplog.py` has the file, `turn.py` the state. If nothing can be written, turns are kept in
memory, and no files are written. Old turns are deleted. Any thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from lcursor.edit.checkpoints import turn as turns
from lcursor.edit.checkpoints.images import Images
from lcursor.edit.checkpoints.oplog import Op, OpLog
from lcursor.edit.checkpoints.turn import Action, FileTurn, Turn, Turns
from lcursor.edit.records import Change, FileChange, Lines
from lcursor.errors import EditMissing, LcursorError
from lcursor.protocol_edit import EditDecided, EditTurnRow
from lcursor.storage import folders

NAME: Final = "history.jsonl"
OLD_NAME: Final = "turns.jsonl"
"""Of version 0.1.0, without images: its turns cannot be undone any more."""
MAX_BYTES: Final = 32 << 20
"""Of the file; then the oldest turns are deleted until it has half of that."""
MAX_IMAGE_BYTES: Final = 256 << 20
MAX_AGE_S: Final = 90 * 86_400.0
MIN_FORGOTTEN: Final = 50
"""Number of old turns from which on the file is rewritten."""


def home() -> Path:
    """Return the folder of all histories, which may not exist."""
    return folders.data_home() / "edits"


def place(root: Path | str, folder: Path | None = None) -> Path:
    """Return the folder of a project's history, which may not exist."""
    real = os.path.realpath(root)
    word = re.sub(r"[^\w.-]+", "-", Path(real).name, flags=re.ASCII)[:32].strip("-.") or "root"
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return (folder or home()) / f"{word}-{digest}"


def new_key() -> str:
    """Return a unique key for a turn."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file of a turn that is about to be changed on disk."""

    path: str
    """As the change has it."""
    changes: tuple[Change, ...] = ()
    base: str = ""
    """Image of the lines before."""
    removed: str = ""
    """Image of the bytes of a file that is deleted."""
    mode: int = -1


class History:
    """The turns of a project.

    Args:
        root: of the project.
        folder: of all histories; by default `home()`.
        on_error: called when the file cannot be written, once until it can be.
    """

    def __init__(
        self,
        root: Path | str,
        folder: Path | None = None,
        on_error: Callable[[LcursorError], None] = lambda _: None,
    ) -> None:
        self.root = os.path.realpath(root)
        self.folder = place(self.root, folder)
        self.path = self.folder / NAME
        self.images = Images(self.folder / "images")
        self._turns = Turns()
        self._log = OpLog(self.path, turns.VERSION, self._turns.apply, self._turns.reset, on_error)
        self._lock = self._log.lock
        self._image_bytes = -1

    @property
    def damaged(self) -> int:
        """The number of lines of the file that were skipped."""
        return self._log.damaged

    # What is done.

    def begin(
        self,
        title: str,
        files: Sequence[FileChange],
        chat: str = "",
        bases: Mapping[str, Sequence[str]] | None = None,
    ) -> str:
        """Record a proposal; return the key of its turn.

        Args:
            title: for lists.
            files: the proposed changes.
            chat: key of the chat that it came from.
            bases: the old lines of files that the editor may change, by path.
        """
        key, rows = new_key(), []
        for file in files:
            base = (bases or {}).get(file.path)
            rows.append(turns.to_row(file, "" if base is None else self.images.put_lines(base)))
        words = " ".join(title.split())
        self._add(
            {"op": "begin", "v": turns.VERSION, "key": key, "title": words, "chat": chat}
            | {"at_s": time.time(), "files": rows}
        )
        return key

    def decided(self, said: EditDecided) -> None:
        """Record that the user accepted or rejected hunks in a buffer, or undid accepted ones.

        Raises:
            EditMissing: there is no such turn, or nothing of that file in it.
        """
        file = self._recorded(said["turn"], said["path"])
        hunks, base = said["accepted"], self.base_of(file)
        pieces, is_fresh, is_lost = list(file.pieces), False, bool(hunks)
        if base is not None:
            pieces, is_fresh, is_lost = turns.place_hunks(
                file, base, hunks, is_undone=said["is_undone"]
            )
        is_fresh = is_fresh or (is_lost and not said["is_undone"])
        before = file.pieces_before(is_fresh=is_fresh)
        pairs = enumerate(zip(pieces, before, strict=True))
        made = [[at, piece] for at, (piece, was) in pairs if piece != was]
        self._add(
            {"op": "decided", "key": said["turn"], "path": file.change.path, "pieces": made}
            | {"is_fresh": is_fresh, "is_lost": is_lost}
            | {"rejected": [dict(change) for change in said["rejected"]], "open": said["open"]}
        )

    def writing(self, key: str, do: Action, files: Sequence[FileRecord], name: str) -> None:
        """Record what is about to be done to files of a turn; `written` or `failed` ends it.

        Args:
            key: of the turn.
            do: what is done.
            files: to these.
            name: unique, of this transaction.

        Raises:
            EditMissing: there is no such turn, or nothing of such a file in it.
            EditUnsaved: it cannot be recorded.
        """
        rows = [
            {**asdict(file), "path": self._recorded(key, file.path).change.path} for file in files
        ]
        self._add({"op": "writing", "key": key, "id": name, "do": do, "files": rows}, fsync=True)

    def written(self, key: str, name: str) -> None:
        """Record that `writing` is done.

        Raises:
            EditUnsaved: it cannot be recorded.
        """
        self._add({"op": "written", "key": key, "id": name}, fsync=True)

    def failed(self, key: str, name: str) -> None:
        """Record that `writing` has failed, and the files are as before."""
        self._add({"op": "failed", "key": key, "id": name})

    def rebase(self, key: str, change: FileChange, base: Lines, layer: Sequence[Lines]) -> None:
        """Record that open hunks of a file are proposed again for another text.

        Args:
            key: of the turn.
            change: what is still open.
            base: the text that it refers to.
            layer: the lines before and after the applied part; empty for none.
        """
        layers = [[self.images.put_lines(each) for each in layer]] if layer else []
        row = turns.to_row(change, self.images.put_lines(base))
        self._add({"op": "rebased", "key": key, "path": change.path, "file": row, "layers": layers})

    def interrupted(self) -> list[tuple[str, str]]:
        """Return the name and each path of each transaction that did not end."""
        with self._lock:
            self._log.refresh()
            broken = [turn for turn in self._turns.turns.values() if turn.writing is not None]
        return [
            (str((turn.writing or {})["id"]), path)
            for turn in broken
            for file in turn.files
            for path in (file.change.path, file.change.to)
            if path
        ]

    def settle_interrupted(self) -> list[str]:
        """End the transactions of killed Neovims, so that undo reverts them.

        The caller holds the lock for writing.

        Returns:
            The files of each turn, for the user.
        """
        notes = []
        with self._lock:
            self._log.refresh()
            broken = [turn for turn in self._turns.turns.values() if turn.writing is not None]
        for turn in broken:
            op = turn.writing or {}
            end = self.failed if op["do"] == "undo" else self.written
            end(turn.key, op["id"])
            notes.append(", ".join(os.path.basename(row["path"]) for row in op["files"]))
        return notes

    # What there is.

    def turn(self, key: str) -> Turn:
        """Return a turn.

        Raises:
            EditMissing: there is none of that key.
        """
        with self._lock:
            self._log.refresh()
            found = self._turns.turns.get(key)
        if found is None:
            raise EditMissing(f"there is no turn {key}", "Choose one with :LCursor edits")
        return found

    def base_of(self, file: FileTurn) -> Lines | None:
        """Return the lines that a file's changes refer to, None if they are unknown."""
        if file.change.kind == "create":
            return ()
        return self.images.get_lines(file.base) if file.base else None

    def rows(self) -> list[EditTurnRow]:
        """Return the turns for a list, the newest first."""
        with self._lock:
            self._log.refresh()
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
        """Return the files of a turn with open hunks, without the accepted ones.

        The rows refer to the base, before any was accepted.

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
        """Return the key of the turn that undo reverts, "" for none."""
        with self._lock:
            self._log.refresh()
            return self._turns.undo_key()

    def redo_key(self) -> str:
        """Return the key of the turn that redo applies again, "" for none."""
        with self._lock:
            self._log.refresh()
            return self._turns.redo_key()

    def _recorded(self, key: str, path: str) -> FileTurn:
        """Return the record of a file in a turn; its path may be a link.

        Raises:
            EditMissing: there is no such turn, or nothing of such a file in it.
        """
        turn = self.turn(key)
        with contextlib.suppress(KeyError):
            return turn.file(path)
        real = os.path.realpath(path)
        for file in turn.files:
            names = (file.change.path, file.change.to)
            if any(name and os.path.realpath(name) == real for name in names):
                return file
        raise EditMissing(
            f"the turn {turn.key} has nothing to do with {path}", "See :LCursor edits"
        )

    # The file.

    def _add(self, op: Op, *, fsync: bool = False) -> None:
        self._shorten()
        self._log.add(op, fsync=fsync)

    def _shorten(self) -> None:
        """Delete the oldest turns and their images if they are too old or too many."""
        with self._lock:
            limit_s = time.time() - MAX_AGE_S
            old = sum(turn.at_s < limit_s for turn in self._turns.turns.values())
            if self._image_bytes < 0:
                self._image_bytes = self.images.size_bytes()
                with contextlib.suppress(OSError):
                    (self.folder / OLD_NAME).unlink(missing_ok=True)
                self._log.refresh()
            size, most = self._log.size_bytes, MAX_BYTES
            if self._image_bytes > MAX_IMAGE_BYTES:
                most = size
            elif size <= MAX_BYTES and old < MIN_FORGOTTEN:
                return
            try:
                self._log.shorten(lambda known: self._kept(known, limit_s, most // 2))
            except OSError:
                return  # it stays long
            self._log.refresh()
            self.images.drop_others(self._image_keys())
            self._image_bytes = 0

    def _image_keys(self) -> set[str]:
        files = [file for turn in self._turns.turns.values() for file in turn.files]
        writing = [turn.writing for turn in self._turns.turns.values() if turn.writing]
        rows = [row for op in writing for row in op["files"]]
        return {
            *(key for file in files for key in (file.base, file.removed)),
            *(key for file in files for layer in file.layers for key in layer),
            *(str(key) for row in rows for key in (row["base"], row["removed"])),
        }

    def _kept(self, known: Sequence[tuple[Op, int]], limit_s: float, left: int) -> list[Op]:
        """Return the operations of the newest turns within a number of bytes.

        Turns of a newer version of lcursor are kept.
        """
        newer = {str(op.get("key")) for op, _ in known if op.get("v", 0) > turns.VERSION}
        sizes: dict[str, int] = {}
        for op, size in known:
            key = str(op.get("key"))
            sizes[key] = sizes.get(key, 0) + size
        kept = set[str]()
        for turn in sorted(self._turns.turns.values(), key=lambda turn: -turn.at_s):
            left -= sizes.get(turn.key, 0)
            if left < 0 or turn.at_s < limit_s:
                break
            kept.add(turn.key)
        return [op for op, _ in known if str(op.get("key")) in kept | newer]
