"""Where names are declared and where they are visible, by language.

Node types are those of the tree-sitter grammars. A rule names a node type and the field in which
the name is; `*` stands for any field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

Fields = Mapping[str, frozenset[str]]
Reach = Literal["inner", "outer", "function"]
"""A declared name is visible in the scope around it; outside of the scope that it names, such as a
function; or in the whole function around it."""


@dataclass(frozen=True, slots=True)
class ScopeRules:
    """The rules of a language."""

    names: frozenset[str]
    """Types of nodes that are names."""
    scopes: frozenset[str]
    functions: frozenset[str]
    """Scopes that are functions."""
    classes: frozenset[str]
    """Scopes whose names are members: not visible by their bare name in the functions inside."""
    binders: Mapping[str, Mapping[str, Reach]]
    """Nodes that declare the names in some fields."""
    passes: Fields
    """Nodes between a declaration and its name, such as patterns."""
    not_names: Fields = field(default_factory=dict)
    """Where a name is neither a variable nor a member we know: keys, labels."""
    literals: frozenset[str] = frozenset()
    """Nodes whose key is the name of a member."""
    shorthands: frozenset[str] = frozenset()
    """Nodes `a` that mean `a: a`."""
    bodies: Fields = field(default_factory=dict)
    """Fields of a scope that are inside of it, if not all are."""
    sequential: frozenset[str] = frozenset()
    """Declarations that are visible only below them."""
    redeclares: bool = False
    """Whether a second declaration in a scope is another variable."""
    members: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Accesses of a member: the fields of the object and of the name."""
    member_names: Fields = field(default_factory=dict)
    """Where members are declared, other than by access."""
    receivers: frozenset[str] = frozenset()
    """The names of the object itself, inside of its class."""
    targets: Fields = field(default_factory=dict)
    """Where an access of a member declares it: the left side of an assignment."""
    has_open_members: bool = False
    """Whether members are declared outside of the functions' class, so that any access counts."""
    keyword: tuple[str, str] = ("", "")
    """The node and field of a keyword argument's name."""
    outer_statements: frozenset[str] = frozenset()
    """Statements that declare that a name belongs to an outer scope."""


def _fields(text: str) -> dict[str, frozenset[str]]:
    """Read `type.field type.field` as a table."""
    found: dict[str, set[str]] = {}
    for item in text.split():
        kind, _, name = item.partition(".")
        found.setdefault(kind, set()).add(name or "*")
    return {kind: frozenset(names) for kind, names in found.items()}


def _binders(inner: str, outer: str, function: str = "") -> dict[str, dict[str, Reach]]:
    found: dict[str, dict[str, Reach]] = {}
    reaches: tuple[tuple[Reach, str], ...] = (
        ("inner", inner),
        ("outer", outer),
        ("function", function),
    )
    for reach, text in reaches:
        for kind, names in _fields(text).items():
            found.setdefault(kind, {}).update(dict.fromkeys(names, reach))
    return found


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


PYTHON: Final = ScopeRules(
    names=_set("identifier"),
    scopes=_set(
        "module function_definition lambda class_definition list_comprehension set_comprehension "
        "dictionary_comprehension generator_expression"
    ),
    functions=_set("function_definition lambda module"),
    classes=_set("class_definition"),
    binders=_binders(
        "parameters lambda_parameters assignment.left augmented_assignment.left for_statement.left "
        "for_in_clause.left as_pattern.alias aliased_import.alias import_statement.name "
        "import_from_statement.name type_parameter",
        "function_definition.name class_definition.name",
        "named_expression.name",
    ),
    passes=_fields(
        "default_parameter.name typed_default_parameter.name typed_parameter list_splat_pattern "
        "dictionary_splat_pattern tuple_pattern list_pattern pattern_list as_pattern_target "
        "parenthesized_expression dotted_name"
    ),
    not_names=_fields("import_from_statement.module_name aliased_import.name relative_import"),
    bodies=_fields("function_definition.body lambda.body class_definition.body"),
    members={"attribute": ("object", "attribute")},
    receivers=_set("self cls"),
    targets=_fields("assignment.left augmented_assignment.left"),
    keyword=("keyword_argument", "name"),
    outer_statements=_set("global_statement nonlocal_statement"),
)

_SCRIPT_SCOPES: Final = (
    "program function_declaration function_expression generator_function_declaration "
    "arrow_function method_definition statement_block for_statement for_in_statement catch_clause "
    "class_body switch_body generator_function"
)
JAVASCRIPT: Final = ScopeRules(
    names=_set(
        "identifier type_identifier shorthand_property_identifier property_identifier "
        "shorthand_property_identifier_pattern private_property_identifier"
    ),
    scopes=_set(_SCRIPT_SCOPES),
    functions=_set(
        "program function_declaration function_expression generator_function_declaration "
        "arrow_function method_definition generator_function"
    ),
    classes=_set("class_body"),
    binders=_binders(
        "variable_declarator.name formal_parameters arrow_function.parameter "
        "catch_clause.parameter import_specifier.alias import_specifier.name import_clause "
        "namespace_import for_in_statement.left class_declaration.name "
        "abstract_class_declaration.name interface_declaration.name "
        "type_alias_declaration.name enum_declaration.name type_parameter.name",
        "function_declaration.name generator_function_declaration.name",
    ),
    passes=_fields(
        "required_parameter.pattern optional_parameter.pattern object_pattern array_pattern "
        "pair_pattern.value assignment_pattern.left object_assignment_pattern.left rest_pattern"
    ),
    not_names=_fields("pair.key pair_pattern.key"),
    literals=_set("pair pair_pattern"),
    shorthands=_set("shorthand_property_identifier shorthand_property_identifier_pattern"),
    members={"member_expression": ("object", "property")},
    member_names=_fields(
        "method_definition.name field_definition.property public_field_definition.name"
    ),
    receivers=_set("this"),
    targets=_fields("assignment_expression.left augmented_assignment_expression.left"),
)

GO: Final = ScopeRules(
    names=_set("identifier type_identifier field_identifier package_identifier"),
    scopes=_set(
        "source_file function_declaration method_declaration func_literal block if_statement "
        "for_statement expression_switch_statement type_switch_statement expression_case type_case "
        "default_case communication_case"
    ),
    functions=_set("source_file function_declaration method_declaration func_literal"),
    classes=frozenset(),
    binders=_binders(
        "short_var_declaration.left var_spec.name const_spec.name parameter_declaration.name "
        "variadic_parameter_declaration.name type_spec.name type_alias.name "
        "type_parameter_declaration.name range_clause.left import_spec.name receive_statement.left "
        "type_switch_statement.alias",
        "function_declaration.name",
    ),
    passes=_fields("expression_list literal_element"),
    not_names=_fields("keyed_element.key"),
    literals=_set("keyed_element"),
    sequential=_set("short_var_declaration"),
    members={"selector_expression": ("operand", "field"), "qualified_type": ("package", "name")},
    member_names=_fields("method_declaration.name field_declaration.name method_elem.name"),
    has_open_members=True,
)

LUA: Final = ScopeRules(
    names=_set("identifier"),
    scopes=_set(
        "chunk function_declaration function_definition do_statement while_statement "
        "repeat_statement if_statement elseif_statement else_statement for_statement"
    ),
    functions=_set("chunk function_declaration function_definition"),
    classes=frozenset(),
    binders=_binders(
        "parameters for_generic_clause for_numeric_clause.name variable_declaration",
        "function_declaration.name",
    ),
    passes=_fields("variable_list assignment_statement"),
    not_names=_fields("field.name goto_statement label_statement"),
    literals=_set("field"),
    sequential=_set("variable_declaration"),
    redeclares=True,
    members={
        "dot_index_expression": ("table", "field"),
        "method_index_expression": ("table", "method"),
    },
    targets=_fields("variable_list function_declaration.name"),
)

RUST: Final = ScopeRules(
    names=_set("identifier type_identifier field_identifier shorthand_field_identifier"),
    scopes=_set(
        "source_file function_item closure_expression block match_arm for_expression if_expression "
        "while_expression mod_item impl_item trait_item"
    ),
    functions=_set("source_file function_item closure_expression"),
    classes=_set("impl_item trait_item"),
    binders=_binders(
        "let_declaration.pattern parameter.pattern closure_parameters for_expression.pattern "
        "match_pattern let_condition.pattern const_item.name static_item.name struct_item.name "
        "enum_item.name type_item.name trait_item.name macro_definition.name use_declaration "
        "use_as_clause.alias type_parameter.name",
        "function_item.name mod_item.name",
    ),
    passes=_fields(
        "tuple_pattern mut_pattern ref_pattern reference_pattern slice_pattern "
        "tuple_struct_pattern field_pattern.pattern captured_pattern use_list scoped_use_list.list "
        "scoped_identifier.name"
    ),
    not_names=_fields(
        "tuple_struct_pattern.type field_initializer.field scoped_identifier.path "
        "field_pattern.name"
    ),
    literals=_set("field_initializer field_pattern"),
    shorthands=_set("shorthand_field_initializer"),
    sequential=_set("let_declaration"),
    redeclares=True,
    members={"field_expression": ("value", "field")},
    member_names=_fields("field_declaration.name"),
    receivers=_set("self Self"),
    has_open_members=True,
)

C: Final = ScopeRules(
    names=_set("identifier type_identifier field_identifier"),
    scopes=_set(
        "translation_unit function_definition compound_statement for_statement declaration"
    ),
    functions=_set("translation_unit function_definition"),
    classes=frozenset(),
    binders=_binders(
        "parameter_declaration.declarator preproc_def.name preproc_function_def.name "
        "type_definition.declarator struct_specifier.name enum_specifier.name enumerator.name",
        "function_definition.declarator declaration.declarator",
    ),
    passes=_fields(
        "pointer_declarator.declarator array_declarator.declarator function_declarator.declarator "
        "init_declarator.declarator parenthesized_declarator"
    ),
    not_names=_fields("labeled_statement.label goto_statement.label field_designator"),
    members={"field_expression": ("argument", "field")},
    member_names=_fields("field_declaration.declarator"),
    has_open_members=True,
)

RULES: Final = {
    "python": PYTHON,
    "javascript": JAVASCRIPT,
    "typescript": JAVASCRIPT,
    "tsx": JAVASCRIPT,
    "go": GO,
    "lua": LUA,
    "rust": RUST,
    "c": C,
}
