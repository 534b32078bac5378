"""After a changed parameter list: propose the changes of the calls, in all known files.

A removed parameter takes its argument with it, and moved parameters move their arguments. A new one
without a default gets a variable of the same name if the caller has one, else the argument that
calls already pass for it; as long as there is none, the user is only led to the calls. Calls with
spread arguments, and those that do not fit the old parameters, are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lcursor.code import languages
from lcursor.next_edit import arguments, history
from lcursor.next_edit.arguments import Changed, Difference
from lcursor.next_edit.callers import References, callers
from lcursor.next_edit.names import Names, Occurrence, names_of
from lcursor.next_edit.parameters import Function, functions_at
from lcursor.next_edit.records import Edit, Proposal, Texts
from lcursor.next_edit.tokens import is_cause

MAX_CALLS: Final = 50
"""The nearest ones are proposed."""
REMOVED, MOVED, ADDED, UNKNOWN = 0.92, 0.9, 0.7, 0.6
"""Confidence by what happened to the parameters; the last one: an argument that is not known."""
LENIENT: Final = frozenset({"javascript", "lua"})
"""Languages where a call may leave out arguments: one changed call says nothing about others."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A function whose parameters were changed so that its calls may need a change."""

    path: str
    declared: Occurrence
    """Its name, in the current text."""
    old: Function
    new: Function
    difference: Difference
    since: tuple[Edit, ...]
    """The edits since then, with the one that changed it."""


def proposals(
    texts: Texts, edits: Sequence[Edit], known: Sequence[References] = ()
) -> list[Proposal]:
    """Return a proposal for each call that an edited signature affects.

    Args:
        known: what language servers know of calls.
    """
    rows: dict[tuple[str, int], list[Proposal]] = {}
    for signature in signatures(texts, edits):
        for one in _calls_to_change(texts, signature, known):
            rows.setdefault((one.path, one.row), []).append(one)
    return [_joined(same) for same in rows.values()]


def _joined(found: Sequence[Proposal]) -> Proposal:
    """Return the proposals for calls in the same row as one; the first one if that is not clear."""
    first = found[0]
    is_clear = all(
        len(one.old) == len(one.new) == 1 and one.column < 0 and one.group == first.group
        for one in found
    )
    if len(found) == 1 or not is_clear:
        return first
    line = first.old[0]
    parts = sorted((_span(line, one.new[0]) for one in found), reverse=True)
    left = len(line)
    for start, end, text in parts:
        if end > left:
            return first
        line, left = line[:start] + text + line[end:], start
    return replace(first, new=(line,))


def _span(old: str, new: str) -> tuple[int, int, str]:
    """Return the start and end of the part of a line that differs, and its new text."""
    start, end = 0, 0
    most = min(len(old), len(new))
    while start < most and old[start] == new[start]:
        start += 1
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, len(old) - end, new[start : len(new) - end]


def signatures(texts: Texts, edits: Sequence[Edit]) -> Iterator[Signature]:
    """Yield the functions whose parameters were changed by edits, newest first."""
    valid = history.without_undone(edits)
    for index in reversed(range(len(valid))):
        edit = valid[index]
        lines = texts.get(edit.path)
        names = names_of(lines, languages.detect(edit.path)) if lines is not None else None
        since = tuple(valid[index:])
        own = _of_file(since, edit.path)
        if names is not None and is_cause(edit) and _is_in_parameters(names, edit, own):
            yield from _changed_by(names, edit, since)


def _of_file(edits: Sequence[Edit], path: str) -> list[Edit]:
    return [one for one in edits if one.path == path]


def _is_in_parameters(names: Names, edit: Edit, since: Sequence[Edit]) -> bool:
    """Return whether an edit is in the parameters of a function, in the current text."""
    row = history.current_row(edit.row, since)
    if row is None:
        return True
    end = row + max(len(edit.new), 1)
    return any(
        one.list_node.start_point[0] < end and one.list_node.end_point[0] >= row
        for one in functions_at(names, row, end)
    )


def _changed_by(now: Names, edit: Edit, since: tuple[Edit, ...]) -> Iterator[Signature]:
    """Yield the functions whose parameters an edit changed."""
    own = _of_file(since, edit.path)
    before = history.text_before(now.lines, own)
    if before is None:
        return
    language = languages.detect(edit.path)
    after = before[: edit.row] + edit.new + before[edit.row + len(edit.old) :]
    old_names, new_names = names_of(before, language), names_of(after, language)
    if old_names is None or new_names is None:
        return
    olds = {one.name: one for one in functions_at(old_names, edit.row, edit.row + len(edit.old))}
    for new in functions_at(new_names, edit.row, edit.row + len(edit.new)):
        old = olds.get(new.name)
        difference = arguments.difference(old, new) if old is not None else None
        if old is None or difference is None:
            continue
        row = history.current_row(new.name_node.start_point[0], own[1:])
        declared = [
            one for one in now.occurrences(new.name) if one.role == "declaration" and one.row == row
        ]
        if len(declared) == 1:
            yield Signature(edit.path, declared[0], old, new, difference, since)


def _calls_to_change(
    texts: Texts, it: Signature, known: Sequence[References]
) -> Iterator[Proposal]:
    language, name = languages.detect(it.path), it.new.name
    every = {
        path: names
        for path, lines in texts.items()
        if languages.detect(path) == language and (names := names_of(lines, language)) is not None
    }
    is_known = any((one.path, one.name) == (it.path, name) for one in known)
    if not is_known and _is_ambiguous(every[it.path], name, it.declared):
        return
    found = [*callers(every, it.path, it.declared, name, known)]
    edited = {
        (path, history.current_row(one.row + at, own[index:]))
        for path in every
        for own in [_of_file(it.since, path)]
        for index, one in enumerate(own)
        for at in range(len(one.old))
    }
    is_lenient = language in LENIENT
    given = None
    if it.difference.kind == "added":
        given = arguments.given(found, it.new, it.difference, 2 if is_lenient else 1)
    calls, adapted = list[tuple[tuple[str, int], Changed]](), set[tuple[str, int]]()
    for one in found:
        row = one.path, one.call.node.start_point[0]
        changed = arguments.changed(one, it.old, it.difference, given)
        if changed is None:
            adapted.add(row)
        elif not (is_lenient and changed.column >= 0):
            calls.append((row, changed))
    # In an edited row a call is proposed only if the user adapted another one there.
    made = [
        _proposal(row[0], changed, it)
        for row, changed in calls
        if row not in edited or row in adapted
    ]
    made.sort(key=lambda one: (one.path != it.path, abs(one.row - it.declared.row)))
    yield from made[:MAX_CALLS]


def _is_ambiguous(names: Names, name: str, declared: Occurrence) -> bool:
    """Return whether the name is declared more than once as the same variable or member."""
    same = [one for one in names.occurrences(name) if one.key == declared.key]
    return declared.key is None or sum(one.role == "declaration" for one in same) > 1


def _proposal(path: str, made: Changed, it: Signature) -> Proposal:
    kind, parameters = it.difference.kind, it.difference.names
    is_unknown = made.column >= 0
    own = it.path.rpartition("/")[2]
    where = f"line {it.declared.row + 1}" + (f" of {own}" if path != it.path else "")
    what = "parameters" if len(it.difference.parameters) > 1 else "parameter"
    was = "were" if len(it.difference.parameters) > 1 else "was"
    return Proposal(
        kind="signature",
        path=path,
        row=made.row,
        old=made.old,
        new=(parameters,) if is_unknown else made.new,
        confidence=UNKNOWN if is_unknown else {"removed": REMOVED, "moved": MOVED}.get(kind, ADDED),
        cause=f"{what} `{parameters}` of `{it.new.name}` {was} {kind} in {where}",
        group=f"signature {it.path} {it.new.name} {kind} {parameters}",
        column=made.column,
    )
