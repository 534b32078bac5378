(header module: (_) @name) @definition.module
(data_type name: (_) @name) @definition.type
(newtype name: (_) @name) @definition.type
(type_synonym name: (_) @name) @definition.type
(class name: (_) @name) @definition.class
(class_declarations (signature name: (_) @name) @definition.method)
(instance name: (_) @name) @definition.impl
(declarations (function name: (_) @name) @definition.function)
(declarations (bind name: (variable) @name) @definition.function)
(instance_declarations (function name: (_) @name) @definition.method)
(instance_declarations (bind name: (variable) @name) @definition.method)
