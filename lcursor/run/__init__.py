"""How the user watches work of a model: a chat's turn, an edit or an agent.

A service has `Runs`. It starts a `Run` for each request, delivers the user's answers to it, and
stops it; the run sends its messages and ends exactly once.
"""
