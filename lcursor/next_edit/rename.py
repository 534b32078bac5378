"""After a renamed declaration: propose the other occurrences of the same variable or member."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lcursor.code import languages
from lcursor.next_edit import history, imports, trees
from lcursor.next_edit.documentation import mentions
from lcursor.next_edit.names import Key, Occurrence, ScopeNames, names_of
from lcursor.next_edit.records import Edit, Lines, Proposal, Texts
from lcursor.next_edit.tokens import Change, changes, is_cause, tokens

if TYPE_CHECKING:
    from lcursor.code.grammars import Node

MAX_USES: Final = 50
MAX_RENAMES: Final = 8
"""Last changed names that are followed."""
COMPOUND: Final = re.compile(r"[^_]_[^_]|[a-z][A-Z]|.{9}")
"""A name of several words, which members of two classes rarely share; or a long one."""
WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
LOCAL, TOP, MEMBER, ELSEWHERE, BY_USES, ANY_OBJECT = 0.95, 0.9, 0.9, 0.85, 0.85, 0.84
"""Confidence: a variable of a function, a name of the file, a member, a name of another file; where
two uses were changed instead of the declaration; a member of an object of unknown type."""


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
    edited: dict[tuple[str, str], list[int]] = {}
    for index, edit in enumerate(edits):
        if edit.path == path and is_cause(edit):
            for change in changes(edit):
                if change.names and index not in edited.setdefault(change.names, []):
                    edited[change.names].append(index)
    known = [
        now
        for other, lines in texts.items()
        if (now := names_of(lines, languages.detect(other))) is not None
    ]
    recent = sorted(edited.items(), key=lambda item: -item[1][-1])
    for names, indexes in recent[:MAX_RENAMES]:
        later = edits[indexes[0] :]
        is_left = any(one.has_word(names[0]) for one in known)
        if "_" not in names and is_left and all(_fits(edit, *names) for edit in later):
            causes = [index - indexes[0] for index in indexes]
            yield from _renames_of(texts, path, later, causes, *names)


def _renames_of(
    texts: Texts, path: str, edits: Sequence[Edit], causes: Sequence[int], old: str, new: str
) -> Iterator[_Rename]:
    """Yield the renames from one name to another.

    Args:
        edits: those since the first one that replaced the name.
        causes: indexes of the edits that did.
    """
    language = languages.detect(path)
    every: dict[str, ScopeNames] = {}
    since = {other: tuple(_of_file(edits, other)) for other in texts}
    for other, lines in texts.items():
        before = history.text_before(lines, since[other])
        names = names_of(before, language) if before is not None else None
        if names is not None and languages.detect(other) == language:
            every[other] = names
    names = every.get(path)
    if names is None or not _parses_as_before(names, edits[0], language):
        return
    touched = [
        one
        for index in causes
        for one in _touched(names, old, new, edits[index], _of_file(edits[:index], path))
    ]
    if not touched:
        return
    row = history.current_row(touched[0].row, since[path]) or 0
    cause = f"`{old}` became `{new}` in line {row + 1}"

    def made(other: str, confidence: float, uses: Sequence[Occurrence]) -> _Rename:
        text = cause if other == path else f"{cause} of {path.rpartition('/')[2]}"
        group = f"rename {path} {old} {new}"
        before = every[other].lines
        return _Rename(other, old, new, text, group, confidence, tuple(uses), before, since[other])

    is_new = not any(one.occurrences(new) for one in every.values())
    is_alone = all(one.names == (old, new) for index in causes for one in changes(edits[index]))
    for key in dict.fromkeys(one.key for one in touched if one.key is not None):
        own = [one for one in touched if one.key == key]
        found = _rename(names, old, new, own, is_new, is_alone)
        if found is None:
            continue
        yield made(path, *found)
        if found[0] != BY_USES and names.scope_of(key).parent is None:
            for other, other_names in every.items():
                if other != path:
                    their = _uses_elsewhere(other_names, other, path, (old, new), key)
                    yield made(other, ELSEWHERE, their)
    is_sure = _is_variant(old, new) or len({one.row for one in touched}) > 1
    if is_new and is_sure and COMPOUND.search(old) and any(one.is_member for one in touched):
        for other, uses in _members(every, old).items():
            yield made(other, ANY_OBJECT, uses)


def _members(every: Mapping[str, ScopeNames], name: str) -> dict[str, list[Occurrence]]:
    """Return all members with a name, of whatever object, by file; none if it is ambiguous.

    That is if it is declared nowhere in these files, or more than once. A method that calls one of
    the same name of another object wraps a method of another class, which keeps its name.
    """
    found = {
        path: [
            one
            for one in names.occurrences(name)
            if one.is_member and not _is_wrapped(names, one, name)
        ]
        for path, names in every.items()
    }
    declared = [
        (path, one.row if every[path].rules.has_open_members or _is_definition(one) else one.key)
        for path, members in found.items()
        for one in members
        if one.role == "declaration"
    ]
    is_one = len({one for one in declared if one[1] is not None}) < 2
    return found if declared and is_one else {}


def _is_wrapped(names: ScopeNames, one: Occurrence, name: str) -> bool:
    """Return whether a function of the same name uses the member of another object."""
    if one.role == "declaration" or (names.rules.receivers and names.is_of_self(one)):
        return False
    above = one.node.parent
    while above is not None:
        own = above.child_by_field_name("name")
        if own is not None and own.id != one.node.id and names.text(own) == name:
            return True
        above = above.parent
    return False


def _of_file(edits: Sequence[Edit], path: str) -> list[Edit]:
    return [edit for edit in edits if edit.path == path]


def _uses_elsewhere(
    names: ScopeNames, path: str, source: str, change: tuple[str, str], key: Key
) -> tuple[Occurrence, ...]:
    """Return the uses of a renamed name of another file."""
    language = languages.detect(path)
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
    names: ScopeNames, old: str, new: str, edit: Edit, between: Sequence[Edit]
) -> Iterator[Occurrence]:
    """Yield the occurrences that an edit renamed, in the text before the first edit.

    Not on a line where something else changed too, apart from the head of a definition: it may be
    another variable.
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
                if one is not None and (is_pure or _is_definition(one)):
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
    names: ScopeNames,
    old: str,
    new: str,
    touched: Sequence[Occurrence],
    is_new: bool,
    is_alone: bool,
) -> tuple[float, list[Occurrence]] | None:
    """Return the confidence and the uses left of a renamed variable; None if it is no rename.

    Args:
        is_new: whether the new name was nowhere in the files before.
        is_alone: whether nothing else was changed with it.
    """
    key = touched[0].key
    own = [one for one in names.occurrences(old) if one.key == key]
    declarations = [one for one in own if one.role == "declaration"]
    if key is None or not declarations or _is_captured(names, new, key):
        return None
    is_member = key[0] == "member"
    if not is_member and new == f"_{old}":
        return None  # marked as unused
    is_top = names.scope_of(key).parent is None
    if is_member and names.rules.has_open_members and len(declarations) > 1:
        return None
    is_declared = declarations[0] in touched
    is_repeated = len({one.row for one in touched}) > 1
    if not is_declared and (
        not is_repeated
        or _extends(new, old)
        or any(one.role == "declaration" for one in touched)
        or (is_member and names.rules.has_open_members)
        or imports.is_imported(declarations[0].node)
    ):
        return None
    if is_declared and not is_repeated:
        if _is_doubtful(names, declarations, new):
            return None
        if not _is_variant(old, new) and not _is_same(names, declarations[0], old, new, is_alone):
            return None
    uses = [one for one in own if one not in touched]
    if is_member and names.rules.has_open_members and not COMPOUND.search(old):
        uses = [one for one in uses if names.is_of_self(one)]
    if not is_declared:
        elsewhere = {one.row for one in names.occurrences(old) if one.key != key}
        is_redeclared = not elsewhere.isdisjoint(one.row for one in declarations)
        is_parameter = _is_bound_by(declarations[0], "parameter")
        if not is_new or is_redeclared or is_parameter:
            uses = [one for one in uses if one.role != "declaration"]
    for one in declarations if is_declared else ():
        uses += [use for use in _keywords(names, old, one) if use not in uses]
        uses += _documented(names, old, one)
    if len(uses) > MAX_USES:
        return None
    confidence = MEMBER if is_member else TOP if is_top else LOCAL
    return (confidence if is_declared else BY_USES), uses


def _is_doubtful(names: ScopeNames, declarations: Sequence[Occurrence], new: str) -> bool:
    """Return whether the changed declaration may be no rename: it takes a second change to tell.

    The name may still have another definition, be one of another module, be in a pattern that was
    changed to match something else, or be a parameter that got a name which is common in the file.
    """
    key, first = declarations[0].key, declarations[0]
    if key is None or key[0] == "member":
        return sum(map(_is_definition, declarations)) > 1
    if names.scope_of(key).parent is None:
        return len(declarations) > 1 or imports.is_imported(first.node)
    if _is_bound_by(first, "match_pattern", "let_condition"):
        return True
    return bool(names.occurrences(new)) and _is_bound_by(first, "parameter", "for")


def _is_variant(old: str, new: str) -> bool:
    """Return whether two names share a word, and the new one is not the old one extended.

    Other names are often those of something new that was put in the place of the old one: a second
    function that the old one calls from then on, or a value that replaces it.
    """
    return not _extends(new, old) and not _words(old).isdisjoint(_words(new))


def _extends(new: str, old: str) -> bool:
    """Return whether a name is another one with more at its end or at its start."""
    old, new = old.lower(), new.lower()
    return len(new) > len(old) and (new.startswith(old) or new.endswith(old))


def _words(name: str) -> set[str]:
    """Return the words of a name in lower case, without the `s` of a plural."""
    return {word.lower().rstrip("s") for word in WORD.findall(name)}


def _is_same(
    names: ScopeNames, declaration: Occurrence, old: str, new: str, is_alone: bool
) -> bool:
    """Return whether the rest of a declaration shows that it declares the same under a new name.

    Args:
        is_alone: whether only the name was changed.
    """
    node = declaration.node.parent
    if node is None:
        return False
    if _is_bound_by(declaration, "parameter"):
        return not _is_fixture(names, declaration)
    if _extends(new, old):
        return False
    if _is_definition(declaration):
        parameters = node.child_by_field_name("parameters")
        return is_alone and parameters is not None and bool(parameters.named_children)
    return is_alone and not _is_bound_by(declaration, "for", "as_pattern", "field")


def _is_fixture(names: ScopeNames, declaration: Occurrence) -> bool:
    """Return whether a parameter is one of a test, which gets another value with another name."""
    node = declaration.node.parent
    while node is not None and node.type != "function_definition":
        node = node.parent
    own = node.child_by_field_name("name") if node is not None else None
    return own is not None and names.text(own).startswith("test_")


def _is_bound_by(declaration: Occurrence, *words: str) -> bool:
    """Return whether a node with a word in its type declares it, in the same statement."""
    node: Node | None = declaration.node
    while node is not None and not any(word in node.type for word in words):
        if any(word in node.type for word in ("statement", "body", "block")):
            return False
        node = node.parent
    return node is not None


def _documented(names: ScopeNames, old: str, declaration: Occurrence) -> Iterator[Occurrence]:
    """Yield the mentions of a name in the documentation of its definition."""
    for row, column in mentions(names, declaration, old):
        at = len(trees.encode(names.lines[row][:column]))
        yield Occurrence(row, at, "other", declaration.key, False, False, declaration.node)


def _is_captured(names: ScopeNames, new: str, key: Key) -> bool:
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


def _keywords(names: ScopeNames, old: str, declaration: Occurrence) -> list[Occurrence]:
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


def _parses_as_before(names: ScopeNames, edit: Edit, language: str) -> bool:
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
    by_column = {one.column: one for one in reversed(found)}
    for one in sorted(by_column.values(), key=lambda each: -each.column):
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
