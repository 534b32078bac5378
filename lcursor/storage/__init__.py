"""Files on disk: where they are, locks, files written whole, and logs that processes share."""
