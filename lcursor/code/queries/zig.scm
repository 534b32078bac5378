(function_declaration name: (_) @name) @definition.function
(variable_declaration . (identifier) @name (struct_declaration)) @definition.struct
(variable_declaration . (identifier) @name (enum_declaration)) @definition.enum
(variable_declaration . (identifier) @name (union_declaration)) @definition.union
(test_declaration [(string (string_content) @name) (identifier) @name]) @definition.test
(source_file (variable_declaration . (identifier) @name) @definition.variable)
