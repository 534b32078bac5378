"""Chat models: the client, the providers, and the local server."""
