"""What Linux offers beyond other systems. No other module uses it, except for the sandbox's own.

Where the system lacks something, a function does what its docstring says, and never raises for that
reason. Imports only the standard library, because the installer uses it. Any thread.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final

IS_LINUX: Final = sys.platform == "linux"
PROC = Path("/proc")
"""Where the kernel shows its state; on other systems it does not exist."""
POWER_SUPPLIES = Path("/sys/class/power_supply")
GPUS, GPU_NODES = Path("/sys/class/drm"), Path("/dev/dri")
"""What the kernel knows about each GPU, and the files through which programs use it."""
CPUS: Final = "/sys/devices/system/cpu"
OOM_SCORE: Final = "/proc/self/oom_score_adj"
"""A high number in this file lets the kernel end a process first when memory runs out."""
AUTOGROUP: Final = "/proc/self/autogroup"
"""The priority of a session, if the kernel weighs sessions against each other."""

O_PATH: Final = getattr(os, "O_PATH", 0)
HANDLE: Final = O_PATH | os.O_CLOEXEC | (0 if O_PATH else os.O_NONBLOCK | os.O_NOCTTY)
"""Flags for a descriptor of a file that is not opened; elsewhere it is, but never blocks."""
OPENAT2: Final = 437
"""Number of the system call, the same on all architectures."""
RESOLVE: Final = 0x08 | 0x02
"""RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS."""
AGAIN: Final = 8
"""How often a lookup is repeated that a rename elsewhere has disturbed."""

IOPRIO_SET: Final = {"x86_64": 251, "aarch64": 30, "riscv64": 30}
"""Numbers of the system call, which the C library does not wrap."""
THIS_THREAD: Final = (1, 0)
IDLE_CLASS: Final = 3 << 13
DEATH_SIGNAL: Final = 1
"""Of `prctl`: PR_SET_PDEATHSIG."""

LISTENING: Final = "0A"
"""The state of a listening socket in `/proc/net/tcp`."""
NETWORK_DISKS: Final = frozenset({
    "afs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "nfs", "nfs4", "smb3", "smbfs",
})  # fmt: skip
"""Types of disks on which the kernel does not see what other machines change."""
NO_FILE: Final = (b"/dev/zero", b"/memfd:", b"/SYSV")
"""How the names of memory begin that processes share without a file."""


@cache
def _libc() -> Any:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _syscall(number: int, *arguments: int | bytes) -> int:
    """Call the kernel; on Linux only: other systems have other numbers, and may kill the process.

    Raises:
        OSError: it failed.
    """
    import ctypes

    values = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = int(_libc().syscall(ctypes.c_long(number), *values))
    if result < 0:
        found = ctypes.get_errno()
        raise OSError(found, os.strerror(found))
    return result


def _read(path: Path) -> bytes:
    """Return the content of a file of the kernel; b"" if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _word(path: Path) -> str:
    return _read(path).decode("utf-8", "replace").strip()


# Processors and power.


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1; elsewhere all."""
    if hasattr(os, "sched_getaffinity"):
        with contextlib.suppress(OSError):
            return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def cpu_info() -> str:
    """Return the kernel's description of the processors; "" elsewhere."""
    return _word(PROC / "cpuinfo")


def cpu_features() -> list[str]:
    """Return the names of the processor's features, such as "avx2"; [] elsewhere."""
    line = re.search(r"^(?:flags|Features)\s*:(.*)$", cpu_info(), re.MULTILINE)
    return line[1].split() if line else []


def processor_times() -> tuple[float, float] | None:
    """Return seconds of all cores: in total, and free or of low priority; None elsewhere."""
    try:
        ticks = [int(each) for each in _read(PROC / "stat").split(b"\n", 1)[0].split()[1:9]]
        _, nice, _, idle, waiting, *_ = ticks
    except ValueError:
        return None
    second = os.sysconf("SC_CLK_TCK")
    return sum(ticks) / second, (nice + idle + waiting) / second


def is_on_battery() -> bool:
    """Return whether no mains supply is connected, or a battery is discharging; False elsewhere."""
    try:
        supplies = sorted(POWER_SUPPLIES.iterdir())
    except OSError:
        return False
    mains = [_word(each / "online") for each in supplies if _word(each / "type") == "Mains"]
    if mains:
        return "1" not in mains
    return any(
        _word(each / "status") == "Discharging"
        for each in supplies
        # The battery of a mouse or a headset has the scope "Device".
        if _word(each / "type") == "Battery" and _word(each / "scope") != "Device"
    )


def lower_priority(nice: int) -> None:
    """Lower the processor and disk priority of the calling thread and its children.

    Elsewhere a process has one priority for all its threads: there, only a main thread lowers it.
    """
    if IS_LINUX or threading.current_thread() is threading.main_thread():
        with contextlib.suppress(OSError):
            os.nice(nice)
    number = IOPRIO_SET.get(platform.machine())
    if IS_LINUX and number is not None:
        with contextlib.suppress(OSError):
            _syscall(number, *THIS_THREAD, IDLE_CLASS)


def lower_session_priority(nice: int) -> None:
    """Lower the priority of this session, if the kernel schedules sessions as groups.

    In that case the priority of a thread only counts within its session, and a worker in its own
    session would get half of a busy machine.
    """
    with contextlib.suppress(OSError):
        Path(AUTOGROUP).write_text(str(nice))


# Memory.


def memory_of_machine(name: str) -> int | None:
    """Return the bytes of an entry of `/proc/meminfo`, such as "MemAvailable"; None elsewhere."""
    entry = _read(PROC / "meminfo").partition(f"\n{name}:".encode())[2]
    try:
        return int(entry.split(maxsplit=1)[0]) << 10
    except (ValueError, IndexError):
        return None


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 elsewhere."""
    try:
        return int(_read(PROC / "self/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, IndexError):
        return 0


def trim_memory() -> None:
    """Return free memory to the system, if the C library can; takes some milliseconds."""
    with contextlib.suppress(OSError, AttributeError):
        _libc().malloc_trim(0)


# Processes.


def open_process(pid: int) -> int | None:
    """Return a descriptor of a process, which can be read once it has ended; None elsewhere.

    Raises:
        ProcessLookupError: there is no such process.
    """
    if hasattr(os, "pidfd_open"):
        return int(os.pidfd_open(pid))
    os.kill(pid, 0)
    return None


def wait_for_end(pid: int, max_s: float, *, kills: bool) -> None:
    """Wait until a process has ended, whoever started it; elsewhere returns at once.

    Args:
        kills: end it first, also elsewhere.
    """
    with contextlib.suppress(ProcessLookupError):  # it has ended
        fd = open_process(pid)
        if fd is None:
            if kills:
                os.kill(pid, signal.SIGKILL)
            return
        try:
            if kills and hasattr(signal, "pidfd_send_signal"):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            poll.poll(max_s * 1000)
        finally:
            os.close(fd)


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a child has ended; its id stays in use, but not elsewhere."""
    if hasattr(os, "waitid"):  # on macOS since Python 3.13
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, process.pid, flags) is not None
    return process.poll() is not None


def end_with_parent(number: int) -> None:
    """Let the kernel send this process a signal when its parent ends; nothing elsewhere."""
    if IS_LINUX:
        _libc().prctl(DEATH_SIGNAL, number)


def running_threads() -> int:
    """Return how many threads this machine runs; 0 elsewhere."""
    try:
        return int(_read(PROC / "loadavg").split()[3].partition(b"/")[2])
    except (ValueError, IndexError):
        return 0


def threads_of_user() -> int:
    """Return how many threads this user has; 0 elsewhere."""
    count, user = 0, os.getuid()
    with contextlib.suppress(OSError):
        for entry in os.scandir(PROC):
            with contextlib.suppress(OSError):  # it has ended
                if entry.name.isdigit() and entry.stat().st_uid == user:
                    count += os.stat(f"{entry.path}/task").st_nlink - 2
    return count


def shared_bytes(pids: Iterable[int]) -> int:
    """Return the bytes of shared memory without a file that processes have mapped or opened.

    All of it counts, not only what is resident in a process: the memory stays while one of them
    has it mapped, whether it used it or not. 0 elsewhere.
    """
    sizes = dict[int, int]()
    for pid in pids:
        mapped = dict[int, int]()
        with contextlib.suppress(OSError):  # it has ended
            for line in (PROC / f"{pid}/maps").read_bytes().splitlines():
                span, mode, _, _, inode, *path = line.split(None, 5)
                if mode.endswith(b"s") and path and path[0].startswith(NO_FILE):
                    first, _, end = span.partition(b"-")
                    size = int(end, 16) - int(first, 16)
                    mapped[int(inode)] = mapped.get(int(inode), 0) + size
            for entry in os.scandir(PROC / f"{pid}/fd"):
                with contextlib.suppress(OSError):  # it was closed
                    if os.readlink(entry.path).startswith("/memfd:"):
                        file = entry.stat()
                        mapped[file.st_ino] = max(mapped.get(file.st_ino, 0), file.st_blocks * 512)
        for number, size in mapped.items():
            sizes[number] = max(sizes.get(number, 0), size)
    return sum(sizes.values())


# Files.


@cache
def has_openat2() -> bool:
    """Return whether `open_beneath` works; False elsewhere, and with Linux before 5.6."""
    if not IS_LINUX:
        return False
    try:
        os.close(open_beneath(Path("/"), "."))
    except OSError:
        return False
    return True


def open_beneath(folder: Path, name: str) -> int:
    """Return a handle of a path, which the kernel resolves beneath a folder.

    Raises:
        OSError: it cannot be opened.
    """
    how = struct.pack("=QQQ", HANDLE, 0, RESOLVE)
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for _ in range(AGAIN):
            with contextlib.suppress(BlockingIOError):
                return _syscall(OPENAT2, top, os.fsencode(name), how, len(how))
    finally:
        os.close(top)
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def open_without_links(folder: Path, name: str) -> int:
    """Return a handle of a path below a folder without links in it; the same on all systems.

    Raises:
        OSError: it cannot be opened, or there is a link in it (ELOOP).
    """
    fd = os.open(folder, HANDLE | os.O_DIRECTORY)
    for part in name.split("/"):
        try:
            inner = os.open(part, HANDLE | os.O_NOFOLLOW, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
        if stat.S_ISLNK(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return fd


def path_of(fd: int) -> str:
    """Return the path of an open file; "" elsewhere."""
    try:
        return os.readlink(PROC / f"self/fd/{fd}")
    except OSError:
        return ""


def open_content(fd: int) -> BinaryIO:
    """Open the content of a regular file by its handle.

    Raises:
        OSError: it cannot be opened.
    """
    if not O_PATH:
        return os.fdopen(os.dup(fd), "rb")
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    return os.fdopen(os.open(PROC / f"self/fd/{fd}", flags), "rb")


def memory_file() -> int:
    """Return the descriptor of a new file in memory; elsewhere of one without a name on disk."""
    if hasattr(os, "memfd_create"):
        return int(os.memfd_create("lcursor"))
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def extended_attributes(path: str) -> dict[str, bytes]:
    """Return the extended attributes of a file, of which an ACL is one; {} elsewhere."""
    values = dict[str, bytes]()
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            for name in os.listxattr(path, follow_symlinks=False):
                with contextlib.suppress(OSError):
                    values[name] = os.getxattr(path, name, follow_symlinks=False)
    return values


def set_extended_attributes(fd: int, wanted: Mapping[str, bytes]) -> None:
    """Give an open file these extended attributes and no others; nothing elsewhere.

    What the user may not set is left out.
    """
    if sys.platform != "linux":
        return
    inherited = list[str]()
    with contextlib.suppress(OSError):
        inherited = os.listxattr(fd)
    for name in inherited:  # from the default ACL of the folder
        if name not in wanted:
            with contextlib.suppress(OSError):
                os.removexattr(fd, name)
    for name, value in wanted.items():
        with contextlib.suppress(OSError):
            os.setxattr(fd, name, value)


# Sockets, and settings of the kernel.


def host_name() -> str:
    """Return this machine's name; "" for a Mac, whose name depends on the network that it is in."""
    return socket.gethostname() if IS_LINUX else ""


def peer_user(sock: socket.socket) -> int | None:
    """Return the id of the user at the other end of a Unix socket; None elsewhere."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    data = sock.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    return int(struct.unpack("3i", data)[1])


def listening_sockets(port: int) -> list[tuple[int, str]]:
    """Return user id and inode of the sockets that listen at a port; [] elsewhere."""
    rows = list[list[str]]()
    for table in ("tcp", "tcp6"):
        rows += [line.split() for line in _word(PROC / "net" / table).splitlines()[1:]]
    return [
        (int(row[7]), row[9])
        for row in rows
        if len(row) > 9 and row[3] == LISTENING and row[1].endswith(f":{port:04X}")
    ]


def program_of_socket(inode: str) -> str:
    """Return the name of the program that has a socket; "" if unknown, as it is elsewhere."""
    for link in PROC.glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if os.readlink(link) == f"socket:[{inode}]":
                return _word(link.parents[1] / "comm")
    return ""


def unix_sockets() -> set[str]:
    """Return the paths of all Unix sockets that have one; an empty set elsewhere."""
    lines = _read(PROC / "net/unix").splitlines()[1:]
    fields = (line.split(maxsplit=7) for line in lines)
    return {os.fsdecode(each[7]) for each in fields if len(each) == 8 and each[7][:1] == b"/"}


def kernel_setting(name: str) -> str:
    """Return the value of a setting, named as in sysctl(8); "" if there is none, as elsewhere."""
    return _word(PROC / "sys" / name.replace(".", "/"))


def is_on_network(path: Path) -> bool:
    """Return whether the disk of a path is on another machine; False elsewhere."""
    found = (0, "")
    for line in _read(PROC / "self/mountinfo").decode("utf-8", "replace").splitlines():
        head, _, tail = line.partition(" - ")
        words = head.split()
        if len(words) > 4 and tail:
            mounted = Path(words[4].replace("\\040", " "))
            if path == mounted or path.is_relative_to(mounted):
                found = max(found, (len(mounted.parts), tail.split()[0]))
    return found[1] in NETWORK_DISKS


def has_nvidia_driver() -> bool:
    """Return whether the kernel has the driver of NVIDIA; False elsewhere."""
    return (PROC / "driver/nvidia/version").exists()
