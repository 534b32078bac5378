; inherits: ecma

(field_definition property: (_) @name value: (arrow_function)) @definition.method
(field_definition property: (_) @name) @definition.field
