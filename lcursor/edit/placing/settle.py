"""What one block makes of one text, or why that is not sure. Pure; any thread.

A change of what is there goes where it is found; a definition takes the place of the one of its
name; code with omissions is merged; what is mostly the file's text is the file. All else is asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from lcursor.code import languages
from lcursor.context.items import Seen
from lcursor.edit import diff
from lcursor.edit.placing import lazy, locate, parts, seen
from lcursor.edit.placing.locate import Place, Several
from lcursor.edit.placing.pieces import Block, Pair
from lcursor.edit.placing.wholes import Reading
from lcursor.edit.records import Lines, digest

MOST_SHOWN: Final = 40
NEAR: Final = 3
ELSEWHERE: Final = "what was read is another by now, and this may be another place"
LEAST_LETTERS: Final = 12
"""A result with fewer letters that is there says nothing about who made it."""


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
    of: str = ""
    """Digest of the text that the rows are of."""


class Doubt(Exception):
    """It could be meant in several ways: the user chooses."""

    def __init__(self, key: str, text: str, choices: tuple[Choice, ...]) -> None:
        super().__init__(text)
        self.key, self.text, self.choices = key, text, choices


class Refusal(Exception):
    """It cannot be done; the text says why."""


def language_of(path: str, lines: Sequence[str], named: str = "") -> str:
    """Return a file's language, by its name; what a fence says counts where that is silent."""
    found = languages.detect(path, lines[0] if lines else "")
    return named if found == languages.TEXT and named else found


def created(block: Block, path: str) -> Lines:
    """Return the lines of a new file.

    Raises:
        Refusal: the block changes what is not there.
    """
    if lazy.is_lazy(block.lines, language_of(path, block.lines, block.language)):
        raise Refusal("The new file leaves something out")
    if block.kind == "create":
        return block.lines
    if block.form == "fence" and not block.is_lazy:
        lines = block.lines
        return (block.heading, *lines) if block.heading.startswith("#!") else lines
    if len(block.pairs) == 1 and not any(line.strip() for line in block.pairs[0].old):
        return block.pairs[0].new
    raise Refusal(f"There is no file {block.path or path}")


def pairs(
    key: str,
    block: Block,
    path: str,
    lines: Lines,
    known: Mapping[str, Choice],
    read: Sequence[Seen] = (),
) -> Lines:
    """Return a text with all that a block spells out done to it.

    Args:
        key: of the block, for questions.
        block: what it spells out.
        path: of the file.
        lines: of the text.
        known: what the user chose before.
        read: what the block's writer had read of the file, where that is known.

    Raises:
        Doubt: a place is not sure.
        Refusal: what it changes is not there.
    """
    language = language_of(path, lines)
    if any(_leaves_out(pair, lines) for pair in block.pairs):
        raise Refusal("What it puts in leaves something out")
    if block.blob and _is_blob(block.blob, lines):
        exact = _by_rows(block.pairs, lines)
        if exact is not None:
            return exact
    is_ordered = block.form == "patch" or all(pair.row >= 0 for pair in block.pairs)
    todo = [
        (f"{key}.{number}.{piece}", pair)
        for number, whole in enumerate(block.pairs)
        for piece, pair in enumerate(_split(whole, lines))
    ]
    find = _Finder(language)
    found = [_found(lines, name, pair, find, known, read) for name, pair in todo]
    if is_ordered:
        _order(found)
    for (name, pair), one in zip(todo, found, strict=True):
        _refuse_doubt(name, pair, one, block, path, lines, find, known, read)
    done = _all_at_once(lines, found)
    if done is not None:
        return done
    # In their order, as one may quote lines that another adds or changes.
    base_rows = [*range(len(lines) + 1)]  # which row of the text each line was; -1 where it is new
    row = 0
    for (name, pair), before in zip(todo, found, strict=True):
        one = _moved(before, base_rows)
        if one is None:
            name = f"{name}+"  # a question about this text is another than one about the first
            one = _found(lines, name, pair, find, known, read)
            if is_ordered and isinstance(one, Several):
                after = [place for place in one.places if place.first_row >= row]
                one = after[0] if len(after) == 1 and row else one
            _refuse_doubt(name, pair, one, block, path, lines, find, known, read)
        if isinstance(one, Place):
            for change in reversed(diff.changes(lines[one.first_row : one.last_row], one.new)):
                first = one.first_row + change.first_row
                base_rows[first : first + len(change.old)] = [-1] * len(change.new)
            lines = lines[: one.first_row] + one.new + lines[one.last_row :]
            row = one.first_row + len(one.new)
        elif not _is_there(lines, pair.new):
            raise Refusal(_missing(block, path, pair))
    return lines


class _Finder:
    """Locates pairs, each only once in the same text.

    Args:
        language: of the texts.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._found: dict[tuple[Lines, Pair], Place | Several | None] = {}

    def find(self, lines: Lines, pair: Pair) -> Place | Several | None:
        """Return where a pair belongs in a text."""
        key = (lines, pair)
        if key not in self._found:
            self._found[key] = _find(lines, pair, self._language)
        return self._found[key]

    def rows(self, lines: Lines, pair: Pair) -> list[tuple[int, int]]:
        """Return the rows of all places where a pair may belong."""
        one = self.find(lines, pair)
        places = (one,) if isinstance(one, Place) else one.places if one is not None else ()
        return [(each.first_row, each.last_row) for each in places]


def _moved(one: Place | Several | None, base_rows: Sequence[int]) -> Place | None:
    """Return where a place of the first text is by now; None where its lines were changed."""
    if not isinstance(one, Place):
        return None
    wanted = [*range(one.first_row, one.last_row)] or [one.first_row]
    if wanted[0] not in base_rows:
        return None
    first = base_rows.index(wanted[0])
    if base_rows[first : first + len(wanted)] != wanted:
        return None
    return replace(one, first_row=first, last_row=first + one.last_row - one.first_row)


def _found(
    lines: Lines,
    name: str,
    pair: Pair,
    find: _Finder,
    known: Mapping[str, Choice],
    read: Sequence[Seen],
) -> Place | Several | None:
    """Find one pair, or take what the user chose for it in this very text.

    Of several places that are the same, the one that the writer had read is meant.
    """
    choice = known.get(name)
    if choice is not None and choice.of == digest(lines):
        return Place(choice.first_row, choice.last_row, "exact", choice.new or ())
    one = find.find(lines, pair)
    if read and isinstance(one, Several) and len(one.places) > 1:
        same = {tuple(map(str.strip, lines[each.first_row : each.last_row])) for each in one.places}
        rows = [(each.first_row, each.last_row) for each in one.places]
        if len(same) == 1 and len(rows) < locate.MOST_PLACES:
            there = seen.one_of(lines, rows, read, lambda piece: find.rows(piece, pair))
            return one if there is None else one.places[rows.index(there)]
    return one


def _refuse_doubt(
    name: str,
    pair: Pair,
    one: Place | Several | None,
    block: Block,
    path: str,
    lines: Lines,
    find: _Finder,
    known: Mapping[str, Choice],
    read: Sequence[Seen],
) -> None:
    """Raise `Doubt` where the place of a pair is not sure."""
    choice = known.get(name)
    if choice is not None and choice.of == digest(lines):
        return
    if isinstance(one, Place) and not _agrees(lines, pair, one):
        one = Several((one,), "the line numbers say that it is elsewhere")
    if isinstance(one, Place) and read and any(line.strip() for line in pair.old):
        rows = (one.first_row, one.last_row)
        if not seen.is_meant(lines, rows, read, lambda piece: find.rows(piece, pair)):
            one = Several((one,), ELSEWHERE)
    if isinstance(one, Several):
        raise Doubt(
            name,
            f"Where does this go in {block.path or path}? {one.why[:1].upper()}{one.why[1:]}",
            tuple(_choice(path, lines, place, one.why) for place in one.places),
        )


def _find(lines: Lines, pair: Pair, language: str) -> Place | Several | None:
    """Find one pair; what a diff names above it tells it from others like it."""
    if not any(line.strip() for line in pair.old):
        return _nowhere(lines, pair)
    found = locate.find(lines, pair.old, language, pair.new)
    if pair.unmarked and not (isinstance(found, Place) and found.rung in {"exact", "trailing"}):
        other = locate.find(lines, pair.unmarked[0], language, pair.unmarked[1])
        if isinstance(other, Place) and other.rung in {"exact", "trailing"}:
            found = other
    if isinstance(found, Several) and pair.scope:
        inside = parts.scoped(lines, language, pair.scope)
        if inside is not None:
            within = [
                one
                for one in found.places
                if inside[0] <= one.first_row and one.last_row <= inside[1]
            ]
            if len(within) == 1 and len(found.places) > 1:
                return within[0]
    return found


def _nowhere(lines: Lines, pair: Pair) -> Place | Several | None:
    """Place lines that come with nothing that is there."""
    if not any(line.strip() for line in lines):
        return Place(0, len(lines), "exact", pair.new)
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    new = lines[end:] + pair.new if lines[end:] else ("", *pair.new)
    if pair.is_last:
        return Place(len(lines), len(lines), "exact", pair.new)
    return Several((Place(end, len(lines), "exact", new),), "nothing says where; it ends here")


def _order(found: list[Place | Several | None]) -> None:
    """Tell places that are several apart by those before and behind, which a diff has in order."""
    for at, one in enumerate(found):
        if not isinstance(one, Several) or not 1 < len(one.places) < locate.MOST_PLACES:
            continue
        low = max((p.last_row for p in found[:at] if isinstance(p, Place)), default=0)
        high = min((p.first_row for p in found[at + 1 :] if isinstance(p, Place)), default=1 << 60)
        inside = [p for p in one.places if low <= p.first_row and p.last_row <= high]
        if len(inside) == 1 and (low > 0 or high < 1 << 60):
            found[at] = inside[0]


def _all_at_once(lines: Lines, found: Sequence[Place | Several | None]) -> Lines | None:
    """Return the text where all places are sure, and none touches another."""
    places = [one for one in found if isinstance(one, Place)]
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


def _agrees(lines: Lines, pair: Pair, place: Place | Several | None) -> bool:
    """Return whether nothing is where a diff's number says that looks like it, and is not it."""
    if not isinstance(place, Place) or pair.row < 0 or pair.row == place.first_row:
        return True
    low = max(pair.row - NEAR, 0)
    high = pair.row + len(pair.old) + NEAR
    if low < place.last_row and place.first_row < high:
        return True
    from lcursor.edit.placing.align import best

    near = best(lines[low:high], pair.old)
    return not near or near[0].share < locate.LEAST_SHARE


def fence(
    key: str,
    block: Block,
    path: str,
    lines: Lines,
    known: Mapping[str, Choice],
    read: Sequence[Seen] = (),
) -> Lines:
    """Return a text with a piece of code taken over.

    Args:
        key: of the block, for questions.
        block: the code.
        path: of the file.
        lines: of the text.
        known: what the user chose before.
        read: what the block's writer had read of the file, where that is known.

    Raises:
        Doubt: its place is not sure.
        Refusal: it cannot be placed at all.
    """
    choice = known.get(key)
    if choice is not None and choice.of == digest(lines):
        return lines[: choice.first_row] + (choice.new or ()) + lines[choice.last_row :]
    new = block.lines
    if block.heading and lines and lines[0].strip() == block.heading.strip():
        new = (block.heading, *new) if not new or lines[:2] != new[:2] else new
        if len(lines) > 1 and not lines[1].strip() and new[1:2] != ("",):
            new = (new[0], "", *new[1:])
    language = language_of(path, lines, block.language)
    if not any(line.strip() for line in lines):
        if lazy.is_lazy(new, language, lines):
            raise Refusal(f"{block.path or path} is empty, and the code leaves something out")
        return new
    if not any(line.strip() for line in new):
        raise Refusal("The code is empty")
    if lazy.is_lazy(new, language, lines):
        merged = parts.merged(lines, new, language)
        if merged is not None:
            _refuse_other(key, block, path, lines, Reading(merged, "", True), language, read)
            return merged
        merged = parts.merged(lines, new, language, is_bold=True)
        if merged is None:
            raise Refusal("The code leaves something out, and it is not clear what")
        guess = Reading(merged, "new lines beside what is left out", False)
        text = f"Is this what is meant in {block.path or path}?"
        raise Doubt(key, text, (_reading_choice(path, lines, guess),))
    readings = parts.readings(lines, new, language)
    sure = [one for one in readings if one.is_sure]
    texts = {one.lines for one in sure}
    if len(texts) == 1:
        _refuse_other(key, block, path, lines, sure[0], language, read)
        return sure[0].lines
    if not readings:
        raise Refusal(f"No place for this code is found in {block.path or path}")
    raise Doubt(
        key,
        f"Where does this go in {block.path or path}?",
        tuple(_reading_choice(path, lines, one) for one in readings),
    )


def _refuse_other(
    key: str,
    block: Block,
    path: str,
    lines: Lines,
    one: Reading,
    language: str,
    read: Sequence[Seen],
) -> None:
    """Raise `Doubt` where a piece of code would replace what its writer had not read so."""
    rows = _hull(lines, one.lines)
    if not read or rows is None:
        return

    def find(piece: Lines) -> list[tuple[int, int]]:
        if lazy.is_lazy(block.lines, language, piece):
            made = [parts.merged(piece, block.lines, language)]
        else:
            found = parts.readings(piece, block.lines, language)
            made = [each.lines for each in found if each.is_sure]
        hulls = [_hull(piece, each) for each in made if each is not None]
        return list({hull for hull in hulls if hull is not None})

    if not seen.is_meant(lines, rows, read, find, is_whole=True):
        text = f"Where does this go in {block.path or path}? {ELSEWHERE[:1].upper()}{ELSEWHERE[1:]}"
        raise Doubt(key, text, (_reading_choice(path, lines, replace(one, why=ELSEWHERE)),))


def _hull(old: Lines, new: Lines) -> tuple[int, int] | None:
    """Return the rows from the first that changes to behind the last; None where none does."""
    changes = diff.changes(old, new)
    return (changes[0].first_row, changes[-1].last_row) if changes else None


def _reading_choice(path: str, lines: Lines, one: Reading) -> Choice:
    changes = diff.changes(lines, one.lines)
    if not changes:
        return Choice(path, 0, 0, (), one.why, (), digest(lines))
    first, last = changes[0].first_row, changes[-1].last_row
    new = one.lines[first : len(one.lines) - (len(lines) - last)]
    return Choice(path, first, last, new[:MOST_SHOWN], one.why, new, digest(lines))


def _choice(path: str, lines: Lines, place: Place, why: str) -> Choice:
    shown = place.new[:MOST_SHOWN]
    return Choice(path, place.first_row, place.last_row, shown, why, place.new, digest(lines))


def _split(pair: Pair, lines: Lines) -> list[Pair]:
    """Part a pair that leaves lines out on both sides, alike, into what is around them."""
    olds, news = _gaps(pair.old, lines), _gaps(pair.new, lines)
    if not olds or len(olds) != len(news):
        return [pair]
    found = []
    for old, new in zip(_cut(pair.old, olds), _cut(pair.new, news), strict=True):
        if any(line.strip() for line in (*old, *new)):
            found.append(Pair(old, new, pair.scope))
    return found


def _leaves_out(pair: Pair, lines: Sequence[str]) -> bool:
    """Return whether new lines stand for others that are not said."""
    gaps = _gaps(pair.new, lines)
    return bool(gaps) and len(gaps) != len(_gaps(pair.old, lines))


def _gaps(lines: Sequence[str], base: Sequence[str]) -> list[int]:
    known = {line.strip() for line in base}
    return [
        at for at, line in enumerate(lines) if lazy.is_omission(line) and line.strip() not in known
    ]


def _cut(lines: Lines, gaps: Sequence[int]) -> list[Lines]:
    edges = [-1, *gaps, len(lines)]
    return [lines[one + 1 : two] for one, two in pairwise(edges)]


def _is_there(lines: Lines, new: Lines) -> bool:
    filled = [line.strip() for line in new if line.strip()]
    if sum(sum(map(str.isalnum, line)) for line in filled) < LEAST_LETTERS:
        return False
    rows = [line.strip() for line in lines if line.strip()]
    count = len(filled)
    return any(rows[at : at + count] == filled for at in range(len(rows) - count + 1))


def _missing(block: Block, path: str, pair: Pair) -> str:
    first = next((line.strip() for line in pair.old if line.strip()), "")
    return f"What it changes is not in {block.path or path}, or not as it is quoted: {first[:80]}"


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
