; inherits: c

(namespace_definition name: (_) @name) @definition.module
(class_specifier name: (_) @name body: (_)) @definition.class
(alias_declaration name: (type_identifier) @name) @definition.type
(concept_definition name: (identifier) @name) @definition.type
(declaration_list (declaration declarator: (init_declarator
  declarator: [(identifier) @name (_ declarator: (identifier) @name)])) @definition.variable)
(function_definition declarator: (function_declarator
  declarator: [(field_identifier) (destructor_name) (operator_name)] @name)) @definition.function
(function_definition declarator: (_ (function_declarator
  declarator: [(field_identifier) (operator_name)] @name))) @definition.function
(function_definition declarator: (operator_cast) @name) @definition.function
(function_definition declarator: (function_declarator
  declarator: (qualified_identifier scope: (_) @_scope name: [
    (identifier) @name
    (destructor_name) @name
    (operator_name) @name
    (qualified_identifier scope: (_) @_scope name: (_) @name)]))) @definition.function
(function_definition declarator: (_ (function_declarator
  declarator: (qualified_identifier scope: (_) @_scope name: (_) @name)))) @definition.function
(field_declaration declarator: (function_declarator
  declarator: (field_identifier) @name)) @definition.function
(field_declaration declarator: (_ (function_declarator
  declarator: (field_identifier) @name))) @definition.function
