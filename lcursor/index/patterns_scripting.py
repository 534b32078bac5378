"""Definitions in languages that are run as they are; see definitions.py.

Data only.
"""

from __future__ import annotations

from typing import Final

_JS: Final = """
    (class_declaration name: (_) @name) @class
    (function_declaration name: (identifier) @name) @function
    (generator_function_declaration name: (identifier) @name) @function
    (method_definition name: (_) @name) @method
    (variable_declarator name: (identifier) @name
      value: [(arrow_function) (function_expression) (generator_function)]) @function
    (variable_declarator name: (identifier) @name value: (class)) @class
    (assignment_expression
      left: [(identifier) @name (member_expression property: (property_identifier) @name)]
      right: [(arrow_function) (function_expression) (generator_function)]) @function
    (pair key: (property_identifier) @name
      value: [(arrow_function) (function_expression) (generator_function)]) @function
    (program (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
    (program (variable_declaration (variable_declarator name: (identifier) @name) @variable))
    (program (export_statement (lexical_declaration
      (variable_declarator name: (identifier) @name) @variable)))
"""

_TS: Final = """
    (abstract_class_declaration name: (_) @name) @class
    (interface_declaration name: (_) @name) @interface
    (type_alias_declaration name: (_) @name) @type
    (enum_declaration name: (_) @name) @enum
    (internal_module name: (_) @name) @module
    (module name: (_) @name) @module
    (function_signature name: (identifier) @name) @function
    (method_signature name: (_) @name) @method
    (abstract_method_signature name: (_) @name) @method
    (public_field_definition name: (_) @name value: (arrow_function)) @method
    (public_field_definition name: (_) @name) @field
"""

QUERIES: Final[dict[str, str]] = {
    "python": """
    (class_definition name: (identifier) @name) @class
    (function_definition name: (identifier) @name) @function
    (module (expression_statement (assignment left: (identifier) @name) @variable))
    (class_definition body: (block
      (expression_statement (assignment left: (identifier) @name) @field)))
    (type_alias_statement left: (type (identifier) @name)) @type
    """,
    "lua": """
    (function_declaration name: [
      (identifier) @name
      (dot_index_expression field: (identifier) @name)]) @function
    (function_declaration name: (method_index_expression method: (identifier) @name)) @method
    (assignment_statement
      (variable_list . name: [
        (identifier) @name
        (dot_index_expression field: (identifier) @name)])
      (expression_list . value: (function_definition))) @function
    (field name: (identifier) @name value: (function_definition)) @function
    (chunk (variable_declaration (assignment_statement
      (variable_list . name: (identifier) @name))) @variable)
    """,
    "javascript": _JS
    + """
    (field_definition property: (_) @name value: (arrow_function)) @method
    (field_definition property: (_) @name) @field
    """,
    "typescript": _JS + _TS,
    "tsx": _JS + _TS,
    "ruby": """
    (module name: (_) @name) @module
    (class name: (_) @name) @class
    (method name: (_) @name) @function
    (singleton_method name: (_) @name) @function
    (alias name: (_) @name) @function
    (assignment left: (constant) @name) @constant
    (call method: (identifier) @_how arguments: (argument_list (simple_symbol) @name)
      (#any-of? @_how "attr_reader" "attr_writer" "attr_accessor")) @field
    (call method: (identifier) @_how arguments: (argument_list . (simple_symbol) @name)
      (#any-of? @_how "scope" "define_method" "has_many" "has_one" "belongs_to")) @field
    """,
    "php": """
    (namespace_definition name: (_) @name) @module
    (class_declaration name: (_) @name) @class
    (interface_declaration name: (_) @name) @interface
    (trait_declaration name: (_) @name) @trait
    (enum_declaration name: (_) @name) @enum
    (function_definition name: (_) @name) @function
    (method_declaration name: (_) @name) @method
    (property_declaration (property_element name: (variable_name (name) @name))) @field
    (const_declaration (const_element . (name) @name)) @constant
    """,
    "bash": """
    (function_definition name: (_) @name) @function
    (program (variable_assignment name: (variable_name) @name) @variable)
    (program (declaration_command (variable_assignment
      name: (variable_name) @name)) @variable)
    (program (command name: (command_name) @_how . argument: (concatenation (word) @name)
      (#eq? @_how "alias")) @function)
    """,
    "elixir": """
    (call target: (identifier) @_how (arguments . (alias) @name)
      (#eq? @_how "defmodule")) @module
    (call target: (identifier) @_how (arguments . (alias) @name)
      (#eq? @_how "defprotocol")) @protocol
    (call target: (identifier) @_how (arguments . (alias) @name)
      (#eq? @_how "defimpl")) @impl
    (call target: (identifier) @_how (arguments . [
        (identifier) @name
        (call target: (identifier) @name)
        (binary_operator left: (call target: (identifier) @name) operator: "when")])
      (#any-of? @_how "defmacro" "defmacrop" "defguard" "defguardp")) @macro
    (call target: (identifier) @_how (arguments . [
        (identifier) @name
        (call target: (identifier) @name)
        (binary_operator left: (call target: (identifier) @name) operator: "when")])
      (#any-of? @_how "def" "defp" "defdelegate" "defn" "defnp")) @function
    """,
}
