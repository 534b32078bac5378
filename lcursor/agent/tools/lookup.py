"""Search the files of a tree: lines by a pattern, paths by a glob, code by its meaning. Blocks.

Git lists and searches the files, tracked ones and new ones that no rule ignores, with the run's own
repository, so that no configuration in the tree has an effect. Files with secrets are left out.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from lcursor.agent.observe import TokenLimit
from lcursor.agent.records import Observation
from lcursor.agent.tools.pages import Pages, Rows
from lcursor.agent.tools.read_lines import ReadLines
from lcursor.context.codebase import Codebase, GrepSearch, IndexSearch
from lcursor.context.items import SearchHit
from lcursor.index.client import Client
from lcursor.process.run import Cancel, Output
from lcursor.project.globs import path_test
from lcursor.workspace.files import Denied, Files
from lcursor.workspace.outputs import counted, cut_line, printable
from lcursor.workspace.shadow_git import ShadowGit
from lcursor.workspace.tree import Tree

MAX_HITS: Final = 60
MAX_FILE_HITS: Final = 15
"""Maximum of one file, if others have hits, too."""
MAX_COUNTED: Final = 8
"""Maximum number of files whose other hits are counted by name."""
MAX_PATHS: Final = 100
MAX_FOUND: Final = 8
MAX_TEXTS: Final = 2
"""Number of the best hits of a search that are shown as text."""
FIND_TOKENS: Final = 4000
MAX_S: Final = 5.0
MAX_BYTES: Final = 8 << 20
LITERAL: Final = "the pattern is not a valid regular expression: searched as literal text"


def open_codebase(tree: Tree, secrets: Sequence[str] = ()) -> IndexSearch:
    """Return a search of the project's index, if it has one, with the agent's changes; close it."""
    client = Client(tree.root, start=False)
    return IndexSearch(client, GrepSearch(tree.path, secrets))


class Lookup:
    """Searches the files of a tree."""

    def __init__(
        self,
        tree: Tree,
        files: Files,
        codebase: Codebase,
        seen: ReadLines,
        pages: Pages,
        limit: TokenLimit,
    ) -> None:
        self._tree, self._files, self._codebase = tree, files, codebase
        self._seen, self._pages, self._limit = seen, pages, limit
        self._git = ShadowGit(tree.folder)
        self._overlaid: set[str] = set()
        self._overlaid_at = tree.base

    def grep(self, pattern: str, path: str, glob: str, cancel: Cancel) -> Observation:
        """Return the lines that match a regular expression.

        Raises:
            Denied: the path is not allowed, or the search failed.
        """
        inside = self._files.relative(path) if path else "."
        if inside != "." and not self._files.exists(inside):
            raise Denied(f"there is no file or folder {inside}")
        output, note = self._grep(pattern, inside, cancel)
        hits_by_path: dict[str, list[tuple[int, str]]] = {}
        for name, row, line in _rows(output.data):
            hits_by_path.setdefault(name, []).append((row, line))
        is_wanted = path_test([glob] if glob else [], hits_by_path)
        allowed = {
            name: rows
            for name, rows in hits_by_path.items()
            if is_wanted(name) and self._is_allowed(name)
        }
        limit = MAX_HITS if len(allowed) == 1 else MAX_FILE_HITS
        hits = [(name, row, line) for name, rows in allowed.items() for row, line in rows[:limit]][
            :MAX_HITS
        ]
        readable = {name: self._lines(name) for name in dict.fromkeys(name for name, *_ in hits)}
        hits = [hit for hit in hits if readable[hit[0]] is not None]
        counts = Counter({name: len(rows) for name, rows in allowed.items()
                          if readable.get(name, ()) is not None})  # fmt: skip
        total = counts.total()
        shown: list[tuple[str, int, str]] = []

        def make(number: int) -> str:
            shown[:] = hits[:number]
            rest = counts - Counter(name for name, *_ in shown)
            lines = [f"{printable(name)}:{row + 1}: {cut_line(printable(line.strip()))}"
                     for name, row, line in shown]  # fmt: skip
            return "\n".join([*lines, *_rest(rest), *note]) or "no line matches"

        text = self._limit.fit(make, len(hits))
        for name, row, _ in shown:
            lines = readable[name]
            if lines is not None:
                self._seen.show(name, lines, row, row + 1)
        self._seen.name(dict.fromkeys(name for name, *_ in shown))
        where = f" in {path}" if path else f" in {glob}" if glob else ""
        return Observation(text, target=f"{pattern}{where}", result=counted(total, "hit"))

    def glob(self, pattern: str, cancel: Cancel) -> Observation:
        """Return the paths that match a glob, the newest first.

        Raises:
            Denied: git failed.
        """
        words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        output = self._ask(words, cancel)
        if output.failure and not output.is_cut:
            raise Denied(f"the files cannot be listed: {output.failure}")
        bare = pattern.removeprefix(f"{self._tree.root}/").removeprefix("./")
        names = dict.fromkeys(map(os.fsdecode, output.data.split(b"\0")[:-1]))
        fits = path_test([bare] if bare not in ("", "*", "**", "**/*") else [], names)
        aged = []
        for name in filter(fits, names):
            try:
                aged.append((-os.lstat(self._tree.path / name).st_mtime_ns, name))
            except OSError:
                continue  # deleted
        paths = [name for _, name in sorted(aged)]
        shown: list[str] = []

        def make(number: int) -> str:
            shown[:] = paths[:number]
            rest = len(paths) - number
            more = [f"and {rest:,} more; use a narrower pattern"] if rest else []
            if output.is_cut:
                more.append("not all files were listed")
            return "\n".join([*map(printable, shown), *more]) or "no file matches"

        text = self._limit.fit(make, min(len(paths), MAX_PATHS))
        self._seen.name(reversed(shown))
        return Observation(text, target=pattern, result=counted(len(paths), "file"))

    def search(self, query: str, path: str, cancel: Cancel) -> Observation:
        """Return the code that is relevant to a question, as it is in the tree.

        Raises:
            Denied: the path is not allowed.
        """
        inside = self._files.relative(path) if path else "."
        self._overlay()
        result = self._codebase.find(query, FIND_TOKENS, cancel)
        present: list[tuple[SearchHit, list[str], int, int]] = []
        for hit in result.hits:
            if inside in (".", hit.path) or hit.path.startswith(f"{inside}/"):
                lines = self._lines(hit.path)
                rows = _present(hit, lines) if lines is not None else None
                if lines is not None and rows is not None:
                    present.append((hit, lines, *rows))
        omitted = len(present) - MAX_FOUND + len(result.omitted)
        present = present[:MAX_FOUND]
        parts: list[Rows] = []

        def make(number: int) -> str:
            """Show the given number of lines of the best hits."""
            lines, parts[:] = [], []
            for hit, text, first, last in present:
                scope = f" {hit.scope}" if hit.scope else ""
                head = next((line.strip() for line in text[first:last] if line.strip()), "")
                lines.append(f"{hit.path}:{first + 1}-{last}{scope} — {cut_line(printable(head))}")
            if present:
                lines.append(f"why the first: {present[0][0].why}")
            for hit, text, first, last in present[:MAX_TEXTS]:
                parts.append(Rows(hit.path, text, first, min(first + number, last)))
                number -= parts[-1].last_row - first
            for part, page, (*_, last) in zip(
                parts, self._pages.render(parts), present[:MAX_TEXTS], strict=True
            ):
                if page:
                    lines += ["", f"{part.path}:", *page]
                if part.last_row < last:
                    lines.append(f"… {counted(last - part.last_row, 'line')} of {part.path}")
            if omitted > 0:
                lines.append(f"and {counted(omitted, 'weaker hit')}")
            return "\n".join([*lines, *filter(None, [result.note])]) or "nothing was found"

        text = self._limit.fit(make, sum(last - first for *_, first, last in present[:MAX_TEXTS]))
        self._seen.name(dict.fromkeys(hit.path for hit, *_ in reversed(present)))
        shown = self._pages.record(parts)
        return Observation(text, target=query, result=counted(len(present), "hit"), shown=shown)

    def _overlay(self) -> None:
        """Send the texts of changed files to the index, if there is a new checkpoint."""
        if not isinstance(self._codebase, IndexSearch) or self._overlaid_at == self._tree.last:
            return
        found = (each for each in self._tree.changed() if each.kind != "delete")
        changed = {each.to or each.path for each in found}
        for path in sorted(changed | self._overlaid):
            lines = self._lines(path) if path in changed else None
            text = None if lines is None else "".join(f"{line}\n" for line in lines)
            self._codebase.overlay(path, text)
        self._overlaid, self._overlaid_at = changed, self._tree.last

    def _lines(self, path: str) -> list[str] | None:
        """Return the lines of a file; None if it cannot be read."""
        try:
            return list(self._files.read(path).text.lines)
        except Denied:
            return None

    def _is_allowed(self, path: str) -> bool:
        try:
            self._files.relative(path)
        except Denied:
            return False
        return True

    def _grep(self, pattern: str, inside: str, cancel: Cancel) -> tuple[Output, list[str]]:
        """Search with Perl's expressions, or with those of git; an invalid one is literal text."""
        output = Output(b"")
        for kind in ("-P", "-E", "-F"):
            words = ("grep", "--untracked", "--no-recurse-submodules", "-I", "-n", "-z", kind)
            output = self._ask((*words, "--no-color", "-e", pattern, "--", inside), cancel)
            if output.is_cut:
                return output, [f"the search is incomplete: {output.failure}"]
            if not output.failure:
                is_literal = kind == "-F"
                return output, [LITERAL] if is_literal else []
        if "over limit" in output.failure:
            raise Denied("a file is too large for the search; name a path without it")
        raise Denied(f"the search failed: {output.failure}")

    def _ask(self, words: Sequence[str], cancel: Cancel) -> Output:
        return self._git.output(
            self._tree.path, *words, max_bytes=MAX_BYTES, max_s=MAX_S, ok=(0, 1), cancel=cancel
        )


def _rows(data: bytes) -> Iterator[tuple[str, int, str]]:
    """Parse `path NUL row NUL text`."""
    for line in data.split(b"\n"):
        parts = line.split(b"\0", 2)
        if len(parts) == 3 and parts[1].isdigit():
            yield os.fsdecode(parts[0]), int(parts[1]) - 1, parts[2].decode("utf-8", "replace")


def _rest(rest: Counter[str]) -> list[str]:
    """Return a line that counts hits that are not shown."""
    if not rest:
        return []
    named = [f"{name} {count:,}" for name, count in rest.most_common(MAX_COUNTED)]
    others = len(rest) - len(named)
    if others:
        named.append(counted(others, "other file"))
    return [f"and {rest.total():,} more in {counted(len(rest), 'file')}: {', '.join(named)}"]


def _present(hit: SearchHit, lines: Sequence[str]) -> tuple[int, int] | None:
    """Return the rows of a hit in the present text; None if it is gone."""
    text = hit.text.removesuffix("\n").split("\n")
    if list(lines[hit.first_row : hit.end_row]) == text:
        return hit.first_row, min(hit.end_row, len(lines))
    head = next((line for line in text if line.strip()), None)
    rows = [row for row, line in enumerate(lines) if line == head]
    if not rows:
        return None
    first = min(rows, key=lambda row: abs(row - hit.first_row))
    return first, min(first + len(text), len(lines))
