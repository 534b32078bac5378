(function_item name: (_) @name) @definition.function
(function_signature_item name: (_) @name) @definition.function
(struct_item name: (_) @name) @definition.struct
(enum_item name: (_) @name) @definition.enum
(union_item name: (_) @name) @definition.union
(trait_item name: (_) @name) @definition.trait
(impl_item type: [
  (type_identifier) @name
  (generic_type type: (_) @name)
  (scoped_type_identifier name: (_) @name)
  (reference_type) @name]) @definition.impl
(mod_item name: (_) @name body: (_)) @definition.module
(type_item name: (_) @name) @definition.type
(const_item name: (_) @name) @definition.constant
(static_item name: (_) @name) @definition.constant
(macro_definition name: (_) @name) @definition.macro
