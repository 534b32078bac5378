(preproc_def name: (identifier) @name) @definition.macro
(preproc_function_def name: (identifier) @name) @definition.macro
(struct_specifier name: (_) @name body: (_)) @definition.struct
(union_specifier name: (_) @name body: (_)) @definition.union
(enum_specifier name: (_) @name body: (_)) @definition.enum
(type_definition type: (struct_specifier !name) declarator: (type_identifier) @name) @definition.struct
(type_definition type: (union_specifier !name) declarator: (type_identifier) @name) @definition.union
(type_definition type: (enum_specifier !name) declarator: (type_identifier) @name) @definition.enum
(type_definition declarator: (type_identifier) @name @definition.type)
(type_definition declarator: (pointer_declarator declarator: (type_identifier) @name @definition.type))
(type_definition declarator: (function_declarator declarator: (parenthesized_declarator
  (pointer_declarator declarator: (type_identifier) @name)))) @definition.type
(function_definition declarator: (function_declarator
  declarator: (identifier) @name)) @definition.function
(function_definition declarator: (_ (function_declarator
  declarator: (identifier) @name))) @definition.function
(function_definition declarator: (_ (_ (function_declarator
  declarator: (identifier) @name)))) @definition.function
(declaration declarator: (function_declarator declarator: (identifier) @name)) @definition.declaration
(declaration declarator: (pointer_declarator declarator: (function_declarator
  declarator: (identifier) @name))) @definition.declaration
(translation_unit (declaration declarator: (init_declarator
  declarator: [(identifier) @name (_ declarator: (identifier) @name)])) @definition.variable)
(preproc_ifdef (declaration declarator: (init_declarator
  declarator: [(identifier) @name (_ declarator: (identifier) @name)])) @definition.variable)
