(module name: (_) @name) @definition.module
(class name: (_) @name) @definition.class
(method name: (_) @name) @definition.function
(singleton_method name: (_) @name) @definition.function
(alias name: (_) @name) @definition.function
(assignment left: (constant) @name) @definition.constant
(call method: (identifier) @_how arguments: (argument_list (simple_symbol) @name)
  (#any-of? @_how "attr_reader" "attr_writer" "attr_accessor")) @definition.field
(call method: (identifier) @_how arguments: (argument_list . (simple_symbol) @name)
  (#any-of? @_how "scope" "define_method" "has_many" "has_one" "belongs_to")) @definition.field
