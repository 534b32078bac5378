(create_table (object_reference name: (_) @name)) @definition.table
(create_view (object_reference name: (_) @name)) @definition.view
(create_materialized_view (object_reference name: (_) @name)) @definition.view
(create_index column: (_) @name) @definition.index
(create_function (object_reference name: (_) @name)) @definition.function
(create_trigger . (_) . (_) . (object_reference name: (_) @name)) @definition.trigger
(create_type (object_reference name: (_) @name)) @definition.type
(create_sequence (object_reference name: (_) @name)) @definition.sequence
