"""Rewrite a region with a model: choose the rows, prompt, check, and retry."""
