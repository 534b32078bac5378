"""The uses, in one file, of a name that another file declares. Any thread.

Follows imports by the name of the imported file only, so the caller must know that the name is
declared there. In Go, the files of a folder see each other without imports.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from lcursor.next_edit.names import Occurrence, ScopeNames

if TYPE_CHECKING:
    from lcursor.code.grammars import Node

_IMPORT_NODES = frozenset({"import_from_statement", "import_statement", "use_declaration"})


def uses(
    names: ScopeNames, path: str, source: str, name: str, language: str, *, is_member: bool
) -> list[Occurrence]:
    """Return the uses of a name of another file.

    Args:
        names: of the file that may use it.
        path: of that file.
        source: path of the file that declares it.
        language: of both files.
        is_member: whether it is a member: a method, a field, a function of a Lua module.
    """
    found = names.occurrences(name)
    if language == "go":
        if PurePosixPath(path).parent != PurePosixPath(source).parent:
            return []
        if is_member:
            is_declared = any(one.role == "declaration" for one in found)
            return (
                [] if is_declared else [one for one in found if one.key and one.key[0] == "member"]
            )
        return [one for one in found if one.key is None and one.role == "use"]
    stem = PurePosixPath(source).stem
    if stem in {"init", "__init__", "index", "mod"}:
        stem = PurePosixPath(source).parent.name or stem
    if language == "lua":
        modules = _lua_modules(names, stem) if is_member else set[str]()
        return [one for one in found if _receiver(names, one) in modules]
    if language == "rust":
        return [] if is_member else _rust_uses(names, found, name, stem)
    if is_member:
        return []
    keys = {
        one.key
        for one in found
        if one.role == "declaration" and one.key and _imported_from(names, one.node) == stem
    }
    modules = {stem} if _is_module(names, stem) else set()
    return [one for one in found if one.key in keys or _receiver(names, one) in modules]


def _receiver(names: ScopeNames, one: Occurrence) -> str:
    """Return the text of the object whose member an occurrence is; "" if it is none."""
    access = one.node.parent
    fields = names.rules.members.get(access.type) if access is not None else None
    if access is None or fields is None or names.field_of(one.node) != fields[1]:
        return ""
    receiver = access.child_by_field_name(fields[0])
    return names.text(receiver) if receiver is not None else ""


def _lua_modules(names: ScopeNames, stem: str) -> set[str]:
    """Return the variables that hold a module."""
    pattern = re.compile(rf"local (\w+) = require\(?\s*[\"'](?:[\w.-]*[./])?{re.escape(stem)}[\"']")
    return {match[1] for line in names.lines if (match := pattern.search(line))}


def _rust_uses(
    names: ScopeNames, found: list[Occurrence], name: str, stem: str
) -> list[Occurrence]:
    """Return the uses of an item of a module: `module::name`, or `name` where it is imported."""
    pattern = re.compile(rf"\buse [\w:]*\b{stem}::(?:{name};|\{{[^;]*\b{name}\b(?! as)[^;]*\}};)")
    is_imported = pattern.search("\n".join(names.lines)) is not None
    uses = []
    for one in found:
        access = one.node.parent
        path = access.child_by_field_name("path") if access is not None else None
        module = names.text(path).rpartition("::")[2] if path is not None else ""
        module = module or _macro_path(names, one)
        if module == stem or (is_imported and not module and not one.is_member):
            uses.append(one)
    return uses


def _macro_path(names: ScopeNames, one: Occurrence) -> str:
    """Return the word before `::` or `.` and a name in a macro of Rust; "" for none."""
    sign = one.node.prev_sibling
    is_in_macro = one.node.parent is not None and one.node.parent.type == "token_tree"
    if not is_in_macro or sign is None or sign.type not in {".", "::"}:
        return ""
    before = sign.prev_sibling
    return names.text(before) if before is not None and sign.type == "::" else sign.type


def _imported_from(names: ScopeNames, node: Node) -> str:
    """Return the last part of the module from which a name is imported; "" if it is not."""
    above: Node | None = node
    while above is not None and above.type not in _IMPORT_NODES:
        above = above.parent
    if above is None:
        return ""
    module = above.child_by_field_name("module_name") or above.child_by_field_name("source")
    text = names.text(module).strip("\"'") if module is not None else ""
    return re.split(r"[./]", re.sub(r"\.(js|ts|mjs|cjs|jsx|tsx)$", "", text))[-1]


def _is_module(names: ScopeNames, stem: str) -> bool:
    """Return whether a module is imported under its own name."""
    return any(
        one.role == "declaration" and is_imported(one.node) for one in names.occurrences(stem)
    )


def is_imported(node: Node) -> bool:
    """Return whether an import declares a name as it is in the imported module, without alias."""
    above: Node | None = node
    while above is not None and above.type not in _IMPORT_NODES:
        if above.child_by_field_name("alias") is not None:
            return False
        above = above.parent
    return above is not None
