(protocol_declaration name: (_) @name) @definition.protocol
(class_declaration "struct" name: (_) @name) @definition.struct
(class_declaration "enum" name: (_) @name) @definition.enum
(class_declaration "extension" name: (_) @name) @definition.extension
(class_declaration name: (type_identifier) @name) @definition.class
(function_declaration name: (simple_identifier) @name) @definition.function
(protocol_function_declaration name: (simple_identifier) @name) @definition.method
(init_declaration "init" @name) @definition.method
(deinit_declaration "deinit" @name) @definition.method
(typealias_declaration . name: (type_identifier) @name) @definition.type
(source_file (property_declaration
  name: (pattern bound_identifier: (simple_identifier) @name)) @definition.variable)
(class_body (property_declaration
  name: (pattern bound_identifier: (simple_identifier) @name)) @definition.field)
