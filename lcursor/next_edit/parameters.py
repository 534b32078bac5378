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
UNNAMED: Final = frozenset({"arrow_function", "function_expression"})
"""Functions whose name is that of the variable or member that they are the value of."""
CONSTRUCTORS: Final = frozenset({"__init__", "constructor"})
"""Functions that are called by the name of their class."""


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
    """By which it is called."""
    name_node: Node
    list_node: Node
    """The node of its parameters."""
    parameters: tuple[Parameter, ...]
    """Without `self`."""

    def index(self, name: str) -> int:
        """Return the position of a parameter."""
        return [one.name for one in self.parameters].index(name)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call: one node, or in a macro several tokens."""

    nodes: tuple[Node, ...]
    name: str
    """With which it is passed; "" by position."""

    @property
    def start_point(self) -> tuple[int, int]:
        """Its first row and column."""
        return self.nodes[0].start_point

    @property
    def end_point(self) -> tuple[int, int]:
        """The row and column behind it."""
        return self.nodes[-1].end_point

    @property
    def value(self) -> Argument:
        """The argument without its name."""
        own = self.nodes[0].child_by_field_name("value") if self.name else None
        return Argument((own,), "") if own is not None else self

    def text(self, names: Names) -> str:
        """Return its text."""
        return names.text_of(self.nodes[0], self.nodes[-1])


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function."""

    node: Node
    list_node: Node
    arguments: tuple[Argument, ...]
    """In source order."""

    @property
    def keywords(self) -> dict[str, Argument]:
        """Those that are passed by name."""
        return {one.name: one for one in self.arguments if one.name}

    @property
    def positional(self) -> list[Argument]:
        """The arguments that are passed by position."""
        return [one for one in self.arguments if not one.name]


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


def call_of(names: Names, one: Occurrence) -> Call | None:
    """Return the call of the function that a name means there; None with spread arguments."""
    node = one.node.parent
    while node is not None and _is_last_part(names, one, node):
        node = node.parent
    if node is None:
        return None
    if node.type == "token_tree":
        return _macro_call(names, one.node)
    own = names.callee(node) if node.child_by_field_name("arguments") is not None else None
    return _call(names, node) if own is not None and own.node.id == one.node.id else None


def _is_last_part(names: Names, one: Occurrence, node: Node) -> bool:
    """Return whether a node is an access of the member with a name: `a.name`, `a::name`."""
    fields = names.rules.members.get(node.type, ("path", "name"))
    if node.type not in names.rules.members and node.type != "scoped_identifier":
        return False
    own = node.child_by_field_name(fields[1])
    return own is not None and own.id == one.node.id


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
    if name is None and node.parent is not None and node.type in UNNAMED:
        name = node.parent.child_by_field_name("name")
    if name is None:
        return None
    if name.type in names.rules.members:
        name = name.child_by_field_name(names.rules.members[name.type][1])
    if name is not None and names.text(name) in CONSTRUCTORS:
        around = names.class_of(node)
        owner = around.parent if around is not None and around.type == "class_body" else around
        name = owner.child_by_field_name("name") if owner is not None else None
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
    nodes = [one for one in found.named_children if one.type not in IGNORED]
    if any(one.type in SPREADS for one in nodes):
        return None
    kind, field = names.rules.keyword
    arguments = []
    for one in nodes:
        own = one.child_by_field_name(field) if one.type == kind else None
        arguments.append(Argument((one,), names.text(own) if own is not None else ""))
    return Call(node, found, tuple(arguments))


def _macro_call(names: Names, name: Node) -> Call | None:
    """Return a call in a macro of Rust, which the grammar leaves as tokens."""
    found = name.next_sibling
    if found is None or found.type != "token_tree" or not names.text(found).startswith("("):
        return None
    arguments: list[list[Node]] = [[]]
    for one in found.children[1:-1]:
        if names.text(one) in {"|", "<"}:
            return None  # a comma may not separate arguments
        if one.type == ",":
            arguments.append([])
        else:
            arguments[-1].append(one)
    return Call(name, found, tuple(Argument(tuple(one), "") for one in arguments if one))


def required(parameters: Sequence[Parameter]) -> int:
    """Return the number of arguments that a call must have."""
    return sum(not one.has_default for one in parameters)
