(rule_set (selectors (_) @name)) @definition.selector
(keyframes_statement (keyframes_name) @name) @definition.keyframes
(declaration (property_name) @name (#match? @name "^--")) @definition.variable
