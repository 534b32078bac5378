(element (start_tag (attribute (attribute_name) @_how
  (quoted_attribute_value (attribute_value) @name))) (#eq? @_how "id")) @definition.element
