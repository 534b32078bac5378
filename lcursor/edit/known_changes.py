"""Propose changes that are known already, as an edit with a checkpoint; no model is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lcursor.changes.records import Change, FileChange, Lines, digest
from lcursor.edit.run import EditOutcome, EditRun
from lcursor.edit.session import EditDeps, EditSession
from lcursor.protocol import edit as wire


def propose(run: EditRun, services: EditDeps, params: wire.EditPropose) -> EditOutcome:
    """Propose the changes whose old lines are still there."""
    path = params["path"]
    session = EditSession(run, services, path, params["buffers"], path)
    files = []
    for given in params["files"]:
        base = session.sources.read(given["path"])
        changes = tuple(_valid(given["changes"], base or ()))
        if base is not None and changes:
            file = FileChange(given["path"], base=digest(base), changes=changes)
            files.append(session.checked(file))
    if not files:
        return EditOutcome("rejected", "the lines have changed")
    session.propose(files, title=params["title"])
    return EditOutcome("proposed")


def _valid(changes: Sequence[wire.EditChange], lines: Lines) -> Iterator[Change]:
    """Yield the changes of the present lines in the order of their rows, without overlaps."""
    end = 0
    for change in sorted(changes, key=lambda one: one["first_row"]):
        first, last, old = change["first_row"], change["last_row"], tuple(change["old"])
        if first >= end and lines[first:last] == old:
            yield Change(first, last, old, tuple(change["new"]))
            end = last
