"""After the model: where a suggestion ends, and what of it may be shown yet.

Functions of text. `shown` is what is certain while the model still writes, `finish` what remains
when it is done; a `Suggestion` makes sure that each is always a beginning of the next.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FENCE = "```"
"""Instruction-tuned models end code with it and begin to explain; no source file has it at a line's
start but those that are about Markdown."""


@dataclass(frozen=True, slots=True)
class Around:
    """What the rules need to know of the text around the cursor."""

    line: str
    """The cursor's line up to the cursor."""
    rest: str
    """The cursor's line from the cursor on."""
    next_line: str
    """The next line that is not blank, "" at the end of the file."""
    single_line: bool = False
    max_lines: int = 12


def around(prefix: str, suffix: str, single_line: bool, max_lines: int) -> Around:
    """Read the facts out of the text before and after the cursor."""
    rest, _, below = suffix.partition("\n")
    following = next((line for line in below.split("\n") if line.strip()), "")
    return Around(prefix.rpartition("\n")[2], rest, following, single_line, max_lines)


class Suggestion:
    """What a person may see of a text while it is written: it only ever grows.

    Args:
        facts: the text around the cursor.
    """

    def __init__(self, facts: Around) -> None:
        self._facts = facts
        self.text = ""

    def grow(self, written: str) -> bool:
        """Take all text so far; return whether there is more to see."""
        visible = shown(written, self._facts)
        has_grown = len(visible) > len(self.text) and visible.startswith(self.text)
        if has_grown:
            self.text = visible
        return has_grown

    def finish(self, written: str) -> str:
        """Take the whole text; return what remains to be seen."""
        final = finish(written, self._facts)
        if final.startswith(self.text):
            self.text = final
        return self.text


def ended(text: str, facts: Around) -> bool:
    """Whether a rule says that nothing more is wanted behind `text`."""
    return _end(text, facts) < len(text)


def shown(text: str, facts: Around) -> str:
    """Return the part of an unfinished text that no rule can take back.

    The first line grows as it is written, except while it may still turn out to be the next line
    of the file or the rest of this one; a later line counts when it is whole.
    """
    end = _end(text, facts)
    if end < len(text):
        return finish(text, facts)
    first, newline, _ = text.partition("\n")
    if newline:
        return _without_rest(text[: text.rindex("\n")], facts.rest).rstrip()
    line = (facts.line + first).strip()
    if FENCE.startswith(first.strip()) or facts.next_line.strip().startswith(line):
        return ""
    return _hold_back(first, facts.rest).rstrip()


def finish(text: str, facts: Around) -> str:
    """Return what of a finished text is worth showing, "" for nothing."""
    text = text.rstrip()
    text = _without_rest(text[: _end(text + "\n", facts)], facts.rest).rstrip()
    return text if text.strip() else ""


def _end(text: str, facts: Around) -> int:
    """Return the index where the first rule ends the text; its length when none does."""
    lines = text.split("\n")
    lines[0] = facts.line + lines[0]
    at = -len(facts.line)
    for number, line in enumerate(lines):
        whole = number < len(lines) - 1
        if line.lstrip().startswith(FENCE) and not facts.line.lstrip().startswith(FENCE):
            return max(at - 1, 0)
        if number and (
            facts.single_line
            or number >= facts.max_lines
            or _leaves_scope(lines[: number + 1], bool(facts.line.strip()))
            or (whole and lines[:number].count(line) >= 2 and line.strip())
            or (whole and not line.strip() and not lines[number - 1].strip())
        ):
            return at - 1
        if whole and _is_line_below(line, facts.next_line):
            return max(at - 1, 0)
        at += len(line) + 1
    return len(text)


_CLOSERS = re.compile(r"\s*([)\]}]|end\b|el(se|if|sif)\b|except\b|finally\b|catch\b|then\b)")


def _leaves_scope(lines: list[str], continues_line: bool) -> bool:
    """Whether the last line is outside what was begun at the first.

    It is when it is indented less than the first line; or, where the first line had text already,
    when it is back at that line's depth after deeper ones and does not close or continue the block.
    """
    line = lines[-1]
    written = [_indent(other) for other in lines[:-1] if other.strip()]
    if not line.strip() or not written:
        return False
    base, depth = written[0], _indent(line)
    if depth < base:
        return True
    is_back = continues_line and depth == base and max(written) > base
    return is_back and not _CLOSERS.match(line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_line_below(line: str, below: str) -> bool:
    """Whether a line repeats the next one; closing brackets alone say nothing."""
    text = line.strip()
    return len(text) > 1 and text == below.strip() and any(char.isalnum() for char in text)


def _without_rest(text: str, rest: str) -> str:
    """Cut the rest of the cursor's line off the end of a text that repeats it.

    A closing bracket that the text itself opened is no repetition.
    """
    tail, written = rest.strip(), text.rstrip()
    if not tail or not written.endswith(tail):
        return text
    kept = written[: -len(tail)]
    if tail[0] in _OPENER and _is_open(kept, _OPENER[tail[0]], tail[0]):
        return text
    return kept


_OPENER = {")": "(", "]": "[", "}": "{"}


def _is_open(text: str, opener: str, closer: str) -> bool:
    depth = 0
    for char in text:
        if char == opener:
            depth += 1
        elif char == closer and depth:
            depth -= 1
    return depth > 0


def _hold_back(text: str, rest: str) -> str:
    """Leave out the end of a text that may become the rest of the cursor's line."""
    tail = rest.strip()
    for size in range(min(len(tail), len(text)), 0, -1):
        if text.endswith(tail[:size]):
            return text[:-size]
    return text
