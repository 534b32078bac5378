"""Where a model works: a copy of the project without secrets, its checkpoints, and its checks."""
