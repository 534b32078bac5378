"""Definitions in languages that are compiled; see definitions.py.

Data only.
"""

from __future__ import annotations

from typing import Final

_C: Final = """
    (preproc_def name: (identifier) @name) @macro
    (preproc_function_def name: (identifier) @name) @macro
    (struct_specifier name: (_) @name body: (_)) @struct
    (union_specifier name: (_) @name body: (_)) @union
    (enum_specifier name: (_) @name body: (_)) @enum
    (type_definition type: (struct_specifier !name) declarator: (type_identifier) @name) @struct
    (type_definition type: (union_specifier !name) declarator: (type_identifier) @name) @union
    (type_definition type: (enum_specifier !name) declarator: (type_identifier) @name) @enum
    (type_definition declarator: (type_identifier) @name @type)
    (type_definition declarator: (pointer_declarator declarator: (type_identifier) @name @type))
    (type_definition declarator: (function_declarator declarator: (parenthesized_declarator
      (pointer_declarator declarator: (type_identifier) @name)))) @type
    (function_definition declarator: (function_declarator
      declarator: (identifier) @name)) @function
    (function_definition declarator: (_ (function_declarator
      declarator: (identifier) @name))) @function
    (function_definition declarator: (_ (_ (function_declarator
      declarator: (identifier) @name)))) @function
    (declaration declarator: (function_declarator declarator: (identifier) @name)) @declaration
    (declaration declarator: (pointer_declarator declarator: (function_declarator
      declarator: (identifier) @name))) @declaration
    (translation_unit (declaration declarator: (init_declarator
      declarator: [(identifier) @name (_ declarator: (identifier) @name)])) @variable)
    (preproc_ifdef (declaration declarator: (init_declarator
      declarator: [(identifier) @name (_ declarator: (identifier) @name)])) @variable)
"""

_CPP_ONLY: Final = """
    (namespace_definition name: (_) @name) @module
    (class_specifier name: (_) @name body: (_)) @class
    (alias_declaration name: (type_identifier) @name) @type
    (concept_definition name: (identifier) @name) @type
    (declaration_list (declaration declarator: (init_declarator
      declarator: [(identifier) @name (_ declarator: (identifier) @name)])) @variable)
    (function_definition declarator: (function_declarator
      declarator: [(field_identifier) (destructor_name) (operator_name)] @name)) @function
    (function_definition declarator: (_ (function_declarator
      declarator: [(field_identifier) (operator_name)] @name))) @function
    (function_definition declarator: (operator_cast) @name) @function
    (function_definition declarator: (function_declarator
      declarator: (qualified_identifier scope: (_) @_scope name: [
        (identifier) @name
        (destructor_name) @name
        (operator_name) @name
        (qualified_identifier scope: (_) @_scope name: (_) @name)]))) @function
    (function_definition declarator: (_ (function_declarator
      declarator: (qualified_identifier scope: (_) @_scope name: (_) @name)))) @function
    (field_declaration declarator: (function_declarator
      declarator: (field_identifier) @name)) @function
    (field_declaration declarator: (_ (function_declarator
      declarator: (field_identifier) @name))) @function
"""

_OCAML_INTERFACE: Final = """
    (module_definition (module_binding (module_name) @name)) @module
    (module_type_definition (module_type_name) @name) @interface
    (type_definition (type_binding name: (_) @name) @type)
    (exception_definition (constructor_declaration (constructor_name) @name)) @exception
    (external (value_name) @name) @function
    (value_specification (value_name) @name) @function
"""

_OCAML: Final = """
    (class_definition (class_binding (class_name) @name)) @class
    (method_definition (method_name) @name) @method
    (value_definition (let_binding pattern: (value_name) @name (parameter)) @function)
    (value_definition (let_binding pattern: (value_name) @name
      body: [(fun_expression) (function_expression)]) @function)
    (compilation_unit (value_definition (let_binding pattern: (value_name) @name) @variable))
    (structure (value_definition (let_binding pattern: (value_name) @name) @variable))
"""

QUERIES: Final[dict[str, str]] = {
    "c": _C,
    "cpp": _C + _CPP_ONLY,
    "rust": """
    (function_item name: (_) @name) @function
    (function_signature_item name: (_) @name) @function
    (struct_item name: (_) @name) @struct
    (enum_item name: (_) @name) @enum
    (union_item name: (_) @name) @union
    (trait_item name: (_) @name) @trait
    (impl_item type: [
      (type_identifier) @name
      (generic_type type: (_) @name)
      (scoped_type_identifier name: (_) @name)
      (reference_type) @name]) @impl
    (mod_item name: (_) @name body: (_)) @module
    (type_item name: (_) @name) @type
    (const_item name: (_) @name) @constant
    (static_item name: (_) @name) @constant
    (macro_definition name: (_) @name) @macro
    """,
    "go": """
    (function_declaration name: (_) @name) @function
    (method_declaration
      receiver: (parameter_list (parameter_declaration type: [
        (type_identifier) @_scope
        (generic_type type: (_) @_scope)
        (pointer_type [(type_identifier) @_scope (generic_type type: (_) @_scope)])]))
      name: (_) @name) @method
    (type_spec name: (_) @name type: (struct_type)) @struct
    (type_spec name: (_) @name type: (interface_type)) @interface
    (type_spec name: (_) @name) @type
    (type_alias name: (_) @name) @type
    (method_elem name: (_) @name) @method
    (source_file (const_declaration (const_spec name: (_) @name) @constant))
    (source_file (var_declaration (var_spec name: (_) @name) @variable))
    (source_file (var_declaration (var_spec_list (var_spec name: (_) @name) @variable)))
    """,
    "java": """
    (class_declaration name: (_) @name) @class
    (record_declaration name: (_) @name) @class
    (interface_declaration name: (_) @name) @interface
    (annotation_type_declaration name: (_) @name) @interface
    (enum_declaration name: (_) @name) @enum
    (method_declaration name: (_) @name) @method
    (constructor_declaration name: (_) @name) @method
    (compact_constructor_declaration name: (_) @name) @method
    (field_declaration declarator: (variable_declarator name: (_) @name)) @field
    (constant_declaration declarator: (variable_declarator name: (_) @name)) @field
    """,
    "csharp": """
    (namespace_declaration name: (_) @name) @module
    (file_scoped_namespace_declaration name: (_) @name) @module
    (class_declaration name: (_) @name) @class
    (record_declaration name: (_) @name) @class
    (struct_declaration name: (_) @name) @struct
    (interface_declaration name: (_) @name) @interface
    (enum_declaration name: (_) @name) @enum
    (delegate_declaration name: (_) @name) @type
    (method_declaration name: (_) @name) @method
    (constructor_declaration name: (_) @name) @method
    (destructor_declaration name: (_) @name) @method
    (local_function_statement name: (_) @name) @function
    (property_declaration name: (_) @name) @property
    (field_declaration (variable_declaration
      (variable_declarator name: (_) @name))) @field
    (event_field_declaration (variable_declaration
      (variable_declarator name: (_) @name))) @field
    """,
    "kotlin": """
    (class_declaration "interface" name: (_) @name) @interface
    (class_declaration name: (_) @name (enum_class_body)) @enum
    (class_declaration name: (_) @name) @class
    (object_declaration name: (_) @name) @object
    (function_declaration name: (_) @name) @function
    (type_alias type: (_) @name) @type
    (source_file (property_declaration (variable_declaration (identifier) @name)) @variable)
    (class_body (property_declaration (variable_declaration (identifier) @name)) @field)
    """,
    "swift": """
    (protocol_declaration name: (_) @name) @protocol
    (class_declaration "struct" name: (_) @name) @struct
    (class_declaration "enum" name: (_) @name) @enum
    (class_declaration "extension" name: (_) @name) @extension
    (class_declaration name: (type_identifier) @name) @class
    (function_declaration name: (simple_identifier) @name) @function
    (protocol_function_declaration name: (simple_identifier) @name) @method
    (init_declaration "init" @name) @method
    (deinit_declaration "deinit" @name) @method
    (typealias_declaration . name: (type_identifier) @name) @type
    (source_file (property_declaration
      name: (pattern bound_identifier: (simple_identifier) @name)) @variable)
    (class_body (property_declaration
      name: (pattern bound_identifier: (simple_identifier) @name)) @field)
    """,
    "scala": """
    (package_clause name: (_) @name) @module
    (class_definition name: (_) @name) @class
    (object_definition name: (_) @name) @object
    (trait_definition name: (_) @name) @trait
    (enum_definition name: (_) @name) @enum
    (function_definition name: (_) @name) @function
    (function_declaration name: (_) @name) @function
    (type_definition name: (_) @name) @type
    (given_definition name: (_) @name) @variable
    (template_body (val_definition pattern: (identifier) @name) @field)
    (template_body (var_definition pattern: (identifier) @name) @field)
    (compilation_unit (val_definition pattern: (identifier) @name) @variable)
    """,
    "haskell": """
    (header module: (_) @name) @module
    (data_type name: (_) @name) @type
    (newtype name: (_) @name) @type
    (type_synonym name: (_) @name) @type
    (class name: (_) @name) @class
    (class_declarations (signature name: (_) @name) @method)
    (instance name: (_) @name) @impl
    (declarations (function name: (_) @name) @function)
    (declarations (bind name: (variable) @name) @function)
    (instance_declarations (function name: (_) @name) @method)
    (instance_declarations (bind name: (variable) @name) @method)
    """,
    "ocaml": _OCAML_INTERFACE + _OCAML,
    "ocaml_interface": _OCAML_INTERFACE,
    "zig": """
    (function_declaration name: (_) @name) @function
    (variable_declaration . (identifier) @name (struct_declaration)) @struct
    (variable_declaration . (identifier) @name (enum_declaration)) @enum
    (variable_declaration . (identifier) @name (union_declaration)) @union
    (test_declaration [(string (string_content) @name) (identifier) @name]) @test
    (source_file (variable_declaration . (identifier) @name) @variable)
    """,
}
