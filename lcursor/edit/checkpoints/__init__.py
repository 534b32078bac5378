"""The history of edits, kept on disk so that each can be undone, redone and resumed.

history = History(root)
key = history.begin("Rename x to y", [change], bases={change.path: lines})
write([change], history, key)             # or history.decided(...), for hunks in a buffer
revert(history, key, "undo", buffers=[])  # what was typed since stays
"""
