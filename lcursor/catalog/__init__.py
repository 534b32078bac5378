"""The known models: their files and downloads, and which models fit this machine.

Loads no model. Only `download.py` and `hub.py` import heavy libraries, so a path lookup takes a
few milliseconds.
"""
