"""The window of lines that a model rewrites, and the edits in its answer. Pure; any thread.

The window's rows are fixed by the prompt, and what the answer does not reach stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from lcursor.next_edit.records import Edit, Lines, Proposal, Texts
from lcursor.next_edit.tokens import MAX_EDIT_LINES, Token, changes, classify, tokenize

MAX_CHANGED_LINES: Final = 12
"""Of a whole answer; a larger one is no next edit."""
CONFIDENCE: Final = 0.5
FOREIGN: Final = re.compile(
    r"<\|[\w+-]+\|>|<\[[^\s<>]+\]>|NO_EDITS|KEEP_PREVIOUS|<{7} CURRENT|>{7} UPDATED"
)
"""Texts of prompts and answers that are no code."""


class WindowPrompt(NamedTuple):
    """A prompt, and the window that its answer rewrites."""

    text: str
    first_row: int
    end_row: int
    stops: tuple[str, ...]
    """Texts that end the answer."""


@dataclass(frozen=True, slots=True)
class EditStep:
    """An edit, with the lines of its file before and after it."""

    edit: Edit
    before: Lines
    after: Lines

    def row_before(self, row: int) -> int:
        """Return where a row after the edit was before it."""
        edit = self.edit
        if row >= edit.row + len(edit.new):
            return row - len(edit.new) + len(edit.old)
        return min(row, edit.row + len(edit.old))


def steps(texts: Texts, edits: Sequence[Edit], limit: int) -> list[EditStep]:
    """Return the last small edits that fit the texts, oldest first."""
    now = {path: without_returns(lines) for path, lines in texts.items()}
    found: list[EditStep] = []
    for raw in reversed(edits):
        edit = replace(raw, old=without_returns(raw.old), new=without_returns(raw.new))
        lines, end = now.get(edit.path), edit.row + len(edit.new)
        if lines is None or lines[edit.row : end] != edit.new:
            now.pop(edit.path, None)
            continue
        now[edit.path] = lines[: edit.row] + edit.old + lines[end:]
        if max(len(edit.old), len(edit.new)) <= MAX_EDIT_LINES and len(found) < limit:
            found.insert(0, EditStep(edit, now[edit.path], lines))
    return found


def other_rows(lines: Lines, edit: Edit, first_row: int, end_row: int) -> list[int]:
    """Return the rows outside of a window that have a word that an edit removed, nearest first.

    Of rows that one window would contain, only the first is returned.
    """
    names = {token.text for change in changes(edit) for token in change.old if token.kind == "name"}
    found: list[int] = []
    for row, line in enumerate(lines):
        is_seen = first_row <= row < end_row or (found and row - found[-1] < end_row - first_row)
        if not is_seen and names & {token.text for token in tokenize(line)}:
            found.append(row)
    return sorted(found, key=lambda row: min(abs(row - first_row), abs(row - end_row)))


def without_returns(lines: Lines) -> Lines:
    """Return lines without the carriage return that may end each."""
    return tuple(line.removesuffix("\r") for line in lines)


def proposals(
    texts: Texts, edits: Sequence[Edit], path: str, prompt: WindowPrompt, answer: Lines, model: str
) -> list[Proposal]:
    """Return the changes of an answer that are worth showing.

    Args:
        answer: the new lines of the window, without carriage returns.
        model: its name, for the user.
    """
    old = texts[path][prompt.first_row : prompt.end_row]
    returns = {line.endswith("\r") for line in old}
    if len(returns) > 1:
        return []
    ending = "\r" if returns == {True} else ""
    new = tuple(line + ending for line in answer)
    hunks = list(_hunks(path, prompt.first_row, old, new))
    lines = [line for hunk in hunks for line in hunk.new]
    count = sum(max(len(hunk.old), len(hunk.new)) for hunk in hunks)
    if count > MAX_CHANGED_LINES or any(FOREIGN.search(line) for line in lines):
        return []
    recent = [edit for edit in edits if edit.path == path and not edit.is_accepted]
    return [
        Proposal(
            kind="model",
            path=path,
            row=hunk.row,
            old=hunk.old,
            new=hunk.new,
            confidence=CONFIDENCE,
            cause=f"suggested by {model}",
            group="model " + "\n".join([path, *lines]),
        )
        for hunk in hunks
        if classify(hunk) != "format" and not any(_reverts(hunk, edit) for edit in recent)
    ]


def _hunks(path: str, row: int, old: Lines, new: Lines) -> Iterator[Edit]:
    """Yield the changed blocks; not one with which lines at the end of the window would be lost."""
    for tag, first, end, start, stop in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        is_cut_off = end == len(old) and stop - start < end - first
        if tag != "equal" and not is_cut_off:
            yield Edit(path, row + first, old[first:end], new[start:stop])


def _reverts(hunk: Edit, edit: Edit) -> bool:
    """Return whether a change reverts an edit, or a part of it."""
    old, new = ({line for line in side if line.strip()} for side in (hunk.old, hunk.new))
    if old <= set(edit.new) and new <= set(edit.old) and old - new:
        return True
    made = {(_texts(one.old), _texts(one.new)) for one in changes(edit)}
    return any((_texts(one.new), _texts(one.old)) in made for one in changes(hunk))


def _texts(tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(token.text for token in tokens)
