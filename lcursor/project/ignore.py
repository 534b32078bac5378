"""Decide which paths of a project are left out: by default, by `.lcursorignore` or by git.

The only importer of pathspec. Opens only ignore files. Other tools' ignore files
(`.prettierignore`, `.dockerignore`) have other purposes and are not read.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from lcursor.project import git
from lcursor.project.globs import rule_test
from lcursor.project.links import Links
from lcursor.project.reading import open_inside

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
"""Directories with output of tools, left out even if tracked."""
WITHOUT_GIT = frozenset(
    {"build", "dist", "target", "out", "obj", "vendor", "venv", "coverage", "htmlcov", "_build"}
)
"""Directories that usually have it, left out only without git."""
MARKS = frozenset({"CACHEDIR.TAG", "pyvenv.cfg"})
"""A directory with one of these is a cache or a Python environment."""
LEFTOVERS = re.compile(r".*~|\..*\.sw[a-p]|\.#.*|#.*#|4913|\.DS_Store", re.S)
"""Temporary files of editors. Vim creates `4913` to test for write permission."""

BY_DEFAULT = "left out by default"

IGNORED_BY_GIT = "git ignores it"
NOT_A_FILE = "not a regular file"
LINK = "a symbolic link"
BEHIND_LINK = f"it is below {LINK}"
OTHER_WORK_TREE = "another work tree of a repository"
MARKED = "a cache or a Python environment"

MAX_BYTES = 1 << 20
"""Maximum of an ignore file."""
MAX_CACHED = 50_000
"""Cached results of a matcher."""


class IgnoreRules:
    """The ignore files of a project, combined by directory as git does.

    Args:
        is_in_git: do not read `.gitignore` files, because git applies them.
    """

    def __init__(self, root: Path, *, is_in_git: bool) -> None:
        self.remarks: list[str] = []
        """Which ignore files are not applied, and why."""
        self._root = root
        self._names = (OWN,) if is_in_git else (BY_GIT, OWN)
        self._defaults = ALWAYS if is_in_git else ALWAYS | WITHOUT_GIT
        self._files: dict[str, list[_File]] = {}
        self._folders: dict[str, str] = {"": ""}

    @property
    def excludes(self) -> list[str]:
        """The default directories as patterns for git, except those that a rule includes again."""
        own_files = self._files_in("")
        return [
            f"{name}/"
            for name in sorted(self._defaults)
            if not any(file.match(f"{name}/")[0] is False for file in own_files)
        ]

    def reason(self, path: str) -> str:
        """Return why a path, or a directory above it, is left out; "" if it is not.

        Args:
            path: relative to the root; a directory ends with a slash, "" is the root.
        """
        if not path or path.endswith("/"):
            return self._folder_reason(path[:-1])
        above, _, name = path.rpartition("/")
        return self._folder_reason(above) or self._own_reason(path, name, is_folder=False)

    def _folder_reason(self, folder: str) -> str:
        cached = self._folders.get(folder)
        if cached is None:
            above, _, name = folder.rpartition("/")
            cached = self._folder_reason(above) or self._own_reason(folder, name, is_folder=True)
            self._folders[folder] = cached
        return cached

    def _own_reason(self, path: str, name: str, *, is_folder: bool) -> str:
        """Return why a path itself is left out, given that the directories above it are not."""
        if name == ".git":
            return "git's own"
        folder_above = path.rpartition("/")[0]
        while True:
            for file in reversed(self._files_in(folder_above)):
                below = path[len(folder_above) + 1 :] if folder_above else path
                is_out, rule = file.match(f"{below}/" if is_folder else below)
                if is_out is not None:
                    return rule if is_out else ""
            if not folder_above:
                break
            folder_above = folder_above.rpartition("/")[0]
        if is_folder:
            return f"{name}: {BY_DEFAULT}" if name in self._defaults else ""
        return "a temporary file of an editor" if LEFTOVERS.fullmatch(name) else ""

    def _files_in(self, folder: str) -> list[_File]:
        files = self._files.get(folder)
        if files is None:
            files = []
            for name in self._names:
                path = f"{folder}/{name}" if folder else name
                try:
                    with open_inside(self._root, path) as file:
                        data = file.read(MAX_BYTES + 1)
                except FileNotFoundError:
                    continue
                except OSError:
                    self.remarks.append(f"{path} is not applied: it is no regular file of yours")
                    continue
                if len(data) > MAX_BYTES:
                    self.remarks.append(f"{path} is not applied: it has over {MAX_BYTES >> 20} MB")
                    continue
                files.append(_File(path, data.decode("utf-8", "surrogateescape")))
            self._files[folder] = files
        return files


class IgnoreMatcher:
    """Finds the paths of a project that ignore files, the defaults or git leave out.

    Caches its results, so it misses later changes of ignore files. For one thread.

    Args:
        root: of the project, without symbolic links.
        is_in_git: whether to use git; None for automatic.
    """

    def __init__(self, root: Path, *, is_in_git: bool | None = None) -> None:
        if is_in_git is None:
            try:
                is_in_git = git.repository(root) is not None
            except git.GitFailed:
                is_in_git = False
        self._root, self.is_in_git = root, is_in_git
        self.rules = IgnoreRules(root, is_in_git=is_in_git)
        self._known: dict[str, str] = {}
        self._repositories: dict[str, tuple[str, ...]] = {"": ("",)}

    def reasons(self, paths: Sequence[str]) -> dict[str, str]:
        """Return the left-out ones of some existing paths, each with the reason.

        Args:
            paths: relative to the root; a directory ends with a slash.

        Raises:
            GitFailed: git failed.
        """
        if len(self._known) + len(paths) > MAX_CACHED:
            self._known.clear()
        unsure: list[tuple[str, str, str]] = []
        """Path, its repository, and its path in that repository."""
        for path in paths:
            if path in self._known:
                continue
            self._known[path] = self.rules.reason(path)
            if self._known[path] or not self.is_in_git:
                continue
            repositories = self._repositories_around(path.rpartition("/")[0])
            # An outer repository may ignore a nested one.
            for inside, inner in zip(repositories, [*repositories[1:], path], strict=True):
                if below := inner[len(inside) :].rstrip("/"):
                    unsure.append((path, inside, below))
        try:
            for inside in dict.fromkeys(inside for _, inside, _ in unsure):
                candidates = [below for _, at, below in unsure if at == inside]
                found = git.ignored(self._root / inside, candidates)
                for path, at, below in unsure:
                    if at == inside and below in found and not self._known[path]:
                        self._known[path] = f"{IGNORED_BY_GIT}: {found[below]}"
        except git.GitFailed:
            self._known.clear()
            raise
        return {path: self._known[path] for path in paths if self._known[path]}

    def _repositories_around(self, folder: str) -> tuple[str, ...]:
        """Return the repositories that contain a directory, outermost first."""
        cached = self._repositories.get(folder)
        if cached is None:
            cached = self._repositories_around(folder.rpartition("/")[0])
            if os.path.lexists(self._root / folder / ".git"):
                cached = (*cached, f"{folder}/")
            self._repositories[folder] = cached
        return cached


def why(root: Path, path: str | Path) -> str:
    """Return why a path, absolute or relative to the root, is left out; "" if it is not."""
    top = Path(os.path.realpath(root))
    full = Path(os.path.normpath(top / path))
    given = Path(os.path.normpath(root.absolute()))
    if not full.is_relative_to(top) and full.is_relative_to(given):
        full = top / full.relative_to(given)
    if not full.is_relative_to(top):
        return f"it is not in the project: {top}"
    relative = full.relative_to(top)
    if link := Links(top).above(relative.as_posix()):
        return f"{BEHIND_LINK}: {link}"
    try:
        mode = os.lstat(full).st_mode
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if stat.S_ISLNK(mode):
        return f"it is {LINK}"
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return f"it is {NOT_A_FILE}"
    if not relative.parts:
        return ""
    is_folder = stat.S_ISDIR(mode)
    name = f"{relative}/" if is_folder else str(relative)
    matcher = IgnoreMatcher(top)
    reason = matcher.rules.reason(name)
    if reason.endswith(BY_DEFAULT):
        return f"{reason}; a line !{reason.partition(':')[0]}/ in {OWN} includes it"
    if reason:
        return reason
    folders = [*reversed(relative.parents[:-1]), *([relative] if is_folder else [])]
    for folder in folders:
        if any(os.path.lexists(top / folder / mark) for mark in MARKS):
            return f"{folder} is {MARKED}"
        if matcher.is_in_git and git.is_other_work_tree(top / folder / ".git"):
            return f"{folder} is {OTHER_WORK_TREE}"
    try:
        return matcher.reasons([name]).get(name, "")
    except git.GitFailed as failure:
        return f"git failed: {failure}"


class _File:
    def __init__(self, shown: str, text: str) -> None:
        self._shown = shown
        self._patterns: list[tuple[Callable[[str], object], bool, int, str]] = []
        for row, line in enumerate(text.removeprefix("\ufeff").split("\n")):
            pattern = _compile(line.removesuffix("\r"))
            if pattern:
                self._patterns.append((*pattern, row + 1, line.strip()))
        self._patterns.reverse()  # the last match wins

    def match(self, path: str) -> tuple[bool | None, str]:
        """Return whether a path is left out, None if no rule matches, and the rule."""
        for matches, is_out, row, line in self._patterns:
            if matches(path):
                return is_out, f"{self._shown}:{row}: {line}"
        return None, ""


EVERYTHING, EVERY_FOLDER = (re.compile(each, re.S).fullmatch for each in (".*", ".*/"))


def _compile(line: str) -> tuple[Callable[[str], object], bool] | None:
    """Return a test of whole paths for a line, and whether it excludes.

    pathspec's expressions also match the entries of a directory, which would defeat a later
    `!entry`; matching whole paths avoids that, after abbreviations are expanded.
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
        return None  # git ignores it, too
    if pattern.include is None or pattern.regex is None:
        return None
    return rule_test(pattern.regex.pattern), pattern.include
