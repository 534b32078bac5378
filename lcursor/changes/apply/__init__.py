"""Apply replies of models to files.

    resolve(blocks("a.py\\n```python\\ndef f():\\n    return 2\\n```"), files)
    -> Resolved((FileChange("a.py", changes=(Change(1, 2, ("    return 1",), (...)),)),))

An ambiguous reply gives `Ask` with choices for the user. A reply that cannot be applied gives
`Unresolved` with the reason, and with incomplete code as a sketch for the rewriter. A reply is
applied completely or not at all.

| in the reply | what happens |
| --- | --- |
| search/replace, diff, patch | is applied if its quoted lines are found once (see `match`) |
| a whole file | replaces the file if nothing is missing |
| a function or class | replaces the definition of the same name |
| lines whose first and last line exist | replace the lines in between |
| code with `... existing code ...` | is merged if the lines next to each marker are unique |
"""
