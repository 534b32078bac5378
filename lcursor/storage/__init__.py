"""Files on disk: locks; later the event log, atomic writes and caches."""
