"""The parameters of functions and the arguments of calls, read from syntax trees. Any thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lcursor.next_edit.names import Names, Occurrence

if TYPE_CHECKING:
    from lcursor.code.grammars import Node

SPREADS: Final = frozenset({
    "list_splat_pattern", "list_splat", "dictionary_splat", "rest_pattern", "spread_element",
    "variadic_parameter_declaration", "variadic_argument", "vararg_expression",
    "variadic_parameter",
})  # fmt: skip
"""Parameters and arguments that stand for several."""
IGNORED: Final = frozenset({"comment", "line_comment", "block_comment", "dictionary_splat_pattern"})
MARKERS: Final = frozenset({"keyword_separator"})
"""The parameters behind it are passed by keyword."""
RECEIVERS: Final = frozenset({"self", "cls"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function."""

    name: str
    has_default: bool
    is_keyword: bool
    """Whether it can only be passed by keyword."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function definition."""

    name: str
    name_node: Node
    list_node: Node
    """The node of its parameters."""
    parameters: tuple[Parameter, ...]
    """Without `self`."""

    def index(self, name: str) -> int:
        """Return the position of a parameter."""
        return [one.name for one in self.parameters].index(name)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function."""

    node: Node
    list_node: Node
    arguments: tuple[Node, ...]
    """In source order."""
    keywords: dict[str, Node]
    """Those that are passed by name."""

    @property
    def positional(self) -> list[Node]:
        """The arguments that are passed by position."""
        named = {node.id for node in self.keywords.values()}
        return [node for node in self.arguments if node.id not in named]


def functions_at(names: Names, first: int, end: int) -> list[Function]:
    """Return the functions with parameters in some rows."""
    # A file may have thousands of top-level nodes, so start from the innermost one around the rows.
    inner = names.root.descendant_for_point_range((first, 0), (end, 0)) or names.root
    nodes = list(_around(inner, first, end))
    above = inner.parent
    while above is not None:
        nodes.append(above)
        above = above.parent
    return [one for node in nodes if (one := _function(names, node))]


def functions_named(names: Names, name: str) -> Iterator[Function]:
    """Yield the functions with a name."""
    for one in names.occurrences(name):
        parent = one.node.parent
        function = _function(names, parent) if parent is not None else None
        if function is not None and function.name_node.id == one.node.id:
            yield function


def calls(names: Names, function: Occurrence, name: str) -> Iterator[Call]:
    """Yield the calls of a declared function, without those with spread arguments."""
    for one in names.occurrences(name):
        if one.key != function.key or one.role != "use":
            continue
        node = one.node.parent
        if node is not None and node.type in names.rules.members:
            node = node.parent
        if node is None or node.child_by_field_name("arguments") is None:
            continue
        own = names.callee(node)
        found = _call(names, node)
        if own is not None and own.node.id == one.node.id and found is not None:
            yield found


def _around(root: Node, first: int, end: int) -> Iterator[Node]:
    """Yield the nodes that overlap some rows."""
    work = [root]
    while work:
        node = work.pop()
        if node.start_point[0] < end and node.end_point[0] >= first:
            yield node
            work += node.named_children


def _function(names: Names, node: Node) -> Function | None:
    name, parameters = node.child_by_field_name("name"), node.child_by_field_name("parameters")
    if parameters is None:
        return None
    if name is None and node.type == "function_declarator":
        name = node.child_by_field_name("declarator")
    if name is None:
        return None
    if name.type in names.rules.members:
        name = name.child_by_field_name(names.rules.members[name.type][1])
    found = _parameters(names, parameters)
    if name is None or found is None:
        return None
    return Function(names.text(name), name, parameters, tuple(found))


def _parameters(names: Names, node: Node) -> list[Parameter] | None:
    """Return the parameters; None if one stands for several or has no name."""
    found: list[Parameter] = []
    is_keyword = False
    for child in node.named_children:
        if child.type in MARKERS:
            is_keyword = True
        elif child.type in SPREADS:
            return None
        elif child.type in IGNORED or child.type == "positional_separator":
            continue
        else:
            own = _names(names, child)
            if not own:
                return None
            has_default = any(child.child_by_field_name(one) for one in ("value", "right"))
            has_default = has_default or child.type == "optional_parameter"
            if not found and own[0] in RECEIVERS:
                continue
            found += [Parameter(name, has_default, is_keyword) for name in own]
    return found


def _names(names: Names, node: Node) -> list[str]:
    """Return the names that a parameter declares."""
    if node.type in names.rules.names:
        return [names.text(node)]
    if node.type == "self_parameter":
        return ["self"]
    for field in ("name", "pattern", "left", "declarator"):
        own = node.children_by_field_name(field)
        if own:
            return [name for one in own for name in _names(names, one)]
    first = node.named_children[:1] if node.type == "typed_parameter" else []
    return [name for one in first if one.type in names.rules.names for name in [names.text(one)]]


def _call(names: Names, node: Node) -> Call | None:
    found = node.child_by_field_name("arguments")
    if found is None or not names.text(found).startswith("("):
        return None
    arguments = [one for one in found.named_children if one.type not in IGNORED]
    if any(one.type in SPREADS for one in arguments):
        return None
    kind, field = names.rules.keyword
    keywords = {}
    for one in arguments:
        own = one.child_by_field_name(field) if one.type == kind else None
        if own is not None:
            keywords[names.text(own)] = one
    return Call(node, found, tuple(arguments), keywords)


def required(parameters: Sequence[Parameter]) -> int:
    """Return the number of arguments that a call must have."""
    return sum(not one.has_default for one in parameters)
