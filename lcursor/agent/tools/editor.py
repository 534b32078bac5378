"""View and change the files of a tree for a model. Blocks.

A change needs rows that the model has read as they are; it is followed by the lines around it and
by new problems only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from lcursor.agent.observe import NAME, Outputs, TokenLimit, numbered
from lcursor.agent.records import Observation, Shown
from lcursor.agent.tools import finish_checks, replace
from lcursor.agent.tools.finish_checks import FinishChecks
from lcursor.agent.tools.pages import Pages, Rows
from lcursor.agent.tools.read_lines import ReadLines
from lcursor.agent.tools.replace import Problem, Replacement
from lcursor.changes import diff
from lcursor.changes.lines import without_returns
from lcursor.changes.text import Text
from lcursor.code import languages, symbols
from lcursor.process.run import Cancel
from lcursor.project.redaction import PLACEHOLDER
from lcursor.workspace.files import Denied, File, Files
from lcursor.workspace.outputs import counted, new_lines, printable

VIEW_ROWS: Final = 200
AROUND_ROWS: Final = 4
FOLDER_ENTRIES: Final = 200
MAX_PROBLEMS: Final = 12
"""Maximum lines of new problems."""
HIDDEN: Final = (
    f"not changed: {PLACEHOLDER} stands for a secret value that you were not shown, and would "
    "replace it; change other lines only, and leave this one out of old_str and new_str"
)
"""Follows the path."""


class FileEditor:
    """Views and changes files.

    Args:
        include: called with the path of each new file.
    """

    def __init__(
        self,
        files: Files,
        include: Callable[[str], None],
        seen: ReadLines,
        pages: Pages,
        outputs: Outputs,
        checks: FinishChecks,
        limit: TokenLimit,
    ) -> None:
        self._files, self._include, self._seen, self._pages = files, include, seen, pages
        self._outputs, self._gate, self._limit = outputs, checks, limit
        self.changed = ""
        """The file that was changed last."""

    # Views.

    def view(self, path: str, view_range: Sequence[int]) -> Observation:
        """Return rows of a file or of a stored output, or the names in a folder.

        Raises:
            Denied: it cannot be read.
        """
        if path.startswith(NAME):
            return self._output(path, view_range)
        name, _, symbol = path.partition("#")
        if symbol and not self._files.exists(path):
            file = self._files.read(name)
            rows = _symbol(file, symbol)
            return self._page(file, *rows)
        if self._files.is_folder(path):
            return self._folder(path)
        file = self._files.read(path)
        return self._page(file, *_rows(view_range, len(file.text.lines)))

    def _page(self, file: File, first: int, last: int) -> Observation:
        lines = file.text.lines
        if file.text.is_empty:
            self._seen.show(file.path, lines, 0, len(lines))
            return Observation(f"{file.path} is empty", target=file.path, result="empty")
        rows = Rows(file.path, lines, first, last)

        def make(number: int) -> str:
            nonlocal rows
            end = first + number
            rows = Rows(file.path, lines, first, end)
            head = f"{file.path} lines {first + 1}–{end} of {len(lines):,}"
            (page,) = self._pages.render([rows])
            more = [f"(view_range [{end + 1}, {last}] has the rest)"] if end < last else []
            return "\n".join([head, *page, *more])

        text = self._limit.fit(make, last - first)
        shown = self._pages.record([rows])
        target = f"{file.path}:{rows.first_row + 1}-{rows.last_row}"
        return Observation(
            text, target=target, result=counted(rows.last_row - rows.first_row, "line"), shown=shown
        )

    def _output(self, name: str, view_range: Sequence[int]) -> Observation:
        lines = self._outputs.read(name)
        if lines is None:
            raise Denied(f"there is no stored output {printable(name)}")
        first, last = _rows(view_range, len(lines))

        def make(number: int) -> str:
            end = first + number
            head = f"{name} lines {first + 1}–{end} of {len(lines):,}"
            more = [f"(view_range [{end + 1}, {last}] has the rest)"] if end < last else []
            return "\n".join([head, *numbered(lines, first, end), *more])

        text = self._limit.fit(make, last - first)
        return Observation(
            text, target=f"{name}:{first + 1}-{last}", result=counted(len(lines), "line")
        )

    def _folder(self, path: str) -> Observation:
        name = self._files.relative(path)
        entries: list[str] = []
        for entry in self._files.names(name):
            entries.append(entry)
            if entry.endswith("/"):
                inner = entry if name == "." else f"{name}/{entry}"
                entries += (f"{entry}{each}" for each in self._files.names(inner))

        def make(number: int) -> str:
            rest = len(entries) - number
            more = [f"and {rest:,} more entries; view a folder in it"] if rest else []
            return "\n".join([f"{name}/", *map(printable, entries[:number]), *more])

        text = self._limit.fit(make, min(len(entries), FOLDER_ENTRIES))
        above = "" if name == "." else f"{name}/"
        self._seen.name(
            f"{above}{each}" for each in entries[:FOLDER_ENTRIES] if not each.endswith("/")
        )
        result = f"{len(entries):,} entr{'y' if len(entries) == 1 else 'ies'}"
        return Observation(text, target=f"{name}/", result=result)

    # Changes.

    def create(self, path: str, text: str, cancel: Cancel) -> Observation:
        """Create a file, or replace one of which all rows were read.

        Raises:
            Denied: it cannot be written.
        """
        name = self._files.relative(path)
        new = text.replace("\r\n", "\n")
        ends = new.endswith("\n") or not new
        lines = new.removesuffix("\n").split("\n") if new else []
        if not self._files.exists(name):
            return self._write(
                File(name, Text((), ends=ends), 0o644), lines, "", cancel, is_new=True
            )
        file = self._files.read(name)
        return self.change(file, Replacement(0, len(file.text.lines), tuple(lines)), cancel)

    def str_replace(self, path: str, old: str, new: str, cancel: Cancel) -> Observation:
        """Replace a text that occurs once.

        Raises:
            Denied: the file cannot be read or written.
        """
        file = self._files.read(path)
        if PLACEHOLDER in old and not any(PLACEHOLDER in line for line in file.text.lines):
            raise Denied(f"{file.path}: {HIDDEN}")
        return self.change(file, replace.find(without_returns(file.text.lines), old, new), cancel)

    def insert(self, path: str, row: int, text: str, cancel: Cancel) -> Observation:
        """Insert lines after some number of lines.

        Raises:
            Denied: the file cannot be read or written, or has fewer lines.
        """
        file = self._files.read(path)
        lines = file.text.lines if not file.text.is_empty else ()
        if not 0 <= row <= len(lines):
            raise Denied(f"insert_line is {row}, but {file.path} has {len(lines)} lines")
        new = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
        at = Replacement(row, row, tuple(new))
        return self.change(file, at, cancel, needed=(max(row - 1, 0), max(row, 1)))

    def change(
        self,
        file: File,
        found: Replacement | Problem,
        cancel: Cancel,
        needed: tuple[int, int] | None = None,
    ) -> Observation:
        """Carry out a replacement, if its rows were read."""
        lines = file.text.lines
        if isinstance(found, Problem):
            return self._problem(file, found.text, found.first_row, found.last_row)
        first, last = needed or (found.first_row, found.last_row)
        if not self._seen.is_shown(file.path, lines, first, last):
            return self.unread(file, first, last)
        lines = () if file.text.is_empty else lines
        new = [*lines[: found.first_row], *found.new, *lines[found.last_row :]]
        return self._write(file, diff.with_line_ends(lines, new), found.note, cancel)

    def _write(
        self,
        file: File,
        new: Sequence[str],
        note: str,
        cancel: Cancel,
        *,
        is_new: bool = False,
    ) -> Observation:
        path, old = file.path, file.text.lines
        spans = list(diff.spans(old, new))
        if not spans and not is_new:
            raise Denied(f"{path} would not change")
        if any(_placeholders(new[c:d]) > _placeholders(old[a:b]) for a, b, c, d in spans):
            raise Denied(f"{path}: {HIDDEN}")
        before = [] if is_new else self._gate.lint(path, old, cancel)
        self._files.write(path, file.text.with_lines(new), file.mode)
        if is_new:
            self._include(path)
        self.changed = path
        self._seen.update(path, new)
        first, last = (spans[0][2], spans[-1][3]) if spans else (0, 0)
        self._seen.show(path, new, first, last)
        if is_new:
            old = ()
        rows = (spans[0][0], spans[-1][1]) if spans else (0, 0)
        problems = []
        if wrong := finish_checks.syntax_problem(path, old, new, *rows):
            problems.append(f"new problem: {wrong}")
        elif found := new_lines(before, self._gate.lint(path, new, cancel)):
            problems += ["new problems of the linter:", *found]
        linted = self._files.read(path).text.lines  # a linter may change it
        return self._edited(path, linted, (first, last), spans, problems, note)

    def _edited(
        self,
        path: str,
        lines: Sequence[str],
        rows: tuple[int, int],
        spans: Sequence[diff.Span],
        problems: Sequence[str],
        note: str,
    ) -> Observation:
        """Return what the model reads after an edit."""
        first, last = rows
        count = sum(end - start for *_, start, end in spans)
        gone = sum(end - start for start, end, *_ in spans)
        what = counted(count, "line") if count else f"{counted(gone, 'line')} removed"
        start, stop = max(first - AROUND_ROWS, 0), min(last + AROUND_ROWS, len(lines))
        shown: list[Shown] = []

        def make(number: int) -> str:
            head = number * 2 // 3
            parts = [(start, stop)] if number >= stop - start else [
                (start, start + head), (stop - (number - head), stop)]  # fmt: skip
            shown[:] = [Shown(path, a, b) for a, b in parts if a < b]
            text = [f"edited {path}: {what} at {first + 1}", *([f"({note})"] if note else [])]
            text += numbered(lines, *parts[0])
            if len(parts) > 1:
                text.append(f"… {counted(stop - start - number, 'line')} …")
                text += numbered(lines, *parts[1])
            text += problems[:MAX_PROBLEMS]
            if len(problems) > MAX_PROBLEMS:
                text.append(f"and {counted(len(problems) - MAX_PROBLEMS, 'more line')}")
            return "\n".join(text)

        text = self._limit.fit(make, stop - start)
        for each in shown:
            self._seen.show(path, lines, each.first_row, each.last_row)
        return Observation(
            text,
            target=f"{path}:{first + 1}-{max(last, first + 1)}",
            result=f"{counted(count or gone, 'line')} changed",
            shown=tuple(shown),
        )

    def unread(self, file: File, first: int, last: int) -> Observation:
        """Return why rows are not changed that were not read, with their text."""
        words = "not changed: you have not read these lines, or they have changed since; now:"
        return self._problem(file, words, first, last)

    def _problem(self, file: File, words: str, first: int, last: int) -> Observation:
        """Return an error with the present lines."""
        lines, rows = file.text.lines, Rows(file.path, file.text.lines, first, first)

        def make(number: int) -> str:
            nonlocal rows
            rows = Rows(file.path, lines, first, first + number)
            (page,) = self._pages.render([rows])
            rest = last - first - number
            more = [f"… {counted(rest, 'more line')}"] if rest > 0 else []
            return "\n".join([f"{file.path}: {words}", *page, *more])

        text = self._limit.fit(make, max(last - first, 0))
        shown = self._pages.record([rows])
        return Observation(text, True, file.path, "not changed", shown=shown)


def _placeholders(lines: Sequence[str]) -> int:
    """Return how often lines have a placeholder instead of a secret value."""
    return sum(line.count(PLACEHOLDER) for line in lines)


def _rows(view_range: Sequence[int], count: int) -> tuple[int, int]:
    """Return the rows of a range of line numbers; without one, the first."""
    if not view_range:
        return 0, min(VIEW_ROWS, count)
    if len(view_range) != 2:
        raise Denied("view_range needs two line numbers: [first, last]; last -1 is the end")
    first, last = view_range
    last = count if last == -1 else min(last, count)
    if not 1 <= first <= count or last < first:
        raise Denied(f"view_range {list(view_range)} is not in the {count} lines")
    return first - 1, last


def _symbol(file: File, name: str) -> tuple[int, int]:
    """Return the rows of a definition."""
    lines = file.text.lines
    language = languages.detect(file.path, lines[0] if lines else "")
    for each in symbols.all_of(lines, language):
        if each.name == name:
            return each.first, each.last
    raise Denied(f"{file.path} defines no {printable(name)}")
