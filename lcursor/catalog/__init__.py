"""The models: which there are, which fit this machine, where their files are, and getting them.

Nothing here loads a model. Only `download.py` and `hub.py` import heavy libraries, so that asking
for a path costs a few milliseconds.
"""
