"""After the same change on two lines: propose it on the other lines of that shape.

Two examples are anti-unified: tokens that differ between them become holes, and tokens around the
change that agree are its context. A rule is used only if the new text follows from the old one, so
that nothing has to be invented:

    log("a", x) -> info("a", x, 1)
    log("b", y) -> info("b", y, 1)    gives    log(#1, #2) -> info(#1, #2, 1)

One example is enough for lines directly above or below it with the same tokens apart from names and
values, if there are at least two, unless a value was changed. A rule of signs and types only, such
as `: int`, needs three examples on consecutive lines, and applies to the lines of that shape below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from lcursor.next_edit import history
from lcursor.next_edit.records import Edit, Lines, Proposal, Texts
from lcursor.next_edit.tokens import KEYWORDS, Change, Token, is_cause, tokenize

MAX_EXAMPLES: Final = 6
"""Last changed lines that are compared."""
MAX_MATCHES: Final = 30
"""Lines that are proposed; the nearest ones."""
MAX_CONTEXT: Final = 3
"""Tokens on each side of a change."""
MIN_SIBLINGS: Final = 2
BLOCK: Final = 3
"""Consecutive lines that were changed in the same way, for a rule without a name."""
MAX_FEW: Final = 4
"""Matches of a rule ahead for a match further away."""
CLOSE_ROWS, NEAR_ROWS = 5, 25
"""Distance from a changed line, or from a line that is proposed."""
SPACING: Final = 1.25
"""Distance of a line further away, in distances of the last two."""
CLOSE_BY, NEAR_BY, FAR, SIBLINGS = 0.85, 0.75, 0.72, 0.7
"""Confidence by distance, or with one example only."""
OPEN, CLOSE = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class _Example:
    """A changed line, and the token range of its change."""

    path: str
    row: int
    """In the current text."""
    old_line: str
    new_line: str
    old: tuple[Token, ...]
    new: tuple[Token, ...]
    first: int
    """The first changed token."""
    old_end: int
    new_end: int
    is_accepted: bool
    """Whether it was an accepted proposal."""

    @property
    def removed(self) -> tuple[Token, ...]:
        """The changed tokens."""
        return self.old[self.first : self.old_end]

    @property
    def added(self) -> tuple[Token, ...]:
        """The tokens that replaced them."""
        return self.new[self.first : self.new_end]

    @property
    def replaces_name(self) -> bool:
        """Whether it replaces one name by another, as an accepted rename does."""
        return Change(self.removed, self.added).names is not None

    @property
    def margins(self) -> tuple[str, str] | None:
        """The white space before and after the change; None if that was changed too."""
        if not self.removed or not self.added:
            return None
        old = _margins(self.old_line, self.old, self.first, self.old_end)
        return old if old == _margins(self.new_line, self.new, self.first, self.new_end) else None


@dataclass(frozen=True, slots=True)
class _Rule:
    """A change of tokens: `old` and `new` have texts, and numbers for holes."""

    left: tuple[str | int, ...]
    """Context before the change; here a number is a token of any text."""
    old: tuple[str | int, ...]
    right: tuple[str | int, ...]
    new: tuple[str | int, ...]
    """Raw text and holes."""
    is_start: bool
    """Whether it is at the start of the line."""
    is_end: bool
    keeps_margins: bool
    """Whether the white space around the change stays as it is."""

    @property
    def literals(self) -> list[str]:
        """The texts that a line must contain."""
        return [one for one in (*self.left, *self.old, *self.right) if isinstance(one, str)]

    @property
    def is_specific(self) -> bool:
        """Whether it has enough fixed text to mean something."""
        words = [one for one in self.literals if one[0].isalnum() or one[0] in "_\"'`"]
        return bool(words) and len(self.literals) >= (2 if self.old else 3)


def proposals(texts: Texts, edits: Sequence[Edit]) -> list[Proposal]:
    """Return a proposal for each line that a repeated change fits."""
    valid = history.without_undone(edits)
    changed = _examples(texts, valid)
    examples = [one for one in changed if not (one.is_accepted and one.replaces_name)]
    examples = examples[-MAX_EXAMPLES:]
    if not examples:
        return []
    last = examples[-1]
    for first in reversed(examples[:-1]):
        rule = _unified(first, last)
        if rule is None or not (rule.is_specific or _is_block(rule, examples[-BLOCK:])):
            continue
        if _follows(rule, first) and _follows(rule, last):
            found = _continued(rule, first, last, changed, texts[last.path])
            if found or rule.is_specific:
                return found
    return _siblings(last, texts[last.path])


def _follows(rule: _Rule, example: _Example) -> bool:
    return _applied(rule, example.old_line) == example.new_line


def _is_block(rule: _Rule, examples: Sequence[_Example]) -> bool:
    """Return whether consecutive lines of one shape were changed by a rule, in one direction.

    Lines that were accepted need not be consecutive.
    """
    last, rows = examples[-1], [one.row for one in examples]
    return (
        len(rows) == BLOCK
        and (last.is_accepted or rows[-1] - rows[0] in {BLOCK - 1, 1 - BLOCK})
        and rows in (sorted(rows), sorted(rows, reverse=True))
        and all(one.path == last.path and _follows(rule, one) for one in examples)
        and all(_shape(one.old) == _shape(last.old) for one in examples)
    )


def _continued(
    rule: _Rule, first: _Example, last: _Example, changed: Sequence[_Example], lines: Lines
) -> list[Proposal]:
    """Return the proposals for a rule where the user is likely to go on.

    That is in the direction of the last two changes, if these skipped no line that fits: directly
    behind the last one; a little further if one token was replaced or the whole line is the same,
    and there are few, or the next one is as far away as the last two are from each other; anywhere
    if the line is the same and three were changed.
    """
    found = list(_matches(rule, lines))
    rows = [one.row for one in changed[-MAX_EXAMPLES:] if one.path == last.path]
    is_frequent = sum(_follows(rule, one) for one in changed) > 2
    if first.path != last.path or (len(found) > MAX_MATCHES and not is_frequent):
        return []
    low, high = sorted((first.row, last.row))
    if any(low < row < high for row, _, _ in found):
        return []
    ahead = [one for one in found if (one[0] - last.row) * (last.row - first.row) > 0]
    if not rule.is_specific:
        shape = _shape(last.old)
        ahead = [one for one in ahead if _shape(tokenize(one[1])) == shape]
    ahead.sort(key=lambda one: abs(one[0] - last.row))
    is_token = len(rule.old) == 1 and isinstance(rule.old[0], str)
    same = {first.old_line.strip(), last.old_line.strip()}
    cause = f"lines {first.row + 1} and {last.row + 1}"
    proposed = []
    for row, line, new in ahead[:MAX_MATCHES]:
        distance = min(abs(row - other) for other in rows)
        if distance < CLOSE_ROWS:
            confidence = CLOSE_BY
            rows.append(row)
        elif not rule.is_specific:
            continue
        elif distance < NEAR_ROWS and (
            (len(found) <= MAX_FEW and (is_token or line.strip() in same))
            or (len(ahead) <= MAX_FEW and is_token and distance <= SPACING * (high - low))
        ):
            confidence = NEAR_BY
        elif is_frequent and line.strip() in same:
            confidence = FAR
        else:
            continue
        proposed.append(_proposal((last.path, row, line, new), cause, confidence, rule))
    return proposed


def _examples(texts: Texts, edits: Sequence[Edit]) -> list[_Example]:
    """Return the changed lines, oldest first."""
    found = []
    for index, edit in enumerate(edits):
        if edit.path not in texts or not is_cause(edit) or len(edit.old) != len(edit.new):
            continue
        later = [one for one in edits[index + 1 :] if one.path == edit.path]
        for at, (old, new) in enumerate(zip(edit.old, edit.new, strict=True)):
            row = history.current_row(edit.row + at, later)
            one = _example(edit, row, old, new) if row is not None else None
            if one is not None:
                found.append(one)
    return found


def _example(edit: Edit, row: int, old_line: str, new_line: str) -> _Example | None:
    old, new = tokenize(old_line), tokenize(new_line)
    words, others = [one.text for one in old], [one.text for one in new]
    if words == others or not words or not others:
        return None
    first = 0
    while first < min(len(words), len(others)) and words[first] == others[first]:
        first += 1
    same = 0
    while same < min(len(words), len(others)) - first and words[-1 - same] == others[-1 - same]:
        same += 1
    old_end, new_end = len(words) - same, len(others) - same
    return _Example(
        edit.path, row, old_line, new_line, old, new, first, old_end, new_end, edit.is_accepted
    )


def _unified(one: _Example, other: _Example) -> _Rule | None:
    """Return the most specific rule for two examples; None if the new text does not follow."""
    holes: list[tuple[list[str], list[str]]] = []
    old: list[str | int] = []
    for is_same, first, second in _aligned(one.removed, other.removed):
        if is_same:
            old += [token.text for token in first]
            continue
        if not first or not second:
            return None
        old.append(len(holes))
        holes.append(([token.text for token in first], [token.text for token in second]))
    keeps_margins = None not in (one.margins, other.margins)
    new = _template(one, other, holes, keeps_margins)
    left = _context(one.old[: one.first][::-1], other.old[: other.first][::-1])[::-1]
    right = _context(one.old[one.old_end :], other.old[other.old_end :])
    if new is None or (holes and not any(isinstance(part, str) for part in old)):
        return None
    is_start = one.first == other.first == 0
    is_end = one.old_end == len(one.old) and other.old_end == len(other.old)
    return _Rule(tuple(left), tuple(old), tuple(right), tuple(new), is_start, is_end, keeps_margins)


def _aligned(
    one: Sequence[Token], other: Sequence[Token]
) -> Iterator[tuple[bool, Sequence[Token], Sequence[Token]]]:
    """Yield the common parts and the differing parts of two token sequences."""
    words, others = [token.text for token in one], [token.text for token in other]
    for tag, a, b, c, d in SequenceMatcher(None, words, others, autojunk=False).get_opcodes():
        yield tag == "equal", one[a:b], other[c:d]


def _template(
    one: _Example,
    other: _Example,
    holes: Sequence[tuple[list[str], list[str]]],
    keeps_margins: bool,
) -> list[str | int] | None:
    """Return the raw new text with holes; None if it has tokens of unknown origin."""
    found: list[str | int] = []
    at, end = _columns(one.new, one.first, one.new_end, one.new_line, keeps_margins)
    for is_same, first, second in _aligned(one.added, other.added):
        if is_same:
            continue
        contents = ([token.text for token in first], [token.text for token in second])
        if contents not in holes:
            return None
        found += [one.new_line[at : first[0].column], holes.index(contents)]
        at = first[-1].end
    return [*found, one.new_line[at:end]]


def _columns(
    line_tokens: Sequence[Token], first: int, end: int, line: str, keeps_margins: bool
) -> tuple[int, int]:
    """Return the columns of a change, with the white space around it or without."""
    if keeps_margins:
        return line_tokens[first].column, line_tokens[end - 1].end
    return _start(line_tokens, first, line), _end(line_tokens, end, line)


def _margins(line: str, line_tokens: Sequence[Token], first: int, end: int) -> tuple[str, str]:
    """Return the white space before and after some tokens."""
    start, stop = line_tokens[first].column, line_tokens[end - 1].end
    before, after = _start(line_tokens, first, line), _end(line_tokens, end, line)
    return line[before:start], line[stop:after]


def _start(line_tokens: Sequence[Token], first: int, line: str) -> int:
    """Return the column behind the token before a change; the indentation stays."""
    if first:
        return line_tokens[first - 1].end
    return len(line) - len(line.lstrip())


def _end(line_tokens: Sequence[Token], end: int, line: str) -> int:
    """Return the column of the token after a change."""
    return line_tokens[end].column if end < len(line_tokens) else len(line.rstrip())


def _context(one: Sequence[Token], other: Sequence[Token]) -> list[str | int]:
    """Return what two contexts have in common, from the change outwards."""
    found: list[str | int] = []
    for first, second in zip(one[:MAX_CONTEXT], other[:MAX_CONTEXT], strict=False):
        if first.text == second.text:
            found.append(first.text)
        elif first.kind == second.kind != "sign":
            found.append(0)
        else:
            break
    while found and found[-1] == 0:
        found.pop()
    return found


def _matches(rule: _Rule, lines: Lines) -> Iterator[tuple[int, str, str]]:
    """Yield the rows where a rule applies, with the old and the new line."""
    literals = [one for one in rule.literals if len(one) > 1] or rule.literals
    for row, line in enumerate(lines):
        if all(one in line for one in literals):
            new = _applied(rule, line)
            if new is not None and new != line and not _is_idle(new) and not _has(rule, line):
                yield row, line, new


def _has(rule: _Rule, line: str) -> bool:
    """Return whether a line already has the text that a rule inserts, behind the same token."""
    if rule.old or not rule.left:
        return False
    inserted = [token.text for part in rule.new for token in tokenize(str(part))]
    wanted = [str(rule.left[-1]), *inserted]
    words = [token.text for token in tokenize(line)]
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words)))


def _is_idle(line: str) -> bool:
    """Return whether a line assigns something to itself."""
    left, sign, right = line.partition("=")
    return bool(sign) and left.split()[-1:] == [right.strip().rstrip(";")]


def _applied(rule: _Rule, line: str) -> str | None:
    """Return a line after a rule; None if it does not fit at exactly one place."""
    found = tokenize(line)
    results = set()
    for first in range(len(rule.left), len(found) + 1):
        if rule.is_start and first:
            break
        filled = _fit(rule, found, first)
        if filled is not None:
            end, holes = filled
            start, stop = _columns(found, first, end, line, rule.keeps_margins)
            texts = [
                part if isinstance(part, str) else _raw(line, holes[part]) for part in rule.new
            ]
            results.add(line[:start] + "".join(texts) + line[stop:])
    return results.pop() if len(results) == 1 else None


def _raw(line: str, tokens: Sequence[Token]) -> str:
    return line[tokens[0].column : tokens[-1].end]


def _fit(
    rule: _Rule, found: Sequence[Token], first: int
) -> tuple[int, dict[int, Sequence[Token]]] | None:
    """Return the end of a match that starts at a token, and what is in its holes."""
    before = found[first - len(rule.left) : first]
    if not _agrees(rule.left, before):
        return None
    holes: dict[int, Sequence[Token]] = {}
    at = first
    for index, part in enumerate(rule.old):
        if isinstance(part, str):
            if at >= len(found) or found[at].text != part:
                return None
            at += 1
            continue
        following = rule.old[index + 1] if index + 1 < len(rule.old) else None
        if following is None:
            following = rule.right[0] if rule.right else None
        end = _hole_end(found, at, following if isinstance(following, str) else None)
        if end == at:
            return None
        holes[part] = found[at:end]
        at = end
    if not _agrees(rule.right, found[at : at + len(rule.right)]):
        return None
    return (at, holes) if not rule.is_end or at == len(found) else None


def _agrees(pattern: Sequence[str | int], found: Sequence[Token]) -> bool:
    if len(pattern) != len(found):
        return False
    return all(
        one == token.text if isinstance(one, str) else token.kind != "sign"
        for one, token in zip(pattern, found, strict=True)
    )


def _hole_end(found: Sequence[Token], first: int, stop: str | None) -> int:
    """Return the end of the balanced expression before a token text; without one, a token."""
    depth = 0
    for at in range(first, len(found)):
        text = found[at].text
        if depth == 0 and (text == stop or text in {",", ";"} or text in CLOSE):
            return at if text == stop else first
        depth += (text in OPEN) - (text in CLOSE)
        if stop is None and depth == 0:
            return at + 1
    return len(found) if stop is None else first


def _siblings(example: _Example, lines: Lines) -> list[Proposal]:
    """Return the same change for the lines of the same shape directly above and below."""
    if not example.removed and example.first in {0, len(example.old)}:
        return []
    if any(token.kind == "name" for token in example.removed + example.added) and not (
        example.removed and example.added
    ):
        return []
    has_name = any(token.kind == "name" for token in example.removed + example.added)
    if any(token.text in {"=", ":"} for token in example.old[: example.first]) or not (
        has_name or _is_argument(example)
    ):
        return []  # values often differ for a reason
    shape = _shape(example.old)
    found = []
    for step in (1, -1):
        row = example.row + step
        while 0 <= row < len(lines) and _shape(tokenize(lines[row])) == shape:
            new = _applied_at(example, lines[row])
            if new is None:
                break
            found.append((example.path, row, lines[row], new))
            row += step
    if not MIN_SIBLINGS <= len(found) <= MAX_MATCHES:
        return []
    rows = f"line {example.row + 1}"
    return [_proposal(one, rows, SIBLINGS, None) for one in sorted(found)]


def _is_argument(example: _Example) -> bool:
    """Return whether a change is between the arguments of the call that the line begins with."""
    texts = [token.text for token in example.old[: example.first]]
    depth = sum(text in OPEN for text in texts) - sum(text in CLOSE for text in texts)
    return bool(texts) and example.old[0].kind == "name" and depth == 1


def _shape(line_tokens: Sequence[Token]) -> list[str]:
    return [
        one.text if one.kind == "sign" or one.text in KEYWORDS else one.kind for one in line_tokens
    ]


def _applied_at(example: _Example, line: str) -> str | None:
    """Return a line with the same tokens replaced at the same position."""
    found = tokenize(line)
    removed = [token.text for token in example.removed]
    if [token.text for token in found[example.first : example.old_end]] != removed:
        return None
    start = _start(found, example.first, line)
    stop = _end(found, example.old_end, line)
    begin = _start(example.new, example.first, example.new_line)
    end = _end(example.new, example.new_end, example.new_line)
    return line[:start] + example.new_line[begin:end] + line[stop:]


def _proposal(
    found: tuple[str, int, str, str], rows: str, confidence: float, rule: _Rule | None
) -> Proposal:
    path, row, old, new = found
    return Proposal(
        kind="repetition",
        path=path,
        row=row,
        old=(old,),
        new=(new,),
        confidence=confidence,
        cause=f"the same change as in {rows}",
        group=f"repetition {rule.old} {rule.new}" if rule else f"siblings {path} {rows}",
    )
