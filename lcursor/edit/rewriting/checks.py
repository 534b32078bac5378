"""Looks at a change before anybody sees it: does it parse, look like its file, and keep the rest.

Compares what was there with what would be; knows no model and runs nothing. What a command says
about a change is `trial.py`'s. Pure; any thread.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from lcursor.code import grammars, structure
from lcursor.code.structure import Definition
from lcursor.edit.records import Check, Lines, Region

if TYPE_CHECKING:
    from lcursor.code.grammars import Node


MAX_DELETED: Final = 0.3
"""Share of a region's lines that may go without a remark."""
MIN_ROWS: Final = 8
"""A region with fewer lines may lose any number of them without a remark."""
MAX_GROWTH: Final = 4
GROWTH_ROWS: Final = 120
"""A region may grow to so many times its lines and so many more."""
REPEATS: Final = 4
"""A model that has lost its way writes the same lines again and again."""
STYLE_ROWS: Final = 3
"""So many indented lines say how a file is indented."""
VALUES: Final = frozenset(
    {"variable", "field", "constant", "property", "key", "element", "section", "index", "selector"}
)
"""Definitions that may come and go with any change."""
FUNCTIONS: Final = frozenset({"function", "method", "test", "macro"})
COPY_ROWS: Final = 3
COPY_SHARE: Final = 0.8
KEPT_SHARE: Final = 0.2
"""A text is a copy of other rows of the file if it has so many of theirs, and so few of its own."""


def check(
    old: Sequence[str],
    new: Sequence[str],
    region: Region,
    language: str,
) -> tuple[Check, ...]:
    """Compare a file before and after its region was written anew.

    Args:
        old: all lines of the file.
        new: all lines after the change.
        region: rows of `old` that were written anew.
        language: of the index's names; another means that nothing is parsed.

    Returns:
        `parses` and `symbols` where the language has a grammar, `indent` and `size` always. That
        definitions or many lines are gone is a remark, the text of a check that is passed: only
        the user knows whether that was asked for.

    Cost: two parses, about 3 MB/s.
    """
    end = region.last_row + len(new) - len(old)
    before = old[region.first_row : region.last_row]
    after = new[region.first_row : max(end, region.first_row)]
    found: list[Check] = []
    rest = (
        end < region.first_row
        or list(new[: region.first_row]) != list(old[: region.first_row])
        or list(new[end:]) != list(old[region.last_row :])
    )
    trees = _Trees.of(language, old, new)
    if trees is not None:
        found += [_parses(trees, region.first_row, end), _symbols(trees, region, end)]
    words = "lines outside of the region are changed" if rest else ""
    if not words and _is_copy(old, region, before, after):
        words = "it is a copy of other lines of the file, and the lines that were there are gone"
    if words:
        found = [each for each in found if each.name != "symbols"]
        found.append(Check("symbols", False, words))
    found.append(_indent(old, region, before, after))
    found.append(_size(before, after))
    return tuple(found)


def failed(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return those that say that something is wrong."""
    return tuple(each for each in checks if not each.is_ok)


class _Trees:
    """A text before and after, parsed."""

    def __init__(self, language: str, old: _Tree, new: _Tree) -> None:
        self.language, self.old, self.new = language, old, new

    @classmethod
    def of(cls, language: str, old: Sequence[str], new: Sequence[str]) -> _Trees | None:
        before, after = _Tree.of(language, old), _Tree.of(language, new)
        return cls(language, before, after) if before and after else None


class _Tree:
    """A text, parsed."""

    def __init__(self, language: str, lines: Sequence[str], data: bytes, root: Node) -> None:
        self._language, self.lines, self._data, self.root = language, lines, data, root

    @classmethod
    def of(cls, language: str, lines: Sequence[str]) -> _Tree | None:
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        root = grammars.parse(language, data)
        return cls(language, lines, data, root) if root is not None else None

    def definitions(self) -> list[Definition]:
        return structure.definitions_in_tree(self._language, self.root, self._data, self.lines)

    def errors(self) -> list[Node]:
        """Return what could not be parsed, and what is missing; the outermost of each."""
        found: list[Node] = []
        work = [self.root]
        while work:
            node = work.pop()
            if node.is_error or node.is_missing:
                found.append(node)
            if node.has_error:
                work += reversed(node.children)
        return found


def _parses(trees: _Trees, first: int, end: int) -> Check:
    was, now = trees.old.errors(), trees.new.errors()
    if len(now) > len(was):
        inside = [node for node in now if first <= node.start_point[0] < end]
        return Check("parses", False, _told((inside or now)[0], trees.new.lines))
    if trees.language == "python" and not was:
        words = _python(trees.new.lines)
        if words and not _python(trees.old.lines):
            return Check("parses", False, words)
    return Check("parses", True)


def _told(node: Node, lines: Sequence[str]) -> str:
    row = node.start_point[0]
    shown = lines[row].strip() if row < len(lines) else ""
    if node.is_missing:
        return f"line {row + 1}: `{node.type}` is missing: {shown}"
    return f"line {row + 1}: this does not parse: {shown}"


def _python(lines: Sequence[str]) -> str:
    """Return what Python itself says against a text; it is stricter than the grammar."""
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


def _symbols(trees: _Trees, region: Region, end: int) -> Check:
    was, now = trees.old.definitions(), trees.new.definitions()
    outside_was = _outside(was, region.first_row, region.last_row)
    outside_now = _outside(now, region.first_row, end)
    if gone := list((outside_was - outside_now).elements()):
        return Check("symbols", False, f"{_listed(gone)} outside of the region would be lost")
    if outside_now - outside_was:
        more = list((outside_now - outside_was).elements())
        return Check("symbols", False, f"{_listed(more)} outside of the region would be another")
    kept = {item.name for item in now if region.first_row <= item.own_first < max(end, 1)}
    lost = [
        item.path
        for item in was
        if region.first_row <= item.own_first < region.last_row
        and item.kind not in VALUES
        and not _is_local(item, was)
        and item.name not in kept
    ]
    return Check("symbols", True, f"removes {_listed(lost)}" if lost else "")


def _outside(found: Sequence[Definition], first: int, end: int) -> Counter[str]:
    """Count what is defined outside of some rows, by its path.

    What holds the rows stands outside; of it, only the name counts here, as of the rest.
    """
    return Counter(
        item.path for item in found if item.kind not in VALUES and not first <= item.own_first < end
    )


def _is_local(item: Definition, found: Sequence[Definition]) -> bool:
    """Whether it stands in a function, which may do without it."""
    return item.parent >= 0 and found[item.parent].kind in FUNCTIONS


def _listed(names: Sequence[str], most: int = 3) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _indent(
    old: Sequence[str], region: Region, before: Sequence[str], after: Sequence[str]
) -> Check:
    first_was = next((line for line in before if line.strip()), None)
    first_now = next((line for line in after if line.strip()), None)
    if first_was is not None and first_now is not None:
        wanted, got = _lead(first_was), _lead(first_now)
        if wanted != got:
            return Check("indent", False, f"it begins with {_blank(got)}, not {_blank(wanted)}")
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
    """Return how lines are indented.

    Returns:
        Whether with tabs, None where too few lines say it or they say both; and by how many blanks
        a block is, 0 where that is not plain.
    """
    tabs = blanks = 0
    steps: Counter[int] = Counter()
    last = 0
    for line in lines:
        bare = line.lstrip(" \t")
        if not bare:
            continue
        lead = line[: len(line) - len(bare)]
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
    """Whether lines are indented in the way that a file is not."""
    leads = [_lead(line) for line in lines if line.strip()]
    if has_tabs:
        return any(lead[:2] == "  " for lead in leads)
    return any("\t" in lead for lead in leads)


def moved(old: Sequence[str], new: Sequence[str]) -> Lines:
    """Return lines with the indentation of the first changed to that of another text's first."""
    first_was = next((line for line in old if line.strip()), "")
    first_now = next((line for line in new if line.strip()), "")
    wanted, got = _lead(first_was), _lead(first_now)
    if wanted == got or not all(line.startswith(got) for line in new if line.strip()):
        return tuple(new)
    return tuple(wanted + line[len(got) :] if line.strip() else line for line in new)


def _lead(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _blank(lead: str) -> str:
    if not lead:
        return "no indentation"
    what = "tabs" if lead.strip("\t") == "" else "blanks" if lead.strip(" ") == "" else "signs"
    return f"{len(lead)} {what if len(lead) != 1 else what[:-1]} of indentation"


def _size(before: Sequence[str], after: Sequence[str]) -> Check:
    was, now = _count(before), _count(after)
    if now > MAX_GROWTH * was + GROWTH_ROWS:
        return Check("size", False, f"{was} line{'s' * (was != 1)} became {now}")
    if (rows := _repeated(after)) and not _repeated(before):
        return Check("size", False, f"its last {rows} lines repeat themselves")
    is_short = was >= MIN_ROWS and was - now > MAX_DELETED * was
    return Check("size", True, f"{was - now} of {was} lines are gone" if is_short else "")


def _is_copy(
    old: Sequence[str], region: Region, before: Sequence[str], after: Sequence[str]
) -> bool:
    """Whether a text says again what stands elsewhere, and no more what stood there."""
    own = {line.strip() for line in before if line.strip()}
    rows = [line.strip() for line in after if line.strip()]
    if len(own) < COPY_ROWS or len(rows) < COPY_ROWS:
        return False
    others = {line.strip() for line in (*old[: region.first_row], *old[region.last_row :])} - own
    copied = sum(row in others for row in rows)
    return copied >= COPY_SHARE * len(rows) and len(own & {*rows}) < KEPT_SHARE * len(own)


def _count(lines: Sequence[str]) -> int:
    return sum(bool(line.strip()) for line in lines)


def _repeated(lines: Sequence[str]) -> int:
    """Return how many lines at the end are one piece said again and again; 0 for none.

    A single line has to come more often than a piece of several: tables look like that.
    """
    rows = [line.strip() for line in lines if line.strip()]
    for size in range(1, min(24, len(rows) // REPEATS) + 1):
        piece, times = rows[-size:], 1
        if sum(map(len, piece)) < 8:
            continue
        while rows[-size * (times + 1) : -size * times] == piece:
            times += 1
        if times >= (REPEATS * 2 if size == 1 else REPEATS):
            return size * times
    return 0
