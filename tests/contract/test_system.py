"""What only Linux has is used in one module of each half, which says what others get instead."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

NAMES = re.compile(
    # Files and functions of the kernel.
    r"/proc/|/sys/|/dev/shm|\bprctl\b|\bsyscall\b|\binotify_init\w*"
    # Of the C library, and of Python where it runs on Linux.
    r"|\bmalloc_trim\b|\b(?:list|get|set|remove)xattr\b|\bsched_[gs]et\w+|\bpidfd_\w+|\bmemfd_\w+"
    r"|\bO_(?:PATH|TMPFILE|DIRECT|NOATIME)\b|\b(?:pipe2|splice|eventfd|unshare|setns|getrandom)\("
    r"|\bcopy_file_range\b|\bposix_fa\w+|\bfdatasync\b|\b[gs]etresuid\b|\bepoll\b|\bprlimit\b|\bwaitid\b"
    r"|\bSO_PEERCRED\b|\bAF_(?:PACKET|NETLINK|VSOCK)\b|\bSOCK_(?:CLOEXEC|NONBLOCK)\b"
    r"|\bF_(?:[GS]ETPIPE_SZ|ADD_SEALS|OFD_\w+)\b"
)
MODULES = {"lcursor/system.py", "lua/lcursor/host/system.lua"}
SANDBOX = {
    "lcursor/process/confine.py",  # the program that starts a command; nothing else imports its own
    "lcursor/process/bubblewrap.py",  # what the sandbox has at these paths
    "lcursor/process/seccomp.py",  # names of system calls
}
"""The sandbox itself, which `open_sandbox` offers on Linux only."""


def lines(path: Path) -> list[str]:
    """Return the lines of a file of ours that name what only Linux has."""
    return [line.strip() for line in path.read_text().splitlines() if NAMES.search(line)]


def test_one_module_of_each_half_uses_what_only_linux_has() -> None:
    files = [*ROOT.glob("lcursor/**/*.py"), *ROOT.glob("lua/**/*.lua"), *ROOT.glob("plugin/*.lua")]
    found = {str(path.relative_to(ROOT)): lines(path) for path in files}
    found = {path: named for path, named in found.items() if named}
    assert {path: found[path] for path in found.keys() - MODULES - SANDBOX} == {}
    assert found.keys() >= MODULES | SANDBOX, "a name here is out of date"
