"""Texts to type: what commits of a repository add, each with the file around it at that moment."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from evals.next_edit import commits
from lcursor.changes import diff

Kind = Literal["body", "block", "line", "top", "middle"]
"""Where a line is typed: first line after a signature, first line of another block, another line
with indentation, a line without, or in the middle of an existing line."""

MAX_LINES = 12
"""Lines typed of one hunk."""
MAX_LINE_CHARS = 160
MIN_CHARS = 8
"""Shorter texts are not typed."""

_SIGNATURE = re.compile(
    r"^\s*(?:(?:pub|async|export|default|static|public|private|protected|local|override)\b[\s(\w)]*)*"
    r"(?:def|func|function|fn)\b|\bfunction\s*\([^)]*\)\s*$|=>$"
)
_OPENER = re.compile(r"[:{(\[]$|\b(?:then|do|else|repeat)$")


@dataclass(frozen=True, slots=True)
class Insertion:
    """A text that is typed at once.

    Attributes:
        before: the file before the cursor, up to the indentation of the cursor's line.
        text: what is typed; its lines have their indentation, but the first one.
        after: the file behind the cursor, from the rest of the cursor's line on.
    """

    commit: str
    path: str
    language: str
    before: str
    text: str
    after: str

    @property
    def is_middle(self) -> bool:
        """Whether the cursor's line has text on both sides."""
        return bool(self.after.partition("\n")[0].strip())


def kind(before: str, is_middle: bool) -> Kind:
    """Return the kind of the line that is typed after a text."""
    if is_middle:
        return "middle"
    *above, own = before.split("\n")
    if _is_in_signature(above, own):
        return "body"
    last = next((line.rstrip() for line in reversed(above) if line.strip()), "")
    if _OPENER.search(last):
        return "block"
    return "line" if own[:1].isspace() else "top"


def _is_in_signature(above: Sequence[str], own: str) -> bool:
    """Return whether the last statement above, perhaps over several lines, is a signature."""
    depth = 0
    for line in reversed([line for line in above if line.strip()][-12:]):
        depth += sum(map(line.count, ")]")) - sum(map(line.count, "(["))
        if depth <= 0:
            head = line.rstrip().removesuffix("{").rstrip()
            return bool(_SIGNATURE.search(head)) and _indent(own) > _indent(line)
    return False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def load(
    repository: Path, count: int, seed: int, revision: str = "HEAD", *, bodies: bool = False
) -> list[Insertion]:
    """Return a random sample of the texts that the newest commits add.

    Args:
        count: maximum number of texts, at most one for each file of a commit.
        seed: of the sample.
        bodies: only bodies of new functions; typing begins at the end of the signature.

    Raises:
        LcursorError: it is no repository, or lacks the revision.
    """
    chance = random.Random(seed)
    found: list[Insertion] = []
    for commit in commits.changes(repository, (40 if bodies else 4) * count, revision):
        for path, (old, new) in commit.files.items():
            candidates = list(_insertions(commit.name, path, old, new))
            if bodies:
                candidates = [body for each in candidates if (body := _body(each))]
            if candidates:
                found.append(chance.choice(candidates))
    chance.shuffle(found)
    return found[:count]


def _insertions(
    commit: str, path: str, old: Sequence[str], new: Sequence[str]
) -> Iterator[Insertion]:
    known = {line.strip() for line in old}
    language = commits.language(path)
    for first, end, start, stop in diff.spans(old, new):
        above, below = new[:start], old[end:]
        if end - first == stop - start == 1:
            one = _changed(old[first], new[start])
            if one:
                head, text, tail = one
                before, after = "\n".join([*above, head]), "\n".join([tail, *below])
                yield Insertion(commit, path, language, before, text, after)
            continue
        lines = list(new[start:stop])[:MAX_LINES]
        while lines and (not lines[0].strip() or lines[0].strip() in known):
            above, lines = [*above, lines[0]], lines[1:]
        lines = _until_moved(lines, known)
        text = "\n".join(lines).rstrip()
        is_long = any(len(line) > MAX_LINE_CHARS for line in lines)
        if len(text.strip()) < MIN_CHARS or is_long:
            continue
        typed = text.lstrip()
        before = "\n".join([*above, text[: len(text) - len(typed)]])
        yield Insertion(commit, path, language, before, typed, "\n" + "\n".join(below))


def _body(insertion: Insertion) -> Insertion | None:
    """Return the first body of a function in a text."""
    lines = insertion.text.split("\n")
    for at in range(1, len(lines)):
        before, rest = "\n".join(lines[:at]), "\n".join(["", *lines[at:]])
        indent = lines[at][: _indent(lines[at])]
        before = insertion.before + before
        if kind(before + "\n" + indent, False) == "body" and rest.strip():
            return replace(insertion, before=before, text=rest)
    return None


def _until_moved(lines: list[str], known: set[str]) -> list[str]:
    """Return the lines up to three in a row that the file had: they were moved, not typed."""
    for at in range(len(lines)):
        if all(line.strip() in known or not line.strip() for line in lines[at : at + 3]):
            return lines[:at]
    return lines


def _changed(old: str, new: str) -> tuple[str, str, str] | None:
    """Return the text before, in and after the added part of a line; None if it is small."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    text = new[start : len(new) - end]
    if len(text.strip()) < MIN_CHARS or len(new) > MAX_LINE_CHARS or not start:
        return None
    return new[:start], text, new[len(new) - end :]
