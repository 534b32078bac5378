"""Apply replies of models to their files: each is applied right, rejected, or applied wrong.

The corpus and its format are described in evals/data/apply/README.md. The right results were never
computed by the code under test. Asks no model and writes nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bench.report import Json, percent, table
from lcursor.changes.apply import parse, resolve
from lcursor.changes.apply.apply_block import Choice
from lcursor.changes.apply.blocks import Block
from lcursor.changes.records import FileChange, Lines
from lcursor.drive.editor import ROOT
from lcursor.errors import LcursorError

DATA = ROOT / "evals/data/apply"
FILES = ("made.jsonl", "traps.jsonl", "model.jsonl", "hand.jsonl")
OUTCOMES = DATA / "outcomes.json"
"""What becomes of each reply that is not applied, by name; a test compares it."""
Outcome = Literal["right", "rejected", "wrong"]
"""Applied with the right result; not applied, or asked about; applied with another result."""
Texts = dict[str, Lines]


@dataclass(frozen=True, slots=True)
class Task:
    """One reply, the files that it is about, and the right result."""

    name: str
    form: str
    mangled: str
    files: Texts
    current: str
    file: str
    reply: str
    right: Texts | None
    """All files afterwards; None if nothing may be changed without asking."""
    is_unique: bool
    """There is exactly one right result, so asking counts as missed."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A reply and the outcome of applying it."""

    task: Task
    outcome: Outcome
    detail: str
    """Why it was rejected, or what is wrong."""


def command(
    data: Annotated[Path, typer.Option(help="Folder of the replies.", show_default=False)] = DATA,
    form: Annotated[str, typer.Option(help="Only replies with this in their name.")] = "",
    record: Annotated[bool, typer.Option(help="Rewrite outcomes.json.")] = False,
    as_json: Json = False,
) -> None:
    """Apply replies of models to their files: right, rejected or asked about, wrong.

    Replies made from real commits and mangled, traps written by hand, and replies of a local model.
    Exits with 1 if one is applied wrong. Asks no model.
    """
    found = list(judge([task for task in load(data) if form in task.name]))
    if record:
        OUTCOMES.write_text(json.dumps(not_applied(found), indent=0, sort_keys=True) + "\n")
    document = as_dict(found)
    if not as_json:
        typer.echo("\n".join(as_markdown(document)) + "\n")
    names = ("total", "right_share", "rejected", "wrong")
    typer.echo(json.dumps({name: document[name] for name in names}))
    if document["wrong"]:
        raise typer.Exit(1)


class TaskFiles:
    """The files of a task, as the resolver reads them.

    Args:
        texts: by path.
        current: path of the file in the editor.
    """

    def __init__(self, texts: Mapping[str, Lines], current: str) -> None:
        self._texts, self._current = texts, current

    def read(self, path: str) -> Lines | None:
        """Return a file's lines."""
        return self._texts.get(path)

    def current(self) -> str:
        """Return the path of the file in the editor."""
        return self._current

    def all(self) -> Sequence[str]:
        """Return all paths."""
        return [*self._texts]

    def absolute(self, path: str) -> str:
        """Return a path unchanged: there is no disk."""
        return path


def load(folder: Path = DATA) -> list[Task]:
    """Read the corpus.

    Raises:
        LcursorError: it is missing or malformed.
    """
    try:
        bases = {
            row["key"]: tuple(row["text"].split("\n")) for row in _rows(folder / "bases.jsonl")
        }
        rows = [row for name in FILES if (folder / name).exists() for row in _rows(folder / name)]
        return [_task(row, bases) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LcursorError(
            f"{folder} is not a corpus of replies ({error})", f"Give the folder: --data {DATA}"
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
    """Apply each reply and compare the result."""
    for task in tasks:
        blocks, files = parse.blocks(task.reply, task.file), TaskFiles(task.files, task.current)
        found = resolve.resolve(blocks, files)
        if isinstance(found, resolve.Unresolved):
            yield Judged(task, "rejected", found.reason)
        elif isinstance(found, resolve.Ask) and _repeats_a_question(blocks, files, found):
            yield Judged(task, "wrong", f"repeats a question: {found.text}")
        elif isinstance(found, resolve.Ask):
            rows = (f"{one.first_row + 1}-{one.last_row}" for one in found.choices)
            yield Judged(task, "rejected", f"asked: {found.text} Rows {', '.join(rows)}")
        else:
            yield _compared(task, found.files)


def _repeats_a_question(blocks: Sequence[Block], files: TaskFiles, first: resolve.Ask) -> bool:
    """Whether the resolver repeats a question after it was answered."""
    asked: list[tuple[str, tuple[Choice, ...]]] = []
    found: resolve.Resolved | resolve.Ask | resolve.Unresolved = first
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
        return Judged(task, "rejected", "nothing was changed")
    return Judged(task, "wrong", "another result" if task.right else "applied without asking")


def not_applied(found: Sequence[Judged]) -> dict[str, str]:
    """Return why some replies are not applied, by name."""
    return {one.task.name: one.detail for one in found if one.outcome != "right"}


def as_dict(found: Sequence[Judged]) -> dict[str, Any]:
    """Return the report as JSON.

    `right_share` is the share of the replies with exactly one right result that are applied right;
    `rejected` and `wrong` count all replies.
    """
    rows = {}
    for form, mangled in dict.fromkeys((one.task.form, one.task.mangled) for one in found):
        some = [one for one in found if (one.task.form, one.task.mangled) == (form, mangled)]
        rows[f"{form} {mangled}"] = _counts(some)
    missed = [one for one in found if one.task.is_unique and one.outcome == "rejected"]
    mistakes = [one for one in found if one.outcome == "wrong"]
    return {
        **_counts(found),
        "rows": rows,
        "missed": [{"name": one.task.name, "detail": one.detail} for one in missed],
        "mistakes": [{"name": one.task.name, "detail": one.detail} for one in mistakes],
    }


def _counts(found: Sequence[Judged]) -> dict[str, Any]:
    counts = Counter(one.outcome for one in found)
    unique = [one.outcome for one in found if one.task.is_unique]
    return {
        "total": len(found),
        "unique": len(unique),
        "right_share": round(unique.count("right") / len(unique), 4) if unique else 1.0,
        "right": counts["right"],
        "rejected": counts["rejected"],
        "wrong": counts["wrong"],
    }


def as_markdown(document: Mapping[str, Any]) -> list[str]:
    """Return the lines of the report."""
    rows = [
        (name, row["total"], row["unique"])
        + (percent(row["right_share"]) if row["unique"] else "–", row["rejected"], row["wrong"])
        for name, row in document["rows"].items()
    ]
    lines = table(
        ["reply", "n:", "one right result:", "of those right:", "rejected:", "wrong:"], rows
    )
    for title, key in (("Missed", "missed"), ("Wrong", "mistakes")):
        if document[key]:
            lines += ["", f"{title}:", ""]
            lines += [f"- {one['name']}: {one['detail']}" for one in document[key]]
    return [
        *lines,
        "",
        f"{document['total']} replies; of {document['unique']} with one right result "
        f"{100 * document['right_share']:.1f} % applied right; "
        f"{document['rejected']} rejected or asked about, {document['wrong']} wrong",
    ]
