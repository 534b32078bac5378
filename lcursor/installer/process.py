"""Run the tools of an installation (pip, uv, the compiler), and explain their failures.

Every output line goes to one log file and to the caller at once. If this process is killed, a tool
that keeps running still holds its locks. Standard library only; main thread, with one reader thread
per tool.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import queue
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from lcursor.errors import InstallFailed
from lcursor.installer.report import Report

ROOT = Path(__file__).resolve().parents[2]

Listener = Callable[[str], None]

# Variables that make a tool use a different Python or folder.
UNWANTED = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "CONDA_PREFIX")
UNWANTED_PIP = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_REQUIREMENT", "PIP_CONSTRAINT")

TICK_S = 0.5
END_S = 5.0
"""Time that a tool gets to end after a signal."""

AGAIN = "Then run the same command again: it continues"
FREE = f"Free about 1 GB (df -h shows where). {AGAIN}"

# (pattern in the tool's output, message, hint); the first match is reported.
CAUSES: tuple[tuple[str, str, str], ...] = (
    (r"No space left on device|Disk quota exceeded|Errno 28", "the disk is full", FREE),
    (
        r"DO NOT MATCH THE HASHES|[Hh]ash mismatch",
        "a downloaded package is not the one the lock file names (its sha256 differs)",
        "Nothing was installed from it. Run again; if the problem persists, your package index has"
        " different files: compare with a clean checkout before you trust it",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|invalid peer certificate|CERT_IN_CHAIN|UNABLE_TO_\w*ISSUER",
        "the package index's certificate is not trusted here",
        "Behind a proxy with its own certificate name it in PIP_CERT, SSL_CERT_FILE and"
        " NODE_EXTRA_CA_CERTS",
    ),
    (
        r"NewConnectionError|NameResolutionError|Failed to establish a new connection"
        r"|[Nn]ame resolution|Network is unreachable|Connection (refused|reset)|ReadTimeout"
        r"|Read timed out|ProxyError|dns error|error sending request|client error \(Connect\)"
        r"|EAI_AGAIN|ENOTFOUND|ECONNREFUSED|from versions: none",
        "the package index cannot be reached",
        f"Check the network, or set your index or proxy for pip (pip config list). {AGAIN}",
    ),
    (
        r"[Kk]illed signal terminated program|fatal error: Killed|virtual memory exhausted"
        r"|out of memory allocating",
        "the compiler ran out of memory",
        "Run again with CMAKE_BUILD_PARALLEL_LEVEL=1 in the environment",
    ),
    (
        r"unsupported GNU version|nvcc fatal|No CUDA toolset|CUDA Toolkit not found",
        "the CUDA compiler cannot build this",
        "Repair the CUDA toolkit, or build for the CPU: set LCURSOR_GPU=cpu and run again",
    ),
    (
        r"No matching distribution found|Could not find a version|No solution found",
        "the package index lacks a version that the lock file names",
        "Use Python 3.10 to 3.13, and a complete package index (pip config list shows yours)",
    ),
    (
        r"ensurepip is not available|No module named '?ensurepip",
        "this Python cannot create environments",
        "On Debian or Ubuntu: sudo apt install python3-venv. Then run again",
    ),
)


def diagnose(what: str, output: str, log: Path) -> InstallFailed:
    """Return an error with the cause of a tool's failure, from the end of its output."""
    for pattern, message, hint in CAUSES:
        if re.search(pattern, output):
            return InstallFailed(f"{what}: {message}", hint)
    return InstallFailed(f"{what} failed", f"The whole output is in {log}")


class Tools:
    """Runs tools one after another, with one log, which replaces an older one."""

    def __init__(self, report: Report, log: Path) -> None:
        self.report = report
        self.log = log
        self.tail: deque[str] = deque(maxlen=400)
        self._locks: list[int] = []
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")

    @contextlib.contextmanager
    def lock(self, path: Path, what: str) -> Iterator[None]:
        """Hold a lock file, after waiting for other processes.

        The tools inherit the lock: if this process is killed, the next installation waits for a
        compiler that is still running.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.report.note(f"another installer uses {what}: waiting for it")
                fcntl.flock(file, fcntl.LOCK_EX)
            self._locks.append(file.fileno())
            try:
                yield
            finally:
                self._locks.remove(file.fileno())

    def run(
        self,
        what: str,
        command: Sequence[str | Path],
        *,
        listen: Listener | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
    ) -> None:
        """Run a tool to its end.

        Args:
            what: name of the step for error messages, such as "installing packages".
            listen: called with each line of output.
            env: additional environment variables.

        Raises:
            InstallFailed: it cannot be started, or its exit status is not 0.
        """
        self.tail.clear()
        words = [str(word) for word in command]
        with self.log.open("a", encoding="utf-8", errors="replace") as log:
            log.write(f"$ {shlex.join(words)}\n")
            log.flush()
            try:
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    cwd=cwd,
                    env={**clean_environment(), **(env or {})},
                    text=True,
                    encoding="utf-8",
                    errors="replace",
                    start_new_session=True,
                    pass_fds=self._locks,
                )
            except OSError as error:
                raise InstallFailed(f"{what}: cannot run {words[0]}: {error.strerror}") from error
            try:
                code = self._follow(process, log.write, listen)
            except BaseException:
                _end(process)
                raise
        if code != 0:
            raise diagnose(what, "\n".join(self.tail), self.log)

    def _follow(
        self, process: subprocess.Popen[str], write: Callable[[str], int], listen: Listener | None
    ) -> int:
        lines: queue.Queue[str | None] = queue.Queue()

        def read() -> None:
            with process.stdout or contextlib.nullcontext(()) as stream:
                for line in stream:
                    lines.put(line)
            lines.put(None)

        threading.Thread(target=read, name="tool-output", daemon=True).start()
        while True:
            try:
                line = lines.get(timeout=TICK_S)
            except queue.Empty:
                self.report.tick()
                continue
            if line is None:
                return process.wait()
            write(line)
            if line.strip():
                self.tail.append(line.rstrip()[:200])
            if listen:
                listen(line)


def clean_environment() -> dict[str, str]:
    """Return the environment without variables that redirect a tool."""
    env = {key: value for key, value in os.environ.items() if key not in UNWANTED + UNWANTED_PIP}
    return env | {
        "LC_ALL": "C.UTF-8" if sys.platform == "linux" else "en_US.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_PROGRESS_BAR": "off",
        "PIP_USER": "0",
        "UV_SYSTEM_CERTS": "1",  # the default of pip; before uv 0.11 "native TLS"
        "UV_NATIVE_TLS": "1",
    }


def _end(process: subprocess.Popen[str]) -> None:
    """Stop a tool and its children; an interrupt comes first so that ninja can clean up."""
    for signum in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signum)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
            if signum == signal.SIGKILL:
                return
