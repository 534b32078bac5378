"""`python -m lcursor eval`: measure the quality of answers, by tests and true texts in `data/`."""
