"""Rules that end a text. Each returns the number of last lines that do not belong to it.

A rule gets the lines so far, starting with the cursor's whole line, and never the following ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from lcursor.fim.trim import syntax
from lcursor.fim.trim.cursor import CursorContext
from lcursor.fim.trim.syntax import OPENER

MARKERS = ("```", "[/code]", "# end of file", "// end of file")
"""How instruction-tuned models end code before they explain it. Only files about Markdown have
lines that start like this."""
LONG_LINE = 30
"""Lines of at least this length are rarely wanted twice in a row."""
SIMILAR = 0.85
"""Share of equal characters of two lines that stand for each other."""

Rule = Callable[[Sequence[str], CursorContext], int]


def end(text: str, cursor: CursorContext) -> int:
    """Return the index where the first rule ends the text; the length of the text if none does."""
    limit = unmatched_closer(text, cursor)
    lines = text.split("\n")
    lines[0] = cursor.line + lines[0]
    starts = [-len(cursor.line)]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for number in range(len(lines)):
        rules = LINE_RULES if number == len(lines) - 1 else (*LINE_RULES, *WHOLE_LINE_RULES)
        for rule in rules:
            if gone := rule(lines[: number + 1], cursor):
                return min(limit, max(starts[number + 1 - gone] - 1, 0))
    return limit


def end_marker(lines: Sequence[str], cursor: CursorContext) -> int:
    """End at a code fence, or at words that end the code."""
    is_own = cursor.line.lstrip().lower().startswith(MARKERS)
    return int(not is_own and lines[-1].lstrip().lower().startswith(MARKERS))


def too_many_lines(lines: Sequence[str], cursor: CursorContext) -> int:
    """End after the requested number of lines."""
    return int(len(lines) > (1 if cursor.single_line else cursor.max_lines))


def out_of_scope(lines: Sequence[str], cursor: CursorContext) -> int:
    """End at a line outside the scope in which the text starts.

    Such a line is indented less than the first one. Or the first line had text already, and the
    line returns to its depth after deeper ones and neither closes nor continues the block. One line
    that closes the block around the cursor is kept, if no line below closes it.
    """
    line = lines[-1]
    written = [_indent(other) for other in lines[:-1] if other.strip()]
    if not line.strip() or not written:
        return 0
    base, depth = written[0], _indent(line)
    if min(written) < base:
        return 1
    if depth < base:
        return int(not _closes_around(line, cursor))
    is_back = bool(cursor.line.strip()) and depth == base and max(written) > base
    return int(is_back and not _GOES_ON.match(line))


_GOES_ON = re.compile(r"\s*([)\]}]|end\b|el(se|if|sif)\b|except\b|finally\b|catch\b|then\b)")
_CLOSES = re.compile(r"\s*(end|fi|done|esac)?[)\]}]*[;,]*\s*$")


def _closes_around(line: str, cursor: CursorContext) -> bool:
    is_closed_below = _indent(cursor.next_line) > _indent(line) or line == cursor.next_line
    return bool(_CLOSES.match(line)) and not (cursor.next_line and is_closed_below)


def unreachable(lines: Sequence[str], cursor: CursorContext) -> int:
    """End at a line of code that cannot be reached: behind `return`, `raise`, `break` and the like.

    Of 17,000 such statements in sixteen repositories, 22 have a line of the same depth below them
    that this takes for unreachable code; most of these are prose.
    """
    *above, line = lines
    last = above[-1] if above else ""
    is_behind = bool(line.strip() and _LEAVES.match(last)) and _indent(line) == _indent(last)
    return int(is_behind and not _REACHED.match(line))


_LEAVES = re.compile(
    r"\s*(?:return|raise|throw|break|continue)\b(?![-:.]|\s*[:=])(?!.*\b(?:if|unless|while)\b)"
)
_REACHED = re.compile(
    r"\s*(?:(?:end|el(?:se|if|sif|seif)|except|finally|catch|rescue|ensure|case|default|when|then|fi"
    r"|done|esac|until|and|or|in|where|function)\b|\w+:(?!\S)|[^\w\s\"'`({])|.*=>"
)
"""Lines behind a jump that are reached: the next part of a block, a label, a match arm, a closing
bracket, a comment, or the rest of the statement."""


def repeats_next_line(lines: Sequence[str], cursor: CursorContext) -> int:
    """End at a repetition of the file's next line, or of its closing bracket and the line below."""
    line = lines[-1]
    if has_content(line) and normalize(line) == normalize(cursor.next_line):
        return 1
    if (
        len(cursor.below) < 2
        or not has_content(line)
        or normalize(line) != normalize(cursor.below[1])
    ):
        return 0
    before = next((at for at in range(len(lines) - 2, -1, -1) if lines[at].strip()), -1)
    is_pair = before >= 0 and normalize(lines[before]) == normalize(cursor.next_line)
    return len(lines) - before if is_pair and closes_next_line(lines[: before + 1], cursor) else 0


def resembles_next_line(lines: Sequence[str], cursor: CursorContext) -> int:
    """End at a later line that resembles the file's next line: the rest is there already."""
    line, below = lines[-1].strip(), cursor.next_line.strip()
    return int(len(lines) > 1 and has_content(below) and _similarity(line, below) >= SIMILAR)


@lru_cache(maxsize=256)
def _similarity(line: str, other: str) -> float:
    return SequenceMatcher(None, line, other, autojunk=False).ratio()


def repeats_line_above(lines: Sequence[str], cursor: CursorContext) -> int:
    """Remove a repetition of the long line above in a blank line."""
    if len(lines) > 1 or cursor.line.strip() or not is_long_line_above(cursor):
        return 0
    return int(normalize(lines[0]) == normalize(cursor.above[-1]))


def is_long_line_above(cursor: CursorContext) -> bool:
    """Return whether the line above is too long to be wanted twice."""
    return bool(cursor.above) and len(cursor.above[-1].strip()) >= LONG_LINE


def triple_repeat(lines: Sequence[str], cursor: CursorContext) -> int:
    """End at the same line for the third time in a row, counting those above the cursor.

    A line that the user started to type is always wanted.
    """
    if len(lines) == 1 and cursor.line.strip():
        return 0
    filled = [line for line in (*cursor.above, *lines) if line.strip()]
    return int(
        bool(lines[-1].strip()) and filled[-3:] == [lines[-1]] * 3 and has_content(lines[-1])
    )


def repeated_block(lines: Sequence[str], cursor: CursorContext) -> int:
    """End at a repetition of the previous block."""
    for size in range(2, len(lines) // 2 + 1):
        block = lines[-size:]
        if block == lines[-2 * size : -size] and any(has_content(line) for line in block):
            return size
    return 0


def double_blank(lines: Sequence[str], cursor: CursorContext) -> int:
    """End at two blank lines."""
    return int(len(lines) > 1 and not lines[-1].strip() and not lines[-2].strip())


def looping_line(lines: Sequence[str], cursor: CursorContext) -> int:
    """End at a later line that repeats its own end."""
    return int(len(lines) > 1 and is_looping(lines[-1]))


LINE_RULES: tuple[Rule, ...] = (end_marker, too_many_lines, out_of_scope, looping_line)
"""Rules for every line, complete or not."""
WHOLE_LINE_RULES: tuple[Rule, ...] = (
    unreachable,
    repeats_next_line,
    resembles_next_line,
    repeats_line_above,
    triple_repeat,
    repeated_block,
    double_blank,
)
"""Rules for complete lines."""


def unmatched_closer(text: str, cursor: CursorContext) -> int:
    """Return the index of a closing bracket that closes nothing; the length of the text if none.

    A line may still open another bracket that is closed below, as in `PyAPI_FUNC(int) f(`, which is
    known only at its end. `out_of_scope` and `drop_closed_below` handle brackets at the start of a
    line.
    """
    if not cursor.syntax.pairs:
        return len(text)
    wanted, marks = list(cursor.wanted), cursor.marks(text)
    for at, sign in syntax.unopened(marks):
        start = text.rfind("\n", 0, at) + 1
        before = text[start:at] if start else cursor.line + text[:at]
        if sign in wanted:
            wanted.remove(sign)
        elif before.strip(" \t)]}"):
            end = text.find("\n", at)
            if OPENER[sign] not in syntax.unclosed([mark for mark in marks if at < mark[0] < end]):
                return at
    return len(text)


def is_looping(line: str) -> bool:
    """Return whether a line ends in repetitions of a text with letters; `----` is allowed."""
    line = line[-300:]
    for size in range(3, len(line) // 4 + 1):
        unit = line[-size:]
        if line.endswith(unit * (6 if size < 10 else 4)) and any(map(str.isalpha, unit)):
            return True
    return False


def drop_closed_below(lines: list[str], cursor: CursorContext) -> list[str]:
    """Remove a last line that closes what the file's next line closes."""
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines[:-1] if closes_next_line(lines, cursor) else lines


def closes_next_line(lines: Sequence[str], cursor: CursorContext) -> bool:
    """Whether the last line equals the file's next line, and closes what the text did not open."""
    if not lines or lines[-1].rstrip() != cursor.next_line.rstrip() or not _CLOSES.match(lines[-1]):
        return False
    line, before = lines[-1], "\n".join(lines[:-1])[len(cursor.line) :]
    if any(char in OPENER for char in line):
        own = len(before) + 1 if len(lines) > 1 else -len(cursor.line)
        whole = "\n".join(lines)[len(cursor.line) :]
        return any(at >= own for at, _ in syntax.unopened(cursor.marks(whole)))
    mine = lines[:-1] if not cursor.line.strip() else lines[1:-1]
    return bool(line.strip()) and all(
        _indent(other) != _indent(line) for other in mine if other.strip()
    )


def without_begun_block(lines: list[str]) -> list[str]:
    """Remove last lines that may be the start of a repeated block."""
    for left in range(2, len(lines)):
        last = lines[left:]
        for size in range(max(len(last) + 1, 2), left + 1):
            block = lines[left - size : left]
            if block[: len(last)] == last and any(has_content(line) for line in block):
                return lines[:left]
    return lines


def may_repeat(line: str, cursor: CursorContext) -> bool:
    """Return whether a rule may remove an unfinished first line."""
    if not cursor.line.strip() and any(one.startswith(line.strip().lower()) for one in MARKERS):
        return True
    again = [cursor.next_line]
    is_third = len(cursor.above) == 2 and cursor.above[0] == cursor.above[1]
    if not cursor.line.strip() and (is_third or is_long_line_above(cursor)):
        again.append(cursor.above[-1])
    return any(other and normalize(other).startswith(normalize(line)) for other in again)


def normalize(line: str) -> str:
    """Normalize a line for comparison: ignore spaces, the kind of quotes, and a last comma.

    An edit distance would also match `FLAG_B = 2` and `FLAG_A = 1`.
    """
    return "".join(line.split()).replace("'", '"').rstrip(",;")


def has_content(line: str) -> bool:
    """Whether a line has content, other than closing a block."""
    has_letters = len(line.strip()) > 1 and any(char.isalnum() for char in line)
    return has_letters and not _CLOSES.match(line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
