"""Child processes: `run` executes a command with limits, `supervise` a shared background process.

from lcursor.process.run import run

run(["git", "status", "-s"], folder, max_bytes=1 << 20).data  # b" M README.md"
"""
