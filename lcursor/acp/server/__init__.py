"""The agent in other editors.

`sessions` answers their requests, `editor` is the connection, `messages` reads what the user writes
there, and `written` applies changes.
"""
