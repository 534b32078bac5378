"""Diffs and commits as items, one per file, so that each can be dropped.

Secrets are recognized by the old or new name of the file, and by the changed text.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lcursor.context import patch
from lcursor.context.items import Item, count_rows, missing
from lcursor.process.run import Output
from lcursor.project import filetypes, git
from lcursor.project.reading import Reader
from lcursor.protocol.chat import AttachmentKind

MAX_BYTES = 4 << 20
MAX_FILE_BYTES = 128 << 10
MAX_FILES = 200
MAX_NEW_FILES = 200

STYLE: Final = (
    "--no-color",
    "--find-renames",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--no-relative",
)
FLAGS: Final = frozenset(
    {"--staged", "--cached", "-w", "-b", "--ignore-all-space", "--ignore-space-change"}
)
"""Allowed flags of `git diff`; others write files, read arbitrary files or run programs."""


@dataclass(frozen=True, slots=True)
class _DiffRequest:
    """The parsed argument of `@diff`."""

    flags: tuple[str, ...] = ()
    revisions: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    error: str = ""

    @property
    def is_worktree(self) -> bool:
        """Whether it compares the working tree with a commit."""
        is_staged = {"--staged", "--cached"} & set(self.flags)
        is_range = len(self.revisions) > 1 or any(".." in each for each in self.revisions)
        return not is_staged and not is_range


@dataclass(frozen=True, slots=True)
class _FileDiff:
    """The changes of one file."""

    text: str
    note: str = ""
    error: str = ""


def diff(argument: str, reader: Reader) -> list[Item]:
    """Return uncommitted changes with new files, or the diff of an argument.

    Args:
        argument: arguments of `git diff`, or "" for everything uncommitted.
    """
    shown = f"diff {argument}".strip()
    top = _top(reader)
    if isinstance(top, str):
        return [missing("diff", shown, top)]
    wanted = _wanted(argument, top, reader)
    if wanted.error:
        return [missing("diff", shown, wanted.error)]
    return _diff(top, wanted, argument, reader)


def staged(reader: Reader, index: Path | None = None, *, is_amend: bool = False) -> list[Item]:
    """Return what the next commit changes, as `diff` does.

    Args:
        index: that of the commit; None for the usual one.
        is_amend: whether the commit replaces the last one.
    """
    top = _top(reader)
    if isinstance(top, str):
        return [missing("diff", "diff --staged", top)]
    base = (_commit(top, "HEAD^", reader),) if is_amend else ()
    return _diff(top, _DiffRequest(("--staged",), base), "--staged", reader, index)


def _diff(
    top: Path, wanted: _DiffRequest, argument: str, reader: Reader, index: Path | None = None
) -> list[Item]:
    shown = f"diff {argument}".strip()
    prefix = f"diff:{argument}:" if argument else "diff:"
    base = list(wanted.revisions)
    if not base and wanted.is_worktree:
        base = [_commit(top, "HEAD", reader)]
    words = (*STYLE, *wanted.flags, *base, "--", *wanted.paths)
    result = _git(top, reader, "diff", *words, index=index)
    if result.failure and not result.is_cut:
        return [missing("diff", shown, f"git says: {result.failure}")]
    text = result.data.decode("utf-8", "replace")
    parts = {path: _FileDiff(section) for path, section in patch.sections(text)}
    if wanted.is_worktree:
        if not wanted.revisions:
            _new_files(top, wanted, reader, parts)
        _unsaved(top, base[0], wanted, reader, parts)
    items = [_item("diff", prefix, path, part, top, reader) for path, part in parts.items()]
    if result.is_cut:
        items.append(missing("diff", f"{shown}: the rest", f"git was stopped: {result.failure}"))
    return _limit("diff", items, shown) or [missing("diff", shown, "nothing is changed")]


def commit(revision: str, reader: Reader) -> list[Item]:
    """Return a commit: its message, then its changes file by file."""
    revision = revision or "HEAD"
    shown = f"commit {revision}"
    top = _top(reader)
    if isinstance(top, str):
        return [missing("commit", shown, top)]
    if ".." in revision:
        return [missing("commit", shown, f"it is a range: write @diff:{revision}")]
    name = _resolved(top, revision, reader)
    if not name:
        return [missing("commit", shown, "there is no such commit")]
    head_words = ("log", "-1", "--no-color", "--format=%h %s%n%ad%n%B")
    head = _git(top, reader, *head_words, name, "--")
    if head.failure:
        return [missing("commit", shown, f"git says: {head.failure}")]
    subject, _, rest = head.data.decode("utf-8", "replace").partition("\n")
    date, _, message = rest.partition("\n")
    shows = ("show", "--format=", "-m", "--first-parent", *STYLE, name, "--")
    result = _git(top, reader, *shows)
    if result.failure and not result.is_cut:
        return [missing("commit", shown, f"git says: {result.failure}")]
    short = subject.partition(" ")[0]
    body = f"commit {name}\ndate {date}\n\n{message.rstrip()}\n"
    secret = reader.secret_text(body)
    about = Item(f"commit:{short}", "commit", f"commit {subject}", "", 0, body)
    if secret:
        about = missing("commit", f"commit {short}", secret)
    sections = patch.sections(result.data.decode("utf-8", "replace"))
    items = [
        _item("commit", f"commit:{short}:", path, _FileDiff(section, f"of {short}"), top, reader)
        for path, section in sections
    ]
    if result.is_cut:
        items.append(missing("commit", f"{shown}: the rest", f"git was stopped: {result.failure}"))
    return [about, *_limit("commit", items, shown)]


def recent(root: Path, reader: Reader, most: int = 50) -> list[tuple[str, str]]:
    """Return the last commits, short name and subject, newest first."""
    words = ("log", f"-{most}", "--no-color", "--format=%h%x00%s", "--")
    result = _git(root, reader, *words)
    rows = (line.partition("\0") for line in result.data.decode("utf-8", "replace").splitlines())
    return [(name, subject) for name, sign, subject in rows if sign]


def last_message(root: Path, reader: Reader) -> str:
    """Return the message of the last commit; "" if there is none."""
    result = _git(root, reader, "log", "-1", "--no-color", "--format=%B", "--")
    return result.data.decode("utf-8", "replace").strip()


def branches(root: Path, reader: Reader, most: int = 50) -> list[str]:
    """Return the branches, most recently committed first."""
    order = ("--sort=-committerdate", "--format=%(refname:short)")
    words = ("for-each-ref", f"--count={most}", *order, "refs/heads", "refs/remotes")
    result = _git(root, reader, *words)
    return result.data.decode("utf-8", "replace").split()


def _git(
    folder: Path,
    reader: Reader,
    *words: str,
    ok: Sequence[int] = (0,),
    index: Path | None = None,
) -> Output:
    return git.output(
        folder,
        *words,
        max_bytes=MAX_BYTES,
        max_s=reader.left_s,
        ok=ok,
        cancel=reader.cancel,
        index=index,
    )


def _top(reader: Reader) -> Path | str:
    """Return the top folder of the working tree, or the reason why there is none."""
    try:
        found = git.repository(reader.root, reader.cancel)
    except git.GitFailed as failure:
        return f"git says: {failure}"
    return found.top if found else "the project is in no git repository"


def _resolved(top: Path, revision: str, reader: Reader) -> str:
    """Return the full hash of a commit; "" if there is none."""
    if revision.startswith("-"):
        return ""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    result = _git(top, reader, *words, ok=(0, 1, 128))
    found = result.data.decode("ascii", "replace").strip()
    return found if re.fullmatch(r"[0-9a-f]{40,64}", found) else ""


def _commit(top: Path, revision: str, reader: Reader) -> str:
    """Return a commit, or the empty tree if there is none."""
    name = _resolved(top, revision, reader)
    if name:
        return name
    result = _git(top, reader, "hash-object", "-t", "tree", os.devnull)
    return result.data.decode("ascii", "replace").strip()


def _wanted(argument: str, top: Path, reader: Reader) -> _DiffRequest:
    try:
        words = shlex.split(argument)
    except ValueError:
        return _DiffRequest(error="a quote is not closed")
    flags, revisions, paths = [], [], []
    is_path = False
    for word in words:
        if is_path:
            paths.append(word)
        elif word == "--":
            is_path = True
        elif word.startswith("-"):
            if word not in FLAGS:
                known = ", ".join(sorted(FLAGS))
                return _DiffRequest(error=f"{word} is not supported; supported are: {known}")
            flags.append(word)
        elif all(_resolved(top, side or "HEAD", reader) for side in re.split(r"\.{2,3}", word)):
            revisions.append(word)
        elif (reader.root / word).exists():
            paths.append(os.path.relpath(os.path.realpath(reader.root / word), top))
        else:
            return _DiffRequest(error=f"{word} is neither a revision nor a path")
    return _DiffRequest(tuple(flags), tuple(revisions), tuple(f":(top){path}" for path in paths))


def _item(
    kind: AttachmentKind, prefix: str, path: str, part: _FileDiff, top: Path, reader: Reader
) -> Item:
    full, section, why = top / path, part.text, part.error
    row = patch.first_row(section)
    for each in {path, *patch.paths(section)}:
        why = why or reader.secret(top / each)
    why = why or reader.secret_text(section)
    if not why and patch.is_key_like(section):
        why = "it looks like a part of a key"
    if not why and (name := filetypes.by_name(path, 0)):
        why = name if not name.startswith("binary") else ""
    size = len(section.encode("utf-8", "replace"))
    if not why and size > MAX_FILE_BYTES:
        why = f"its changes have {size >> 10:,} kB"
    shown = f"{prefix.rstrip(':').replace(':', ' ')} {path}" if kind == "commit" else f"diff {path}"
    where = str(full)
    if why:
        return Item(f"{prefix}{path}", kind, shown, where, row, "", why, is_left_out=True)
    return Item(f"{prefix}{path}", kind, shown, where, row, section, part.note)


def _limit(kind: AttachmentKind, items: list[Item], shown: str) -> list[Item]:
    if len(items) <= MAX_FILES:
        return items
    rest = missing(kind, f"{shown}: {len(items) - MAX_FILES} more files", f"over {MAX_FILES} files")
    return [*items[:MAX_FILES], rest]


def _new_files(
    top: Path, wanted: _DiffRequest, reader: Reader, parts: dict[str, _FileDiff]
) -> None:
    """Add untracked files."""
    words = ("ls-files", "-z", "--others", "--exclude-standard", "--", *wanted.paths)
    result = _git(top, reader, *words)
    names = [os.fsdecode(name) for name in result.data.split(b"\0") if name]
    note = "git does not track it yet"
    for number, name in enumerate(name for name in names if not name.endswith("/")):
        head = f"diff --git a/{name} b/{name}\nnew file\n--- /dev/null\n+++ b/{name}\n"
        if number >= MAX_NEW_FILES:
            parts[name] = _FileDiff("", error=f"{note}, and these are over {MAX_NEW_FILES}")
            continue
        if (top / name).is_symlink():  # git shows where it leads, too
            target = f"+{os.readlink(top / name)}\n\\ No newline at end of file\n"
            parts[name] = _FileDiff(f"{head}@@ -0,0 +1 @@\n{target}", note)
            continue
        found = reader.read(top / name)
        rows = found.text.split("\n")[: count_rows(found.text)]
        body = "".join(f"+{row}\n" for row in rows)
        parts[name] = _FileDiff(f"{head}@@ -0,0 +1,{len(rows)} @@\n{body}", note, found.error)


def _unsaved(
    top: Path, base: str, wanted: _DiffRequest, reader: Reader, parts: dict[str, _FileDiff]
) -> None:
    """Replace the diff of files with unsaved changes in the editor."""
    real = os.path.realpath(top)
    for path in reader.unsaved_paths():
        if not path.startswith(f"{real}/"):
            continue
        name = os.path.relpath(path, real)
        inside = [each.removeprefix(":(top)") for each in wanted.paths]
        if inside and not any(name == each or name.startswith(f"{each}/") for each in inside):
            continue
        now = reader.read(Path(path))
        if now.error:
            continue
        result = _git(top, reader, "show", f"{base}:{name}")
        is_new = result.failure and name not in parts
        if result.is_cut or (is_new and not _is_unsaved_new_file(top, name, reader)):
            continue
        before = result.data.decode("utf-8", "replace").replace("\r\n", "\n")
        was = [] if result.failure else before.split("\n")[: count_rows(before)]
        rows = now.text.split("\n")[: count_rows(now.text)]
        names = ("/dev/null" if result.failure else f"a/{name}", f"b/{name}")
        body = "".join(f"{row}\n" for row in difflib.unified_diff(was, rows, *names, lineterm=""))
        if body:
            head = "new file\n" if result.failure else ""
            text = f"diff --git a/{name} b/{name}\n{head}{body}"
            parts[name] = _FileDiff(text, "with unsaved changes")
        else:
            parts.pop(name, None)


def _is_unsaved_new_file(top: Path, name: str, reader: Reader) -> bool:
    """Return whether a file exists only in the editor, and git would not ignore it."""
    if os.path.lexists(top / name):
        return False  # git ignores it, or there is no repository
    result = _git(top, reader, "check-ignore", "--", name, ok=(0, 1))
    return not result.data and not result.failure
