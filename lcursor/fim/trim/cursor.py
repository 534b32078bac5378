"""The text around the cursor, analyzed for the rules. Computed once per request; immutable."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lcursor.fim.trim import syntax
from lcursor.fim.trim.parses import CodeBefore
from lcursor.fim.trim.syntax import CLOSER, Mark, Scan, Syntax

LINES_BELOW = 2
LINES_ABOVE = 2
COMMENT_LINES = 20
"""Lines before the cursor that determine whether the file has comments after code."""
COMMENT_SHARE = 3
"""One comment per this number of lines is enough."""


_OPENS = re.compile(r"[:{]$")
_BEGINS = re.compile(r"(?:[:{]|\b(?:then|do|else|repeat)|\bfunction\b[^()]*\([^()]*\))\s*$")
_LABEL = re.compile(r"(case\b|default\s*:)")


@dataclass(frozen=True, slots=True)
class CursorContext:
    """The text around the cursor.

    Attributes:
        line: the cursor's line up to the cursor.
        rest: the cursor's line from the cursor on.
        below: the next non-blank lines, at most `LINES_BELOW`.
        above: the last non-blank lines before the cursor's, the nearest last.
        inside: the string or comment that is open at the start of the cursor's line; see
            `syntax.scan`.
        opened: opening brackets that the text before the cursor does not close, outermost first.
        closing: closing brackets of the lines below that close nothing there, in order.
        comment: start of comments that are removed after code; "" if they may stay.
        indent: one step of the file's indentation; "" if lines disagree on tabs or spaces.
        code: the code before the cursor, for a parser.
    """

    line: str
    rest: str = ""
    below: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    single_line: bool = False
    max_lines: int = 12
    syntax: Syntax = syntax.UNKNOWN
    inside: str = ""
    opened: str = ""
    closing: str = ""
    comment: str = ""
    indent: str = ""
    code: CodeBefore = field(default=CodeBefore("", ""), compare=False)

    @property
    def next_line(self) -> str:
        """The next non-blank line; "" at the end of the file."""
        return self.below[0] if self.below else ""

    @property
    def newline(self) -> str:
        """The line ending of the file."""
        lines = (self.rest, *self.above, *self.below)
        return "\r\n" if any(line.endswith("\r") for line in lines) else "\n"

    @property
    def begins_block(self) -> bool:
        """Whether the cursor is where the first line of a block belongs that has no lines yet."""
        if self.rest.strip() or self.inside or not self.syntax.pairs:
            return False
        is_blank = not self.line.strip()
        opener = self.line if not is_blank else self.above[-1] if self.above else ""
        depth = _depth(opener)
        if not _BEGINS.search(opener) or (self.next_line and _depth(self.next_line) > depth):
            return False
        return not is_blank or _depth(self.line) > depth

    @property
    def opens_block(self) -> bool:
        """Whether the cursor is at the end of a line that opens a block."""
        line = self.line.strip()
        if self.rest.strip() or self.inside or not self.syntax.pairs or not _OPENS.search(line):
            return False
        marks, inside, _ = syntax.scan(self.line, self.syntax)
        if inside:  # a string, or a comment
            return False
        if line.endswith("{"):
            return True
        has_blocks = self.syntax.comment == "#" and line[0] not in "\"'"
        return not syntax.unclosed(marks) and (has_blocks or bool(_LABEL.match(line)))

    @property
    def wanted(self) -> str:
        """Closing brackets that the text before the cursor needs and the lines below lack."""
        return self.missing([])

    def missing(self, marks: list[Mark]) -> str:
        """Return the closing brackets that are missing below a text with these marks.

        The innermost is the first. Brackets are matched from the cursor outwards, because the
        windows may end anywhere.
        """
        before: list[Mark] = [(-1, sign) for sign in self.opened]
        given, missing = list(reversed(self.closing)), ""
        for opener in reversed(syntax.unclosed(before + marks)):
            if given and given[-1] == CLOSER[opener]:
                given.pop()
            else:
                missing += CLOSER[opener]
        return missing

    def scan(self, text: str) -> Scan:
        """Scan a text at the cursor; offsets count from the cursor, and marks start there."""
        shift = len(self.line)
        found, inside, since = syntax.scan(self.line + text, self.syntax, self.inside)
        own = [(at - shift, sign) for at, sign in found if at >= shift]
        return Scan(own, inside, since - shift)

    def marks(self, text: str) -> list[Mark]:
        """Return the marks of a text at the cursor; see `scan`."""
        return self.scan(text).marks

    def may_be_valid(self, text: str) -> bool:
        """Return whether a text at the cursor may be the start of valid code; True if unknown."""
        found = self.scan(text)
        is_in_string = bool(found.inside) and found.since < 0
        return is_in_string or self.code.may_continue(text)


def cursor_context(
    prefix: str, suffix: str, single_line: bool, max_lines: int, path: str = ""
) -> CursorContext:
    """Analyze the text before the cursor, from the start of a line on, and after it.

    The path determines the language; "" if unknown.
    """
    head, newline, line = prefix.rpartition("\n")
    rest, _, after = suffix.partition("\n")
    rules = syntax.for_path(path)
    marks, inside, _ = syntax.scan(head + newline, rules)
    own, behind, _ = syntax.scan(line, rules, inside)
    below = [other for other in after.split("\n") if other.strip()]
    above = [other for other in head.split("\n") if other.strip()]
    behind = syntax.scan(rest + "\n", rules, behind).inside
    closing = syntax.scan(after, rules, behind).marks
    return CursorContext(
        line=line,
        rest=rest,
        below=tuple(below[:LINES_BELOW]),
        above=tuple(above[-LINES_ABOVE:]),
        single_line=single_line,
        max_lines=max_lines,
        syntax=rules,
        inside=inside,
        opened="".join(syntax.unclosed(marks + own)),
        closing="".join(sign for _, sign in syntax.unopened(closing)),
        comment="" if _has_comments(head, marks, rules) else rules.comment,
        indent=_indentation([*above, *below]),
        code=CodeBefore(path, prefix),
    )


def _has_comments(head: str, marks: list[Mark], rules: Syntax) -> bool:
    """Return whether the lines before the cursor often have comments after code."""
    if not rules.comment:
        return False
    lines = head.split("\n")[-COMMENT_LINES:]
    start = len(head) - sum(len(line) + 1 for line in lines) + 1
    trailing = sum(
        bool(head[head.rfind("\n", 0, at) + 1 : at].strip())
        for at, sign in marks
        if sign == rules.comment and at >= start
    )
    filled = sum(bool(line.strip()) for line in lines)
    return trailing > 0 and trailing * COMMENT_SHARE >= filled


def _indentation(lines: list[str]) -> str:
    tabs = any(line.startswith("\t") for line in lines)
    widths = [len(found[0]) for line in lines if (found := re.match(" {2,}", line))]
    if tabs == bool(widths):
        return ""
    return "\t" if tabs else " " * min(widths)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
