"""The copy of a project that an agent works in, with a checkpoint after each step.

    tree = Tree.create(root, folder, unsaved={"/p/a.py": "x = 1"})
    ...                                # commands and tools change files in tree.path
    tree.checkpoint()                  # the id of all files; equal ids, equal files
    tree.changed()                     # [TreeChange("a.py", "edit", ...)]

Checkpoints are trees in a git repository of our own, see `shadow_git`; the user's repository is not
written. Ignored files are in no checkpoint. Blocks; one thread at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from lcursor.config import AgentConfig
from lcursor.errors import AgentFailed, LcursorError
from lcursor.process.run import Cancel
from lcursor.process.sandbox import Confinement
from lcursor.process.visibility import why_hidden
from lcursor.project import dependencies
from lcursor.project.git import GitFailed, split
from lcursor.project.names import quoted
from lcursor.project.reading import open_regular
from lcursor.project.root import is_home_like
from lcursor.project.secrets import SecretGlobs
from lcursor.storage import folders, json_text
from lcursor.workspace import git_history, visible_files
from lcursor.workspace.git_history import HistoryMaker
from lcursor.workspace.project_copy import ProjectCopy
from lcursor.workspace.shadow_git import ShadowGit

RECORD: Final = "tree.json"
ASIDE: Final = "aside"
WHOLE: Final = "whole"
"""Name of the checkpoint that is restored; see `Tree.restoring`."""
GIT_RULES: Final = frozenset({".gitignore", ".gitattributes"})
NAMES: Final[Mapping[str, ChangeKind]] = {"A": "create", "D": "delete", "R": "rename"}
EXECUTABLE: Final = 0o100755
LINK: Final = 0o120000

ChangeKind = Literal["edit", "create", "delete", "rename"]


@dataclass(frozen=True, slots=True)
class TreeChange:
    """A file that differs between two checkpoints."""

    path: str
    """Relative to the root."""
    kind: ChangeKind
    to: str = ""
    """New path of a renamed file."""
    added: int = 0
    """Number of lines."""
    removed: int = 0
    is_binary: bool = False
    modes: tuple[int, int] = (0, 0)
    """Old and new mode as git has it; 0 for a missing file."""
    keys: tuple[str, str] = ("", "")
    """Object ids of the old and the new content."""

    @property
    def is_link(self) -> bool:
        """Whether it was a link, or is one now."""
        return LINK in self.modes

    @property
    def is_made_executable(self) -> bool:
        """Whether it can be executed now, and could not before."""
        return self.modes[1] == EXECUTABLE != self.modes[0]


class Tree:
    """The files of a run, in `folder`: `tree/`, `git/`, `index`, `history/` and `tree.json`."""

    def __init__(self, root: Path, folder: Path, record: Mapping[str, Any]) -> None:
        self.root, self.folder, self.path = root, folder, folder / "tree"
        self.base = ""
        """The tree that the run started with."""
        self.last = ""
        """The newest checkpoint."""
        self.left_out: Mapping[str, str] = record["left_out"]
        """Files of the project that were not copied, with the reasons."""
        self.problems: list[str] = []
        """What was repaired, for the user; the caller clears it."""
        self._why_no_history = ""
        self._is_in_git = bool(record["objects"])
        self._secrets = SecretGlobs(root, record["secrets"])
        self._git = ShadowGit(folder)

    @classmethod
    def create(
        cls,
        root: Path,
        folder: Path,
        *,
        unsaved: Mapping[str, str],
        secrets: Sequence[str] = (),
        cancel: Cancel | None = None,
    ) -> Tree:
        """Copy what the user sees of a project.

        Args:
            root: of the project.
            folder: of the run.
            unsaved: texts of the editor by absolute path, without a final newline.
            secrets: globs of secret files, in addition to the built-in ones.

        Raises:
            AgentFailed: it cannot be copied; nothing of it is left.
            Cancelled: `cancel` returned true.
        """
        root = Path(os.path.realpath(root))
        if (folder / "tree").exists():
            raise AgentFailed(f"{folder} exists already", "Start a new run")
        if is_home_like(root):
            raise AgentFailed(
                f"{root} is your home directory, or above it: all in it would be copied",
                "Open a file in a folder of its own",
            )
        try:
            folders.make_private(folder)
            with _reported(folder):
                record = ProjectCopy(root, folder, secrets, cancel).make(unsaved)
                folders.write_file(folder / RECORD, json.dumps(record).encode())
                tree = cls(root, folder, record)
                tree._mark()
                tree.base = tree.checkpoint()
                tree._git.put("base", tree.base)
                return tree
        except BaseException:
            for name in ("tree", "git", "index", "index.lock", git_history.NAME, RECORD):
                folders.remove(folder / name)
            raise

    @classmethod
    def open(cls, root: Path, folder: Path) -> Tree:
        """Open the copy of an earlier run; restore the last checkpoint if its files are gone.

        Raises:
            AgentFailed: the checkpoints are gone as well.
        """
        try:
            record = json_text.parse((folder / RECORD).read_bytes())
            tree = cls(Path(os.path.realpath(root)), folder, record)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _lost(folder) from error
        git = tree._git
        tree.base, tree.last = git.get("base"), git.get("last")
        if not tree.last or not tree.base:
            raise _lost(folder)
        try:
            git.ask(folder, "ls-files", "--error-unmatch", "-z", ok=(0, 1))
        except GitFailed:
            git.index.unlink(missing_ok=True)
        if whole := git.get(WHOLE):  # this process was killed meanwhile
            tree.restore(whole)
            git.remove(WHOLE)
        elif tree._is_gone() or not git.index.exists():
            tree.restore(tree.last)
        return tree

    def checkpoint(self) -> str:
        """Record the present files; return the id of their tree. Equal ids mean equal files.

        If the files are gone, the last checkpoint is restored and `problems` says so.

        Raises:
            AgentFailed: git failed, for example because the disk is full.
        """
        if self._is_gone():
            self.problems.append("the run's files were deleted; the last checkpoint was restored")
            self.restore(self.last)
            return self.last
        with _reported(self.folder):
            self._add_all()
            tree_id = self._ask("write-tree", "--missing-ok").decode().strip()
            if tree_id != self.last:
                self._name(tree_id, "last")
        self.last = tree_id
        return tree_id

    def include(self, path: str) -> None:
        """Let checkpoints have a new file, even if git ignores its path.

        Raises:
            AgentFailed: git failed.
        """
        with _reported(self.folder):
            self._ask("add", "--force", "--", path)

    def restore(self, tree: str) -> None:
        """Give all files the state of a checkpoint; ignored files stay.

        Raises:
            AgentFailed: git failed.
        """
        with _reported(self.folder):
            self.path.mkdir(mode=0o700, exist_ok=True)
            self._add_all()
            self._ask("read-tree", "--reset", "-u", tree)
            self._mark()
            self._name(tree, "last")
        self.last = tree

    @contextlib.contextmanager
    def restoring(self) -> Iterator[None]:
        """Give all files their present state again at the end; after a kill `open` does.

        Raises:
            AgentFailed: git failed.
        """
        whole = self.checkpoint()
        with _reported(self.folder):
            self._git.put(WHOLE, whole)
        try:
            yield
        finally:
            self.restore(whole)
            self._git.remove(WHOLE)

    def changed(self, since: str = "") -> list[TreeChange]:
        """List the files that differ now from a checkpoint, by default from the start.

        Raises:
            AgentFailed: git failed, or objects of the user's repository were deleted.
        """
        since, now = since or self.base, self.checkpoint()
        if since == now:
            return []
        words = ("diff-tree", "-r", "-z", "-M", "--raw", "--numstat", "--no-ext-diff")
        with _reported(self.folder):
            return _parse(split(self._ask(*words, "--no-textconv", since, now)))

    def contents(self, keys: Sequence[str], max_bytes: int) -> dict[str, bytes]:
        """Return the contents of files by the object ids of `TreeChange.keys`.

        Args:
            max_bytes: of a file; larger ones are left out.

        Raises:
            AgentFailed: one of them is missing.
        """
        with _reported(self.folder):
            return self._git.contents(self.folder, keys, max_bytes)

    def secret_reason(self, path: str) -> str:
        """Return why a file of the project is secret by its name; "" if it is not."""
        return self._secrets.name_reason(path)

    def confinement(self, config: AgentConfig) -> Confinement:
        """Return what commands of this run may touch.

        They see the tree at the project's path, a repository with its last commits, installed
        packages and large files of the user, and `agent.readable`; all but the tree is read-only.
        """
        has_history = self._is_in_git and self._make_history()
        own = [(self.folder / git_history.NAME, self.root / ".git")] if has_history else []
        large = (path for path, why in self.left_out.items() if why == visible_files.TOO_LARGE)
        packages = [self.root / path for path in (*self._packages(), *large)]
        env = {name: os.environ[name] for name in config.env if name in os.environ}
        return Confinement(
            self.path,
            self.root,
            tuple(own),
            tuple(packages),
            _readable(config),
            env=env,
            secrets=self._secrets.globs,
        )

    def hidden(self, config: AgentConfig) -> list[str]:
        """Return which packages and folders of the settings commands do not see, and why."""
        packages = (self.root / path for path in self._packages())
        reasons = [(path, why_hidden(path, follows_links=False)) for path in packages]
        reasons += [
            (path, why_hidden(path, is_chosen=True, root=self.root)) for path in _readable(config)
        ]
        return [f"Commands do not see {quoted(str(path))}: {why}." for path, why in reasons if why]

    def _make_history(self) -> bool:
        """Make the repository for commands, unless it exists; return whether it exists then."""
        if (self.folder / git_history.NAME).is_dir():
            return True
        if self._why_no_history:
            return False
        try:
            HistoryMaker(self.folder, self._git, self.secret_reason).make()
        except (OSError, GitFailed) as error:
            self._why_no_history = str(error)
            self.problems.append(f"commands do not see the history of git: {error}")
            return False
        self._mark()
        return True

    def _packages(self) -> list[str]:
        """Return the folders of installed packages that the user's project has and git ignores."""
        with _reported(self.folder):
            words = ("ls-tree", "-r", "-t", "-d", "-z", "--name-only")
            listed = split(self._ask(*words, self.base))
        return dependencies.installed(self.root, listed)

    # Parts of the above.

    def _ask(self, *words: str, ok: Sequence[int] = (0,)) -> bytes:
        return self._git.ask(self.path, *words, ok=ok)

    def _add_all(self) -> None:
        """Make the index that of the present files; one that cannot be read stays as it was."""
        self._move_repositories_aside()
        (self.folder / "index.lock").unlink(missing_ok=True)  # of a killed git
        self._ask("add", "--all", "--ignore-errors", ok=(0, 1))

    def _name(self, tree: str, name: str) -> None:
        self._git.put(tree, tree)
        self._git.put(name, tree)

    def _is_gone(self) -> bool:
        """Return whether something other than the agent has deleted files.

        Commands in a sandbox with mounts cannot delete the mark.
        """
        if self._is_in_git:
            return not os.path.lexists(self.path / ".git")
        with contextlib.suppress(OSError), os.scandir(self.path) as found:
            return not any(found) and self.last not in ("", self._empty())
        return True

    def _empty(self) -> str:
        return self._ask("hash-object", "-t", "tree", "--stdin").decode().strip()

    def _mark(self) -> None:
        """Create `tree/.git`: where the sandbox shows our repository, or else refers to it."""
        mark = self.path / ".git"
        if not self._is_in_git:
            return
        mark.mkdir(mode=0o700, exist_ok=True)
        head = (self._git.folder / "HEAD").read_bytes()
        history = self.folder / git_history.NAME
        common = os.fsencode(f"{history if history.is_dir() else self._git.folder}\n")
        for name, data in (("HEAD", head), ("commondir", common)):
            with (
                contextlib.suppress(OSError),
                open_regular(mark / name, follows_links=False) as file,
            ):
                if file.read(len(data) + 1) == data:
                    continue
            folders.remove(mark / name)
            (mark / name).write_bytes(data)
        if not (mark / "index").exists():
            folders.remove(mark / "index")
            shutil.copyfile(self._git.folder / "index", mark / "index")

    def _move_repositories_aside(self) -> None:
        """Move what commands made and git would look into out of the tree.

        These are repositories, and pipes and devices named as git's rules, at which it would wait.
        """
        for path in _repositories(self.path):
            is_mark = path == self.path / ".git" and self._is_in_git
            if is_mark and path.is_dir() and not path.is_symlink():
                continue
            aside = self.folder / ASIDE
            aside.mkdir(mode=0o700, exist_ok=True)
            number = len(os.listdir(aside)) + 1
            name = os.path.relpath(path, self.path)
            os.chmod(path.parent, 0o700)
            os.rename(path, aside / f"{number}-{name.replace(os.sep, '_')[-100:]}")
            self.problems.append(f"{quoted(name)} was moved to {aside}: it would disturb git")
        if self._is_in_git and self.path.is_dir():
            self._mark()


def _repositories(tree: Path) -> list[Path]:
    """Return every `.git` below a folder, without those in others, and special rules files.

    A folder that a command made unlistable is made listable: git would enter it nevertheless, and
    run what a repository in it names. A file that a command made unreadable is made readable: git
    would go on with its old content.
    """
    repositories, waiting = list[Path](), [os.fspath(tree)]
    while waiting:
        for entry in _entries(waiting.pop()):
            if entry.name == ".git":
                repositories.append(Path(entry.path))
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif entry.name in GIT_RULES and not (entry.is_file() or entry.is_symlink()):
                repositories.append(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                mode = entry.stat(follow_symlinks=False).st_mode
                if not mode & stat.S_IRUSR:
                    os.chmod(entry.path, stat.S_IMODE(mode) | stat.S_IRUSR)
    return repositories


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """List a folder of the tree, which no command uses at the time."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except PermissionError:
        os.chmod(folder, 0o700)
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:  # the whole tree, which the caller restores
        return []


def _parse(fields: Sequence[str]) -> list[TreeChange]:
    """Parse the output of `diff-tree --raw --numstat -z`."""
    rows, counts, index = list[tuple[list[str], str, str]](), list[tuple[str, str]](), 0
    while index < len(fields):
        head = fields[index]
        if head.startswith(":"):
            words = head[1:].split()
            is_rename = words[4][0] == "R"
            rows.append((words, fields[index + 1], fields[index + 2] if is_rename else ""))
            index += 3 if is_rename else 2
        else:
            added, removed, name = head.split("\t", 2)
            counts.append((added, removed))
            index += 1 if name else 3
    changes = []
    for (words, path, to), (added, removed) in zip(rows, counts, strict=True):
        old, new, old_key, new_key, letter = words
        is_binary = added == "-"
        lines = (0, 0) if is_binary else (int(added), int(removed))
        modes, kind = (int(old, 8), int(new, 8)), NAMES.get(letter[0], "edit")
        changes.append(TreeChange(path, kind, to, *lines, is_binary, modes, (old_key, new_key)))
    return changes


def _readable(config: AgentConfig) -> tuple[Path, ...]:
    """Return the folders and files of `agent.readable` that exist."""
    paths = (Path(name).expanduser() for name in config.readable)
    return tuple(path for path in paths if path.is_absolute() and path.exists())


@contextlib.contextmanager
def _reported(folder: Path) -> Iterator[None]:
    """Raise AgentFailed for an error of git or of the file system."""
    try:
        yield
    except (OSError, GitFailed) as error:
        words = (error.strerror if isinstance(error, OSError) else "") or error
        raise AgentFailed(
            f"the files of the run in {folder} cannot be read or written: {words}",
            "Check disk space and permissions, and whether git status works in the project",
        ) from error


def _lost(folder: Path) -> LcursorError:
    return AgentFailed(f"the files of this run are gone from {folder}", "Start a new run")
