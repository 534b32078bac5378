"""Read commits from a git repository as steps: small edits that can be made in any order.

A commit is used if it modifies one to three code files in 2 to 12 hunks and is none of: a merge, a
revert, generated or vendored code, a change of white space only, moved code. Reads git objects, so
a bare repository without a work tree will do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from lcursor.changes import diff
from lcursor.code import grammars, languages
from lcursor.errors import LcursorError
from lcursor.process.run import Output
from lcursor.project import git

HUNKS = range(2, 13)
FILES = range(1, 4)
MAX_STEPS = 24
MAX_TOKENS = 400
MAX_STEP_TOKENS = 2_000
"""Of one step; longer lines are data."""
MAX_CHANGED_LINES = 160
MAX_LINES = 5_000
BATCH = 40
"""Commits whose texts are read at once."""
MIN_SIMILARITY = 0.6
"""Of two lines that count as versions of each other."""
MAX_ALIGNED = 24
"""Maximum lines of a block whose lines are paired."""
MOVED_SHARE = 0.8
CODE = grammars.LANGUAGES - {"markdown", "json", "yaml", "toml", "html", "css"}
SKIPPED_FOLDERS = frozenset(
    {"vendor", "third_party", "node_modules", "dist", "build", "generated", "results", "data"}
)
SKIPPED_NAMES = re.compile(r"\.min\.|_pb2|\.pb\.|[-.]lock\b|\.gen\.|_generated")
GENERATED = re.compile(r"do not edit|@generated|code generated|automatically generated", re.I)
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Step:
    """A small edit: rows of the file before the commit, and the lines after it."""

    path: str
    row: int
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as steps, in the order of paths and rows."""

    name: str
    base: dict[str, tuple[str, ...]]
    """Lines of the modified files before the commit."""
    final: dict[str, tuple[str, ...]]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A commit and the modified files with their blobs before and after."""

    name: str
    files: tuple[tuple[str, str, str], ...]


def tokens(line: str) -> list[str]:
    """Return the words and signs of a line, without white space."""
    return [token for token in TOKEN.findall(line) if not token.isspace()]


def language(path: str) -> str:
    """Return the language of a file, by its name."""
    return languages.detect(path)


def load(repository: Path, count: int, revision: str = "HEAD") -> Iterator[Commit]:
    """Yield the newest usable commits.

    Raises:
        LcursorError: it is no repository, or lacks the revision.
    """
    entries = _entries(repository, revision)
    found = 0
    for start in range(0, len(entries), BATCH):
        batch = entries[start : start + BATCH]
        names = {blob for entry in batch for file in entry.files for blob in file[1:]}
        blobs = _blobs(repository, names)
        for entry in batch:
            commit = _commit(entry, blobs)
            if commit is not None:
                yield commit
                found += 1
                if found == count:
                    return


@dataclass(frozen=True, slots=True)
class Change:
    """A commit, with the lines of each modified file before and after it."""

    name: str
    files: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]


def changes(repository: Path, count: int, revision: str = "HEAD") -> Iterator[Change]:
    """Yield the newest commits that modify some code, at most `MAX_CHANGED_LINES` lines of it.

    Raises:
        LcursorError: it is no repository, or lacks the revision.
    """
    entries = _entries(repository, revision)[:count]
    for start in range(0, len(entries), BATCH):
        batch = entries[start : start + BATCH]
        blobs = _blobs(
            repository, {blob for each in batch for file in each.files for blob in file[1:]}
        )
        for each in batch:
            texts = {path: (blobs[before], blobs[after]) for path, before, after in each.files}
            files = {path: (old, new) for path, (old, new) in texts.items() if old and new}
            if files:
                yield Change(each.name, files)


def digest(repository: Path, revision: str) -> str:
    """Return the short digest of a commit."""
    return _git(repository, "rev-parse", "--short=10", revision).decode().strip()


def _git(repository: Path, *words: str, stdin: bytes = b"") -> bytes:
    done: Output = git.output(repository, *words, stdin=stdin, max_s=120)
    if done.failure:
        raise LcursorError(f"{repository} cannot be replayed ({done.failure})", "Name a git clone")
    return done.data


def _entries(repository: Path, revision: str) -> list[_Entry]:
    """Return the commits that may be usable, newest first."""
    found = []
    words = ("log", revision, "--no-merges", "--no-renames", "--raw", "--numstat", "--no-abbrev")
    data = _git(repository, *words, "--format=%x01%H %s")
    for part in data.decode("utf-8", "replace").split("\x01")[1:]:
        head, *rows = part.split("\n")
        name, _, subject = head.partition(" ")
        files, changed = [], 0
        for row in rows:
            if row.startswith(":"):
                facts, _, path = row.partition("\t")
                _, _, before, after, status = facts.split()
                if status == "M" and _is_code(path):
                    files.append((path, before, after))
            elif row and _is_code(row.rpartition("\t")[2]):
                added, removed, _ = row.split("\t")
                changed += int(added) + int(removed) if added.isdigit() else MAX_CHANGED_LINES
        is_small = len(files) in FILES and changed <= MAX_CHANGED_LINES
        if is_small and not subject.lower().startswith(("revert", "merge")):
            found.append(_Entry(name[:10], tuple(files)))
    return found


def _is_code(path: str) -> bool:
    folders, name = {*path.split("/")[:-1]}, path.rpartition("/")[2]
    is_skipped = bool(folders & SKIPPED_FOLDERS or SKIPPED_NAMES.search(name))
    return language(path) in CODE and not is_skipped


def _blobs(repository: Path, names: set[str]) -> dict[str, tuple[str, ...] | None]:
    """Return the lines of some blobs; None if one is no text or too long."""
    asked = sorted(names)
    data = _git(repository, "cat-file", "--batch", stdin="".join(f"{n}\n" for n in asked).encode())
    found: dict[str, tuple[str, ...] | None] = {}
    at = 0
    for name in asked:
        end = data.index(b"\n", at)
        fields = data[at:end].split()
        at = end + 1
        if len(fields) != 3:  # missing
            found[name] = None
            continue
        size = int(fields[2])
        found[name] = _lines(data[at : at + size])
        at += size + 1
    return found


def _lines(data: bytes) -> tuple[str, ...] | None:
    try:
        lines = tuple(data.decode("utf-8").replace("\r\n", "\n").removesuffix("\n").split("\n"))
    except UnicodeDecodeError:
        return None
    if len(lines) > MAX_LINES or GENERATED.search("\n".join(lines[:5])):
        return None
    return lines


def _commit(entry: _Entry, blobs: dict[str, tuple[str, ...] | None]) -> Commit | None:
    """Return a commit as steps; None if it is not usable."""
    base, final = {}, {}
    for path, before, after in entry.files:
        old, new = blobs[before], blobs[after]
        if old is None or new is None:
            return None
        base[path], final[path] = old, new
    hunks = 0
    steps: list[Step] = []
    for path, old in base.items():
        for first, end, start, stop in diff.spans(old, final[path]):
            hunks += 1
            steps += split(path, first, old[first:end], final[path][start:stop])
    if hunks not in HUNKS or not 2 <= len(steps) <= MAX_STEPS:
        return None
    if _changed_tokens(steps) > MAX_TOKENS or _is_format(steps) or _is_move(steps):
        return None
    return Commit(entry.name, base, final, tuple(steps))


def _changed_tokens(steps: Sequence[Step]) -> int:
    count = 0
    for step in steps:
        old, new = tokens("\n".join(step.old)), tokens("\n".join(step.new))
        if abs(len(old) - len(new)) > MAX_TOKENS or len(old) > MAX_STEP_TOKENS:
            return MAX_TOKENS + 1
        blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        count += len(old) + len(new) - 2 * sum(block.size for block in blocks)
    return count


def _is_format(steps: Sequence[Step]) -> bool:
    return all(tokens("\n".join(step.old)) == tokens("\n".join(step.new)) for step in steps)


def _is_move(steps: Sequence[Step]) -> bool:
    old = Counter(line.strip() for step in steps for line in step.old if line.strip())
    new = Counter(line.strip() for step in steps for line in step.new if line.strip())
    both = sum((old & new).values())
    return both >= 3 and both >= MOVED_SHARE * min(sum(old.values()), sum(new.values()))


def split(path: str, row: int, old: Sequence[str], new: Sequence[str]) -> list[Step]:
    """Split a hunk into pairs of corresponding lines, and the lines between them."""
    if not old or not new or max(len(old), len(new)) > MAX_ALIGNED:
        return [Step(path, row, tuple(old), tuple(new))]
    found = []
    first = start = 0
    for one, other in [*_pairs(old, new), (len(old), len(new))]:
        if one > first or other > start:
            found.append(Step(path, row + first, tuple(old[first:one]), tuple(new[start:other])))
        if one < len(old) and old[one] != new[other]:
            found.append(Step(path, row + one, (old[one],), (new[other],)))
        first, start = one + 1, other + 1
    return found


def _pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of similar lines in order with the highest sum of similarities."""
    words, others = [tokens(line) for line in old], [tokens(line) for line in new]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    same: dict[tuple[int, int], float] = {}
    for one in reversed(range(len(old))):
        for other in reversed(range(len(new))):
            ratio = SequenceMatcher(None, words[one], others[other], autojunk=False).ratio()
            same[one, other] = ratio if ratio >= MIN_SIMILARITY else 0.0
            paired = same[one, other] + best[one + 1][other + 1] if same[one, other] else 0.0
            best[one][other] = max(paired, best[one + 1][other], best[one][other + 1])
    found, one, other = [], 0, 0
    while one < len(old) and other < len(new):
        if same[one, other] and best[one][other] == same[one, other] + best[one + 1][other + 1]:
            found.append((one, other))
            one, other = one + 1, other + 1
        elif best[one][other] == best[one + 1][other]:
            one += 1
        else:
            other += 1
    return found
