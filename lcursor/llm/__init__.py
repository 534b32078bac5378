"""The chat slot: its client, and the life of its local server."""
