"""How good the product's answers are, judged by tests and true texts: `python -m lcursor eval`."""
