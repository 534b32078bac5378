"""Traps: edits, written by hand, after which a naive proposal is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evals.next_edit.replay import Predict
from lcursor.drive.editor import ROOT
from lcursor.errors import LcursorError
from lcursor.next_edit.records import Edit

DATA = ROOT / "evals/data/next_edit/traps.jsonl"
Outcome = Literal["right", "missed", "wrong"]


@dataclass(frozen=True, slots=True)
class Trap:
    """Texts after some edits, and the lines that may be proposed."""

    name: str
    texts: dict[str, tuple[str, ...]]
    edits: tuple[Edit, ...]
    right: dict[tuple[str, int], set[str]]
    """Path and row to the new lines that are right. Any other proposal is wrong."""
    must: bool
    """Whether one must be proposed for each row."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A trap and what the predictors made of it."""

    name: str
    outcome: Outcome
    detail: str


def load(path: Path = DATA) -> list[Trap]:
    """Read the traps.

    Raises:
        LcursorError: the file is missing or malformed.
    """
    try:
        return [_trap(json.loads(line)) for line in path.read_text("utf-8").splitlines() if line]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LcursorError(
            f"{path} has no traps ({error})", "Restore it: git checkout evals/data"
        ) from error


def _trap(row: Mapping[str, Any]) -> Trap:
    """Read a trap, and make its edits."""
    texts = {path: tuple(lines) for path, lines in row["files"].items()}
    edits = []
    for path, at, new in row["edits"]:
        lines = texts[path]
        edits.append(Edit(path, at, lines[at : at + 1], (new,)))
        texts[path] = (*lines[:at], new, *lines[at + 1 :])
    right: dict[tuple[str, int], set[str]] = {}
    for path, at, new in row["right"]:
        right.setdefault((path, at), set()).add(new)
    return Trap(row["id"], texts, tuple(edits), right, row["must"])


def judge(traps: Sequence[Trap], predict: Predict) -> Iterator[Judged]:
    """Ask for proposals after the edits of each trap; not only the first one counts."""
    for trap in traps:
        found = set()
        wrong = ""
        for one in predict(trap.texts, trap.edits):
            if len(one.old) != len(one.new):
                wrong = f"{one.path}:{one.row + 1} has {len(one.new)} lines for {len(one.old)}"
            for at, new in enumerate(one.new, one.row):
                found.add((one.path, at))
                if new not in trap.right.get((one.path, at), ()):
                    wrong = f"{one.path}:{at + 1} `{new.strip()}`"
        if wrong:
            yield Judged(trap.name, "wrong", wrong)
        elif trap.must and found != trap.right.keys():
            yield Judged(trap.name, "missed", f"{len(found)} of {len(trap.right)}")
        else:
            yield Judged(trap.name, "right", "")
