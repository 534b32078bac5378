(call target: (identifier) @_how (arguments . (alias) @name)
  (#eq? @_how "defmodule")) @definition.module
(call target: (identifier) @_how (arguments . (alias) @name)
  (#eq? @_how "defprotocol")) @definition.protocol
(call target: (identifier) @_how (arguments . (alias) @name)
  (#eq? @_how "defimpl")) @definition.impl
(call target: (identifier) @_how (arguments . [
    (identifier) @name
    (call target: (identifier) @name)
    (binary_operator left: (call target: (identifier) @name) operator: "when")])
  (#any-of? @_how "defmacro" "defmacrop" "defguard" "defguardp")) @definition.macro
(call target: (identifier) @_how (arguments . [
    (identifier) @name
    (call target: (identifier) @name)
    (binary_operator left: (call target: (identifier) @name) operator: "when")])
  (#any-of? @_how "def" "defp" "defdelegate" "defn" "defnp")) @definition.function
