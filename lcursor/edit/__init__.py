"""Edits: apply, check and propose a model's changes, and record them so that they can be undone."""
