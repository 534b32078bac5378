"""Apply one block to one text, or report why its position is uncertain. Pure; any thread.

    apply_pairs(Target("0", block, "a.py", ("a = 1", "b = 2")))  # SEARCH b = 2, REPLACE b = 3
    -> ("a = 1", "b = 3")

Quoted lines are replaced; a definition replaces the definition of the same name; code with elision
markers is merged; code that contains most of the file's lines is the whole file. In all other cases
the user chooses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from lcursor.changes import diff
from lcursor.changes.apply import elision, match, splice
from lcursor.changes.apply.blocks import Block, Pair
from lcursor.changes.apply.match import Match, Several
from lcursor.changes.apply.similar import align
from lcursor.changes.apply.whole_file import Reading
from lcursor.changes.lines import contains_run, has_text, stripped, trim
from lcursor.changes.records import Change, Lines, digest
from lcursor.code import languages, symbols
from lcursor.context.items import Seen

MAX_SHOWN: Final = 40
NEAR_ROWS: Final = 3
MIN_ALPHANUMERIC: Final = 12
"""With fewer letters and digits, an existing result proves nothing."""
ELSEWHERE: Final = "the lines that the model read have changed, and this may be the wrong place"
LEAVES_OUT: Final = (
    "The code is incomplete, and the missing part is unclear. Ask for the complete code, or edit "
    "that place"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """A possible interpretation, for the user to choose."""

    path: str
    first_row: int
    last_row: int
    lines: Lines
    """The result, or the existing lines."""
    why: str
    new: Lines | None = None
    """Replacement of the rows; None if only the file is chosen."""
    base: str = ""
    """Digest of the text that the rows refer to."""


class Ambiguous(Exception):
    """A block has several interpretations, from which the user chooses."""

    def __init__(self, key: str, text: str, choices: tuple[Choice, ...]) -> None:
        super().__init__(text)
        self.key, self.text, self.choices = key, text, choices


class CannotApply(Exception):
    """A block cannot be applied, for the reason in the message."""


class LeavesOut(CannotApply):
    """The code of a block is incomplete, and rules cannot complete it."""

    def __init__(self, code: Lines) -> None:
        super().__init__(LEAVES_OUT)
        self.code = code


@dataclass(frozen=True, slots=True)
class Target:
    """A block, and the text that it applies to."""

    key: str
    """Key of the block, for questions."""
    block: Block
    path: str
    lines: Lines
    answers: Mapping[str, Choice] = field(default_factory=dict)
    """The user's answers, by key."""
    attached: Sequence[Seen] = ()
    """Rows of the file that were in the model's prompt, the newest first."""

    @property
    def name(self) -> str:
        """The name of the file in the block."""
        return self.block.path or self.path

    @property
    def language(self) -> str:
        """The language of the file, or else of the fence."""
        return language_of(self.path, self.lines, self.block.language)

    def answer(self, key: str, lines: Lines) -> Choice | None:
        """Return the user's answer, if it was given for this text."""
        choice = self.answers.get(key)
        return choice if choice is not None and choice.base == digest(lines) else None

    def choice(self, lines: Lines, rows: tuple[int, int], new: Lines, why: str) -> Choice:
        """Return a choice to offer."""
        return Choice(self.path, *rows, new[:MAX_SHOWN], why, new, digest(lines))


def language_of(path: str, lines: Sequence[str], named: str = "") -> str:
    """Return a file's language by its name, or else the given one."""
    found = languages.detect(path, lines[0] if lines else "")
    return named if found == languages.TEXT and named else found


def create(block: Block, path: str) -> Lines:
    """Return the lines of a new file; raise `CannotApply` if the block changes existing lines."""
    if elision.markers(block.lines, language_of(path, block.lines, block.language)):
        raise CannotApply("The code of the new file is incomplete")
    if block.kind == "create":
        return block.lines
    if block.form == "fence":
        return block.code_for(())
    if len(block.pairs) == 1 and not any(map(has_text, block.pairs[0].old)):
        return block.pairs[0].new
    raise CannotApply(f"There is no file {block.path or path}")


# Quoted changes.


def apply_pairs(it: Target) -> Lines:
    """Return a text after the quoted changes of a block; raise `Ambiguous` or `CannotApply`."""
    pairs, lines = it.block.pairs, it.lines
    known = {*stripped(lines)}
    new = tuple(line for pair in pairs for line in pair.new)
    if any(elision.is_marker(line) and line.strip() not in known for line in new):
        raise LeavesOut(new)
    keys = [f"{it.key}.{number}" for number in range(len(pairs))]
    found = [_find(it, key, lines, pair) for key, pair in zip(keys, pairs, strict=True)]
    if it.block.form == "patch" or all(pair.row >= 0 for pair in pairs):
        _choose_by_order(found)
    matches = [_require_certain(it, key, lines, one) for key, one in zip(keys, found, strict=True)]
    changed, late = _make_changes(lines, matches)
    for number in late:  # they may quote lines that others add or change
        key, pair = f"{keys[number]}+", pairs[number]
        is_new = changed != lines
        located = _require_certain(
            it, key, changed, _find(it, key, changed, pair) if is_new else None
        )
        if located is not None:
            changed = changed[: located.first_row] + located.new + changed[located.last_row :]
        elif not _is_applied(changed, pair):
            quoted = next(iter(stripped(pair.old)), "")[:80]
            raise CannotApply(f"{it.name} does not contain the quoted lines: {quoted}")
    return changed


def _find(it: Target, key: str, lines: Lines, pair: Pair) -> Match | Several | None:
    """Find a pair; of several matches, choose the user's answer or the attached one."""
    choice = it.answer(key, lines)
    if choice is not None:
        return Match(choice.first_row, choice.last_row, "exact", choice.new or ())
    match_or_problem = _find_lines(lines, pair, language_of(it.path, it.lines))
    if (
        isinstance(match_or_problem, Several)
        and 1 < len(match_or_problem.matches) < match.MAX_MATCHES
    ):
        near = [each for each in match_or_problem.matches if _is_attached(it.attached, lines, each)]
        return near[0] if len(near) == 1 else match_or_problem
    if isinstance(match_or_problem, Match) and not _agrees_with_row(lines, pair, match_or_problem):
        return Several((match_or_problem,), "the line numbers point elsewhere")
    if isinstance(match_or_problem, Match) and _was_read_elsewhere(
        it.attached, lines, pair, match_or_problem
    ):
        return Several((match_or_problem,), ELSEWHERE)
    return match_or_problem


def _require_certain(
    it: Target, key: str, lines: Lines, found: Match | Several | None
) -> Match | None:
    """Return a match; raise `Ambiguous` if it is not certain."""
    if not isinstance(found, Several):
        return found
    text = f"Where does this go in {it.name}? {found.why[:1].upper()}{found.why[1:]}"
    choices = (
        it.choice(lines, (each.first_row, each.last_row), each.new, found.why)
        for each in found.matches
    )
    raise Ambiguous(key, text, tuple(choices))


def _make_changes(lines: Lines, matches: Sequence[Match | None]) -> tuple[Lines, list[int]]:
    """Return a text after the changes of some matches, and the indices of skipped ones.

    Changes without a match, or that overlap an earlier one, are skipped.
    """
    made_changes: list[Change] = []
    late: list[int] = []
    for number, located in enumerate(matches):
        if located is None:
            late.append(number)
            continue
        first = located.first_row
        changes = [
            replace(one, first_row=first + one.first_row, last_row=first + one.last_row)
            for one in diff.changes(lines[first : located.last_row], located.new)
        ]
        added = [*made_changes, *(one for one in changes if one not in made_changes)]
        added.sort(key=lambda one: (one.first_row, one.last_row))
        try:
            diff.apply(lines, added)
            made_changes = added
        except ValueError:
            late.append(number)
    return diff.apply(lines, made_changes), late


def _is_attached(attached: Sequence[Seen], lines: Lines, located: Match) -> bool:
    """Return whether a match is in attached rows that are unchanged."""
    return any(
        each.first_row <= located.first_row
        and located.last_row <= each.first_row + len(each.lines)
        and lines[each.first_row : each.first_row + len(each.lines)] == each.lines
        for each in attached
    )


def _was_read_elsewhere(attached: Sequence[Seen], lines: Lines, pair: Pair, located: Match) -> bool:
    """Return whether the quoted lines were attached, but with different lines around them."""
    wanted = stripped(pair.old)
    above, below = (
        stripped(lines[: located.first_row])[-1:],
        stripped(lines[located.last_row :])[:1],
    )
    excerpts: list[tuple[list[str], list[str]]] = []
    for texts in (stripped(each.lines) for each in attached):
        for at in range(len(texts) - len(wanted) + 1):
            end = at + len(wanted)
            if wanted and texts[at:end] == wanted:
                excerpts.append((texts[max(at - 1, 0) : at], texts[end : end + 1]))
    return bool(excerpts) and not any(
        not (before or after) or (before and before == above) or (after and after == below)
        for before, after in excerpts
    )


def _find_lines(lines: Lines, pair: Pair, language: str) -> Match | Several | None:
    """Find a pair; the heading of a diff hunk decides between several places."""
    if not any(map(has_text, pair.old)):
        return _find_without_context(lines, pair)
    found = match.find(lines, pair.old, pair.new)
    if pair.unmarked and not (isinstance(found, Match) and found.tier == "exact"):
        other = match.find(lines, *pair.unmarked)
        if isinstance(other, Match) and other.tier == "exact":
            return other
    if isinstance(found, Several) and len(found.matches) > 1 and pair.scope:
        first, last = _scope_rows(lines, language, pair.scope)
        inner = [one for one in found.matches if first <= one.first_row and one.last_row <= last]
        return inner[0] if len(inner) == 1 else found
    return found


def _scope_rows(lines: Lines, language: str, scope: str) -> tuple[int, int]:
    """Return the rows of the scope in a hunk's heading; all rows if it is not unique."""
    first, last = 0, len(lines)
    for text in filter(None, map(str.strip, scope.split("\n"))):
        definitions = [
            one
            for one in symbols.all_of(lines[first:last], language)
            if text in stripped(lines[first + one.own_first : first + one.head_last])
        ]
        if len(definitions) != 1:
            return 0, len(lines)
        first, last = first + definitions[0].first, first + definitions[0].last
    return first, last


def _find_without_context(lines: Lines, pair: Pair) -> Match | Several:
    """Return the position of new lines without context lines."""
    if not any(map(has_text, lines)):
        return Match(0, len(lines), "exact", pair.new)
    if pair.is_last:
        return Match(len(lines), len(lines), "exact", pair.new)
    end = trim(lines, 0, len(lines))[1]
    new = lines[end:] + pair.new if lines[end:] else ("", *pair.new)
    return Several(
        (Match(end, len(lines), "exact", new),), "it has no context lines; the file ends here"
    )


def _choose_by_order(found: list[Match | Several | None]) -> None:
    """Choose among several matches by the order of a diff's hunks."""
    for at, one in enumerate(found):
        if not isinstance(one, Several) or not 1 < len(one.matches) < match.MAX_MATCHES:
            continue
        low = max((p.last_row for p in found[:at] if isinstance(p, Match)), default=0)
        high = min((p.first_row for p in found[at + 1 :] if isinstance(p, Match)), default=1 << 60)
        inside = [p for p in one.matches if low <= p.first_row and p.last_row <= high]
        if len(inside) == 1 and (low > 0 or high < 1 << 60):
            found[at] = inside[0]


def _agrees_with_row(lines: Lines, pair: Pair, located: Match) -> bool:
    """Return whether a match is near the diff's line number, or nothing there resembles it."""
    low, high = max(pair.row - NEAR_ROWS, 0), pair.row + len(pair.old) + NEAR_ROWS
    if pair.row < 0 or (low < located.last_row and located.first_row < high):
        return True
    near = align(lines[low:high], pair.old)
    return not near or near[0].share < match.MIN_SHARE


def _is_applied(lines: Lines, pair: Pair) -> bool:
    """Return whether the new lines exist already, and the deleted ones do not."""
    present, old, new = stripped(lines), stripped(pair.old), stripped(pair.new)
    deleted = {*old} - {*new}
    if {*new} <= {*old} and deleted & {*present}:
        return False
    letters = sum(sum(map(str.isalnum, line)) for line in new)
    return letters >= MIN_ALPHANUMERIC and contains_run(present, new)


# Code in a fence.


def apply_fence(it: Target) -> Lines:
    """Return a text after the code of a fence is applied; raise `Ambiguous` or `CannotApply`."""
    lines, new, language = it.lines, it.block.code_for(it.lines), it.language
    choice = it.answer(it.key, lines)
    if choice is not None:
        return lines[: choice.first_row] + (choice.new or ()) + lines[choice.last_row :]
    is_elided = bool(elision.markers(new, language, lines))
    if not any(map(has_text, lines)):
        if is_elided:
            raise CannotApply(f"{it.name} is empty, and the code is incomplete")
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
        raise CannotApply(f"No position for this code was found in {it.name}")
    choices = tuple(_choice_of(it, one) for one in readings)
    raise Ambiguous(it.key, f"Where does this go in {it.name}?", choices)


def _choice_of(it: Target, one: Reading) -> Choice:
    changes = diff.changes(it.lines, one.lines)
    if not changes:
        return it.choice(it.lines, (0, 0), (), one.why)
    first, last = changes[0].first_row, changes[-1].last_row
    new = one.lines[first : len(one.lines) - (len(it.lines) - last)]
    return it.choice(it.lines, (first, last), new, one.why)
