"""The APIs of chat servers, each in a module of its own; see `api.py`."""
