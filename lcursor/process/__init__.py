"""Child processes: `supervise` is for one that runs in the background and that editors share."""
