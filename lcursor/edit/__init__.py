"""Edits: a model rewrites regions, completes code of a reply, or writes a commit message.

A request starts an `EditRun`. What the model wrote is checked in a `workspace`, and proposed as
`changes`.
"""
