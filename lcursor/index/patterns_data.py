"""Definitions in data, markup and styles; see definitions.py.

Data only.
"""

from __future__ import annotations

from typing import Final

QUERIES: Final[dict[str, str]] = {
    "html": """
    (element (start_tag (attribute (attribute_name) @_how
      (quoted_attribute_value (attribute_value) @name))) (#eq? @_how "id")) @element
    """,
    "css": """
    (rule_set (selectors (_) @name)) @selector
    (keyframes_statement (keyframes_name) @name) @keyframes
    (declaration (property_name) @name (#match? @name "^--")) @variable
    """,
    "json": """
    (document (object (pair key: (string (string_content) @name)) @key))
    (document (object (pair value: (object
      (pair key: (string (string_content) @name)) @key))))
    """,
    "yaml": """
    (document (block_node (block_mapping (block_mapping_pair key: (_) @name) @key)))
    (document (block_node (block_mapping (block_mapping_pair value: (block_node
      (block_mapping (block_mapping_pair key: (_) @name) @key))))))
    """,
    "toml": """
    (table . [(bare_key) (dotted_key) (quoted_key)] @name) @section
    (table_array_element . [(bare_key) (dotted_key) (quoted_key)] @name) @section
    (pair . [(bare_key) (dotted_key) (quoted_key)] @name) @key
    """,
    "markdown": """
    (section (atx_heading heading_content: (_) @name)) @section
    (setext_heading heading_content: (_) @name) @section
    """,
    "sql": """
    (create_table (object_reference name: (_) @name)) @table
    (create_view (object_reference name: (_) @name)) @view
    (create_materialized_view (object_reference name: (_) @name)) @view
    (create_index column: (_) @name) @index
    (create_function (object_reference name: (_) @name)) @function
    (create_trigger . (_) . (_) . (object_reference name: (_) @name)) @trigger
    (create_type (object_reference name: (_) @name)) @type
    (create_sequence (object_reference name: (_) @name)) @sequence
    """,
}
