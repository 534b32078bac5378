"""Agents of others work on a task, as our own agent does.

`catalog` lists those that were tried, `launch` starts one in the sandbox, `connection` speaks
JSON-RPC with it, `session` is a conversation, and `work` carries out a run. `model_port` gives it
the user's model. Without the SDK: a client of this size is smaller than the helper that loads it.
"""
