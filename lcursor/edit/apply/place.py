"""Apply one block to one text, or say why its place is not certain. Pure; any thread.

    place_pairs(Target("0", block, "a.py", ("a = 1", "b = 2")))  # SEARCH b = 2, REPLACE b = 3
    -> ("a = 1", "b = 3")

A quoted change goes to its lines; a definition replaces the one of its name; code with elision
markers is merged; what is mostly the file's text is the whole file. In all other cases the user
chooses.
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
from lcursor.edit.apply.similar import align
from lcursor.edit.apply.blocks import Block, Pair
from lcursor.edit.apply.match import Match, Several
from lcursor.edit.apply.whole_file import Reading
from lcursor.edit.lines import contains_run, has_text, stripped, trim
from lcursor.edit.records import Lines, digest

MAX_SHOWN: Final = 40
NEAR_ROWS: Final = 3
MIN_LETTERS: Final = 12
"""With fewer letters, a result that exists already may have been there before."""
ELSEWHERE: Final = "the lines that the model had read have changed, and this may be another place"
LEAVES_OUT: Final = (
    "The code leaves something out, and it is not clear what. Ask for all of the code, or for an "
    "edit of that place"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """A possible meaning, for the user to choose."""

    path: str
    first_row: int
    last_row: int
    lines: Lines
    """The result, or the present lines."""
    why: str
    new: Lines | None = None
    """What replaces the rows; None if only the file is chosen."""
    base: str = ""
    """Digest of the text that the rows refer to."""


class Ambiguous(Exception):
    """A block has several possible meanings: the user chooses."""

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
    """A block, and the text that it is applied to."""

    key: str
    """Of the block, for questions."""
    block: Block
    path: str
    lines: Lines
    answers: Mapping[str, Choice] = field(default_factory=dict)
    """The user's answers, by key."""
    attached: Sequence[Seen] = ()
    """Rows of the file that the author of the block had read, the newest first."""

    @property
    def name(self) -> str:
        """The file's name in the block."""
        return self.block.path or self.path

    @property
    def language(self) -> str:
        """The language of the file, else of the fence."""
        return language_of(self.path, self.lines, self.block.language)

    def answer(self, key: str, lines: Lines) -> Choice | None:
        """Return the user's answer about a text."""
        choice = self.answers.get(key)
        return choice if choice is not None and choice.base == digest(lines) else None

    def choice(self, lines: Lines, rows: tuple[int, int], new: Lines, why: str) -> Choice:
        """Return a choice to offer."""
        return Choice(self.path, *rows, new[:MAX_SHOWN], why, new, digest(lines))


def language_of(path: str, lines: Sequence[str], named: str = "") -> str:
    """Return a file's language by its name, else the given one."""
    found = languages.detect(path, lines[0] if lines else "")
    return named if found == languages.TEXT and named else found


def create(block: Block, path: str) -> Lines:
    """Return the lines of a new file.

    Raises:
        CannotApply: the block changes lines of a file that does not exist.
    """
    if elision.markers(block.lines, language_of(path, block.lines, block.language)):
        raise CannotApply("The new file leaves something out")
    if block.kind == "create":
        return block.lines
    if block.form == "fence" and not block.is_elided:
        lines = block.lines
        return (block.heading, *lines) if block.heading.startswith("#!") else lines
    if len(block.pairs) == 1 and not any(map(has_text, block.pairs[0].old)):
        return block.pairs[0].new
    raise CannotApply(f"There is no file {block.path or path}")


# Quoted changes.


def place_pairs(it: Target) -> Lines:
    """Return a text with all quoted changes of a block.

    Raises:
        Ambiguous: a place is not certain.
        CannotApply: quoted lines are missing.
    """
    pairs, lines = it.block.pairs, it.lines
    known = {*stripped(lines)}
    new = tuple(line for pair in pairs for line in pair.new)
    if any(elision.is_marker(line) and line.strip() not in known for line in new):
        raise LeavesOut(new)
    if it.block.blob and _has_blob(it.block.blob, lines):
        exact = _by_line_numbers(pairs, lines)
        if exact is not None:
            return exact
    is_ordered = it.block.form == "patch" or all(pair.row >= 0 for pair in pairs)
    finder = _Finder(it)
    keys = [f"{it.key}.{number}" for number in range(len(pairs))]
    found = [finder.find(key, lines, pair) for key, pair in zip(keys, pairs, strict=True)]
    if is_ordered:
        _choose_by_order(found)
    for key, pair, one in zip(keys, pairs, found, strict=True):
        finder.require_certain(key, lines, pair, one)
    done = _all_at_once(lines, found)
    if done is not None:
        return done
    # One after the other, as one may quote lines that another adds or changes.
    base_rows = [*range(len(lines) + 1)]  # the original row of each line, -1 for new ones
    row = 0
    for key, pair, before in zip(keys, pairs, found, strict=True):
        now: Match | Several | None = _moved(before, base_rows)
        if now is None:
            key = f"{key}+"  # a question about this text differs from one about the first
            now = finder.find(key, lines, pair)
            if is_ordered and isinstance(now, Several):
                after = [place for place in now.places if place.first_row >= row]
                now = after[0] if len(after) == 1 and row else now
            finder.require_certain(key, lines, pair, now)
        if isinstance(now, Match):
            for change in reversed(diff.changes(lines[now.first_row : now.last_row], now.new)):
                first = now.first_row + change.first_row
                base_rows[first : first + len(change.old)] = [-1] * len(change.new)
            lines = lines[: now.first_row] + now.new + lines[now.last_row :]
            row = now.first_row + len(now.new)
        elif not _is_applied(lines, pair.new):
            quoted = next(iter(stripped(pair.old)), "")[:80]
            raise CannotApply(
                f"What it changes is not in {it.name}, or not as it is quoted: {quoted}"
            )
    return lines


class _Finder:
    """Finds the places of the pairs of a block, each only once in the same text."""

    def __init__(self, it: Target) -> None:
        self._it, self._language = it, language_of(it.path, it.lines)
        self._found: dict[tuple[Lines, Pair], Match | Several | None] = {}

    def find(self, key: str, lines: Lines, pair: Pair) -> Match | Several | None:
        """Find a pair; of several equal places, choose the user's answer or the attached one."""
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

    def require_certain(
        self, key: str, lines: Lines, pair: Pair, one: Match | Several | None
    ) -> None:
        """Raise `Ambiguous` if the place of a pair is not certain."""
        it = self._it
        if it.answer(key, lines) is not None:
            return
        if isinstance(one, Match) and not _agrees_with_row(lines, pair, one):
            one = Several((one,), "the line numbers say that it is elsewhere")
        if isinstance(one, Match) and not _may_be_attached(it.attached, lines, pair, one):
            one = Several((one,), ELSEWHERE)
        if isinstance(one, Several):
            text = f"Where does this go in {it.name}? {one.why[:1].upper()}{one.why[1:]}"
            rows = ((each, (each.first_row, each.last_row)) for each in one.places)
            choices = (it.choice(lines, span, each.new, one.why) for each, span in rows)
            raise Ambiguous(key, text, tuple(choices))


def _is_attached(attached: Sequence[Seen], lines: Lines, place: Match) -> bool:
    """Return whether a place is in attached rows that are unchanged."""
    return any(
        each.first_row <= place.first_row
        and place.last_row <= each.first_row + len(each.lines)
        and lines[each.first_row : each.first_row + len(each.lines)] == each.lines
        for each in attached
    )


def _may_be_attached(attached: Sequence[Seen], lines: Lines, pair: Pair, place: Match) -> bool:
    """Return whether a place is in attached rows, or still next to a line that it had there.

    True as well if the quoted lines were not attached.
    """
    wanted = stripped(pair.old)
    if not wanted or _is_attached(attached, lines, place):
        return True
    above, below = stripped(lines[: place.first_row])[-1:], stripped(lines[place.last_row :])[:1]
    is_known = False
    for each in attached:
        texts, count = stripped(each.lines), len(wanted)
        for at in range(len(texts) - count + 1):
            if texts[at : at + count] == wanted:
                is_known = True
                before, after = texts[max(at - 1, 0) : at], texts[at + count : at + count + 1]
                is_alone = not before and not after
                if is_alone or (before and before == above) or (after and after == below):
                    return True
    return not is_known


def _moved(one: Match | Several | None, base_rows: Sequence[int]) -> Match | None:
    """Return where a place of the first text is now; None if its lines were changed."""
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
    """Find a pair; the heading of a diff hunk decides between several places."""
    if not any(map(has_text, pair.old)):
        return _place_without_context(lines, pair)
    found = match.find(lines, pair.old, pair.new)
    if pair.unmarked and not (isinstance(found, Match) and found.tier == "exact"):
        other = match.find(lines, *pair.unmarked)
        if isinstance(other, Match) and other.tier == "exact":
            found = other
    if isinstance(found, Several) and len(found.places) > 1 and pair.scope:
        rows = _scope_rows(lines, language, pair.scope) or (0, -1)
        inner = [one for one in found.places
                 if rows[0] <= one.first_row and one.last_row <= rows[1]]  # fmt: skip
        return inner[0] if len(inner) == 1 else found
    return found


def _scope_rows(lines: Sequence[str], language: str, scope: str) -> tuple[int, int] | None:
    """Return the rows of what the heading of a hunk names; None if that is not unique."""
    first, last = 0, len(lines)
    for text in filter(None, map(str.strip, scope.split("\n"))):
        known = [
            one
            for one in symbols.all_of(lines[first:last], language)
            if text in stripped(lines[first + one.own_first : first + one.head_last])
        ]
        if len(known) == 1:
            first, last = first + known[0].first, first + known[0].last
            continue
        rows = [row for row in range(first, last) if lines[row].strip() == text]
        if len(rows) != 1 or known:
            return None
        first = rows[0]
    return first, last


def _place_without_context(lines: Lines, pair: Pair) -> Match | Several:
    """Return the place of new lines that come without present ones."""
    if not any(map(has_text, lines)):
        return Match(0, len(lines), "exact", pair.new)
    if pair.is_last:
        return Match(len(lines), len(lines), "exact", pair.new)
    end = trim(lines, 0, len(lines))[1]
    new = lines[end:] + pair.new if lines[end:] else ("", *pair.new)
    return Several((Match(end, len(lines), "exact", new),), "nothing says where; it ends here")


def _choose_by_order(found: list[Match | Several | None]) -> None:
    """Choose among several places by those before and after, which a diff has in order."""
    for at, one in enumerate(found):
        if not isinstance(one, Several) or not 1 < len(one.places) < match.MAX_PLACES:
            continue
        low = max((p.last_row for p in found[:at] if isinstance(p, Match)), default=0)
        high = min((p.first_row for p in found[at + 1 :] if isinstance(p, Match)), default=1 << 60)
        inside = [p for p in one.places if low <= p.first_row and p.last_row <= high]
        if len(inside) == 1 and (low > 0 or high < 1 << 60):
            found[at] = inside[0]


def _all_at_once(lines: Lines, found: Sequence[Match | Several | None]) -> Lines | None:
    """Return the text with all changes if all places are certain and none overlaps another."""
    places = [one for one in found if isinstance(one, Match)]
    if len(places) != len(found):
        return None
    places.sort(key=lambda one: (one.first_row, one.last_row))
    return splice.put(lines, [(one.first_row, one.last_row, one.new) for one in places])


def _agrees_with_row(lines: Lines, pair: Pair, place: Match) -> bool:
    """Return whether a place is near a diff's line number, or nothing there resembles it."""
    if pair.row < 0 or pair.row == place.first_row:
        return True
    low = max(pair.row - NEAR_ROWS, 0)
    high = pair.row + len(pair.old) + NEAR_ROWS
    if low < place.last_row and place.first_row < high:
        return True
    near = align(lines[low:high], pair.old)
    return not near or near[0].share < match.MIN_SHARE


def _is_applied(lines: Lines, new: Lines) -> bool:
    """Return whether new lines exist already."""
    wanted = stripped(new)
    letters = sum(sum(map(str.isalnum, line)) for line in wanted)
    return letters >= MIN_LETTERS and contains_run(stripped(lines), wanted)


def _has_blob(blob: str, lines: Lines) -> bool:
    """Return whether git gives a text this name, or one that begins so."""
    data = ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")
    name = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    return len(blob) >= 7 and name.startswith(blob)


def _by_line_numbers(pairs: Sequence[Pair], lines: Lines) -> Lines | None:
    """Apply a diff by its line numbers, after git's name has shown that it is of this text."""
    pieces = []
    for pair in pairs:
        first = pair.row + (0 if pair.old else 1)
        if pair.row < 0 or lines[first : first + len(pair.old)] != pair.old:
            return None
        pieces.append((first, first + len(pair.old), pair.new))
    return splice.put(lines, pieces)


# Code in a fence.


def place_fence(it: Target) -> Lines:
    """Return a text with the code of a fence.

    Raises:
        Ambiguous: its place is not certain.
        CannotApply: it has no place at all.
    """
    lines, new, language = it.lines, _with_heading(it), it.language
    choice = it.answer(it.key, lines)
    if choice is not None:
        return lines[: choice.first_row] + (choice.new or ()) + lines[choice.last_row :]
    is_elided = bool(elision.markers(new, language, lines))
    if not any(map(has_text, lines)):
        if is_elided:
            raise CannotApply(f"{it.name} is empty, and the code leaves something out")
        return new
    if not any(map(has_text, new)):
        raise CannotApply("The code is empty")
    if is_elided:
        merged = splice.merge_elided(lines, new, language)
        if merged is None or merged == lines:
            raise LeavesOut(new)
        return merged
    readings = splice.readings(lines, new, language)
    certain = {one.lines for one in readings if one.is_certain}
    if len(certain) == 1:
        return certain.pop()
    if not readings:
        raise CannotApply(f"No place for this code is found in {it.name}")
    choices = tuple(_choice_of(it, one) for one in readings)
    raise Ambiguous(it.key, f"Where does this go in {it.name}?", choices)


def _with_heading(it: Target) -> Lines:
    """Return the code of a fence, with the comment that names its path if the file has that."""
    new, lines, heading = it.block.lines, it.lines, it.block.heading
    if not heading or not lines or lines[0].strip() != heading.strip():
        return new
    if not new or lines[:2] != new[:2]:
        new = (heading, *new)
    if len(lines) > 1 and not has_text(lines[1]) and new[1:2] != ("",):
        new = (new[0], "", *new[1:])
    return new


def _choice_of(it: Target, one: Reading) -> Choice:
    changes = diff.changes(it.lines, one.lines)
    if not changes:
        return it.choice(it.lines, (0, 0), (), one.why)
    first, last = changes[0].first_row, changes[-1].last_row
    new = one.lines[first : len(one.lines) - (len(it.lines) - last)]
    return it.choice(it.lines, (first, last), new, one.why)
