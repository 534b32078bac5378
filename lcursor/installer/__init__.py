"""The implementation of `install.py`: the environment, the engine, and the progress display.

Uses only the standard library and `errors`, because nothing else is installed yet.
"""
