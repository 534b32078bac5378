"""Replay a commit as a user who types its steps, and who accepts each right proposal.

After each step the predictors are asked. The user accepts the first proposal if it is right, and
rejects it otherwise; a rejected group stays silent, as in the editor. A proposal is right if it
does what a remaining step does, or a part of it: nothing that it writes has to be changed again. At
the end nothing remains, so every proposal is wrong.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Literal

from evals.next_edit.commits import Commit, Step, language, tokens
from evals.next_edit.labels import Label, Labelled, is_head, label
from lcursor.code import symbols
from lcursor.next_edit.records import Edit, Proposal, Texts

Predict = Callable[[Texts, Sequence[Edit]], Sequence[Proposal]]

Basis = Literal["nothing", "one step", "steps", "declaration"]
"""From what a step can be derived: one step, several steps, or the declaration."""

ORDERS = ("top-down", "bottom-up", "definitions first", "random 1", "random 2", "random 3")
MAX_EDITS = 16
"""Edits that the predictors see."""
MAX_REJECTED = 3
"""Proposals that the user looks at after one step."""
NEAR_ROWS = 20
NEAR_KEYS, FAR_KEYS = 2, 4
"""Keys to move to a place in view, or elsewhere (search, or count and jump)."""
DELETE_KEYS = 2
"""Keys that delete a run of text."""
ACCEPT_KEYS, JUMP_KEYS = 1, 1
REJECT_KEYS = 2


@dataclass(frozen=True, slots=True)
class Shown:
    """A proposal that was shown, and whether it was right."""

    commit: str
    order: str
    language: str
    kind: str
    confidence: float
    is_right: bool
    is_exact: bool
    """Whether it does all of a step, not only a part."""
    is_located: bool
    """Whether it overlaps a remaining step."""
    is_located_3: bool
    """Whether one of the first three proposals does."""
    is_harmful: bool
    """It is wrong, and changes rows that stay, adds a syntax error, or reverts the last edit."""
    adds_error: bool
    reverts: bool
    path: str
    row: int
    cause: str
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """A step after its session: typed, or done by accepting proposals."""

    commit: str
    order: str
    language: str
    label: Label
    is_first: bool
    """Whether it is the first step of the session: nothing can foresee it."""
    basis: Basis
    """What was done before it of the same cause."""
    is_accepted: bool
    keys_by_hand: int
    keys: int
    """Keys that it took, typing or accepting."""

    @property
    def follows(self) -> bool:
        """Whether a step with the same cause was done before it."""
        return self.basis != "nothing"


@dataclass(frozen=True, slots=True)
class Silence:
    """A state where nothing should be shown, and the kind of what was shown."""

    commit: str
    order: str
    language: str
    state: str
    """`done`, `new code` or `format`."""
    kind: str
    """"" if nothing was shown."""


@dataclass(slots=True)
class Session:
    """What happened while one commit was replayed in one order."""

    commit: str
    order: str
    shown: list[Shown] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    silences: list[Silence] = field(default_factory=list)
    times_ms: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _Segment:
    """Lines of a file, and what a step makes of them."""

    now: tuple[str, ...]
    final: tuple[str, ...]
    step: int
    """Index of the step; -1 for lines that stay."""
    accepted: int = 0
    """Keys spent on accepted proposals that changed it."""

    @property
    def is_open(self) -> bool:
        """Whether the step remains."""
        return self.now != self.final


def replay(commit: Commit, predict: Predict) -> Iterator[Session]:
    """Yield a session for each order."""
    labels = label(commit)
    for order in ORDERS:
        yield _Replay(commit, labels, order, predict).run()


def ordered(commit: Commit, order: str) -> list[int]:
    """Return the indexes of a commit's steps in an order."""
    rows = list(range(len(commit.steps)))
    if order == "bottom-up":
        rows.reverse()
    elif order == "definitions first":
        rows.sort(key=lambda index: not is_head(commit.steps[index]))
    elif order.startswith("random"):
        random.Random(f"{commit.name}:{order}").shuffle(rows)
    return rows


def keys_to_type(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the keys that turn lines into others at one place; indentation comes for free."""
    before = tokens("\n".join(old)) if old else []
    after = tokens("\n".join(new)) if new else []
    if not before:
        return sum(len(line.strip()) + 1 for line in new)
    keys = changes = 0
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, one, two, start, end in matcher.get_opcodes():
        if tag != "equal":
            added = after[start:end]
            spaces = max(len(added) - 1, 0) // 2
            keys += sum(map(len, added)) + spaces + (DELETE_KEYS if two > one else 0)
            changes += 1
    return keys + NEAR_KEYS * max(changes - 1, 0) if changes else 1


class _Replay:
    """One session in progress."""

    def __init__(
        self, commit: Commit, labels: Sequence[Labelled], order: str, predict: Predict
    ) -> None:
        self._commit, self._labels, self._predict = commit, labels, predict
        self._order = ordered(commit, order)
        self._files = {path: _segments(commit, path) for path in commit.base}
        self._edits: list[Edit] = []
        self._rejected: set[str] = set()
        self._groups: dict[str, Basis] = {}
        self._at: tuple[str, int] = ("", 0)
        self._by_hand = self._keys_by_hand()
        self._session = Session(commit.name, order)

    def run(self) -> Session:
        """Type the steps in order, and accept what is right."""
        for index in self._order:
            segment, row = self._find(index)
            if not segment.is_open:
                continue
            step = self._commit.steps[index]
            keys = self._move(step.path, row) + keys_to_type(segment.now, segment.final)
            self._edit(Edit(step.path, row, segment.now, segment.final))
            segment.now = segment.final
            self._finish(index, keys + segment.accepted, is_accepted=False)
            self._watch(step)
        self._end()
        return self._session

    def _watch(self, step: Step) -> None:
        """Look at what is shown after a step."""
        rejected = 0
        is_first = True
        while rejected < MAX_REJECTED and self._remains():
            found = self._ask()
            shown = self._judge(found) if found else None
            if is_first and _is_new_code(step):
                wrong = found[0].kind if shown and not shown.is_right else ""
                self._silent("new code", step.path, wrong)
            is_first = False
            if shown is None:
                return
            self._session.shown.append(shown)
            if shown.is_right:
                self._accept(found[0])
            else:
                self._rejected.add(found[0].group)
                rejected += 1

    def _ask(self) -> list[Proposal]:
        began_s = time.perf_counter()
        found = self._predict(self._texts(), self._edits[-MAX_EDITS:])
        self._session.times_ms.append((time.perf_counter() - began_s) * 1000)
        return [one for one in found if one.group not in self._rejected]

    def _judge(self, found: Sequence[Proposal]) -> Shown:
        """Judge the first proposal."""
        first = found[0]
        is_exact = self._is_exact(first)
        is_right = is_exact or self._is_part(first)
        located = [bool(self._touched(one)) for one in found[:3]]
        lines = self._texts()[first.path]
        after = lines[: first.row] + first.new + lines[first.end_row :]
        name = language(first.path)
        adds_error = not symbols.parses_no_worse(lines, after, name)
        reverts = any(
            (one.path, one.old, one.new) == (first.path, first.new, first.old)
            for one in self._edits[-1:]
        )
        stays = not located[0]
        return Shown(
            commit=self._commit.name,
            order=self._session.order,
            language=name,
            kind=first.kind,
            confidence=first.confidence,
            is_right=is_right,
            is_exact=is_exact,
            is_located=located[0],
            is_located_3=any(located),
            is_harmful=not is_right and (stays or adds_error or reverts),
            adds_error=adds_error and not is_right,
            reverts=reverts and not is_right,
            path=first.path,
            row=first.row,
            cause=first.cause,
            old=first.old,
            new=first.new,
        )

    def _touched(self, proposal: Proposal) -> list[tuple[int, _Segment]]:
        """Return the remaining steps that a proposal overlaps, with their first rows."""
        found = []
        row = 0
        for segment in self._files[proposal.path]:
            end = row + len(segment.now)
            if segment.now:
                overlaps = proposal.row < end and row < proposal.end_row
            else:
                overlaps = proposal.row < row < proposal.end_row
            if not proposal.old:
                overlaps = row == proposal.row == end or row < proposal.row < end
            if segment.step >= 0 and segment.is_open and overlaps:
                found.append((row, segment))
            row = end
        return found

    def _is_exact(self, proposal: Proposal) -> bool:
        """Return whether a proposal does what the remaining steps that it overlaps do."""
        touched = self._touched(proposal)
        if not touched:
            return False
        first = min(proposal.row, touched[0][0])
        end = max(proposal.end_row, *(row + len(one.now) for row, one in touched))
        lines = self._texts()[proposal.path]
        made = lines[first : proposal.row] + proposal.new + lines[proposal.end_row : end]
        wanted: list[str] = []
        row = first
        for start, segment in touched:
            wanted += [*lines[row:start], *segment.final]
            row = start + len(segment.now)
        wanted += lines[row:end]
        return _stripped(made) == _stripped(wanted)

    def _is_part(self, proposal: Proposal) -> bool:
        """Return whether a proposal does a part of one step, so that less remains to be typed."""
        touched = self._touched(proposal)
        if len(touched) != 1:
            return False
        row, segment = touched[0]
        first, end = proposal.row - row, proposal.end_row - row
        if first < 0 or end > len(segment.now):
            return False
        now, final = tokens("\n".join(segment.now)), tokens("\n".join(segment.final))
        made = tokens("\n".join(segment.now[:first] + proposal.new + segment.now[end:]))
        done = distance(now, made)
        return 0 < done == distance(now, final) - distance(made, final)

    def _accept(self, proposal: Proposal) -> None:
        """Apply a right proposal."""
        is_far = self._move(proposal.path, proposal.row) > NEAR_KEYS
        keys = ACCEPT_KEYS + (JUMP_KEYS if is_far else 0)
        touched = self._touched(proposal)
        for row, segment in touched:
            made = segment.final
            first, end = proposal.row - row, proposal.end_row - row
            if len(touched) == 1 and first >= 0 and end <= len(segment.now):
                made = segment.now[:first] + proposal.new + segment.now[end:]
            is_whole = _stripped(made) == _stripped(segment.final)
            segment.now = segment.final if is_whole else made
            segment.accepted += keys
            keys = 0
            if is_whole:
                self._finish(segment.step, segment.accepted, is_accepted=True)
        self._edit(Edit(proposal.path, proposal.row, proposal.old, proposal.new, is_accepted=True))

    def _finish(self, index: int, keys: int, *, is_accepted: bool) -> None:
        found, step = self._labels[index], self._commit.steps[index]
        done = self._session.done
        basis = self._groups.get(found.group, "nothing")
        done.append(
            Done(
                commit=self._commit.name,
                order=self._session.order,
                language=language(step.path),
                label=found.label,
                is_first=not done,
                basis=basis,
                is_accepted=is_accepted,
                keys_by_hand=self._by_hand[index],
                keys=keys,
            )
        )
        if found.group:
            is_known = found.declares or basis == "declaration"
            more: Basis = "one step" if basis == "nothing" else "steps"
            self._groups[found.group] = "declaration" if is_known else more

    def _edit(self, edit: Edit) -> None:
        self._edits.append(edit)
        self._at = (edit.path, edit.row)

    def _end(self) -> None:
        """Look at states where nothing remains to be done."""
        path = self._at[0]
        found = self._ask()
        kind = found[0].kind if found else ""
        self._silent("done", path, kind)
        if _is_new_code(self._commit.steps[self._order[-1]]):
            self._silent("new code", path, kind)
        for one in found[:1]:
            self._session.shown.append(self._judge([one]))
        formatted = self._format(path)
        if formatted is not None:
            texts, edit = formatted
            more = self._predict(texts, [*self._edits[-MAX_EDITS + 1 :], edit])
            known = {one.group for one in found} | self._rejected
            kinds = [one.kind for one in more if one.group not in known]
            self._silent("format", path, kinds[0] if kinds else "")

    def _format(self, path: str) -> tuple[Texts, Edit] | None:
        """Return the texts after a change of white space behind a comma, and that edit."""
        texts = self._texts()
        lines = texts[path]
        rows = [row for row, line in enumerate(lines) if ", " in line]
        if not rows:
            return None
        row = random.Random(self._commit.name).choice(rows)
        new = lines[row].replace(", ", ",  ", 1)
        changed = (*lines[:row], new, *lines[row + 1 :])
        return {**texts, path: changed}, Edit(path, row, (lines[row],), (new,))

    def _silent(self, state: str, path: str, kind: str) -> None:
        name, order = self._commit.name, self._session.order
        self._session.silences.append(Silence(name, order, language(path), state, kind))

    def _texts(self) -> dict[str, tuple[str, ...]]:
        return {
            path: tuple(line for segment in segments for line in segment.now)
            for path, segments in self._files.items()
        }

    def _remains(self) -> bool:
        return any(one.is_open for segments in self._files.values() for one in segments)

    def _find(self, index: int) -> tuple[_Segment, int]:
        """Return the segment of a step and its first row."""
        row = 0
        for segment in self._files[self._commit.steps[index].path]:
            if segment.step == index:
                return segment, row
            row += len(segment.now)
        raise LookupError(index)

    def _move(self, path: str, row: int) -> int:
        is_near = path == self._at[0] and abs(row - self._at[1]) <= NEAR_ROWS
        return NEAR_KEYS if is_near else FAR_KEYS

    def _keys_by_hand(self) -> dict[int, int]:
        """Return the keys of each step when all are typed in this order."""
        found = {}
        at = ("", 0)
        for index in self._order:
            step = self._commit.steps[index]
            is_near = step.path == at[0] and abs(step.row - at[1]) <= NEAR_ROWS
            keys = NEAR_KEYS if is_near else FAR_KEYS
            found[index] = keys + keys_to_type(step.old, step.new)
            at = (step.path, step.row)
        return found


def _is_new_code(step: Step) -> bool:
    """Return whether a step inserts several lines."""
    return not step.old and len(step.new) > 1


def distance(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the tokens that must be deleted and inserted to turn one text into another."""
    before = [0] * (len(new) + 1)
    for token in old:
        row = [0]
        for at, other in enumerate(new):
            row.append(before[at] + 1 if token == other else max(before[at + 1], row[at]))
        before = row
    return len(old) + len(new) - 2 * before[-1]


def _segments(commit: Commit, path: str) -> list[_Segment]:
    lines = commit.base[path]
    found: list[_Segment] = []
    row = 0
    for index, step in enumerate(commit.steps):
        if step.path == path:
            found.append(_Segment(lines[row : step.row], lines[row : step.row], -1))
            found.append(_Segment(step.old, step.new, index))
            row = step.row + len(step.old)
    return [*found, _Segment(lines[row:], lines[row:], -1)]


def _stripped(lines: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in lines]
