"""The history of edits on disk, so that each can be undone, redone and resumed.

history = History(root)
key = history.begin("Rename x to y", [change], bases={change.path: lines})
write([change], history, key)             # or history.decided(...), for hunks in a buffer
revert(history, key, "undo", buffers=[])  # keeps later changes of the user
"""
