"""Replies of models, applied to files.

    resolve(blocks("a.py\\n```python\\ndef f():\\n    return 2\\n```"), files)
    -> Resolved((FileChange("a.py", changes=(Change(1, 2, ("    return 1",), (...)),)),))

Where it is not certain what is meant the result is `Ask`, with what the user can choose; where
nothing can be done it is `Refused`, with the reason. All of a reply is applied, or nothing.

| in the reply | what happens |
| --- | --- |
| search/replace, diff, patch | its lines must be there once: exactly, or but for whitespace |
| a whole file | takes its place, if nothing is missing |
| a function or class | takes the place of the one of its name |
| lines, of which the first and the last are there | take the place of what is between |
| code with `... existing code ...` | is merged, if the lines beside each marker are there once |
"""
