"""Processes: run a command with limits, supervise a background process that editors share.

`run(["git", "status"], time_limit_s=10.0, max_bytes=1 << 20)` returns an `Output` with `data`,
`status` 0 and `stopped_by` "". `Supervised` starts, finds and stops a background process.
"""
