; inherits: ocaml_interface

(class_definition (class_binding (class_name) @name)) @definition.class
(method_definition (method_name) @name) @definition.method
(value_definition (let_binding pattern: (value_name) @name (parameter)) @definition.function)
(value_definition (let_binding pattern: (value_name) @name
  body: [(fun_expression) (function_expression)]) @definition.function)
(compilation_unit (value_definition (let_binding pattern: (value_name) @name) @definition.variable))
(structure (value_definition (let_binding pattern: (value_name) @name) @definition.variable))
