"""The history of a project's edits on disk, so that each can be undone after a restart.

Each turn is a JSON file in `DATA/edits/PROJECT/turns/`, replaced atomically under the project's
lock; images of files are next to that folder. A turn that cannot be stored stays in memory, and no
files are written. Old turns are deleted. Any thread, several Neovims.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from lcursor.changes import diff
from lcursor.changes import turn as turns
from lcursor.changes.images import Images
from lcursor.changes.records import FileChange, Lines
from lcursor.changes.turn import FileTurn, Turn
from lcursor.errors import EditMissing, EditUnsaved, LcursorError
from lcursor.protocol.edit import EditDecided, EditTurnRow
from lcursor.storage import file_lock, folders, stored

OLD_NAMES: Final = ("turns.jsonl", "history.jsonl")
"""Files of versions before 0.2.0, whose turns can no longer be undone."""
MAX_BYTES: Final = 256 << 20
"""Maximum size of turns and images, above which the oldest turns are deleted."""
MAX_AGE_S: Final = 90 * 86_400.0
LOCK: Final = "write.lock"
LOCK_S: Final = 10.0
"""Time limit for the lock while another Neovim writes."""

Stamp = tuple[int, int, int]
"""Inode, size and time of a file, which change if it is replaced."""


def home() -> Path:
    """Return the folder of all histories, which may not exist."""
    return folders.data_home() / "edits"


def project_folder(root: Path | str, folder: Path | None = None) -> Path:
    """Return the folder of a project's history, which may not exist."""
    real = os.path.realpath(root)
    word = re.sub(r"[^\w.-]+", "-", Path(real).name, flags=re.ASCII)[:32].strip("-.") or "root"
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return (folder or home()) / f"{word}-{digest}"


class History:
    """The turns of a project.

    `on_error` is called when a turn cannot be stored, but not again before a success.
    """

    def __init__(
        self,
        root: Path | str,
        folder: Path | None = None,
        on_error: Callable[[LcursorError], None] = lambda _: None,
    ) -> None:
        self.root = os.path.realpath(root)
        self.folder = project_folder(self.root, folder)
        self.path = self.folder / "turns"
        self.images = Images(self.folder / "images")
        self._on_error = on_error
        self._lock = threading.RLock()
        self._is_locked = False
        self._turns: dict[str, Turn] = {}
        self._stamps: dict[str, Stamp] = {}
        self._unsaved: set[str] = set()
        self._is_tidy = False

    @property
    def damaged(self) -> int:
        """The number of files that are damaged or have a newer version."""
        return len(self._stamps.keys() - self._turns.keys())

    # Changes.

    def begin(
        self,
        title: str,
        files: Sequence[FileChange],
        chat: str = "",
        bases: Mapping[str, Sequence[str]] | None = None,
        run: str = "",
    ) -> str:
        """Record a proposal; return the key of its turn.

        `bases` has the old lines of files that the editor may change, by path. `run` is the key of
        the agent's run.
        """
        key = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"
        known = {path: self.images.put_lines(lines) for path, lines in (bases or {}).items()}
        found = [FileTurn(each, known.get(each.path, "")) for each in files]
        for file in found if run else ():
            lines = tuple((bases or {}).get(file.change.path, ()))
            file.left = self.images.put_lines(diff.apply(lines, file.change.changes))
        turn = Turn(key, " ".join(title.split()), time.time(), chat, found, run=run)
        with self._changing():
            if not self._is_tidy:
                self._is_tidy = True
                with contextlib.suppress(OSError):
                    self._delete_old()
            self._save(turn)
        return key

    def decided(self, decision: EditDecided) -> None:
        """Record that the user accepted or rejected hunks in a buffer, or undid accepted ones."""

        def decide(turn: Turn, number: int) -> None:
            file = turn.files[self.index(turn, decision["path"])]
            hunks, is_undone, base = decision["accepted"], decision["is_undone"], self.base_of(file)
            pieces, is_fresh, is_lost = list(file.pieces), False, bool(hunks)
            if base is not None:
                found = turns.locate_hunks(file, base, hunks, is_undone=is_undone)
                pieces, is_fresh, is_lost = found
            if is_fresh or (is_lost and not is_undone):
                if file.is_undone:  # earlier undone changes stay undone
                    file.before, file.is_undone, file.is_made = "", False, False
                turn.applied_n = turn.fresh_n = number
            file.pieces, file.open = pieces, decision["open"]
            file.rejected += map(turns.change_of, decision["rejected"])
            file.is_lost = file.is_lost or is_lost

        self.update(decision["turn"], decide)

    def renamed(self, key: str, path: str, to: str) -> None:
        """Record that the buffer of a file got another name, where undo and redo find its text."""

        def rename(turn: Turn, _: int) -> None:
            file = turn.files[self.index(turn, path)]
            others = [each.change for each in turn.files if each is not file]
            names = {os.path.realpath(name) for each in others for name in (each.path, each.to)}
            if os.path.realpath(to) in names:
                file.is_lost = file.has_effect
            else:
                file.change = replace(file.change, path=to)

        self.update(key, rename)

    def rebase(self, key: str, change: FileChange, base: Lines, before: Lines | None) -> None:
        """Record that open hunks of a file are proposed again for a new text.

        `before` is the new text without applied changes; None if unknown.
        """

        def propose(turn: Turn, _: int) -> None:
            at = self.index(turn, change.path)
            known, has_parts = turn.files[at], before is not None and before != base
            turn.files[at] = FileTurn(
                change,
                self.images.put_lines(base),
                self.images.put_lines(before or ()) if has_parts else "",
                open=known.open,
                is_lost=known.is_lost or before is None,
                left=known.left,
            )

        self.update(key, propose)

    def update(
        self, key: str, change: Callable[[Turn, int], None], *, must_store: bool = False
    ) -> None:
        """Change a turn, given the number of this step, and store it.

        If it cannot be stored, raise `EditUnsaved` with `must_store`; otherwise keep it in memory.
        """
        self.turn(key)  # raises before a folder is created for a missing turn
        with self._changing():
            made = copy.deepcopy(self._turns[key])
            numbers = (max(each.applied_n, each.undone_n) for each in self._turns.values())
            change(made, 1 + max(numbers, default=0))
            self._save(made, must_store=must_store)

    def end_writing(self, key: str, *, is_done: bool, must_store: bool = False) -> None:
        """Record that the transaction on the files of a turn is done, or was rolled back."""
        self.update(
            key, lambda turn, n: turn.end_writing(n, is_done=is_done), must_store=must_store
        )

    # Queries.

    def turns(self) -> list[Turn]:
        """Return all turns, the newest first."""
        with self._lock:
            self._refresh()
            return sorted(self._turns.values(), key=lambda turn: -turn.at_s)

    def turn(self, key: str) -> Turn:
        """Return a turn, or raise `EditMissing`."""
        with self._lock:
            self._refresh()
            if key in self._turns:
                return self._turns[key]
        raise EditMissing(f"there is no edit {key}", "Choose one with :LCursor edit list")

    def base_of(self, file: FileTurn) -> Lines | None:
        """Return the lines that a file's changes refer to; None if unknown."""
        if file.base:
            return self.images.get_lines(file.base)
        return () if file.change.kind == "create" else None

    def rows(self) -> list[EditTurnRow]:
        """Return the turns for a list, the newest first."""
        return [
            {
                "turn": turn.key,
                "title": turn.title,
                "state": turn.state,
                "at_s": turn.at_s,
                "paths": turn.paths,
                "open": turn.open,
            }
            for turn in self.turns()
        ]

    def open_files(self, key: str) -> tuple[FileChange, ...]:
        """Return the files of a turn with open hunks, without the accepted ones.

        The rows refer to the base, before any hunk was accepted.
        """
        found = [(file.change, file.rest()) for file in self.turn(key).files if file.open]
        return tuple(replace(change, changes=rest, checks=()) for change, rest in found)

    def undo_key(self) -> str:
        """Return the key of the turn that undo reverts, the last applied one; "" for none."""
        found = [turn for turn in self.turns() if turn.is_applied]
        return max(found, key=lambda turn: turn.applied_n).key if found else ""

    def redo_key(self) -> str:
        """Return the key of the last undone turn; "" if something new was applied since."""
        every = self.turns()
        fresh_n = max((turn.fresh_n for turn in every), default=0)
        found = [turn for turn in every if turn.is_undone and turn.undone_n > fresh_n]
        return max(found, key=lambda turn: turn.undone_n).key if found else ""

    def index(self, turn: Turn, path: str) -> int:
        """Return the index of a file in a turn, or raise `EditMissing`."""
        try:
            return turn.index(path)
        except KeyError:
            raise EditMissing(
                f"the edit {turn.key} did not change {path}", "See :LCursor edit list"
            ) from None

    # Files.

    @contextlib.contextmanager
    def locked(self, wait_s: float = LOCK_S) -> Iterator[None]:
        """Hold the lock of the project, which is reentrant for its thread.

        Raises `EditUnsaved` if the folder cannot be created, or another Neovim holds the lock too
        long.
        """
        with self._lock:
            if self._is_locked:
                yield
                return
            lock = self._wait_for_lock(time.monotonic() + wait_s)
            self._is_locked = True
            try:
                yield
            finally:
                self._is_locked = False
                os.close(lock)

    def _wait_for_lock(self, ends_s: float) -> int:
        while True:
            try:
                for folder in (self.folder.parent, self.folder, self.path):
                    folders.make_private(folder)
                lock = file_lock.try_lock(self.folder / LOCK)
            except (OSError, LcursorError) as error:
                raise EditUnsaved(
                    f"{self.folder} cannot be written: {error}",
                    "Check disk space and permissions; until then no files are written, and "
                    ":LCursor edit undo works only in this Neovim",
                ) from error
            if lock is not None:
                return lock
            if time.monotonic() > ends_s:
                raise EditUnsaved(
                    "another Neovim is writing files of this project", "Try again when it is done"
                )
            time.sleep(0.005)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock if possible, and load the changes of other Neovims."""
        with self._lock, contextlib.ExitStack() as stack:
            with contextlib.suppress(EditUnsaved):  # the turn cannot be stored either
                stack.enter_context(self.locked())
            self._refresh()
            yield

    def _save(self, turn: Turn, *, must_store: bool = False) -> None:
        """Store a turn, and turns that could not be stored before."""
        try:
            for each in [*(self._turns[key] for key in self._unsaved - {turn.key}), turn]:
                path = self.path / f"{each.key}.json"
                folders.write_file(path, turns.to_bytes(each), fsync=True)
                self._stamps[each.key] = _stamp(os.stat(path))
            folders.fsync_folder(self.path)
            self._unsaved.clear()
        except OSError as error:
            failure = EditUnsaved(
                f"the record of edits cannot be written: {error.strerror or error} ({self.path})",
                "Check disk space and permissions; until then :LCursor edit undo works only in "
                "this Neovim",
            )
            if must_store:
                raise failure from error
            if not self._unsaved:
                self._on_error(failure)
            self._unsaved.add(turn.key)
        self._turns[turn.key] = turn

    def _refresh(self) -> None:
        """Load the changes of other Neovims."""
        files = {path.stem: (path, _stamp(stat)) for path, stat in self._files()}
        for key, (path, stamp) in files.items():
            if key in self._unsaved or self._stamps.get(key) == stamp:
                continue
            self._stamps[key] = stamp
            self._turns.pop(key, None)
            with contextlib.suppress(OSError, *stored.DAMAGE):
                made = turns.from_bytes(path.read_bytes())
                if made.key == key:
                    self._turns[key] = made
        for key in self._stamps.keys() - files.keys() - self._unsaved:
            del self._stamps[key]
            self._turns.pop(key, None)

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        files = []
        for path in self.path.glob("*.json"):
            with contextlib.suppress(OSError):  # another Neovim has just deleted it
                files.append((path, path.stat()))
        return files

    def _delete_old(self) -> None:
        """Delete the oldest turns, and images without references."""
        for path in (*self.path.glob("*.json.*"), *(self.folder / name for name in OLD_NAMES)):
            path.unlink(missing_ok=True)  # left by killed Neovims or older versions
        sizes, left, used = self.images.sizes(), MAX_BYTES, set[str]()
        for path, stat in sorted(self._files(), key=lambda each: -each[1].st_mtime):
            images = self._turns[path.stem].images() if path.stem in self._turns else set()
            left -= stat.st_size + sum(sizes.get(key, 0) for key in images - used)
            if left < 0 or stat.st_mtime < time.time() - MAX_AGE_S:
                path.unlink(missing_ok=True)
            else:
                used |= images
        self._refresh()
        if not self.damaged:  # a turn of a newer version may refer to any image
            self.images.drop_others(used)


def _stamp(stat: os.stat_result) -> Stamp:
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
