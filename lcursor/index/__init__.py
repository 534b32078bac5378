"""The codebase index: what the files of a project say, found in milliseconds, never stale."""
