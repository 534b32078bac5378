"""Apply replies of models to their files: each is applied right, refused, or applied wrong.

The corpus and its format are described in evals/data/apply/README.md. The right results were never
computed by the code under test. Asks no model and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evals.corpus import ROOT
from lcursor.edit.placing import reply, resolve, settle
from lcursor.edit.placing.pieces import Block
from lcursor.edit.records import FileChange, Lines
from lcursor.errors import LcursorError

DATA = ROOT / "evals/data/apply"
FILES = ("made.jsonl", "traps.jsonl", "model.jsonl", "hand.jsonl")
Outcome = Literal["right", "refused", "wrong"]
"""Applied as it must be; not applied without asking; applied otherwise."""
Texts = dict[str, Lines]


@dataclass(frozen=True, slots=True)
class Task:
    """One reply, the files that it is about, and what is right."""

    name: str
    form: str
    mangled: str
    files: Texts
    current: str
    file: str
    reply: str
    right: Texts | None
    """All files as they must be then; None where nothing may be done without asking."""
    is_unique: bool
    """There is one right answer: to ask is no harm, but misses it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A reply, and what became of it."""

    task: Task
    outcome: Outcome
    detail: str
    """Why it was refused, or what is wrong."""


class Given:
    """The files of a task.

    Args:
        texts: by path.
        current: path of the one that is looked at.
    """

    def __init__(self, texts: Mapping[str, Lines], current: str) -> None:
        self._texts, self._current = texts, current

    def read(self, path: str) -> Lines | None:
        """Return a file's lines."""
        return self._texts.get(path)

    def current(self) -> str:
        """Return the path of the file that is looked at."""
        return self._current

    def all(self) -> Sequence[str]:
        """Return all paths."""
        return [*self._texts]

    def absolute(self, path: str) -> str:
        """Return a path as it is: there is no disk."""
        return path


def load(folder: Path = DATA) -> list[Task]:
    """Read the corpus.

    Raises:
        LcursorError: it is not there, or a line of it is no task.
    """
    try:
        bases = {
            row["key"]: tuple(row["text"].split("\n")) for row in _rows(folder / "bases.jsonl")
        }
        rows = [row for name in FILES if (folder / name).exists() for row in _rows(folder / name)]
        return [_task(row, bases) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LcursorError(
            f"{folder} is no corpus of replies ({error})", f"Give the folder: --data {DATA}"
        ) from error


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line:
            yield json.loads(line)


def _task(row: Mapping[str, Any], bases: Mapping[str, Lines]) -> Task:
    files: Texts = {}
    for path, text in row["files"].items():
        files[path] = bases[text] if isinstance(text, str) else tuple(text)
    right = None
    if row["right"] is not None:
        right = dict(files)
        for path, edits in row["right"].items():
            if edits is None:
                del right[path]
            else:
                right[path] = _edited(right.get(path, ()), edits)
    return Task(
        name=row["id"],
        form=row["form"],
        mangled=row["mangled"],
        files=files,
        current=row["current"],
        file=row["file"],
        reply=row["reply"],
        right=right,
        is_unique=row["is_unique"] and right is not None,
    )


def _edited(lines: Lines, edits: Sequence[tuple[int, int, Sequence[str]]]) -> Lines:
    result = list(lines)
    for first, last, new in reversed(edits):
        result[first:last] = new
    return tuple(result)


def judge(tasks: Sequence[Task]) -> Iterator[Judged]:
    """Apply each reply, and see what becomes of it."""
    for task in tasks:
        blocks, files = reply.blocks(task.reply, task.file), Given(task.files, task.current)
        found = resolve.resolve(blocks, files)
        if isinstance(found, resolve.Refused):
            yield Judged(task, "refused", found.reason)
        elif isinstance(found, resolve.Ask) and _is_asked_twice(blocks, files, found):
            yield Judged(task, "wrong", f"asked again and again: {found.text}")
        elif isinstance(found, resolve.Ask):
            yield Judged(task, "refused", f"asked: {found.text}")
        else:
            yield _compared(task, found.files)


def _is_asked_twice(blocks: Sequence[Block], files: Given, first: resolve.Ask) -> bool:
    """Return whether a question comes again after it was answered."""
    asked: list[tuple[str, tuple[settle.Choice, ...]]] = []
    found: resolve.Resolved | resolve.Ask | resolve.Refused = first
    while isinstance(found, resolve.Ask):
        if (found.key, found.choices) in asked:
            return True
        asked.append((found.key, found.choices))
        found = resolve.resolve(blocks, files, found.chosen(0))
    return False


def _compared(task: Task, files: Sequence[FileChange]) -> Judged:
    made = dict(task.files)
    for file in files:
        lines = _edited(
            made.get(file.path, ()),
            [(one.first_row, one.last_row, one.new) for one in file.changes],
        )
        if file.kind == "delete":
            del made[file.path]
        elif file.kind == "rename":
            del made[file.path]
            made[file.to] = lines
        else:
            made[file.path] = lines
    if task.right is not None and made == task.right:
        return Judged(task, "right", "")
    if made == task.files:
        return Judged(task, "refused", "nothing was changed")
    return Judged(task, "wrong", "it is not what it must be" if task.right else "it was sure")
