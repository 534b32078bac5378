"""Agents of small models: they choose among what they have seen, and code guides them."""
