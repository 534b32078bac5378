"""Resolve the paths after `@file:` and `@dir:`.

A path is relative to the project's root, else to the current file. If there is no such file, a
file whose path ends with it is used. Reads no file.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from lcursor.context import file_names, mentions
from lcursor.project import filetypes, listing
from lcursor.project.globs import path_test
from lcursor.project.reading import Reader
from lcursor.project.root import is_home_like

AROUND_ROWS = 15
"""Rows before and after a single row, as programs print it."""
MAX_FILES = 200
MAX_BYTES = 1 << 20
"""Total size of a folder's files."""
MAX_EXPLAINED = 20
"""Maximum number of left-out files of a folder that are listed with the reason."""
MAX_LISTED = 1000
MAX_EXAMPLES = 5
"""Maximum number of test files used as examples."""
_TEST: Final = re.compile(r"^tests?[_.-]|[_.-](?:tests?|spec)\.\w+$|(?:Tests?|Spec)\.\w+$")
_TEST_WORD: Final = re.compile(r"^tests?[_.-]|[_.-](?:tests?|spec)$|(?:Tests?|Spec)$")
_WILD: Final = re.compile(r"[*?]|\[[^\]]+\]")


class PathError(Exception):
    """An argument cannot be resolved; the message is for the user. Caught in `gather`."""


class NamedFiles(NamedTuple):
    """The files of an argument of `@file`."""

    paths: Sequence[Path]
    first_row: int
    end_row: int
    note: str = ""
    more: str = ""


class Folder(NamedTuple):
    """The folder of an argument of `@dir`."""

    folder: Path
    files: Sequence[tuple[Path, str]]
    """Each file with the reason why it is left out, or ""."""
    listing: str
    more: str


@dataclass
class PathResolver:
    """Resolves paths in a project."""

    reader: Reader
    path: str = ""
    _names: tuple[str, ...] | None = field(default=None, init=False)

    def display_name(self, path: Path) -> str:
        """Return a path relative to the project's root, or to the home directory."""
        given = os.path.normpath(path)
        for base, before in ((self.reader.root, ""), (Path.home(), "~/")):
            if given == str(base):
                return before.rstrip("/") or "."
            if given.startswith(f"{base}/"):
                return before + os.path.relpath(given, base)
        real = os.path.realpath(given)
        if real.startswith(f"{self.reader.root}/"):
            return os.path.relpath(real, self.reader.root)
        return given

    def target_outside(self, path: Path) -> str:
        """Return the target of a link in the project that points outside, else ""."""
        is_inside = Path(os.path.normpath(path)).is_relative_to(self.reader.root)
        return os.path.realpath(path) if is_inside and not self._is_inside(path) else ""

    def find_files(self, argument: str, *, is_foreign: bool = False) -> NamedFiles | None:
        """Return a file, with rows, or all files that match a glob; None for a folder.

        Args:
            is_foreign: it is from a prompt of the project, which must not name files outside.

        Raises:
            PathError: there is no such file, or it may not be read.
        """
        for rows in (mentions.FileRows(argument, 0, -1, False), mentions.parse_rows(argument)):
            path = self._existing(rows.path)
            if path is None:
                continue
            self._check_inside(path, is_foreign)
            return None if path.is_dir() else self._rows(path, rows)
        rows = mentions.parse_rows(argument)
        if _WILD.search(rows.path):
            return self._globbed(rows)
        return self._rows(self._ending_in("file", self._all(), rows.path), rows)

    def find_folder(self, argument: str, *, is_foreign: bool = False) -> Folder:
        """Return a folder and the selection of its files.

        Raises:
            PathError: there is no such folder, or it may not be read.
        """
        bare = argument.rstrip("/") or "/"
        path = self._existing(bare)
        if path is None:
            path = self._ending_in("folder", file_names.folders(self._all()), bare)
        self._check_inside(path, is_foreign)
        if not path.is_dir():
            raise PathError(f"it is a file: write {mentions.spell('file', argument)}")
        if is_home_like(path):
            raise PathError("it is your home directory, or above it")
        return self._read_folder(path)

    def find_frame(self, name: str) -> Path | None:
        """Return the file of a stack trace's frame; None if it is not one file of the project."""
        path = self._existing(name)
        if path is not None:
            return path if self._is_inside(path) and path.is_file() else None
        ends = file_names.ending_in(self._all(), name.strip("/").removeprefix("./"))
        return self.reader.root / ends[0] if len(ends) == 1 else None

    def tests_of(self, path: str) -> list[tuple[Path, str]]:
        """Return the tests of a file by name, then other tests as examples, nearest first."""
        folder, _, last = self.display_name(Path(path)).rpartition("/")
        stem, _, ending = last.rpartition(".")
        if not stem or _TEST.search(last):
            return []
        tests = [name for name in self._all() if name.endswith(f".{ending}")]
        tests = [name for name in tests if _TEST.search(name.rpartition("/")[2])]
        bare = stem.lower()
        own = [name for name in tests if _bare(name) == bare]
        rest = [name for name in tests if name not in own]

        def near(name: str) -> tuple[int, int, str]:
            pairs = zip(folder.split("/"), name.split("/"), strict=False)
            shared = sum(one == other for one, other in pairs)
            return -shared, name.count("/"), name

        root = self.reader.root
        found = [(root / name, "existing tests") for name in sorted(own, key=near)]
        others = sorted(rest, key=near)[:MAX_EXAMPLES]
        return found + [(root / name, "example of a test") for name in others]

    def _existing(self, name: str) -> Path | None:
        """Return the path of a name if it exists on disk or in the editor."""
        if not name or "\0" in name:
            return None
        home = Path(name).expanduser() if name.startswith("~") else Path(name)
        bases = [self.reader.root] if not home.is_absolute() else [Path("/")]
        if self.path and not home.is_absolute():
            bases.append(Path(self.path).parent)
        for base in bases:
            path = Path(os.path.normpath(base / home))
            try:
                if os.path.lexists(path) or self.reader.is_unsaved(path):
                    return path
            except (OSError, ValueError):
                continue
        return None

    def _is_inside(self, path: Path) -> bool:
        return Path(os.path.realpath(path)).is_relative_to(self.reader.root)

    def _check_inside(self, path: Path, is_foreign: bool) -> None:
        if is_foreign and not self._is_inside(path):
            raise PathError("the project's prompt names a file outside the project")

    def _ending_in(self, what: str, names: Sequence[str], name: str) -> Path:
        """Return the only path of the project that ends with a name."""
        ends = file_names.ending_in(names, name.strip("/").removeprefix("./"))
        if not ends:
            raise PathError(_no_such(what, name, names))
        if len(ends) > 1:
            few = ", ".join(ends[:5]) + (", …" if len(ends) > 5 else "")
            raise PathError(f"there are several: {few}")
        return self.reader.root / ends[0]

    def _rows(self, path: Path, rows: mentions.FileRows) -> NamedFiles:
        if not rows.is_point:
            return NamedFiles([path], rows.first_row, rows.end_row)
        first, note = max(rows.first_row - AROUND_ROWS, 0), f"around line {rows.first_row + 1}"
        return NamedFiles([path], first, rows.end_row + AROUND_ROWS, note)

    def _globbed(self, rows: mentions.FileRows) -> NamedFiles:
        glob = rows.path.removeprefix("./")
        is_rooted, names = "/" in glob and not glob.startswith(("/", "**")), self._all()
        test = path_test([f"/{glob}" if is_rooted else glob], names)
        found = [name for name in names if test(name)]
        found = [name for name in found if not self.target_outside(self.reader.root / name)]
        if not found:
            raise PathError("the project has no such file")
        rest = len(found) - MAX_FILES
        more = f"{rest} more files: over {MAX_FILES}" if rest > 0 else ""
        paths = [self.reader.root / name for name in found[:MAX_FILES]]
        return NamedFiles(paths, rows.first_row, rows.end_row, f"matches {rows.path}", more)

    def _read_folder(self, path: Path) -> Folder:
        found = listing.names(path, self.reader.root, self.reader.cancel)
        if not found.files:
            raise PathError("all its files are ignored")
        files: list[tuple[Path, str]] = []
        size = read = explained = unlisted = 0
        for name in found.files:
            full = path / name
            try:
                its = os.lstat(full).st_size
            except OSError:
                continue
            why = self.reader.secret(full) or filetypes.by_name(name, its)
            if not why and os.path.islink(full):
                why = "a symbolic link"
            if not why and (read >= MAX_FILES or size + its > MAX_BYTES):
                limit = f"{MAX_FILES} files" if read >= MAX_FILES else f"{MAX_BYTES >> 20} MB"
                why = f"the folder has over {limit}"
            if not why:
                size, read = size + its, read + 1
                files.append((full, ""))
            elif explained < MAX_EXPLAINED:
                explained += 1
                files.append((full, why))
            else:
                unlisted += 1
        more = f"{unlisted:,} more files are not included" if unlisted else found.note
        lines = list(found.files[:MAX_LISTED])
        if len(found.files) > MAX_LISTED:
            lines.append(f"… and {len(found.files) - MAX_LISTED:,} more")
        return Folder(path, files, "\n".join(lines) + "\n", more)

    def _all(self) -> tuple[str, ...]:
        if self._names is None:
            self._names = file_names.cached(self.reader.root, self.reader.cancel)
        return self._names


def _no_such(what: str, name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names[:20_000], 1, 0.7)
    if not near:
        last = {each.rpartition("/")[2]: each for each in names[:20_000]}
        close = difflib.get_close_matches(name.rpartition("/")[2], last, 1, 0.75)
        near = [last[each] for each in close]
    return f"there is no such {what}" + (f"; did you mean {near[0]}?" if near else "")


def _bare(name: str) -> str:
    """Return the name of a test file without "test"."""
    last = name.rpartition("/")[2].rpartition(".")[0]
    return _TEST_WORD.sub("", last).strip("_.-").lower()


def find_moved(text: str, name: str, first: int, end: int) -> tuple[int, int]:
    """Return the rows of a definition in a text that may have changed."""
    lines = text.split("\n")
    last = name.rpartition(".")[2]
    if not last or any(last in line for line in lines[first : min(first + 3, end)]):
        return first, end
    rows = [
        row for row, line in enumerate(lines) if re.search(rf"(?<!\w){re.escape(last)}\b", line)
    ]
    if not rows:
        return first, end
    row = min(rows, key=lambda each: abs(each - first))
    return row, row + end - first
