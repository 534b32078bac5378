"""Parse search/replace blocks, diffs and OpenAI's patches in a reply. Pure.

Tolerates typical mistakes of models: wrong or missing line numbers, lines without their marker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from lcursor.changes import fences
from lcursor.changes.apply.blocks import Block, Pair

_SEARCH: Final = re.compile(r"^\s{0,3}(?:<{5,9}|-{5,9}) ?(?:SEARCH|ORIGINAL)\b>?\s*(.*)$")
_DIVIDER: Final = re.compile(r"^\s{0,3}={5,9}\s*$")
_REPLACE: Final = re.compile(r"^\s{0,3}(?:>{5,9}|\+{5,9}) ?(?:REPLACE|UPDATED)\b.*$")
_HUNK: Final = re.compile(r"^@@+(?: -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@+ ?)?(.*)$")
_GIT: Final = re.compile(r"^diff --git (?:a/)?(.+?) (?:b/)?(\S+)$")
_HEADER: Final = re.compile(
    r"^(?:diff --git |index [0-9a-f]|(?:new|deleted) file mode|(?:old|new) mode |similarity index|"
    r"dissimilarity index|rename (?:from|to) |copy (?:from|to) |Binary files |GIT binary patch)"
)
_FILE: Final = re.compile(r"^\*\*\* (Update|Add|Delete) File:\s*(.+?)\s*$")
_MOVE: Final = re.compile(r"^\*\*\* Move to:\s*(.+?)\s*$")
_NOWHERE: Final = "/dev/null"

_Hunk = tuple[list[str], str, int]
"""Lines of a hunk, the text of its heading, and its row, -1 for none."""


def begins_pair(line: str) -> bool:
    """Return whether a line starts a search/replace block."""
    return _SEARCH.match(line) is not None


def pair_end(lines: Sequence[str], row: int) -> int:
    """Return the row after the search/replace block at a row; 0 if it does not end."""
    if row >= len(lines) or not begins_pair(lines[row]):
        return 0
    has_divider = False
    for at in range(row + 1, len(lines)):
        if begins_pair(lines[at]):
            return 0
        has_divider = has_divider or _DIVIDER.match(lines[at]) is not None
        if has_divider and _REPLACE.match(lines[at]):
            return at + 1
    return 0


def read(lines: Sequence[str], language: str = "") -> tuple[Block, ...] | None:
    """Return the changes in the content of a fence; None if it is code."""
    filled = [row for row, line in enumerate(lines) if line.strip()]
    if not filled:
        return None
    if any(map(begins_pair, lines)):
        return tuple(_pairs(lines))
    if lines[filled[0]].startswith("*** Begin Patch"):
        return tuple(_patch(lines[filled[0] :]))
    first = lines[filled[0]]
    if language == "diff" or _HEADER.match(first) or _is_file_header(lines, filled[0]):
        return tuple(_diff(lines)[1])
    match = _HUNK.match(first)
    if match and (match[1] or len(filled) > 1):
        return tuple(_diff(lines)[1])
    return None


def bare_at(lines: Sequence[str], row: int) -> tuple[int, tuple[Block, ...]] | None:
    """Return the unfenced changes that start at a row, and the row after them."""
    line = lines[row]
    if begins_pair(line):
        stop = pair_end(lines, row) or len(lines)
        return stop, tuple(_pairs(lines[row:stop]))
    if line.startswith("*** Begin Patch"):
        ends = (at for at in range(row, len(lines)) if lines[at].startswith("*** End Patch"))
        stop = next(ends, len(lines) - 1) + 1
        return stop, tuple(_patch(lines[row:stop]))
    if line.startswith("diff --git ") or _is_file_header(lines, row):
        stop, found = _diff(lines, row, is_bare=True)
        return stop, tuple(found)
    return None


def _pairs(lines: Sequence[str]) -> Iterator[Block]:
    """Yield search/replace blocks, each with the path above it."""
    path, text = "", ""
    row = 0
    while row < len(lines):
        match = _SEARCH.match(lines[row])
        if not match:
            named = fences.path_in_heading(lines[row]) or fences.path_in_comment(lines[row])
            path = named or path
            text = "" if named else fences.heading_text(lines[row]) or text
            row += 1
            continue
        own = match[1].strip()
        if own and fences.is_path(own):
            path = own
        stop = row + 1
        while stop < len(lines) and not (_REPLACE.match(lines[stop]) or begins_pair(lines[stop])):
            stop += 1
        is_closed = stop < len(lines) and _REPLACE.match(lines[stop]) is not None
        body = lines[row + 1 : stop]
        cuts = [at for at, line in enumerate(body) if _DIVIDER.match(line)]
        texts = (text,) if fences.may_be_path(text) else ()
        is_whole = is_closed and bool(cuts)
        block = Block("search_replace", path, texts=texts, is_closed=is_whole)
        if len(cuts) == 1:
            pair = Pair(tuple(body[: cuts[0]]), tuple(body[cuts[0] + 1 :]))
            yield replace(block, pairs=(pair,))
        elif cuts:
            yield replace(block, problem="it has several possible dividers")
        else:
            yield replace(block, is_closed=False)
        row = stop + is_closed


def _is_file_header(lines: Sequence[str], row: int) -> bool:
    """Return whether `---` and `+++` at a row are a file header, not removed and added lines."""
    if row + 1 >= len(lines) or not lines[row].startswith("--- "):
        return False
    if not lines[row + 1].startswith("+++ "):
        return False
    after = lines[row + 2] if row + 2 < len(lines) else ""
    return after.startswith("@@") or (row == 0 or _HEADER.match(lines[row - 1]) is not None)


def _names_files(lines: Sequence[str], row: int) -> bool:
    """Return whether `---` and `+++` name files, so that they are not changed lines."""
    old, new = _header_path(lines[row]), _header_path(lines[row + 1])
    if old.startswith(("a/", _NOWHERE)) and new.startswith(("b/", _NOWHERE)):
        return True
    return fences.is_path(old) and fences.is_path(new)


def _hunk_end(lines: Sequence[str], row: int, *, is_bare: bool) -> int:
    """Return the row after the hunk at a row, by its line counts; 0 if they are missing or wrong.

    Text around a bare diff may look like lines of the hunk.
    """
    match = _HUNK.match(lines[row])
    if not match or not match[1]:
        return 0
    old, new = int(match[2] or 1), int(match[4] or 1)
    at = row + 1
    while old > 0 or new > 0:
        mark = lines[at][:1] if at < len(lines) else "@"
        if mark not in {" ", "-", "+", "\\", ""} or (
            mark == "-" and _is_file_header(lines, at) and _names_files(lines, at)
        ):
            return 0
        old -= mark in {" ", "-", ""}
        new -= mark in {" ", "+", ""}
        at += 1
    while at < len(lines) and lines[at].startswith("\\"):
        at += 1
    rest = next((one for one in range(at, len(lines)) if lines[one].strip()), len(lines))
    has_more = rest < len(lines) and lines[rest][0] in " -+" and not _is_file_header(lines, rest)
    return 0 if old or new or (has_more and not is_bare) else at


def _diff(lines: Sequence[str], row: int = 0, *, is_bare: bool = False) -> tuple[int, list[Block]]:
    """Parse a diff of one or more files; return the row after it, and a block for each file.

    A bare diff has no fence, and ends before a line that is not part of a diff.
    """
    files: list[tuple[list[str], list[_Hunk]]] = [([], [])]
    is_open = not is_bare  # a hunk without valid line counts
    while row < len(lines):
        line, (head, hunks) = lines[row], files[-1]
        if match := _HUNK.match(line):
            end = _hunk_end(lines, row, is_bare=is_bare)
            scope = (match[5] or "").strip().removesuffix("@@").strip()
            first = max(int(match[1]) - 1, 0) if match[1] else -1
            hunks.append(([*lines[row + 1 : end or row + 1]], scope, first))
            row, is_open = end or row + 1, not end
            continue
        is_side = _is_file_header(lines, row) and (
            not (is_open and hunks) or _names_files(lines, row)
        )
        is_git = line.startswith("diff --git ")
        if is_side or is_git or (not hunks and _HEADER.match(line)):
            if (is_side and hunks) or (is_git and (head or hunks)):
                head, hunks = [], []
                files.append((head, hunks))
            stop = row + 1 + is_side
            head += lines[row:stop]
            row = stop
            continue
        is_blank = not line and _continues(lines, row)
        if is_bare and not (is_open and (line[:1] in {" ", "+", "-", "\\"} or is_blank)):
            break
        if hunks or line.strip():
            if not hunks:
                hunks.append(([], "", -1))
            hunks[-1][0].append(line)
        row += 1
    return row, [block for head, hunks in files for block in _file_blocks(head, hunks)]


def _continues(lines: Sequence[str], row: int) -> bool:
    """Return whether a blank line belongs to a bare diff, as the next line does."""
    return row + 1 < len(lines) and lines[row + 1][:1] in {" ", "+", "-", "@"}


def _file_blocks(head: Sequence[str], hunks: Sequence[_Hunk]) -> Iterator[Block]:
    block = _from_header(head)
    pairs = tuple(pair for hunk in hunks for pair in _hunk(*hunk))
    if block.kind == "create":
        yield replace(block, lines=tuple(line for pair in pairs for line in pair.new))
    elif block.kind != "edit" or pairs:
        yield replace(block, pairs=pairs)


def _from_header(head: Sequence[str]) -> Block:
    """Return a block with the data of a file header."""
    old = new = start = end = ""
    git: tuple[str, str] | None = None
    kind = "edit"
    for line in head:
        if line.startswith("--- "):
            old = _header_path(line)
        elif line.startswith("+++ "):
            new = _header_path(line)
        elif line.startswith("rename from "):
            start = line.removeprefix("rename from ").strip()
        elif line.startswith("rename to "):
            end = line.removeprefix("rename to ").strip()
        elif line.startswith("new file mode"):
            kind = "create"
        elif line.startswith("deleted file mode"):
            kind = "delete"
        elif match := _GIT.match(line):
            git = (match[1], match[2])
    if old.startswith("a/") and (new.startswith("b/") or new == _NOWHERE):
        old, new = old[2:], new.removeprefix("b/")
    elif old == _NOWHERE and new.startswith("b/"):
        new = new[2:]
    if start and end:
        return Block("udiff", start, kind="rename", to=end)
    if old == _NOWHERE or kind == "create":
        return Block("udiff", new or (git[1] if git else ""), kind="create")
    if new == _NOWHERE or kind == "delete":
        path = old or (git[0] if git else "")
        return Block("udiff", path, kind="delete")
    problem = ""
    if old and new and old != new:
        if new.endswith("/" + old) or old.endswith((".orig", ".old", ".bak")):
            old = new
        elif not old.endswith("/" + new):
            problem = f"it names two files, {old} and {new}"
    path = new or old or (git[1] if git else "")
    return Block("udiff", path, problem=problem)


def _header_path(line: str) -> str:
    text = line[4:].split("\t")[0].strip()
    return text.strip('"')


def _hunk(lines: Sequence[str], scope: str, row: int = -1) -> Iterator[Pair]:
    old: list[str] = []
    new: list[str] = []
    while lines and not lines[-1].strip() and not lines[-1].startswith(("+", "-", " ")):
        lines = lines[:-1]  # models often add a blank line before the end of the fence
    bare_old: list[str] = []
    bare_new: list[str] = []
    for line in lines:
        mark, text = line[:1], line[1:]
        if mark == "\\":
            continue
        if mark == "-":
            old.append(text)
            bare_old.append(text)
        elif mark == "+":
            new.append(text)
            bare_new.append(text)
        else:
            text = text if mark == " " else line
            old.append(text)
            new.append(text)
            bare_old.append(line)
            bare_new.append(line)
    if old or new:
        bare = (tuple(bare_old), tuple(bare_new)) if bare_old != old else None
        yield Pair(tuple(old), tuple(new), scope, row, unmarked=bare)


def _patch(lines: Sequence[str]) -> Iterator[Block]:
    """Yield a block for each file of `*** Begin Patch`."""
    is_closed = any(line.startswith("*** End Patch") for line in lines)
    block: Block | None = None
    body: list[str] = []
    for line in [*lines, "*** End Patch"]:
        match = _FILE.match(line)
        if match or line.startswith("*** End Patch"):
            if block is not None:
                yield _patched(block, body, is_closed)
            block, body = None, []
            if match:
                kinds = {"Update": "edit", "Add": "create", "Delete": "delete"}
                block = Block("patch", match[2], kind=kinds[match[1]])  # type: ignore[arg-type]
        elif block is not None and (moved := _MOVE.match(line)):
            block = replace(block, kind="rename", to=moved[1])
        elif block is not None:
            body.append(line)


def _patched(block: Block, body: Sequence[str], is_closed: bool) -> Block:
    block = replace(block, is_closed=is_closed)
    if block.kind == "create":
        return replace(block, lines=tuple(line.removeprefix("+") for line in body))
    pairs: list[Pair] = []
    part: list[str] = []
    scope: list[str] = []
    is_last = False
    for line in [*body, "@@"]:
        if line.startswith("@@"):
            pairs += (replace(pair, is_last=is_last) for pair in _hunk(part, "\n".join(scope)))
            scope = [] if part else scope
            part, is_last = [], False
            text = line[2:].strip().removesuffix("@@").strip()
            if text:
                scope.append(text)
        elif line.startswith("*** End of File"):
            is_last = True
        else:
            part.append(line)
    return replace(block, pairs=tuple(pairs))
