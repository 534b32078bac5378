"""Resolve a name in a text: which of its occurrences mean the same variable or member.

Looks only at the occurrences of one name and the nodes above them, so it takes a millisecond even
in a long file. Any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from lcursor.next_edit import trees
from lcursor.next_edit.records import Lines
from lcursor.next_edit.scope_rules import RULES, Reach, ScopeRules

if TYPE_CHECKING:
    from lcursor.code.grammars import Node

Role = Literal["declaration", "use", "keyword", "other"]
Key = tuple[str | int, ...]
"""Identifies a variable or a member in one text."""
ANY: Final = "any"
WORD_BYTE: Final = re.compile(rb"[\w\x80-\xff]")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name in the text; the column is in bytes."""

    row: int
    column: int
    role: Role
    key: Key | None
    """The variable or member; None if it is unknown or declared elsewhere."""
    is_shorthand: bool
    """Whether it stands for `name: name`."""
    is_member: bool
    """Whether it is the name of a member, of whatever object."""
    node: Node


@dataclass(slots=True)
class _Found:
    """An occurrence before its variable is known."""

    node: Node
    role: Role
    key: Key | None
    scopes: list[Node]
    """The scopes that see it, innermost first; the first one has the declaration."""
    visible_from: int
    is_member: bool = False


class ScopeNames:
    """The names of one text. Create it with `names_of`."""

    def __init__(self, lines: Lines, rules: ScopeRules, root: Node, data: bytes) -> None:
        self.lines, self.rules, self.root, self.data = lines, rules, root, data
        self._known: dict[str, list[Occurrence]] = {}
        self._scope_nodes: dict[str | int, Node] = {}

    def occurrences(self, name: str) -> list[Occurrence]:
        """Return all occurrences of a name in code, in source order."""
        if name not in self._known:
            self._known[name] = self._resolve(name)
        return self._known[name]

    def at(self, name: str, row: int, column: int) -> Occurrence | None:
        """Return the occurrence of a name at a place; the column is in bytes."""
        for one in self.occurrences(name):
            if (one.row, one.column) == (row, column):
                return one
        return None

    def scope_of(self, key: Key) -> Node:
        """Return the scope of a variable, or the class of a member."""
        return self._scope_nodes.get(key[1], self.root)

    def keywords(self, name: str, function: Node) -> list[Occurrence]:
        """Return the keyword arguments with a name in calls of a function."""
        return [
            one
            for one in self.occurrences(name)
            if one.role == "keyword" and self._is_call_of(one.node, function)
        ]

    def text(self, node: Node) -> str:
        """Return the text of a node."""
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "surrogateescape")

    def field_of(self, node: Node) -> str:
        """Return the field in which a node is in its parent; "" for none."""
        parent = node.parent
        if parent is None:
            return ""
        for at, child in enumerate(parent.children):
            if child.id == node.id:
                return parent.field_name_for_child(at) or ""
        return ""

    def is_of_self(self, one: Occurrence) -> bool:
        """Return whether a member is accessed in the object itself, where that has a name."""
        access = one.node.parent
        fields = self.rules.members.get(access.type) if access is not None else None
        receiver = access.child_by_field_name(fields[0]) if access and fields else None
        receivers = self.rules.receivers
        return not receivers or receiver is None or self.text(receiver) in receivers

    def class_of(self, node: Node) -> Node | None:
        """Return the innermost class around a node."""
        above = node.parent
        while above is not None and above.type not in self.rules.classes:
            above = above.parent
        return above

    def callee(self, call: Node) -> Occurrence | None:
        """Return the name of the called function."""
        fields = ("function", "name", "constructor")
        function = next((one for it in fields if (one := call.child_by_field_name(it))), None)
        if function is None:
            return None
        if function.type in self.rules.members:
            function = function.child_by_field_name(self.rules.members[function.type][1])
        elif function.type == "scoped_identifier":
            function = function.child_by_field_name("name")
        if function is None or function.type not in self.rules.names:
            return None
        return self.at(self.text(function), *function.start_point)

    def _is_call_of(self, keyword: Node, function: Node) -> bool:
        """Return whether a keyword's name is in a call of a function, or of its class."""
        call = keyword.parent
        while call is not None and call.child_by_field_name("arguments") is None:
            call = call.parent
        own = function.child_by_field_name("name")
        called = self.callee(call) if call is not None else None
        if own is None or called is None or called.key is None:
            return False
        if self.text(own) == "__init__":
            around = self.class_of(function)
            own = around.child_by_field_name("name") if around else None
        if own is None:
            return False
        declared = self.at(self.text(own), *own.start_point)
        is_same = self.text(own) == self.text(called.node)
        return is_same and declared is not None and declared.key == called.key

    def _resolve(self, name: str) -> list[Occurrence]:
        found = [self._found(node) for node in self._nodes(name)]
        self._drop_outer_statements(found)
        declared: dict[int, list[_Found]] = {}
        for one in found:
            if one.role == "declaration" and one.scopes:
                declared.setdefault(one.scopes[0].id, []).append(one)
        result = []
        for one in found:
            key = one.key
            if key is None and one.role in {"declaration", "use"}:
                key = self._key(one, declared)
            row, column = one.node.start_point
            parent = one.node.parent
            is_shorthand = one.node.type in self.rules.shorthands or (
                parent is not None and parent.type in self.rules.shorthands
            )
            is_member = one.is_member or (key is not None and key[0] == "member")
            node = one.node
            result.append(Occurrence(row, column, one.role, key, is_shorthand, is_member, node))
        return result

    def has_word(self, name: str) -> bool:
        """Return whether a name is anywhere in the text."""
        return next(_words(self.data, name), None) is not None

    def _nodes(self, name: str) -> Iterator[Node]:
        for start, end in _words(self.data, name):
            node = self.root.named_descendant_for_byte_range(start, end)
            if (
                node is not None
                and (node.start_byte, node.end_byte) == (start, end)
                and node.type in self.rules.names
            ):
                yield node

    def _found(self, node: Node) -> _Found:
        rules, child, parent = self.rules, node, node.parent
        access = rules.members.get(parent.type) if parent is not None else None
        if parent is not None and access and self.field_of(node) == access[1]:
            return self._member(node, parent)
        if _is_macro_keyword(node):
            return _Found(node, "other", None, [], 0)
        while parent is not None:
            name = self.field_of(child)
            if _has(rules.member_names.get(parent.type), name):
                return _Found(node, "declaration", self._class_key(parent), [], 0)
            if (parent.type, name) == rules.keyword:
                return _Found(node, "keyword", None, [], 0)
            if _has(rules.not_names.get(parent.type), name):
                is_key = name in {"name", "key", "field"} and parent.type in rules.literals
                return _Found(node, "other", None, [], 0, is_key)
            reaches = rules.binders.get(parent.type, {})
            reach = reaches.get(name) or reaches.get("*")
            if reach:
                if name == "name" and parent.child_by_field_name("alias"):
                    return _Found(node, "other", None, [], 0)
                return self._declaration(node, parent, reach)
            if not _has(rules.passes.get(parent.type), name):
                break
            child, parent = parent, parent.parent
        if node.type in {"property_identifier", "field_identifier"}:
            return _Found(node, "other", None, [], 0, is_member=True)
        return _Found(node, "use", None, [*self._scopes(node)], 0)

    def _declaration(self, node: Node, binder: Node, reach: Reach) -> _Found:
        rules = self.rules
        scope: Node = binder
        is_skipped = reach == "outer"
        while scope.parent is not None:
            is_scope = scope.type in rules.scopes
            if (
                is_scope
                and not is_skipped
                and (reach != "function" or scope.type in rules.functions)
            ):
                break
            is_skipped = is_skipped and not is_scope
            scope = scope.parent
        self._scope_nodes[scope.id] = scope
        key = None
        if scope.type in rules.classes:
            key = ("member", ANY if rules.has_open_members else scope.id)
        visible_from = binder.end_byte if binder.type in rules.sequential else 0
        return _Found(node, "declaration", key, [scope, *self._scopes(scope)], visible_from)

    def _scopes(self, node: Node) -> Iterator[Node]:
        """Yield the scopes around a node that see it, innermost first."""
        rules, child = self.rules, node
        is_in_function = False
        parent = node.parent
        while parent is not None:
            if parent.type in rules.scopes:
                fields = rules.bodies.get(parent.type)
                is_inside = fields is None or self.field_of(child) in fields
                is_hidden = is_in_function and parent.type in rules.classes
                if is_inside and not is_hidden:
                    yield parent
                is_in_function = is_in_function or (is_inside and parent.type in rules.functions)
            child, parent = parent, parent.parent

    def _key(self, one: _Found, declared: dict[int, list[_Found]]) -> Key | None:
        """Return the variable of an occurrence."""
        for scope in one.scopes:
            if scope.type in self.rules.classes:
                if scope.id in declared and not self.rules.has_open_members:
                    return ("member", scope.id)
                continue
            seen = [
                at
                for at, other in enumerate(declared.get(scope.id, ()))
                if other is one or other.visible_from <= one.node.start_byte
            ]
            if not seen:
                continue
            if not self.rules.redeclares:
                return ("variable", scope.id)
            own = [at for at in seen if declared[scope.id][at] is one]
            return ("variable", scope.id, (own or seen)[-1])
        return None

    def _member(self, node: Node, access: Node) -> _Found:
        rules = self.rules
        receiver = access.child_by_field_name(rules.members[access.type][0])
        key: Key | None = None
        text = self.text(receiver) if receiver is not None else ""
        if rules.has_open_members:
            key = ("member", ANY)
        elif text in rules.receivers:
            key = self._class_key(node)
        elif rules is RULES["lua"]:
            key = ("member", self._lua_table(node) if text == "self" else text)
        else:
            around = self.class_of(node)
            while around is not None:
                own = around.child_by_field_name("name") or (
                    around.parent.child_by_field_name("name") if around.parent else None
                )
                if own is not None and self.text(own) == text:
                    key = ("member", around.id)
                around = self.class_of(around)
        target, above = access, access.parent
        while above is not None and _has(rules.passes.get(above.type), self.field_of(target)):
            if _has(rules.targets.get(above.type), self.field_of(target)):
                break
            target, above = above, above.parent
        is_target = above is not None and _has(rules.targets.get(above.type), self.field_of(target))
        role: Role = "declaration" if is_target else "use"
        return _Found(node, role, key, [], 0, is_member=True)

    def _class_key(self, node: Node) -> Key | None:
        if self.rules.has_open_members:
            return ("member", ANY)
        around = self.class_of(node)
        if around is None:
            return None
        self._scope_nodes[around.id] = around
        return ("member", around.id)

    def _lua_table(self, node: Node) -> str:
        """Return the table of the function `table:name` around a node."""
        above = node.parent
        while above is not None:
            name = above.child_by_field_name("name")
            if above.type == "function_declaration" and name is not None:
                table = name.child_by_field_name("table")
                if table is not None:
                    return self.text(table)
            above = above.parent
        return "self"

    def _drop_outer_statements(self, found: list[_Found]) -> None:
        """Make declarations in a scope with a `global` statement mean the outer variable."""
        if not self.rules.outer_statements:
            return
        outer = {
            one.scopes[0].id
            for one in found
            if one.scopes
            and one.node.parent is not None
            and one.node.parent.type in self.rules.outer_statements
        }
        for one in found:
            if one.scopes and one.scopes[0].id in outer:
                one.role = "use" if one.role == "declaration" else one.role
                one.scopes = one.scopes[1:]


def _words(data: bytes, name: str) -> Iterator[tuple[int, int]]:
    """Yield the starts and ends of a word in a text; a regular expression is slower."""
    word = trees.encode(name)
    start = data.find(word) if word else -1
    while start >= 0:
        end = start + len(word)
        if not WORD_BYTE.match(data, start - 1 if start else end) and not WORD_BYTE.match(
            data, end
        ):
            yield start, end
        start = data.find(word, end)


def _is_macro_keyword(node: Node) -> bool:
    """Return whether a name is a keyword in a call of a Rust macro: `format!("{a}", a = b)`."""
    before, after = node.prev_sibling, node.next_sibling
    is_in_macro = node.parent is not None and node.parent.type == "token_tree"
    is_assigned = after is not None and after.type == "="
    return is_in_macro and is_assigned and before is not None and before.type == ","


def _has(fields: frozenset[str] | None, name: str) -> bool:
    return fields is not None and (name in fields or "*" in fields)


@lru_cache(maxsize=trees.MAX_TREES)
def _parsed(language: str, lines: Lines) -> ScopeNames | None:
    found = trees.tree(language, lines)
    return ScopeNames(lines, RULES[language], *found) if found is not None else None


def names_of(lines: Sequence[str], language: str) -> ScopeNames | None:
    """Return the names of a text; None for a language without rules or a grammar."""
    return _parsed(language, tuple(lines)) if language in RULES else None
