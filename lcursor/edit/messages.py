"""Records of edits as the wire's messages. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lcursor import protocol_edit as wire
from lcursor.edit.records import Change, Check, FileChange
from lcursor.edit.sources import Sources


def file(change: FileChange, texts: Sources, tick: int | None = None) -> wire.EditFile:
    """Return a change of a file.

    Args:
        change: what is done.
        texts: knows names, and which text was changed.
        tick: of the buffer whose text it was; None to ask `texts`.
    """
    return {
        "path": change.path,
        "name": texts.name(change.path),
        "kind": change.kind,
        "to": change.to,
        "base": change.base,
        "tick": texts.tick(change.path) if tick is None else tick,
        "changes": changes(change.changes),
        "checks": checks(change.checks),
        "is_outside": texts.is_outside(change.path)
        or bool(change.to and texts.is_outside(change.to)),
    }


def changes(found: Sequence[Change]) -> list[wire.EditChange]:
    """Return changes of lines."""
    return [
        {
            "first_row": each.first_row,
            "last_row": each.last_row,
            "old": list(each.old),
            "new": list(each.new),
        }
        for each in found
    ]


def checks(found: Sequence[Check]) -> list[wire.EditCheck]:
    """Return what was found out about a change."""
    return [{"name": each.name, "is_ok": each.is_ok, "text": each.text} for each in found]
