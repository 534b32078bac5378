"""Agents: a model works on a task with tools, in a sandboxed copy of the project.

The user's files do not change while it runs; its changes are proposed as hunks at the end.
"""
