"""After a changed parameter list: propose the changes of the calls in the same file.

A removed parameter takes its argument with it, and moved parameters move their arguments. A new one
without a default gets a variable of the same name if the caller has one, else the argument that
calls already pass for it; as long as there is none, the user is only led to the calls. Calls with
spread arguments, and those that do not fit the old parameters, are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lcursor.code import languages
from lcursor.next_edit import history, trees
from lcursor.next_edit.names import Names, Occurrence, names_of
from lcursor.next_edit.parameters import (
    Call,
    Function,
    Parameter,
    calls,
    functions_at,
    functions_named,
    required,
)
from lcursor.next_edit.records import Edit, Lines, Proposal, Texts
from lcursor.next_edit.tokens import is_cause

if TYPE_CHECKING:
    from lcursor.code.grammars import Node

MAX_CALLS: Final = 50
REMOVED, MOVED, ADDED, UNKNOWN = 0.92, 0.9, 0.7, 0.6
"""Confidence by what happened to the parameters; the last one: an argument that is not known."""
LENIENT: Final = frozenset({"javascript", "lua"})
"""Languages where a call may leave out arguments: one changed call says nothing about others."""


@dataclass(frozen=True, slots=True)
class _Difference:
    """What happened to the parameters of a function."""

    kind: str
    """`removed`, `added` or `moved`."""
    parameter: Parameter
    index: int
    order: tuple[int, ...] = ()
    """Of moved parameters: the old position of each."""


def proposals(texts: Texts, edits: Sequence[Edit]) -> list[Proposal]:
    """Return a proposal for each call that an edited signature affects."""
    found: list[Proposal] = []
    valid = history.without_undone(edits)
    now = {
        path: names_of(texts[path], languages.detect(path))
        for path in {edit.path for edit in valid}
        if path in texts
    }
    for index in reversed(range(len(valid))):
        edit = valid[index]
        names = now.get(edit.path)
        since = [one for one in valid[index:] if one.path == edit.path]
        if names is None or not is_cause(edit) or not _is_in_parameters(names, edit, since):
            continue
        before = history.text_before(names.lines, since)
        if before is not None:
            for one in _calls_to_change(names, before, edit, since):
                if not any(one.row == other.row for other in found):
                    found.append(one)
    return found


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


def _calls_to_change(
    now: Names, before: Lines, edit: Edit, since: Sequence[Edit]
) -> Iterator[Proposal]:
    language = languages.detect(edit.path)
    after = before[: edit.row] + edit.new + before[edit.row + len(edit.old) :]
    old_names, new_names = names_of(before, language), names_of(after, language)
    if old_names is None or new_names is None:
        return
    olds = {one.name: one for one in functions_at(old_names, edit.row, edit.row + len(edit.old))}
    edited = {
        history.current_row(one.row + at, since[index:])
        for index, one in enumerate(since)
        for at in range(len(one.old))
    }
    for function in functions_at(new_names, edit.row, edit.row + len(edit.new)):
        old = olds.get(function.name)
        difference = _difference(old, function) if old is not None else None
        if old is None or difference is None:
            continue
        row = history.current_row(function.name_node.start_point[0], since[1:])
        declared = [
            one
            for own in functions_named(now, function.name)
            for one in now.occurrences(function.name)
            if one.node.id == own.name_node.id and one.row == row
        ]
        if len(declared) != 1 or declared[0].key is None:
            continue
        if _is_ambiguous(now, function.name, declared[0]):
            continue
        every = [*calls(now, declared[0], function.name)]
        is_lenient = language in LENIENT
        given = None
        if difference.kind == "added":
            given = _given(now, every, function, difference, 2 if is_lenient else 1)
        changed = []
        for call in every:
            if call.node.start_point[0] not in edited:
                made = _changed(now, call, old, difference, given)
                if made is not None and not (is_lenient and made.column >= 0):
                    changed.append(made)
        if len(changed) <= MAX_CALLS:
            yield from (
                _proposal(edit.path, made, function.name, difference, row or 0) for made in changed
            )


def _is_ambiguous(names: Names, name: str, declared: Occurrence) -> bool:
    """Return whether the name is declared more than once as the same variable or member."""
    same = [one for one in names.occurrences(name) if one.key == declared.key]
    return sum(one.role == "declaration" for one in same) > 1


def _difference(old: Function, new: Function) -> _Difference | None:
    """Return what happened to the parameters, if it is one thing."""
    befores = [one.name for one in old.parameters]
    afters = [one.name for one in new.parameters]
    gone = [one for one in befores if one not in afters]
    added = [one for one in afters if one not in befores]
    if len({*befores}) < len(befores) or len({*afters}) < len(afters):
        return None
    if len(gone) == 1 and not added and [one for one in befores if one != gone[0]] == afters:
        index = old.index(gone[0])
        return _Difference("removed", old.parameters[index], index)
    if len(added) == 1 and not gone and [one for one in afters if one != added[0]] == befores:
        index = new.index(added[0])
        parameter = new.parameters[index]
        return None if parameter.has_default else _Difference("added", parameter, index)
    if not gone and not added and befores != afters:
        order = tuple(befores.index(one) for one in afters)
        index = next(at for at, one in enumerate(order) if at != one)
        return _Difference("moved", new.parameters[index], index, order)
    return None


@dataclass(frozen=True, slots=True)
class _Changed:
    """New lines for a call."""

    row: int
    old: Lines
    new: Lines
    column: int = -1
    """In bytes, where an unknown argument is missing."""


def _given(
    names: Names, every: Sequence[Call], new: Function, difference: _Difference, least: int
) -> Node | None:
    """Return the argument that at least some calls already pass for a new parameter.

    None if they differ, or are fewer.
    """
    found: list[Node] = []
    for call in every:
        node = call.keywords.get(difference.parameter.name)
        if node is not None:
            found.append(node)
        elif len(call.arguments) == len(new.parameters):
            found += call.positional[difference.index : difference.index + 1]
    is_equal = len({names.text(_value(one)) for one in found}) == 1
    return found[-1] if is_equal and len(found) >= least else None


def _value(argument: Node) -> Node:
    """Return the value of an argument that may be passed by keyword."""
    return argument.child_by_field_name("value") or argument


def _changed(
    names: Names, call: Call, old: Function, difference: _Difference, given: Node | None
) -> _Changed | None:
    """Return the changed lines of a call; None if it needs no change, or it is unclear.

    Args:
        given: the argument that other calls pass for a new parameter.
    """
    if not required(old.parameters) <= len(call.arguments) <= len(old.parameters):
        return None
    if difference.kind == "removed":
        return _without(names, call, difference)
    if difference.kind == "added":
        return _with(names, call, difference, given)
    return _moved(names, call, difference)


def _without(names: Names, call: Call, difference: _Difference) -> _Changed | None:
    positional = call.positional
    node = call.keywords.get(difference.parameter.name)
    if node is None and not difference.parameter.is_keyword and difference.index < len(positional):
        node = positional[difference.index]
    if node is None:
        return None
    row = node.start_point[0]
    line = names.lines[row]
    if line.strip().rstrip(",") == names.text(node):
        return _Changed(row, (line,), ())
    at = call.arguments.index(node)
    first, end = node.start_point, node.end_point
    if at + 1 < len(call.arguments):
        end = call.arguments[at + 1].start_point
    elif at:
        first = call.arguments[at - 1].end_point
    if first[0] != end[0]:
        return None
    return _replaced(line, row, [(first[1], end[1], b"")])


def _with(names: Names, call: Call, difference: _Difference, given: Node | None) -> _Changed | None:
    name = difference.parameter.name
    text = _visible(names, call, name)
    positional = call.positional
    is_by_keyword = difference.parameter.is_keyword or difference.index > len(positional)
    if text is None and given is not None and _is_usable(names, _value(given), call):
        text = names.text(_value(given))
        is_by_keyword = is_by_keyword or _value(given) != given
    if is_by_keyword and not names.rules.keyword[0]:
        return None
    if text is None:
        return _missing(names, call, difference.index)
    data = trees.encode(f"{name}={text}" if is_by_keyword else text)
    if not is_by_keyword and difference.index < len(positional):
        row, column = positional[difference.index].start_point
        line = names.lines[row]
        if (
            line[: len(line) - len(line.lstrip())] == line[:column]
            and row != call.node.start_point[0]
        ):
            return _Changed(row, (), (f"{line[:column]}{text},",))
        return _replaced(line, row, [(column, column, data + b", ")])
    if call.arguments:
        node = call.arguments[-1] if is_by_keyword else positional[-1]
        row, column = node.end_point
        if row != call.list_node.end_point[0]:
            return None
        return _replaced(names.lines[row], row, [(column, column, b", " + data)])
    row, column = call.list_node.start_point
    if call.list_node.end_point != (row, column + 2):
        return None
    return _replaced(names.lines[row], row, [(column + 1, column + 1, data)])


def _missing(names: Names, call: Call, index: int) -> _Changed:
    """Return where an unknown argument is missing in a call."""
    positional = call.positional
    row, column = call.list_node.end_point
    start = positional[index].start_point if index < len(positional) else (row, column - 1)
    line = names.lines[start[0]]
    return _Changed(start[0], (line,), (line,), start[1])


def _is_usable(names: Names, node: Node, call: Call) -> bool:
    """Return whether a call sees the names of an argument of another call."""
    work = [node]
    while work:
        inner = work.pop()
        work += inner.named_children
        text = names.text(inner)
        if text in names.rules.receivers:
            if names.class_of(call.node) != names.class_of(node):
                return False
        elif inner.type in names.rules.names:
            one = names.at(text, *inner.start_point)
            if one is None or one.key is None or one.key[0] != "variable":
                continue
            scope = names.scope_of(one.key)
            same = (other for other in names.occurrences(text) if other.key == one.key)
            first = min(other.node.start_byte for other in same)
            is_around = max(scope.start_byte, first) <= call.node.start_byte < scope.end_byte
            if scope.parent is not None and not is_around:
                return False
    return True


def _visible(names: Names, call: Call, name: str) -> str | None:
    """Return a variable or a member of the object with a name that a call can use."""
    for one in names.occurrences(name):
        if one.role != "declaration" or one.key is None:
            continue
        scope = names.scope_of(one.key)
        is_around = scope.start_byte <= call.node.start_byte < scope.end_byte
        if is_around and one.key[0] == "variable" and one.node.start_byte < call.node.start_byte:
            return name
        if is_around and one.key[0] == "member" and not names.rules.has_open_members:
            receiver = next((own for own in ("self", "this") if own in names.rules.receivers), "")
            is_same = names.class_of(call.node) == scope
            return f"{receiver}.{name}" if receiver and is_same else None
    return None


def _moved(names: Names, call: Call, difference: _Difference) -> _Changed | None:
    positional = call.positional
    if len(positional) != len(difference.order):
        return None
    row = call.list_node.start_point[0]
    if call.list_node.end_point[0] != row:
        return None
    parts = []
    for node, index in zip(positional, difference.order, strict=True):
        text = trees.encode(names.text(positional[index]))
        parts.append((node.start_point[1], node.end_point[1], text))
    return _replaced(names.lines[row], row, parts)


def _replaced(line: str, row: int, parts: Sequence[tuple[int, int, bytes]]) -> _Changed:
    """Return a line with other text in some byte ranges."""
    data = trees.encode(line)
    for first, end, text in sorted(parts, reverse=True):
        data = data[:first] + text + data[end:]
    return _Changed(row, (line,), (data.decode("utf-8", "surrogateescape"),))


def _proposal(path: str, made: _Changed, name: str, difference: _Difference, row: int) -> Proposal:
    confidence = {"removed": REMOVED, "moved": MOVED, "added": ADDED}[difference.kind]
    parameter = difference.parameter.name
    is_unknown = made.column >= 0
    return Proposal(
        kind="signature",
        path=path,
        row=made.row,
        old=made.old,
        new=(parameter,) if is_unknown else made.new,
        confidence=UNKNOWN if is_unknown else confidence,
        cause=f"parameter `{parameter}` of `{name}` was {difference.kind} in line {row + 1}",
        group=f"signature {path} {name} {difference.kind} {parameter}",
        column=made.column,
    )
