"""Files on disk: locations, locks, atomic writes, and logs that processes share."""
