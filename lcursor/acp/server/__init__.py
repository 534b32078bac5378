"""The agent in other editors.

`sessions` answers their requests, `editor` is the connection, and `written` applies changes.
"""
