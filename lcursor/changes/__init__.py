"""Changes to files: how they are described, found in a reply, stored, written and undone.

    history = History(root)
    key = history.begin("Rename x to y", [change], bases={change.path: lines})
    write([change], history, key)             # or history.decided(...), for hunks in a buffer
    revert(history, key, "undo", buffers=[])  # keeps later changes of the user

`records` has the types, `apply` turns a model's reply into changes, `sources` reads the texts that
they refer to. Each proposal is a turn of the project's `history`, which `histories` finds.
"""
