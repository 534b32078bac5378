"""Check a change statically: syntax, indentation, size, and unchanged surroundings.

Pure; any thread.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lcursor.changes.lines import has_text, indent_of, stripped
from lcursor.changes.records import Check, Region
from lcursor.code import grammars, structure
from lcursor.code.structure import Definition
from lcursor.project.redaction import PLACEHOLDER, UNREADABLE

if TYPE_CHECKING:
    from lcursor.code.grammars import Node


@dataclass(frozen=True, slots=True)
class Failure:
    """What the failure of a check means."""

    penalty: int
    """To choose the best of several failed attempts."""
    heading: str
    """For the model, before the problem."""


MAX_DELETED: Final = 0.3
"""Maximum share of a region's lines that may be deleted without a remark."""
MIN_ROWS: Final = 8
"""A region with fewer lines may lose any of them without a remark."""
MAX_GROWTH: Final = 4
GROWTH_ROWS: Final = 120
"""A region may grow by this factor plus this number of lines."""
REPEATS: Final = 4
"""Number of repetitions at the end that indicate a model in a loop."""
STYLE_ROWS: Final = 3
"""Minimum of indented lines that show the style of a file."""
FAILURES: Final = {
    "parses": Failure(50, "It does not parse"),
    "symbols": Failure(20, "It loses what others need"),
    "size": Failure(10, "Its size is wrong"),
    "test": Failure(6, "The tests fail"),
    "indent": Failure(4, "The indentation is wrong"),
    "lint": Failure(2, "The linter complains"),
    "format": Failure(1, "It cannot be formatted"),
}
"""What the failure of each check means, by its name; a new check needs a row."""
VALUES: Final = frozenset(
    {"variable", "field", "constant", "property", "key", "element", "section", "index", "selector"}
)
"""Kinds of definitions that any change may add or remove."""
FUNCTIONS: Final = frozenset({"function", "method", "test", "macro"})
COPY_ROWS: Final = 3
COPY_SHARE: Final = 0.8
RETAINED_SHARE: Final = 0.2
"""A text with a smaller share of its old lines may be a copy of other rows of the file."""

_CLAUSES: Final = re.compile(r"[;\n]|[.,]\s|\b(?:and|then|but)\b", re.IGNORECASE)
_ABOUT_NOTES: Final = re.compile(
    r"comment|doc|explain|describ|licen|todo|typo|spell|^\s*(?:the|its?|an?|all|what|how|why)\b",
    re.IGNORECASE,
)
"""Clauses of an instruction that comments can fulfil, or that say more about such a clause."""
_ADDS_NOTE: Final = re.compile(r"\b(?:add|write|give|put)\b[^.;\n]*\b(?:comment|docstring)", re.I)


def check(
    old: Sequence[str], new: Sequence[str], region: Region, language: str
) -> tuple[Check, ...]:
    """Compare a file before and after a region of it was rewritten.

    Returns `parses` and `symbols` if the language has a grammar, `indent` and `size` always.
    Missing definitions or many missing lines may be intended, so they only give a remark, the text
    of a passed check. Cost: two parses, about 3 MB/s.
    """
    end = region.last_row + len(new) - len(old)
    before = old[region.first_row : region.last_row]
    after = new[region.first_row : max(end, region.first_row)]
    results: list[Check] = []
    rest = (
        end < region.first_row
        or list(new[: region.first_row]) != list(old[: region.first_row])
        or list(new[end:]) != list(old[region.last_row :])
    )
    trees = _Tree.parse(language, old), _Tree.parse(language, new)
    if trees[0] and trees[1]:
        results.append(_parses(trees[0], trees[1], region.first_row, end))
        results.append(_symbols(trees[0], trees[1], region, end))
    words = "lines outside of the region are changed" if rest else ""
    if not words and _is_copy(old, region, before, after):
        words = "it is a copy of other lines of the file, and the lines that were there are gone"
    if not words and PLACEHOLDER in "\n".join(after) and PLACEHOLDER not in "\n".join(before):
        words = f"it has {PLACEHOLDER} where a secret was, which the model did not get"
    if not words and UNREADABLE in "\n".join(after) and UNREADABLE not in "\n".join(before):
        words = f"it has {UNREADABLE} for bytes that are not UTF-8, which the model did not get"
    if words:
        results = [each for each in results if each.name != "symbols"]
        results.append(Check("symbols", False, words))
    results.append(_indent(old, region, before, after))
    results.append(_size(before, after))
    return tuple(results)


def parses(old: Sequence[str], new: Sequence[str], region: Region, language: str) -> Check | None:
    """Compare only the syntax of a file before and after a region of it was rewritten.

    Returns None if the language has no grammar. Cost: one parse if the new text has no errors.
    """
    after = _Tree.parse(language, new)
    if after is None:
        return None
    if not after.root.has_error and (language != "python" or not _python_error(new)):
        return Check("parses", True)
    before = _Tree.parse(language, old)
    if before is None:
        return None
    end = region.last_row + len(new) - len(old)
    return _parses(before, after, region.first_row, end)


def effect(old: Sequence[str], new: Sequence[str], language: str, instruction: str) -> Check | None:
    """Return a remark if a change visibly leaves out a part of its instruction.

    That is the code, if only comments and docstrings have changed, or these, if the instruction
    asks to add one. Returns None if the language has no grammar, or nothing is left out.
    """
    before, after = _Tree.parse(language, old), _Tree.parse(language, new)
    if not before or not after:
        return None
    (code, notes), (code_now, notes_now) = before.texts(), after.texts()
    clauses = [each for each in _CLAUSES.split(instruction) if each.strip()]
    if notes != notes_now:
        is_incomplete = code == code_now and not all(map(_ABOUT_NOTES.search, clauses))
        return Check("effect", True, "only comments have changed") if is_incomplete else None
    if _ADDS_NOTE.search(instruction):
        return Check("effect", True, "no comment or docstring has changed")
    return None


def failed(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return the checks that failed."""
    return tuple(each for each in checks if not each.is_ok)


class _Tree:
    """The syntax tree of a text."""

    def __init__(self, language: str, lines: Sequence[str], data: bytes, root: Node) -> None:
        self.language, self.lines, self._data, self.root = language, lines, data, root

    @classmethod
    def parse(cls, language: str, lines: Sequence[str]) -> _Tree | None:
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        root = grammars.parse(language, data)
        return cls(language, lines, data, root) if root is not None else None

    def definitions(self) -> list[Definition]:
        return structure.definitions_in_tree(self.language, self.root, self._data, self.lines)

    def texts(self) -> tuple[list[bytes], list[bytes]]:
        """Return the texts of the code, and of the comments and docstrings."""
        code, notes, work = list[bytes](), list[bytes](), [self.root]
        while work:
            node = work.pop()
            text = self._data[node.start_byte : node.end_byte]
            is_docstring = node.type == "expression_statement" and [
                each.type for each in node.children
            ] == ["string"]
            if "comment" in node.type or is_docstring:
                notes.append(text)
            elif node.children:
                work += reversed(node.children)
            elif text.strip():
                code.append(text)
        return code, notes

    def errors(self) -> list[Node]:
        """Return the outermost syntax errors and the missing nodes."""
        nodes: list[Node] = []
        work = [self.root]
        while work:
            node = work.pop()
            if node.is_error or node.is_missing:
                nodes.append(node)
            if node.has_error:
                work += reversed(node.children)
        return nodes


def _parses(before: _Tree, after: _Tree, first: int, end: int) -> Check:
    was, now = before.errors(), after.errors()
    if len(now) > len(was):
        inside = [node for node in now if first <= node.start_point[0] < end]
        return Check("parses", False, _describe_error((inside or now)[0], after.lines))
    if after.language == "python" and not was:
        words = _python_error(after.lines)
        if words and not _python_error(before.lines):
            return Check("parses", False, words)
    return Check("parses", True)


def _describe_error(node: Node, lines: Sequence[str]) -> str:
    row = node.start_point[0]
    shown = lines[row].strip() if row < len(lines) else ""
    if node.is_missing:
        return f"line {row + 1}: `{node.type}` is missing: {shown}"
    return f"line {row + 1}: this does not parse: {shown}"


def _python_error(lines: Sequence[str]) -> str:
    """Return Python's own syntax error; Python is stricter than the grammar."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("\n".join(lines) + "\n")
    except SyntaxError as error:
        row = error.lineno or 0
        shown = lines[row - 1].strip() if 0 < row <= len(lines) else ""
        return f"line {row}: {error.msg}" + (f": {shown}" if shown else "")
    except (ValueError, RecursionError, MemoryError):
        pass
    return ""


def _symbols(before: _Tree, after: _Tree, region: Region, end: int) -> Check:
    was, now = before.definitions(), after.definitions()
    outside_was = _outside(was, region.first_row, region.last_row)
    outside_now = _outside(now, region.first_row, end)
    if gone := list((outside_was - outside_now).elements()):
        return Check("symbols", False, f"{_listed(gone)} outside of the region would be lost")
    if outside_now - outside_was:
        more = list((outside_now - outside_was).elements())
        return Check("symbols", False, f"{_listed(more)} outside of the region would be another")
    retained = {item.name for item in now if region.first_row <= item.own_first < max(end, 1)}
    lost = [
        item.path
        for item in was
        if region.first_row <= item.own_first < region.last_row
        and item.kind not in VALUES
        and not _is_local(item, was)
        and item.name not in retained
    ]
    return Check("symbols", True, f"removes {_listed(lost)}" if lost else "")


def _outside(found: Sequence[Definition], first: int, end: int) -> Counter[str]:
    """Count the definitions that start outside of some rows, by path."""
    return Counter(
        item.path for item in found if item.kind not in VALUES and not first <= item.own_first < end
    )


def _is_local(item: Definition, found: Sequence[Definition]) -> bool:
    """Return whether a definition is local to a function."""
    return item.parent >= 0 and found[item.parent].kind in FUNCTIONS


def _listed(names: Sequence[str], limit: int = 3) -> str:
    rest = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {rest} more" if rest > 0 else "")


def _indent(
    old: Sequence[str], region: Region, before: Sequence[str], after: Sequence[str]
) -> Check:
    first_was, first_now = next(filter(has_text, before), None), next(filter(has_text, after), None)
    if first_was is not None and first_now is not None:
        wanted, got = indent_of(first_was), indent_of(first_now)
        if wanted != got:
            return Check(
                "indent", False, f"it begins with {_describe(got)}, not {_describe(wanted)}"
            )
    tabs_was, width_was = style(old)
    tabs_now, width_now = style(after)
    if tabs_was is not None and _has_other(after, tabs_was) and not _has_other(before, tabs_was):
        has, is_ = ("tabs", "blanks") if tabs_was else ("blanks", "tabs")
        return Check("indent", False, f"the file is indented with {has}, this with {is_}")
    if not tabs_was and not tabs_now:
        around = [*old[: region.first_row], *old[region.last_row :]]
        width_was = style(around)[1] or width_was
        if width_was and width_now and width_was != width_now and style(before)[1] != width_now:
            words = f"the file is indented by {width_was} blanks, this by {width_now}"
            return Check("indent", False, words)
    return Check("indent", True)


def style(lines: Sequence[str]) -> tuple[bool | None, int]:
    """Return whether lines are indented with tabs, and the number of spaces of a level.

    None if there are too few lines or both occur; 0 if the number is unclear.
    """
    tabs = blanks = 0
    steps: Counter[int] = Counter()
    last = 0
    for line in lines:
        if not has_text(line):
            continue
        lead = indent_of(line)
        if lead.startswith("\t"):
            tabs += 1
        elif len(lead) > 1:
            blanks += 1
        width = len(lead)
        if width > last and "\t" not in lead:
            steps[width - last] += 1
        last = width
    width = 0
    if steps:
        best, count = steps.most_common(1)[0]
        total = sum(steps.values())
        width = best if best in (2, 3, 4, 8) and count * 5 >= total * 3 and total >= 2 else 0
    if tabs >= STYLE_ROWS and not blanks:
        return True, 0
    if blanks >= STYLE_ROWS and not tabs:
        return False, width
    if tabs and not blanks:
        return True, 0
    return (False, width) if blanks and not tabs else (None, 0)


def _has_other(lines: Sequence[str], has_tabs: bool) -> bool:
    """Return whether lines use tabs in a file with spaces, or the reverse."""
    leads = [indent_of(line) for line in lines if has_text(line)]
    if has_tabs:
        return any(lead[:2] == "  " for lead in leads)
    return any("\t" in lead for lead in leads)


def _describe(lead: str) -> str:
    if not lead:
        return "no indentation"
    what = "tabs" if lead.strip("\t") == "" else "blanks" if lead.strip(" ") == "" else "signs"
    return f"{len(lead)} {what if len(lead) != 1 else what[:-1]} of indentation"


def _size(before: Sequence[str], after: Sequence[str]) -> Check:
    was, now = len(stripped(before)), len(stripped(after))
    if now > MAX_GROWTH * was + GROWTH_ROWS:
        return Check("size", False, f"{was} line{'s' * (was != 1)} became {now}")
    if (rows := _repeated(after)) and not _repeated(before):
        return Check("size", False, f"its last {rows} lines repeat themselves")
    is_short = was >= MIN_ROWS and was - now > MAX_DELETED * was
    return Check("size", True, f"{was - now} of {was} lines are gone" if is_short else "")


def _is_copy(
    old: Sequence[str], region: Region, before: Sequence[str], after: Sequence[str]
) -> bool:
    """Return whether a text repeats other lines of the file instead of its own."""
    old_lines = {*stripped(before)}
    rows = stripped(after)
    if len(old_lines) < COPY_ROWS or len(rows) < COPY_ROWS:
        return False
    others = {
        line.strip() for line in (*old[: region.first_row], *old[region.last_row :])
    } - old_lines
    copied = sum(row in others for row in rows)
    return copied >= COPY_SHARE * len(rows) and len(old_lines & {*rows}) < RETAINED_SHARE * len(
        old_lines
    )


def _repeated(lines: Sequence[str]) -> int:
    """Return the number of final lines that repeat one block; 0 for none.

    A single line must be repeated more often than several, because of tables.
    """
    rows = stripped(lines)
    for size in range(1, min(24, len(rows) // REPEATS) + 1):
        piece, times = rows[-size:], 1
        if sum(map(len, piece)) < 8:
            continue
        while rows[-size * (times + 1) : -size * times] == piece:
            times += 1
        if times >= (REPEATS * 2 if size == 1 else REPEATS):
            return size * times
    return 0
