"""Notes with tags and dates."""
