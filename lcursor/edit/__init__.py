"""Edits: what a model proposes, found in the text, checked, kept as turns that can be undone."""
