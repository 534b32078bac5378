"""Find the calls of a function in all known files, and what a language server knows of them.

Without a server, the rules of scopes and imports decide which calls mean the function. Any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lcursor.code import languages
from lcursor.next_edit import imports
from lcursor.next_edit.names import Names, Occurrence
from lcursor.next_edit.parameters import Call, call_of


@dataclass(frozen=True, slots=True)
class References:
    """The references of a function that a language server found, in the current texts."""

    path: str
    """The file that declares it."""
    name: str
    positions: frozenset[tuple[str, int, int]]
    """Paths, rows, and columns in bytes."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A call, and the names of its file."""

    path: str
    names: Names
    call: Call


def callers(
    every: Mapping[str, Names],
    path: str,
    declared: Occurrence,
    name: str,
    known: Sequence[References] = (),
) -> Iterator[Caller]:
    """Yield the calls of a declared function, without those with spread arguments.

    Args:
        every: the names of the known files of its language.
        path: the file that declares it.
        known: what language servers found.
    """
    positions = next((one.positions for one in known if (one.path, one.name) == (path, name)), None)
    for other, names in every.items():
        if positions:
            own = names.occurrences(name)
            found = [one for one in own if (other, one.row, one.column) in positions]
        elif other == path:
            found = _uses(names, declared, name)
        else:
            found = uses_elsewhere(names, other, path, every[path], declared, name)
        for one in found:
            call = call_of(names, one)
            if call is not None and (other != path or one.node.id != declared.node.id):
                yield Caller(other, names, call)


def uses_elsewhere(
    names: Names, path: str, source: str, source_names: Names, declared: Occurrence, name: str
) -> list[Occurrence]:
    """Return the uses of a function of another file.

    Args:
        names: of the file that may use it.
        path: of that file.
        source: path of the file that declares it.
        source_names: its names.
    """
    key = declared.key
    if key is None or (key[0] == "variable" and source_names.scope_of(key).parent is not None):
        return []
    language = languages.detect(path)
    return imports.uses(names, path, source, name, language, is_member=key[0] == "member")


def _uses(names: Names, declared: Occurrence, name: str) -> list[Occurrence]:
    found = [one for one in names.occurrences(name) if one.role == "use"]
    own = [one for one in found if one.key == declared.key and not imports.macro_path(names, one)]
    return own + [one for one in found if one.key is None and _is_of_type(names, one, declared)]


def _is_of_type(names: Names, one: Occurrence, declared: Occurrence) -> bool:
    """Return whether a use is `Type::name` in Rust, and a declaration the function of that type."""
    access, around = one.node.parent, names.class_of(declared.node)
    if access is None or around is None or access.type != "scoped_identifier":
        return False
    path, kind = access.child_by_field_name("path"), around.child_by_field_name("type")
    if path is None or kind is None:
        return False
    if names.text(path) == "Self":
        return names.class_of(one.node) == around
    return names.text(path).split("<")[0] == names.text(kind).split("<")[0]
