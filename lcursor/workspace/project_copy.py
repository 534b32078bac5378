"""Copy what the user sees of a project, for an agent. Blocks; one thread."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lcursor.changes import text
from lcursor.changes.records import lines_of
from lcursor.changes.text import Text
from lcursor.errors import EditFailed
from lcursor.process.run import Cancel
from lcursor.project.git import GitFailed, split
from lcursor.project.reading import SECRET_TEXT, open_inside
from lcursor.project.secrets import KEY_FORMATS, SecretGlobs, has_private_key
from lcursor.workspace import shadow_git
from lcursor.workspace.shadow_git import ShadowGit
from lcursor.workspace.visible_files import VisibleFiles, default_excludes, visible_files

MIN_FREE_BYTES: Final = 256 << 20
"""Space that a copy leaves on the disk."""


class ProjectCopy:
    """Copies a project to `folder/tree`, with a repository of ours and its index."""

    def __init__(
        self,
        root: Path,
        folder: Path,
        secrets: Sequence[str],
        cancel: Cancel | None,
    ) -> None:
        self._root, self._folder = root, folder
        self._tree = folder / "tree"
        self._secrets, self._cancel = secrets, cancel
        self._git = ShadowGit(folder)

    def make(self, unsaved: Mapping[str, str]) -> dict[str, Any]:
        """Copy what the user sees; return what is to be stored about the copy.

        Raises:
            OSError, GitFailed: it cannot be copied.
        """
        try:
            user = shadow_git.read_checkout(self._root, self._cancel)
        except GitFailed:  # its files can still be listed
            user = None
        excludes = default_excludes(self._root, is_in_git=user is not None)
        self._git.create(user, excludes)
        staged, tracked, hidden = "", None, list[str]()
        if user is not None:
            self._git.copy_index(self._root, user, self._cancel)
            staged = self._staged()
            tracked, hidden = self._tracked()
        files = visible_files(self._root, tracked, self._secrets, self._cancel)
        self._check_space(files.total_bytes)
        if user is not None:
            attributes = (path for path in files.times_ns if path.endswith(".gitattributes"))
            if user.may_convert or any(attributes):
                self._forget_converted()
        self._add(files, [*(tracked or ()), *hidden])
        self._leave_out_keys(files)
        rules = "".join(f"{shadow_git.pattern(path)}\n" for path in files.left_out)
        with (self._git.folder / "info/exclude").open("ab") as file:
            file.write(os.fsencode(rules))
        self._check_out(files)
        if user is not None:
            self._write_users_index(staged, [*files.left_out, *hidden])
        self._write_unsaved(unsaved, files)
        return {
            "objects": os.fspath(user.objects) if user else "",
            "left_out": files.left_out,
            "secrets": list(self._secrets),
        }

    def _check_space(self, needed_bytes: int) -> None:
        free_bytes = shutil.disk_usage(self._folder).free
        if free_bytes - needed_bytes < MIN_FREE_BYTES:
            needed, free = needed_bytes >> 20, free_bytes >> 20
            raise OSError(errno.ENOSPC, f"a copy needs {needed} MB, and {free} MB are free")

    def _ask(self, words: Sequence[str], paths: Sequence[str] = (), **more: Any) -> bytes:
        stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
        return self._git.ask(self._root, *words, stdin=stdin, cancel=self._cancel, **more)

    def _staged(self) -> str:
        """Return the tree of the user's index; during a merge that of the user's HEAD."""
        with contextlib.suppress(GitFailed):
            return self._ask(("write-tree", "--missing-ok")).decode().strip()
        with contextlib.suppress(GitFailed):
            return self._ask(("rev-parse", "HEAD^{tree}")).decode().strip()
        return ""

    def _tracked(self) -> tuple[list[str], list[str]]:
        """Return the files that git tracks, and those of them that are not checked out."""
        rows = dict.fromkeys(split(self._ask(("ls-files", "-z", "-v"))))
        tracked = list(dict.fromkeys(row[2:] for row in rows))
        # Git does not look at files with these marks.
        unseen = [row[2:] for row in rows if row[0] == "S" or row[0].islower()]
        self._remove(unseen)
        return tracked, [path for path in unseen if not os.path.lexists(self._root / path)]

    def _remove(self, paths: Sequence[str]) -> None:
        if paths:
            self._ask(("update-index", "--force-remove", "-z", "--stdin"), paths)

    def _forget_converted(self) -> None:
        """Remove files from the index that git stores with other bytes than the user has.

        These are files with converted line ends, keywords or encodings, or changed by a filter.
        Their sizes differ.
        """
        rows = [row.partition("\t") for row in split(self._ask(("ls-files", "-s", "-z")))]
        keys = "".join(f"{head.split()[1]}\n" for head, _, _ in rows).encode()
        words = ("cat-file", "--batch-check=%(objectsize)", "--buffer")
        sizes = self._git.ask(self._root, *words, stdin=keys, cancel=self._cancel).splitlines()
        converted = []
        for (_, _, path), size in zip(rows, sizes, strict=True):
            with contextlib.suppress(OSError):
                if b"%d" % os.lstat(self._root / path).st_size != size:
                    converted.append(path)
        self._remove(converted)

    def _add(self, found: VisibleFiles, known: Sequence[str]) -> None:
        """Make the index that of the found files."""
        self._remove([path for path in known if path not in found.times_ns])
        words = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        names = list(found.times_ns)
        if names:
            try:
                self._ask(words, names)
            except GitFailed:  # the user has just changed one of them
                (self._folder / "index.lock").unlink(missing_ok=True)
                self._ask(words, names)

    def _leave_out_keys(self, found: VisibleFiles) -> None:
        """Leave out files that contain private keys."""
        if not found.times_ns:
            return
        hints = [each.hint for each in KEY_FORMATS]
        words = ("grep", "-l", "-z", "-a", "--no-textconv")
        wide = (r"\x00".join(map(re.escape, each)) for each in hints)  # in UTF-16
        pattern = "|".join((*map(re.escape, hints), *wide))
        try:
            suspects = split(self._ask((*words, "-P", "-e", pattern), ok=(0, 1)))
        except GitFailed:  # a git without these patterns
            options = [word for hint in hints for word in ("-e", hint)]
            suspects = split(self._ask((*words, "-F", *options), ok=(0, 1)))
        secret = []
        for path in suspects:
            with contextlib.suppress(OSError), open_inside(self._root, path) as file:
                if has_private_key(file.read()):
                    secret.append(path)
        self._remove(secret)
        for path in secret:
            del found.times_ns[path]
            found.left_out[path] = SECRET_TEXT

    def _check_out(self, found: VisibleFiles) -> None:
        """Write the files of the index, with the times of the user's files."""
        self._tree.mkdir(mode=0o700)
        self._git.ask(self._tree, "checkout-index", "-a", "-f", "-q", cancel=self._cancel)
        for name, time_ns in found.times_ns.items():
            if time_ns >= 0:
                with contextlib.suppress(OSError):
                    os.utime(self._tree / name, ns=(time_ns, time_ns), follow_symlinks=False)
        words = ("update-index", "-q", "--refresh")
        self._git.ask(self._tree, *words, ok=(0, 1), cancel=self._cancel)

    def _write_users_index(self, staged: str, left_out: Sequence[str]) -> None:
        """Write the index that commands see: that of the user, without files left out."""
        index = self._git.folder / "index"
        shutil.copy2(self._git.index, index)
        if not staged:
            staged = self._ask(("hash-object", "-t", "tree", "-w", "--stdin")).decode().strip()
        self._git.ask(self._tree, "read-tree", "--reset", staged, index=index)
        listed = {*split(self._ask(("ls-files", "-z"), index=index))}
        if names := [path for path in left_out if path in listed]:
            words = ("update-index", "--skip-worktree", "-z", "--stdin")
            self._ask(words, names, index=index)

    def _write_unsaved(self, unsaved: Mapping[str, str], found: VisibleFiles) -> None:
        """Write the unsaved texts of the editor into the tree."""
        globs = SecretGlobs(self._root, self._secrets)
        for name, body in unsaved.items():
            real = Path(os.path.realpath(name))
            if not real.is_relative_to(self._root):
                continue
            path = os.path.relpath(real, self._root)
            is_new = not real.exists() and ".git" not in Path(path).parts
            if path not in found.times_ns and (not is_new or globs.name_reason(path)):
                continue
            try:
                old = text.read(real) if real.exists() else Text(())
                data = old.with_lines(lines_of(body)).encode()
            except EditFailed:
                continue  # not text
            if has_private_key(data):
                continue
            target = self._tree / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
