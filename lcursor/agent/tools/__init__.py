"""The tools of an agent: files, commands, searches, and the checks at the end.

`toolbox.make_toolbox` is what other packages use.
"""
