"""Change the arguments of a call after the parameters of its function changed. Any thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lcursor.next_edit import trees
from lcursor.next_edit.callers import Caller
from lcursor.next_edit.parameters import Argument, Function, Parameter, required
from lcursor.next_edit.records import Lines

if TYPE_CHECKING:
    from lcursor.next_edit.names import Names


@dataclass(frozen=True, slots=True)
class Difference:
    """What happened to the parameters of a function."""

    kind: str
    """`removed`, `added` or `moved`."""
    parameters: tuple[Parameter, ...]
    """The removed one, the first moved one, or those that were added next to each other."""
    index: int
    """Position of the first of them."""
    order: tuple[int, ...] = ()
    """Of moved parameters: the old position of each."""

    @property
    def names(self) -> str:
        """The names of the parameters, for the user."""
        return ", ".join(one.name for one in self.parameters)


@dataclass(frozen=True, slots=True)
class Changed:
    """New lines for a call."""

    row: int
    old: Lines
    new: Lines
    column: int = -1
    """In bytes, where an unknown argument is missing."""


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments that other calls already pass for new parameters."""

    names: Names
    """Of their file."""
    arguments: tuple[Argument, ...]

    @property
    def texts(self) -> list[str]:
        """Their values."""
        return [one.value.text(self.names) for one in self.arguments]


def difference(old: Function, new: Function) -> Difference | None:
    """Return what happened to the parameters, if it is one thing that concerns the calls."""
    befores = [one.name for one in old.parameters]
    afters = [one.name for one in new.parameters]
    gone = [one for one in befores if one not in afters]
    added = [one for one in afters if one not in befores]
    if len({*befores}) < len(befores) or len({*afters}) < len(afters):
        return None
    if len(gone) == 1 and not added and [one for one in befores if one != gone[0]] == afters:
        index = old.index(gone[0])
        return Difference("removed", (old.parameters[index],), index)
    if added and not gone and [one for one in afters if one not in added] == befores:
        needed = [one for one in new.parameters if one.name in added and not one.has_default]
        index = new.index(needed[0].name) if needed else 0
        is_run = needed == list(new.parameters[index : index + len(needed)])
        return Difference("added", tuple(needed), index) if needed and is_run else None
    if not gone and not added and befores != afters:
        order = tuple(befores.index(one) for one in afters)
        index = next(at for at, one in enumerate(order) if at != one)
        return Difference("moved", (new.parameters[index],), index, order)
    return None


def given(callers: Sequence[Caller], new: Function, change: Difference, least: int) -> Given | None:
    """Return the arguments that at least some calls already pass for new parameters.

    None if they differ, or are fewer.
    """
    found: list[Given] = []
    for one in callers:
        positional, keywords = one.call.positional, one.call.keywords
        is_full = len(one.call.arguments) == len(new.parameters)
        arguments = [
            keywords.get(parameter.name) or (positional[at] if at < len(positional) else None)
            for at, parameter in enumerate(change.parameters, change.index)
            if is_full or parameter.name in keywords
        ]
        own = tuple(argument for argument in arguments if argument is not None)
        if len(own) == len(change.parameters):
            found.append(Given(one.names, own))
    is_equal = len({tuple(one.texts) for one in found}) == 1
    return found[-1] if is_equal and len(found) >= least else None


def changed(
    caller: Caller, old: Function, change: Difference, known: Given | None
) -> Changed | None:
    """Return the changed lines of a call; None if it needs no change, or it is unclear.

    Args:
        known: the arguments that other calls pass for new parameters.
    """
    if not required(old.parameters) <= len(caller.call.arguments) <= len(old.parameters):
        return None
    if change.kind == "removed":
        return _without(caller, change)
    return _with(caller, change, known) if change.kind == "added" else _moved(caller, change)


def _without(caller: Caller, change: Difference) -> Changed | None:
    names, call, parameter = caller.names, caller.call, change.parameters[0]
    positional = call.positional
    argument = call.keywords.get(parameter.name)
    if argument is None and not parameter.is_keyword and change.index < len(positional):
        argument = positional[change.index]
    if argument is None:
        return None
    row = argument.start_point[0]
    line = names.lines[row]
    if line.strip().rstrip(",") == argument.text(names):
        return Changed(row, (line,), ())
    at = call.arguments.index(argument)
    first, end = argument.start_point, argument.end_point
    if at + 1 < len(call.arguments):
        end = call.arguments[at + 1].start_point
    elif at:
        first = call.arguments[at - 1].end_point
    if first[0] != end[0]:
        return None
    return _replaced(line, row, [(first[1], end[1], b"")])


def _with(caller: Caller, change: Difference, known: Given | None) -> Changed | None:
    names, call = caller.names, caller.call
    positional, added = call.positional, change.parameters
    texts = [_visible(caller, one.name) for one in added]
    is_by_keyword = added[0].is_keyword or change.index > len(positional)
    if None in texts and known is not None and _is_usable(known, caller):
        texts = [*known.texts]
        is_by_keyword = is_by_keyword or any(one.name for one in known.arguments)
    if is_by_keyword and not names.rules.keyword[0]:
        return None
    if None in texts:
        return _missing(caller, change.index)
    pairs = zip(added, texts, strict=True)
    text = ", ".join(f"{one.name}={own}" if is_by_keyword else str(own) for one, own in pairs)
    if not is_by_keyword and change.index < len(positional):
        row, column = positional[change.index].start_point
        line = names.lines[row]
        if not line[:column].strip() and row != call.node.start_point[0]:
            return Changed(row, (), (f"{line[:column]}{text},",))
        return _replaced(line, row, [(column, column, trees.encode(text + ", "))])
    if call.arguments:
        last = call.arguments[-1]
        row, column = last.end_point
        if row != call.list_node.end_point[0]:
            return _with_line(caller, change, text)
        return _replaced(names.lines[row], row, [(column, column, trees.encode(", " + text))])
    row, column = call.list_node.start_point
    if call.list_node.end_point != (row, column + 2):
        return None
    return _replaced(names.lines[row], row, [(column + 1, column + 1, trees.encode(text))])


def _with_line(caller: Caller, change: Difference, text: str) -> Changed:
    """Return a line for an argument below the last one, if each has a line and a comma."""
    names, last = caller.names, caller.call.arguments[-1]
    first, column = last.start_point
    row, end = last.end_point
    indent = names.lines[first][:column]
    if indent.strip() or trees.encode(names.lines[row])[end:].strip() != b",":
        return _missing(caller, change.index)
    return Changed(row + 1, (), (f"{indent}{text},",))


def _missing(caller: Caller, index: int) -> Changed:
    """Return where an unknown argument is missing in a call."""
    names, call, positional = caller.names, caller.call, caller.call.positional
    row, column = call.list_node.end_point
    start = (row, column - 1)
    if index < len(positional):
        start = positional[index].start_point
    elif call.arguments and call.arguments[-1].end_point[0] < row:
        row = call.arguments[-1].end_point[0]
        start = (row, len(trees.encode(names.lines[row])))
    line = names.lines[start[0]]
    return Changed(start[0], (line,), (line,), start[1])


def _is_usable(known: Given, caller: Caller) -> bool:
    """Return whether a call sees the names of the arguments of another call."""
    names, call = caller.names, caller.call
    work = [node for one in known.arguments for node in one.value.nodes]
    while work:
        inner = work.pop()
        work += inner.named_children
        text = known.names.text(inner)
        if known.names is not names:
            if inner.type in names.rules.names or text in names.rules.receivers:
                return False
        elif text in names.rules.receivers:
            if names.class_of(call.node) != names.class_of(inner):
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


def _visible(caller: Caller, name: str) -> str | None:
    """Return a variable or a member of the object with a name that a call can use."""
    names, node = caller.names, caller.call.node
    for one in names.occurrences(name):
        if one.role != "declaration" or one.key is None:
            continue
        scope = names.scope_of(one.key)
        if scope.has_error:  # a function without its end may contain the next one
            continue
        is_around = scope.start_byte <= node.start_byte < scope.end_byte
        if is_around and one.key[0] == "variable" and one.node.start_byte < node.start_byte:
            return name
        if is_around and one.key[0] == "member" and not names.rules.has_open_members:
            receiver = next((own for own in ("self", "this") if own in names.rules.receivers), "")
            is_same = names.class_of(node) == scope
            return f"{receiver}.{name}" if receiver and is_same else None
    return None


def _moved(caller: Caller, change: Difference) -> Changed | None:
    names, call = caller.names, caller.call
    positional = call.positional
    if len(positional) != len(change.order):
        return None
    row = call.list_node.start_point[0]
    if call.list_node.end_point[0] != row:
        return None
    parts = []
    for argument, index in zip(positional, change.order, strict=True):
        text = trees.encode(positional[index].text(names))
        parts.append((argument.start_point[1], argument.end_point[1], text))
    return _replaced(names.lines[row], row, parts)


def _replaced(line: str, row: int, parts: Sequence[tuple[int, int, bytes]]) -> Changed:
    """Return a line with other text in some byte ranges."""
    data = trees.encode(line)
    for first, end, text in sorted(parts, reverse=True):
        data = data[:first] + text + data[end:]
    return Changed(row, (line,), (data.decode("utf-8", "surrogateescape"),))
