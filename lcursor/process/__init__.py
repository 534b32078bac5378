"""Child processes: `run` runs a command with limits, `supervise` one that editors share.

from lcursor.process.run import run

run(["git", "status", "-s"], folder, max_bytes=1 << 20).data  # b" M README.md"
"""
