"""The in-process completion engine: llama.cpp inside the host, from a request to its events."""
