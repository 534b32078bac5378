"""Turns on disk: what was done to which files, so that it can be taken back."""
