"""After a renamed declaration: propose the other occurrences of the same variable or member."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lcursor.code import languages
from lcursor.next_edit import history, imports, trees
from lcursor.next_edit.documentation import mentions
from lcursor.next_edit.names import Key, Names, Occurrence, names_of
from lcursor.next_edit.records import Edit, Lines, Proposal, Texts
from lcursor.next_edit.tokens import Change, changes, is_cause, tokens

MAX_USES: Final = 50
LOCAL, TOP, MEMBER, ELSEWHERE, BY_USES = 0.95, 0.9, 0.9, 0.85, 0.85
"""Confidence: a variable of a function, a name of the file, a member, a name of another file; and
where two uses were changed instead of the declaration."""


@dataclass(frozen=True, slots=True)
class _Rename:
    """A variable or member with a new name."""

    path: str
    """The file of the uses."""
    old: str
    new: str
    cause: str
    group: str
    confidence: float
    uses: tuple[Occurrence, ...]
    """Those that still have the old name, in the text before the first edit."""
    before: Lines
    edits: tuple[Edit, ...]
    """The edits of the file since that text."""


@dataclass(frozen=True, slots=True)
class _Replacement:
    """A name to replace in a line; the column is in bytes."""

    column: int
    old: str
    new: str
    rename: _Rename


def proposals(texts: Texts, edits: Sequence[Edit]) -> list[Proposal]:
    """Return a proposal for each line that still has an old name."""
    valid = history.without_undone(edits)
    by_line: dict[tuple[str, int], list[_Replacement]] = {}
    for path in dict.fromkeys(edit.path for edit in valid if edit.path in texts):
        for rename in _renames(texts, path, valid):
            for row, replacement in _replacements(texts[rename.path], rename):
                by_line.setdefault((rename.path, row), []).append(replacement)
    return [_proposal(path, row, texts[path][row], found) for (path, row), found in by_line.items()]


def _renames(texts: Texts, path: str, edits: Sequence[Edit]) -> Iterator[_Rename]:
    """Yield the renames that the edits of a file began, for each file with uses."""
    language = languages.detect(path)
    edited: dict[tuple[str, str], list[int]] = {}
    for index, edit in enumerate(edits):
        if edit.path == path and is_cause(edit):
            for change in changes(edit):
                if change.names and index not in edited.setdefault(change.names, []):
                    edited[change.names].append(index)
    for (old, new), indexes in edited.items():
        since = _of_file(edits[indexes[0] :], path)
        if "_" in (old, new) or not all(_fits(edit, old, new) for edit in edits[indexes[0] :]):
            continue
        before = history.text_before(texts[path], since)
        names = names_of(before, language) if before is not None else None
        if names is None or before is None or not _parses_as_before(names, since[0], language):
            continue
        touched = [
            one
            for index in indexes
            for one in _touched(
                names, old, new, edits[index], _of_file(edits[indexes[0] : index], path)
            )
        ]
        for key in dict.fromkeys(one.key for one in touched if one.key is not None):
            own = [one for one in touched if one.key == key]
            found = _rename(names, old, new, own)
            if found is None:
                continue
            confidence, uses = found
            row = history.current_row(own[0].row, since) or 0
            cause = f"`{old}` became `{new}` in line {row + 1}"
            group = f"rename {path} {old} {new}"
            yield _Rename(path, old, new, cause, group, confidence, uses, before, tuple(since))
            if confidence == BY_USES or names.scope_of(key).parent is not None:
                continue
            for other, lines in texts.items():
                later = _of_file(edits[indexes[0] :], other)
                text = history.text_before(lines, later) if other != path else None
                if text is None or languages.detect(other) != language:
                    continue
                uses = _uses_elsewhere(text, other, path, (old, new), key)
                cause = f"{cause} of {path.rpartition('/')[2]}"
                yield _Rename(other, old, new, cause, group, ELSEWHERE, uses, text, tuple(later))


def _of_file(edits: Sequence[Edit], path: str) -> list[Edit]:
    return [edit for edit in edits if edit.path == path]


def _uses_elsewhere(
    lines: Lines, path: str, source: str, change: tuple[str, str], key: Key
) -> tuple[Occurrence, ...]:
    """Return the uses of a renamed name of another file."""
    language = languages.detect(path)
    names = names_of(lines, language)
    if names is None:
        return ()
    old, new = change
    is_member = key[0] == "member"
    found = imports.uses(names, path, source, old, language, is_member=is_member)
    if imports.uses(names, path, source, new, language, is_member=is_member):
        return ()
    is_bare = any(one.key is not None and one.key[0] == "variable" for one in found)
    if is_bare and any(one.role in {"declaration", "use"} for one in names.occurrences(new)):
        return ()
    return tuple(found) if len(found) <= MAX_USES else ()


def _fits(edit: Edit, old: str, new: str) -> bool:
    """Return whether an edit does not write the old name, nor the new one for something else."""
    before = [token.text for token in tokens(edit.old)]
    after = [token.text for token in tokens(edit.new)]
    gained, lost = after.count(new) - before.count(new), before.count(old) - after.count(old)
    return lost >= 0 and gained <= lost


def _touched(
    names: Names, old: str, new: str, edit: Edit, between: Sequence[Edit]
) -> Iterator[Occurrence]:
    """Yield the occurrences that an edit renamed, in the text before the first edit.

    Not a variable or parameter on a line where something else changed too: it may be another one.
    """
    found = changes(edit)
    for change in found:
        if change.names == (old, new):
            token = change.old[0]
            row = history.original_row(edit.row + token.row, between)
            if row is None:
                continue
            line = edit.old[token.row]
            column = len(trees.encode(line[: token.column]))
            if names.lines[row] == line:
                one = names.at(old, row, column)
                is_pure = all(each.names or token.row not in _rows(each) for each in found)
                if one is not None and (
                    is_pure or one.role != "declaration" or _is_definition(one)
                ):
                    yield one
            else:
                yield from (one for one in names.occurrences(old) if one.row == row)


def _rows(change: Change) -> set[int]:
    return {token.row for token in change.old + change.new}


def _is_definition(declaration: Occurrence) -> bool:
    """Return whether it declares a function or a class."""
    node = declaration.node.parent
    return node is not None and node.child_by_field_name("body") is not None


def _rename(
    names: Names, old: str, new: str, touched: Sequence[Occurrence]
) -> tuple[float, tuple[Occurrence, ...]] | None:
    """Return the confidence and the uses left of a renamed variable; None if it is no rename."""
    key = touched[0].key
    own = [one for one in names.occurrences(old) if one.key == key]
    declarations = [one for one in own if one.role == "declaration"]
    if key is None or not declarations or _is_captured(names, new, key):
        return None
    is_member = key[0] == "member"
    if is_member and names.rules.has_open_members and len(declarations) > 1:
        return None
    is_declared = declarations[0] in touched
    if not is_declared and (
        len({one.row for one in touched}) < 2
        or any(one.role == "declaration" for one in touched)
        or (is_member and names.rules.has_open_members)
    ):
        return None
    uses = [one for one in own if one not in touched]
    if not is_declared:
        uses = [one for one in uses if one.role != "declaration"]
    for one in declarations if is_declared else ():
        uses += [use for use in _keywords(names, old, one) if use not in uses]
        uses += _documented(names, old, one)
    if len(uses) > MAX_USES:
        return None
    is_top = names.scope_of(key).parent is None
    confidence = MEMBER if is_member else TOP if is_top else LOCAL
    return (confidence if is_declared else BY_USES), tuple(uses)


def _documented(names: Names, old: str, declaration: Occurrence) -> Iterator[Occurrence]:
    """Yield the mentions of a name in the documentation of its definition."""
    for row, column in mentions(names, declaration, old):
        at = len(trees.encode(names.lines[row][:column]))
        yield Occurrence(row, at, "other", declaration.key, False, declaration.node)


def _is_captured(names: Names, new: str, key: Key) -> bool:
    """Return whether the new name was in use where the variable is visible."""
    if key[0] == "member":
        return any(one.key == key for one in names.occurrences(new))
    scope = names.scope_of(key)
    return any(
        one.role in {"declaration", "use"}
        and (one.key is None or one.key[0] == "variable")
        and scope.start_byte <= one.node.start_byte < scope.end_byte
        for one in names.occurrences(new)
    )


def _keywords(names: Names, old: str, declaration: Occurrence) -> list[Occurrence]:
    """Return the keyword arguments for a renamed parameter, in calls of its function."""
    node = declaration.node.parent
    while node is not None and node.type not in names.rules.functions:
        if node.type in names.rules.classes:
            return names.keywords(old, node) if node.child_by_field_name("name") else []
        node = node.parent
    body = node.child_by_field_name("body") if node is not None else None
    if node is None or body is None or declaration.node.start_byte >= body.start_byte:
        return []
    return names.keywords(old, node)


def _parses_as_before(names: Names, edit: Edit, language: str) -> bool:
    """Return whether the edit left a text that parses, if it did before."""
    lines = names.lines[: edit.row] + edit.new + names.lines[edit.row + len(edit.old) :]
    after = names_of(lines, language)
    return after is not None and (names.root.has_error or not after.root.has_error)


def _replacements(lines: Lines, rename: _Rename) -> Iterator[tuple[int, _Replacement]]:
    """Yield the replacements in the current text, with their rows."""
    old, new = rename.old, rename.new
    word = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)")
    by_row: dict[int, list[Occurrence]] = {}
    for one in rename.uses:
        by_row.setdefault(one.row, []).append(one)
    for row, uses in by_row.items():
        at = history.current_row(row, rename.edits)
        if at is None or at >= len(lines):
            continue
        if lines[at] == rename.before[row]:
            for one in uses:
                text = f"{old}: {new}" if one.is_shorthand else new
                yield at, _Replacement(one.column, old, text, rename)
        elif len(word.findall(rename.before[row])) == len(uses):
            # The line was edited since, but each of its words means this variable.
            for match in word.finditer(lines[at]):
                column = len(trees.encode(lines[at][: match.start()]))
                yield at, _Replacement(column, old, new, rename)


def _proposal(path: str, row: int, line: str, found: Sequence[_Replacement]) -> Proposal:
    data = trees.encode(line)
    for one in sorted(found, key=lambda each: -each.column):
        end = one.column + len(trees.encode(one.old))
        data = data[: one.column] + trees.encode(one.new) + data[end:]
    first = found[0].rename
    return Proposal(
        kind="rename",
        path=path,
        row=row,
        old=(line,),
        new=(data.decode("utf-8", "surrogateescape"),),
        confidence=min(one.rename.confidence for one in found),
        cause=first.cause,
        group=first.group,
    )
