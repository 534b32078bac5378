"""Apply replies of models to files.

    resolve(blocks("a.py\\n```python\\ndef f():\\n    return 2\\n```"), files)
    -> Resolved((FileChange("a.py", changes=(Change(1, 2, ("    return 1",), (...)),)),))

If the meaning is not certain, the result is `Ask` with choices for the user; if a reply cannot be
applied, it is `Unresolved` with the reason, and with code that leaves something out as a sketch for
the rewriter. All of a reply is applied, or nothing.

| in the reply | what happens |
| --- | --- |
| search/replace, diff, patch | is applied if its quoted lines are found once (see `match`) |
| a whole file | replaces the file if nothing is missing |
| a function or class | replaces the one of its name |
| lines, of which the first and the last exist | replace those in between |
| code with `... existing code ...` | is merged if the lines next to each marker are unique |
"""
