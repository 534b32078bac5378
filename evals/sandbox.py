"""Run a program that a model wrote, in a process that may only compute.

Three mechanisms: kernel limits on time, memory, files and processes; a namespace without network if
the kernel allows one; and an audit hook that forbids writing files, opening sockets, loading
libraries, starting processes and sending signals. They stop accidents, such as a completion that
deletes or downloads; code written to break out of CPython needs a virtual machine. Any thread.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from typing import IO, Literal

Outcome = Literal["passed", "failed", "timeout"]

TIMEOUT_S = 5.0
MEMORY_BYTES = 1 << 30
FILE_BYTES = 1 << 20

_PASSED = 77
"""Exit status of a program that ran to its end; unlikely for one that calls `exit` itself."""

_RUNNER = """
import ctypes, os, resource, sys

seconds, memory, size = map(int, sys.argv[1:4])
sys.argv = ["solution.py"]
source = sys.stdin.buffer.read().decode()
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
getattr(ctypes.CDLL(None), "unshare", lambda flags: -1)(NEW_USER | NEW_NETWORK)
for limit, value in (
    (resource.RLIMIT_CPU, seconds),
    (resource.RLIMIT_AS, memory),
    (resource.RLIMIT_FSIZE, size),
    (resource.RLIMIT_NPROC, 0),
    (resource.RLIMIT_NOFILE, 32),
    (resource.RLIMIT_CORE, 0),
):
    try:
        resource.setrlimit(limit, (value, value))
    except (OSError, ValueError):
        os._exit(78)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
MODULES = {"os", "socket", "subprocess", "shutil", "ctypes", "fcntl", "mmap", "pty", "signal",
         "resource", "syslog", "sqlite3", "webbrowser", "tempfile", "pathlib"}
HARMLESS = {"os.listdir", "os.scandir", "os.walk"}

def guard(event, values):
    if event == "open":
        forbidden = bool(values[2] & WRITING)
    else:
        forbidden = event.partition(".")[0] in MODULES and event not in HARMLESS
    if forbidden:
        raise PermissionError(event)

leave, flush = os._exit, sys.stdout.flush
code = compile(source, "solution.py", "exec")
del ctypes, resource
sys.addaudithook(guard)
try:
    exec(code, {"__name__": "__main__"})
except BaseException:
    flush()
    leave(1)
flush()
leave(STATUS)
""".replace("STATUS", str(_PASSED))


def run(program: str, timeout_s: float = TIMEOUT_S) -> Outcome:
    """Run a program to its end.

    Args:
        program: Python source; it passes if it raises nothing and ends by itself.
        timeout_s: limit of wall time, and of CPU time rounded up to whole seconds.

    Raises:
        OSError: no process could be started.

    Cost:
        About 50 ms above the program's own time.
    """
    return run_with_output(program, timeout_s)[0]


def run_with_output(program: str, timeout_s: float = TIMEOUT_S) -> tuple[Outcome, str]:
    """Run a program as `run` does; also return its output, at most `FILE_BYTES` of it."""
    limits = [str(int(-(-timeout_s // 1))), str(MEMORY_BYTES), str(FILE_BYTES)]
    with (
        tempfile.TemporaryDirectory(prefix="lcursor-eval-") as folder,
        tempfile.TemporaryFile() as output,
    ):
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-B", "-c", _RUNNER, *limits],
                input=program.encode("utf-8", "surrogatepass"),
                stdout=output,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env={},
                timeout=timeout_s,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            return "timeout", _text(output)
        return "passed" if done.returncode == _PASSED else "failed", _text(output)


def _text(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read(FILE_BYTES).decode("utf-8", "replace")
