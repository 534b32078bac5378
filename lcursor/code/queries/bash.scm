(function_definition name: (_) @name) @definition.function
(program (variable_assignment name: (variable_name) @name) @definition.variable)
(program (declaration_command (variable_assignment
  name: (variable_name) @name)) @definition.variable)
(program (command name: (command_name) @_how . argument: (concatenation (word) @name)
  (#eq? @_how "alias")) @definition.function)
