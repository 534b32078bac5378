"""Have a model rewrite a region: choose the rows, ask, check, and ask again."""
