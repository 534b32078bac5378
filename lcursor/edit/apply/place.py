"""What one block makes of one text, or why that is not certain. Pure; any thread.

    place_pairs(Target("0", block, "a.py", ("a = 1", "b = 2")))  # SEARCH b = 2, REPLACE b = 3
    -> ("a = 1", "b = 3")

A quoted change goes where its lines are; a definition takes the place of the one of its name; code
with markers of omission is merged; what is mostly the file's text is the file. All else is asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from lcursor.code import languages, symbols
from lcursor.context.items import Seen
from lcursor.edit import diff
from lcursor.edit.apply import elision, match, splice
from lcursor.edit.apply.align import best
from lcursor.edit.apply.blocks import Block, Pair
from lcursor.edit.apply.match import Match, Several
from lcursor.edit.apply.whole_file import Reading
from lcursor.edit.records import Lines, digest

MAX_SHOWN: Final = 40
NEAR_ROWS: Final = 3
MIN_LETTERS: Final = 12
"""A result with fewer letters that is there says nothing about who made it."""
ELSEWHERE: Final = "the lines that the model had read have changed, and this may be another place"
LEAVES_OUT: Final = (
    "The code leaves something out, and it is not clear what. Ask for all of the code, or for an "
    "edit of that place"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the things that could be meant."""

    path: str
    first_row: int
    last_row: int
    lines: Lines
    """How it would be, or what is there."""
    why: str
    new: Lines | None = None
    """What stands at these rows then; None where only the file is chosen."""
    base: str = ""
    """Digest of the text that the rows are of."""


class Ambiguous(Exception):
    """It could be meant in several ways: the user chooses."""

    def __init__(self, key: str, text: str, choices: tuple[Choice, ...]) -> None:
        super().__init__(text)
        self.key, self.text, self.choices = key, text, choices


class CannotApply(Exception):
    """A block cannot be applied; the message says why."""


class LeavesOut(CannotApply):
    """The code of a block leaves something out that cannot be filled in by rules."""

    def __init__(self, code: Lines) -> None:
        super().__init__(LEAVES_OUT)
        self.code = code


@dataclass(frozen=True, slots=True)
class Target:
    """A block, and the text that it is about."""

    key: str
    """Of the block, for questions."""
    block: Block
    path: str
    lines: Lines
    answers: Mapping[str, Choice] = field(default_factory=dict)
    """What the user chose before, by key."""
    attached: Sequence[Seen] = ()
    """Rows of the file that the block's writer had read; the newest first."""

    @property
    def name(self) -> str:
        """The file's name as the block has it."""
        return self.block.path or self.path

    @property
    def language(self) -> str:
        """The file's language; what a fence says counts where its name is silent."""
        return language_of(self.path, self.lines, self.block.language)

    def answer(self, key: str, lines: Lines) -> Choice | None:
        """Return what the user chose in this very text."""
        choice = self.answers.get(key)
        return choice if choice is not None and choice.base == digest(lines) else None

    def choice(self, lines: Lines, rows: tuple[int, int], new: Lines, why: str) -> Choice:
        """Return something to choose."""
        return Choice(self.path, *rows, new[:MAX_SHOWN], why, new, digest(lines))


def language_of(path: str, lines: Sequence[str], named: str = "") -> str:
    """Return a file's language, by its name; another is believed where that is silent."""
    found = languages.detect(path, lines[0] if lines else "")
    return named if found == languages.TEXT and named else found


def create(block: Block, path: str) -> Lines:
    """Return the lines of a new file.

    Raises:
        CannotApply: the block changes what is not there.
    """
    if elision.markers(block.lines, language_of(path, block.lines, block.language)):
        raise CannotApply("The new file leaves something out")
    if block.kind == "create":
        return block.lines
    if block.form == "fence" and not block.is_elided:
        lines = block.lines
        return (block.heading, *lines) if block.heading.startswith("#!") else lines
    if len(block.pairs) == 1 and not any(line.strip() for line in block.pairs[0].old):
        return block.pairs[0].new
    raise CannotApply(f"There is no file {block.path or path}")


# Quoted changes.


def place_pairs(it: Target) -> Lines:
    """Return a text with all that a block spells out done to it.

    Raises:
        Ambiguous: a place is not certain.
        CannotApply: what it changes is not there.
    """
    pairs, lines = it.block.pairs, it.lines
    known = {line.strip() for line in lines}
    new = tuple(line for pair in pairs for line in pair.new)
    if any(elision.is_marker(line) and line.strip() not in known for line in new):
        raise LeavesOut(new)
    if it.block.blob and _is_blob(it.block.blob, lines):
        exact = _by_rows(pairs, lines)
        if exact is not None:
            return exact
    is_ordered = it.block.form == "patch" or all(pair.row >= 0 for pair in pairs)
    finder = _Finder(it)
    keys = [f"{it.key}.{number}" for number in range(len(pairs))]
    found = [finder.find(key, lines, pair) for key, pair in zip(keys, pairs, strict=True)]
    if is_ordered:
        _order(found)
    for key, pair, one in zip(keys, pairs, found, strict=True):
        finder.refuse_several(key, lines, pair, one)
    done = _all_at_once(lines, found)
    if done is not None:
        return done
    # In their order, as one may quote lines that another adds or changes.
    base_rows = [*range(len(lines) + 1)]  # which row of the text each line was; -1 where it is new
    row = 0
    for key, pair, before in zip(keys, pairs, found, strict=True):
        now: Match | Several | None = _moved(before, base_rows)
        if now is None:
            key = f"{key}+"  # a question about this text is another than one about the first
            now = finder.find(key, lines, pair)
            if is_ordered and isinstance(now, Several):
                after = [place for place in now.places if place.first_row >= row]
                now = after[0] if len(after) == 1 and row else now
            finder.refuse_several(key, lines, pair, now)
        if isinstance(now, Match):
            for change in reversed(diff.changes(lines[now.first_row : now.last_row], now.new)):
                first = now.first_row + change.first_row
                base_rows[first : first + len(change.old)] = [-1] * len(change.new)
            lines = lines[: now.first_row] + now.new + lines[now.last_row :]
            row = now.first_row + len(now.new)
        elif not _is_there(lines, pair.new):
            raise CannotApply(_missing(it, pair))
    return lines


class _Finder:
    """Finds the places of the pairs of a block, each only once in the same text."""

    def __init__(self, it: Target) -> None:
        self._it, self._language = it, language_of(it.path, it.lines)
        self._found: dict[tuple[Lines, Pair], Match | Several | None] = {}

    def find(self, key: str, lines: Lines, pair: Pair) -> Match | Several | None:
        """Find one pair, or take what the user chose for it in this very text.

        Of several places that are the same, the one that its writer had read is meant.
        """
        choice = self._it.answer(key, lines)
        if choice is not None:
            return Match(choice.first_row, choice.last_row, "exact", choice.new or ())
        if (lines, pair) not in self._found:
            self._found[lines, pair] = _find(lines, pair, self._language)
        one = self._found[lines, pair]
        if isinstance(one, Several) and 1 < len(one.places) < match.MAX_PLACES:
            near = [each for each in one.places if _is_attached(self._it.attached, lines, each)]
            return near[0] if len(near) == 1 else one
        return one

    def refuse_several(
        self, key: str, lines: Lines, pair: Pair, one: Match | Several | None
    ) -> None:
        """Raise `Ambiguous` where the place of a pair is not certain."""
        it = self._it
        if it.answer(key, lines) is not None:
            return
        if isinstance(one, Match) and not _agrees(lines, pair, one):
            one = Several((one,), "the line numbers say that it is elsewhere")
        if isinstance(one, Match) and not _may_be_what_was_read(it.attached, lines, pair, one):
            one = Several((one,), ELSEWHERE)
        if isinstance(one, Several):
            raise Ambiguous(
                key,
                f"Where does this go in {it.name}? {one.why[:1].upper()}{one.why[1:]}",
                tuple(
                    it.choice(lines, (each.first_row, each.last_row), each.new, one.why)
                    for each in one.places
                ),
            )


def _is_attached(attached: Sequence[Seen], lines: Lines, place: Match) -> bool:
    """Return whether a place is in rows that were attached, and are still as they were."""
    return any(
        each.first_row <= place.first_row
        and place.last_row <= each.first_row + len(each.lines)
        and lines[each.first_row : each.first_row + len(each.lines)] == each.lines
        for each in attached
    )


def _may_be_what_was_read(attached: Sequence[Seen], lines: Lines, pair: Pair, place: Match) -> bool:
    """Return whether a place is in attached rows, or has a line beside it that it had there.

    Where what is quoted was not attached nobody can tell, and it may.
    """
    wanted = _filled(pair.old)
    if not wanted or _is_attached(attached, lines, place):
        return True
    above, below = _filled(lines[: place.first_row])[-1:], _filled(lines[place.last_row :])[:1]
    is_known = False
    for each in attached:
        texts, count = _filled(each.lines), len(wanted)
        for at in range(len(texts) - count + 1):
            if texts[at : at + count] == wanted:
                is_known = True
                beside = texts[max(at - 1, 0) : at], texts[at + count : at + count + 1]
                if beside == ([], []) or (beside[0] and beside[0] == above):
                    return True
                if beside[1] and beside[1] == below:
                    return True
    return not is_known


def _filled(lines: Sequence[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip()]


def _moved(one: Match | Several | None, base_rows: Sequence[int]) -> Match | None:
    """Return where a place of the first text is by now; None where its lines were changed."""
    if not isinstance(one, Match):
        return None
    wanted = [*range(one.first_row, one.last_row)] or [one.first_row]
    if wanted[0] not in base_rows:
        return None
    first = base_rows.index(wanted[0])
    if base_rows[first : first + len(wanted)] != wanted:
        return None
    return replace(one, first_row=first, last_row=first + one.last_row - one.first_row)


def _find(lines: Lines, pair: Pair, language: str) -> Match | Several | None:
    """Find one pair; what a diff names above it tells it from others like it."""
    if not any(line.strip() for line in pair.old):
        return _nowhere(lines, pair)
    found = match.find(lines, pair.old, pair.new)
    if pair.unmarked and not (isinstance(found, Match) and found.tier in {"exact", "trailing"}):
        other = match.find(lines, *pair.unmarked)
        if isinstance(other, Match) and other.tier in {"exact", "trailing"}:
            found = other
    if isinstance(found, Several) and len(found.places) > 1 and pair.scope:
        rows = _scope(lines, language, pair.scope)
        inner = [
            one
            for one in found.places
            if rows and rows[0] <= one.first_row and one.last_row <= rows[1]
        ]
        return inner[0] if len(inner) == 1 else found
    return found


def _scope(lines: Sequence[str], language: str, scope: str) -> tuple[int, int] | None:
    """Return the rows of what a diff names above its lines; None where that is not one thing."""
    first, last = 0, len(lines)
    for text in filter(None, map(str.strip, scope.split("\n"))):
        known = [
            one
            for one in symbols.all_of(lines[first:last], language)
            if any(
                lines[first + row].strip() == text for row in range(one.own_first, one.head_last)
            )
        ]
        if len(known) == 1:
            first, last = first + known[0].first, first + known[0].last
            continue
        rows = [row for row in range(first, last) if lines[row].strip() == text]
        if len(rows) != 1 or known:
            return None
        first = rows[0]
    return first, last


def _nowhere(lines: Lines, pair: Pair) -> Match | Several | None:
    """Match lines that come with nothing that is there."""
    if not any(line.strip() for line in lines):
        return Match(0, len(lines), "exact", pair.new)
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    new = lines[end:] + pair.new if lines[end:] else ("", *pair.new)
    if pair.is_last:
        return Match(len(lines), len(lines), "exact", pair.new)
    return Several((Match(end, len(lines), "exact", new),), "nothing says where; it ends here")


def _order(found: list[Match | Several | None]) -> None:
    """Tell places that are several apart by those before and behind, which a diff has in order."""
    for at, one in enumerate(found):
        if not isinstance(one, Several) or not 1 < len(one.places) < match.MAX_PLACES:
            continue
        low = max((p.last_row for p in found[:at] if isinstance(p, Match)), default=0)
        high = min((p.first_row for p in found[at + 1 :] if isinstance(p, Match)), default=1 << 60)
        inside = [p for p in one.places if low <= p.first_row and p.last_row <= high]
        if len(inside) == 1 and (low > 0 or high < 1 << 60):
            found[at] = inside[0]


def _all_at_once(lines: Lines, found: Sequence[Match | Several | None]) -> Lines | None:
    """Return the text where all places are sure, and none touches another."""
    places = [one for one in found if isinstance(one, Match)]
    if len(places) != len(found):
        return None
    places.sort(key=lambda one: (one.first_row, one.last_row))
    result: list[str] = []
    row = 0
    for one in places:
        if one.first_row < row:
            return None
        result += lines[row : one.first_row]
        result += one.new
        row = one.last_row
    return (*result, *lines[row:])


def _agrees(lines: Lines, pair: Pair, place: Match) -> bool:
    """Return whether nothing is where a diff's number says that looks like it, and is not it."""
    if pair.row < 0 or pair.row == place.first_row:
        return True
    low = max(pair.row - NEAR_ROWS, 0)
    high = pair.row + len(pair.old) + NEAR_ROWS
    if low < place.last_row and place.first_row < high:
        return True
    near = best(lines[low:high], pair.old)
    return not near or near[0].share < match.MIN_SHARE


def _is_there(lines: Lines, new: Lines) -> bool:
    filled = _filled(new)
    if sum(sum(map(str.isalnum, line)) for line in filled) < MIN_LETTERS:
        return False
    rows = _filled(lines)
    count = len(filled)
    return any(rows[at : at + count] == filled for at in range(len(rows) - count + 1))


def _missing(it: Target, pair: Pair) -> str:
    first = next((line.strip() for line in pair.old if line.strip()), "")
    return f"What it changes is not in {it.name}, or not as it is quoted: {first[:80]}"


def _is_blob(blob: str, lines: Lines) -> bool:
    """Return whether git would name a text so."""
    data = ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")
    name = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    return len(blob) >= 7 and name.startswith(blob)


def _by_rows(all_pairs: Sequence[Pair], lines: Lines) -> Lines | None:
    """Do a diff by its numbers, where git's name says that it is of this very text."""
    result: list[str] = []
    row = 0
    for pair in all_pairs:
        first = pair.row + (0 if pair.old else 1)
        if pair.row < 0 or first < row or lines[first : first + len(pair.old)] != pair.old:
            return None
        result += lines[row:first]
        result += pair.new
        row = first + len(pair.old)
    return (*result, *lines[row:])


# Code in a fence.


def place_fence(it: Target) -> Lines:
    """Return a text with a piece of code taken over.

    Raises:
        Ambiguous: its place is not certain.
        CannotApply: it cannot be placed at all.
    """
    lines, new, language = it.lines, _with_heading(it), it.language
    choice = it.answer(it.key, lines)
    if choice is not None:
        return lines[: choice.first_row] + (choice.new or ()) + lines[choice.last_row :]
    is_elided = bool(elision.markers(new, language, lines))
    if not any(line.strip() for line in lines):
        if is_elided:
            raise CannotApply(f"{it.name} is empty, and the code leaves something out")
        return new
    if not any(line.strip() for line in new):
        raise CannotApply("The code is empty")
    if is_elided:
        merged = splice.merge_elided(lines, new, language)
        if merged is None or merged == lines:
            raise LeavesOut(new)
        return merged
    readings = splice.readings(lines, new, language)
    certain = {one.lines for one in readings if one.is_sure}
    if len(certain) == 1:
        return certain.pop()
    if not readings:
        raise CannotApply(f"No place for this code is found in {it.name}")
    choices = tuple(_reading_choice(it, one) for one in readings)
    raise Ambiguous(it.key, f"Where does this go in {it.name}?", choices)


def _with_heading(it: Target) -> Lines:
    """Return the lines of a fence, with a comment that is its path where the file begins so."""
    new, lines, heading = it.block.lines, it.lines, it.block.heading
    if not heading or not lines or lines[0].strip() != heading.strip():
        return new
    if not new or lines[:2] != new[:2]:
        new = (heading, *new)
    if len(lines) > 1 and not lines[1].strip() and new[1:2] != ("",):
        new = (new[0], "", *new[1:])
    return new


def _reading_choice(it: Target, one: Reading) -> Choice:
    changes = diff.changes(it.lines, one.lines)
    if not changes:
        return it.choice(it.lines, (0, 0), (), one.why)
    first, last = changes[0].first_row, changes[-1].last_row
    new = one.lines[first : len(one.lines) - (len(it.lines) - last)]
    return it.choice(it.lines, (first, last), new, one.why)
