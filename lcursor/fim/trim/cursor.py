"""What the rules need to know of the text around the cursor. Read once a request; never changes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lcursor.fim.trim import syntax
from lcursor.fim.trim.syntax import CLOSER, Mark, Syntax

LINES_BELOW = 2
LINES_ABOVE = 2
COMMENT_LINES = 20
"""So many lines before the cursor say whether this file has comments behind its code."""
COMMENT_SHARE = 3
"""One line of so many having one is enough."""


_OPENS = re.compile(r"[:{]$")
_LABEL = re.compile(r"(case\b|default\s*:)")


@dataclass(frozen=True, slots=True)
class CursorContext:
    """The text around the cursor."""

    line: str
    """The cursor's line up to the cursor."""
    rest: str = ""
    """The cursor's line from the cursor on."""
    below: tuple[str, ...] = ()
    """The next lines that are not blank, at most `LINES_BELOW`."""
    above: tuple[str, ...] = ()
    """The last lines before the cursor's that are not blank, the nearest last."""
    single_line: bool = False
    max_lines: int = 12
    syntax: Syntax = syntax.UNKNOWN
    inside: str = ""
    """What is open where the cursor's line begins: see `syntax.scan`."""
    wanted: str = ""
    """Closing brackets that the text before the cursor wants and the lines below do not have."""
    comment: str = ""
    """Leader of comments that are cut when they stand behind code; "" where they may stay."""
    indent: str = ""
    """One step of the file's indentation where all lines agree on tabs or spaces, else ""."""

    @property
    def next_line(self) -> str:
        """The next line that is not blank, "" at the end of the file."""
        return self.below[0] if self.below else ""

    @property
    def newline(self) -> str:
        """How the file's lines end."""
        lines = (self.rest, *self.above, *self.below)
        return "\r\n" if any(line.endswith("\r") for line in lines) else "\n"

    @property
    def opens_block(self) -> bool:
        """Whether the cursor is behind all of a line after which a block begins."""
        line = self.line.strip()
        if self.rest.strip() or self.inside or not self.syntax.pairs or not _OPENS.search(line):
            return False
        marks, inside = syntax.scan(self.line, self.syntax)
        if inside:  # a string, or a comment
            return False
        if line.endswith("{"):
            return True
        has_blocks = self.syntax.comment == "#" and line[0] not in "\"'"
        return not syntax.unclosed(marks) and (has_blocks or bool(_LABEL.match(line)))

    def marks(self, text: str) -> list[Mark]:
        """Scan a text at the cursor; the places count from the cursor on."""
        shift = len(self.line)
        found, _ = syntax.scan(self.line + text, self.syntax, self.inside)
        return [(at - shift, sign) for at, sign in found if at >= shift]


def cursor_context(
    prefix: str, suffix: str, single_line: bool, max_lines: int, path: str = ""
) -> CursorContext:
    """Describe the text before and after the cursor.

    Args:
        prefix: text before the cursor, from the start of a line on.
        suffix: text after it.
        single_line: only the cursor's line is wanted.
        max_lines: most lines of a suggestion.
        path: the file's, which tells the language; "" where there is none.
    """
    head, newline, line = prefix.rpartition("\n")
    rest, _, after = suffix.partition("\n")
    rules = syntax.for_path(path)
    marks, inside = syntax.scan(head + newline, rules)
    own, behind = syntax.scan(line, rules, inside)
    below = [other for other in after.split("\n") if other.strip()]
    above = [other for other in head.split("\n") if other.strip()]
    _, behind = syntax.scan(rest + "\n", rules, behind)
    closing, _ = syntax.scan(after, rules, behind)
    return CursorContext(
        line=line,
        rest=rest,
        below=tuple(below[:LINES_BELOW]),
        above=tuple(above[-LINES_ABOVE:]),
        single_line=single_line,
        max_lines=max_lines,
        syntax=rules,
        inside=inside,
        wanted=_wanted(syntax.unclosed(marks + own), syntax.unopened(closing)),
        comment="" if _has_comments(head, marks, rules) else rules.comment,
        indent=_indentation([*above, *below]),
    )


def _wanted(opening: list[str], closing: list[Mark]) -> str:
    """Return what would close the brackets that the text below does not close, innermost first.

    The brackets are matched from the cursor outwards, as the windows may end anywhere.
    """
    given = [sign for _, sign in reversed(closing)]
    wanted = []
    for opener in reversed(opening):
        if given and given[-1] == CLOSER[opener]:
            given.pop()
        else:
            wanted.append(CLOSER[opener])
    return "".join(wanted)


def _has_comments(head: str, marks: list[Mark], rules: Syntax) -> bool:
    """Whether comments behind code are a habit of the lines before the cursor's."""
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
