"""What is left out by its name, and what `.lcursorignore` and `.gitignore` say without git.

The only importer of pathspec. Reads ignore files, nothing else; one object is for one thread. Other
tools' ignore files (`.prettierignore`, `.dockerignore`) mean something else and are not read.
"""

from __future__ import annotations

import re
from pathlib import Path

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

OWN = ".lcursorignore"
BY_GIT = ".gitignore"

ALWAYS = frozenset(
    {
        *(".git", ".hg", ".svn", ".bzr", ".jj", ".sl", "CVS"),
        *("node_modules", "bower_components", "jspm_packages", ".yarn", ".pnpm-store", ".npm"),
        *(".next", ".nuxt", ".svelte-kit", ".parcel-cache", ".turbo", ".angular", ".sass-cache"),
        *(".venv", "__pycache__", ".tox", ".nox", ".eggs", ".ipynb_checkpoints", ".hypothesis"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".pytype", ".direnv", ".cache"),
        *(".gradle", ".terraform", ".dart_tool", ".stack-work", "dist-newstyle", ".bundle"),
        *(".zig-cache", "zig-cache", "zig-out", ".elixir_ls", "elm-stuff", "Pods", "DerivedData"),
        *(".metals", ".bloop", ".bsp", ".ccls-cache", ".idea", ".vs"),
    }
)
"""Directories that hold what tools wrote, tracked or not."""
WITHOUT_GIT = frozenset(
    {"build", "dist", "target", "out", "obj", "vendor", "venv", "coverage", "htmlcov", "_build"}
)
"""Directories that mostly do; where git is asked, it knows better."""
MARKS = frozenset({"CACHEDIR.TAG", "pyvenv.cfg"})
"""A directory with one of these is a cache or a Python environment."""
LEFTOVERS = re.compile(r".*~|\..*\.sw[a-p]|\.#.*|#.*#|4913|\.DS_Store", re.S)
"""Files that editors leave behind. Vim tries with `4913` whether it may write."""

DEFAULT_HINT = "left out by default"


class Rules:
    """The ignore files of a project, stacked by directory as git does it.

    Args:
        root: of the project.
        is_in_git: git is asked besides: its ignore files are not read here.
    """

    def __init__(self, root: Path, *, is_in_git: bool) -> None:
        self._root = root
        self._names = (OWN,) if is_in_git else (BY_GIT, OWN)
        self._folders = ALWAYS if is_in_git else ALWAYS | WITHOUT_GIT
        self._read: dict[str, list[_File]] = {}
        self._verdicts: dict[str, str] = {"": ""}

    @property
    def excludes(self) -> list[str]:
        """The default directories as patterns for git, less those that are taken in again."""
        own = self._files("")
        return [
            f"{name}/"
            for name in sorted(self._folders)
            if not any(file.says(f"{name}/")[0] is False for file in own)
        ]

    def of_folder(self, folder: str) -> str:
        """Return why a directory is left out, itself or one above it; "" if it is not."""
        known = self._verdicts.get(folder)
        if known is None:
            above, _, name = folder.rpartition("/")
            known = self.of_folder(above) or self._own(folder, name, is_folder=True)
            self._verdicts[folder] = known
        return known

    def of_file(self, path: str) -> str:
        """Return why a file is left out, itself or with its directory; "" if it is not."""
        above, _, name = path.rpartition("/")
        return self.of_folder(above) or self._own(path, name, is_folder=False)

    def _own(self, path: str, name: str, *, is_folder: bool) -> str:
        """Return what is said of a path itself; its directory is not left out."""
        if name == ".git":
            return "git's own"
        at = path.rpartition("/")[0]
        while True:
            for file in reversed(self._files(at)):
                below = path[len(at) + 1 :] if at else path
                is_out, why = file.says(f"{below}/" if is_folder else below)
                if is_out is not None:
                    return why if is_out else ""
            if not at:
                break
            at = at.rpartition("/")[0]
        if is_folder:
            return f"{name}: {DEFAULT_HINT}" if name in self._folders else ""
        return "an editor's leftover" if LEFTOVERS.fullmatch(name) else ""

    def _files(self, folder: str) -> list[_File]:
        found = self._read.get(folder)
        if found is None:
            found = []
            for name in self._names:
                path = self._root / folder / name
                try:
                    text = path.read_bytes().decode("utf-8", "surrogateescape")
                except OSError:
                    continue
                found.append(_File(f"{folder}/{name}" if folder else name, text))
            self._read[folder] = found
        return found


class _File:
    """One ignore file."""

    def __init__(self, shown: str, text: str) -> None:
        self._shown = shown
        self._patterns: list[tuple[re.Pattern[str], bool, int, str]] = []
        for row, line in enumerate(text.removeprefix("\ufeff").split("\n")):
            pattern = _compile(line.removesuffix("\r"))
            if pattern:
                self._patterns.append((*pattern, row + 1, line.strip()))
        self._patterns.reverse()  # the last one that fits counts

    def says(self, path: str) -> tuple[bool | None, str]:
        """Return whether the path is left out, None for no word on it, and where that stands."""
        for regex, is_out, row, line in self._patterns:
            if regex.fullmatch(path):
                return is_out, f"{self._shown}:{row}: {line}"
        return None, ""


EVERYTHING, EVERY_FOLDER = re.compile(".*", re.S), re.compile(".*/", re.S)


def _compile(line: str) -> tuple[re.Pattern[str], bool] | None:
    """Return what a line matches as a whole, directories with a slash, and whether it excludes.

    pathspec's expressions match a directory's entries with it, with which a later `!entry` would
    be lost; matched as a whole they do not. What it abbreviates is written out for that.
    """
    sign, bare = ("!", line[1:]) if line.startswith("!") else ("", line)
    bare = bare if bare.endswith("\\ ") else bare.rstrip()
    if bare in {"*", "**", "*/", "**/", "/**"}:
        return (EVERY_FOLDER if bare.endswith("/") else EVERYTHING), not sign
    if bare.endswith("/**"):
        bare += "/*"
    try:
        pattern = GitIgnoreSpecPattern(sign + bare)
    except ValueError:
        return None  # git passes over it, too
    if pattern.include is None or pattern.regex is None:
        return None
    return re.compile(pattern.regex.pattern, re.S), pattern.include  # newlines are letters, too
