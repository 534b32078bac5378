"""What `install.py` is made of: the environment, the engine, and how their making is shown.

Standard library only, and nothing of ours but `errors`: all of it runs before anything is
installed.
"""
