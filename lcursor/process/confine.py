"""Launch a command in namespaces of its own, or under Landlock only; the weaker sandbox levels.

`sandbox.py` runs this in a new Python (`launch`), with a plan in a file descriptor, so it imports
only what starts quickly from the standard library. Three processes:

- the launcher, whose death ends everything, waits for the supervisor;
- the supervisor, in a session of its own, makes the namespaces' file system. It ends all processes
  when the command ends;
- the command loses its capabilities, is restricted by Landlock and seccomp, and is executed.
"""

from __future__ import annotations

import _socket  # the module socket takes longer to import
import ctypes
import fcntl
import marshal
import os
import struct
import sys
import time
from _signal import (  # type: ignore[import-not-found]
    SIG_BLOCK,
    SIG_SETMASK,
    SIGCHLD,
    SIGKILL,
    SIGTERM,
    pthread_sigmask,
    sigwait,
)

TYPE_CHECKING = False  # the module typing takes longer to import than all others
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, NoReturn

FAILED = b"confine: "
"""Beginning of the message when the command cannot be started."""

NEW_MOUNTS, NEW_CGROUP, NEW_UTS, NEW_IPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
NEW_USER, NEW_PID, NEW_NET = 0x10000000, 0x20000000, 0x40000000

NO_SUID, NO_DEVICES, NO_EXECUTION, BIND, RECURSIVE, PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
ATTRIBUTE_READ_ONLY, ATTRIBUTE_SAFE = 1, 6
"""Attributes of `mount_setattr`; the second is no set-user-id programs and no devices."""
AT_FDCWD, AT_RECURSIVE, DETACH = -100, 0x8000, 2

O_PATH = 0x200000
DEATH_SIGNAL, DROP_BOUND, NO_NEW_RIGHTS, SECCOMP, SUBREAPER = 1, 24, 38, 22, 36
SYSCALL_MOUNT_SETATTR, SYSCALL_LANDLOCK = 442, 444
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
CAPSET = {"x86_64": 126, "aarch64": 91}
SET_INTERFACE_FLAGS, UP, RUNNING = 0x8914, 0x1, 0x40
BASE = "/tmp"  # noqa: S108 - any folder; a file system is mounted there
WRITABLE = ("write", "empty")
"""Kinds of mounts."""
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

EXECUTE, WRITE, READ, LIST = 1, 2, 4, 8
MAKE_CHARACTER_DEVICE, MAKE_BLOCK_DEVICE = 1 << 6, 1 << 11
FILE_RIGHTS, ALL_RIGHTS = EXECUTE | WRITE | READ | 1 << 14 | 1 << 15, (1 << 16) - 1
PROC = "self sys cpuinfo meminfo stat uptime loadavg version filesystems vmstat devices swaps"
"""What is readable in /proc without a namespace: nothing of other processes, so that their command
lines stay hidden. A child of the command cannot list itself either."""
MIN_LANDLOCK = 6
"""The first version that keeps signals from other processes."""

_libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: Any) -> int:
    """Call a function of the C library."""
    result: int = getattr(_libc, name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        words = " ".join(str(each) for each in (name, *arguments[:2]))
        raise OSError(number, f"{words}: {os.strerror(number)}")
    return result


def _syscall(number: int, *arguments: Any) -> int:
    return call(
        "syscall",
        *(ctypes.c_long(each) if isinstance(each, int) else each for each in (number, *arguments)),
    )


# Namespaces.


def enter_namespaces() -> None:
    """Give this process new namespaces, with the same user and group ids."""
    user, group = os.getuid(), os.getgid()
    call("unshare", NEW_USER | NEW_MOUNTS | NEW_PID | NEW_IPC | NEW_UTS | NEW_CGROUP | NEW_NET)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    lo = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    fcntl.ioctl(lo, SET_INTERFACE_FLAGS, struct.pack("16sH14x", b"lo", UP | RUNNING))
    lo.close()


def mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    """Mount a file system."""
    call("mount", source.encode(), target.encode(), kind.encode(), flags, data.encode())


def _set_attributes(path: str, attributes: int, flags: int = AT_RECURSIVE) -> None:
    data = struct.pack("=QQQQ", attributes, 0, 0, 0)
    _syscall(SYSCALL_MOUNT_SETATTR, AT_FDCWD, path.encode(), flags, data, len(data))


def _make(target: str, *, is_folder: bool) -> None:
    """Create the folder or file where something is mounted."""
    os.makedirs(target if is_folder else os.path.dirname(target), exist_ok=True)
    if not is_folder and not os.path.lexists(target):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _bind(source: str, target: str, attributes: int) -> None:
    _make(target, is_folder=os.path.isdir(source))
    mount(source, target, "", BIND | RECURSIVE)
    _set_attributes(target, attributes)


def _mount_empty(target: str, size_bytes: int) -> None:
    _make(target, is_folder=True)
    mount("tmpfs", target, "tmpfs", NO_SUID | NO_DEVICES, f"mode=755,size={size_bytes}")


def make_root(mounts: Iterable[tuple[str, str, str]], size_bytes: int) -> None:
    """Replace the file system by one that has only these mounts; in the new pid namespace."""
    mount("none", "/", "", RECURSIVE | PRIVATE)
    _mount_empty(BASE, size_bytes)
    for name in ("old", "new"):
        os.mkdir(f"{BASE}/{name}")
    pivot_root = PIVOT_ROOT[os.uname().machine]
    _syscall(pivot_root, BASE.encode(), f"{BASE}/old".encode())
    os.chdir("/")
    _mount_empty("/new", size_bytes)
    _make("/new/proc", is_folder=True)
    mount("proc", "/new/proc", "proc", NO_SUID | NO_DEVICES | NO_EXECUTION)
    for name in ("sys", "sysrq-trigger", "irq", "bus"):  # root could write there
        if os.path.exists(f"/new/proc/{name}"):
            _bind(f"/new/proc/{name}", f"/new/proc/{name}", ATTRIBUTE_READ_ONLY)
    _make_devices(size_bytes)
    for kind, target, source in mounts:
        target = f"/new{target}"
        if kind == "read":
            _bind(f"/old{source}", target, ATTRIBUTE_READ_ONLY | ATTRIBUTE_SAFE)
        elif kind == "write":
            _bind(f"/old{source}", target, ATTRIBUTE_SAFE)
        elif kind == "link":
            os.symlink(source, target)
        else:
            _mount_empty(target, size_bytes)
    _set_attributes("/new", ATTRIBUTE_READ_ONLY, 0)
    os.chdir("/new")
    _syscall(pivot_root, b".", b".")
    call("umount2", b".", DETACH)
    os.chdir("/")


def _make_devices(size_bytes: int) -> None:
    _mount_empty("/new/dev", size_bytes)
    for name in DEVICES:
        _bind(f"/old/dev/{name}", f"/new/dev/{name}", 2)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"/new/dev/{name}")
    os.symlink("/proc/self/fd", "/new/dev/fd")
    _mount_empty("/new/dev/shm", size_bytes)
    _make("/new/dev/pts", is_folder=True)
    flags = NO_SUID | NO_EXECUTION
    mount("devpts", "/new/dev/pts", "devpts", flags, "newinstance,ptmxmode=0666,mode=620")
    os.symlink("pts/ptmx", "/new/dev/ptmx")
    _set_attributes("/new/dev", ATTRIBUTE_READ_ONLY, 0)


# Restrictions.


def drop_capabilities() -> None:
    """Give up the rights of root, now and for programs that are executed."""
    number = 0
    while _libc.prctl(DROP_BOUND, number, 0, 0, 0) == 0:
        number += 1
    header, none = struct.pack("=II", 0x20080522, 0), bytes(24)
    _syscall(CAPSET[os.uname().machine], header, none)
    call("prctl", NO_NEW_RIGHTS, 1, 0, 0, 0)


def landlock_version() -> int:
    """Return the version of Landlock; 0 without it."""
    return max(0, int(_libc.syscall(SYSCALL_LANDLOCK, None, ctypes.c_long(0), 1)))


def restrict_files(rules: Iterable[tuple[str, int]], *, allows_tcp: bool) -> None:
    """Allow only these rights on files, and no signals to other processes.

    Args:
        rules: a path and the rights on what is below it.
    """
    attributes = struct.pack("=QQQ", ALL_RIGHTS, 0 if allows_tcp else 3, 3)
    ruleset = _syscall(SYSCALL_LANDLOCK, attributes, len(attributes), 0)
    for path, rights in rules:
        try:
            fd = os.open(path, O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        if not os.path.isdir(path):
            rights &= FILE_RIGHTS
        _syscall(SYSCALL_LANDLOCK + 1, ruleset, 1, struct.pack("=Qi", rights, fd), 0)
        os.close(fd)
    _syscall(SYSCALL_LANDLOCK + 2, ruleset, 0)
    os.close(ruleset)


def _rules(plan: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the rights on files."""
    looking = EXECUTE | READ | LIST
    writing = ALL_RIGHTS & ~(MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE)
    if plan["is_mapped"]:
        yield from (("/", looking), ("/dev", writing), ("/proc", writing))
        yield from ((path, writing) for kind, path, _ in plan["mounts"] if kind in WRITABLE)
    else:
        yield from ((f"/proc/{name}", looking) for name in PROC.split())
        yield from ((f"/dev/{name}", writing) for name in DEVICES)
        yield from (
            (path, writing if kind in WRITABLE else looking)
            for kind, _, path in plan["mounts"]
            if path and kind != "link"
        )


def filter_calls(code: bytes) -> None:
    """Install a seccomp filter, an array of `struct sock_filter`."""
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    call("prctl", SECCOMP, 2, program, 0, 0)


# The processes.


def _execute(plan: dict[str, Any]) -> NoReturn:
    """Become the command."""
    pthread_sigmask(SIG_SETMASK, ())
    os.setsid()
    call("prctl", DEATH_SIGNAL, SIGKILL, 0, 0, 0)
    for name, text in (("oom_score_adj", "1000"), ("autogroup", plan["nice"])):
        try:
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        except OSError:
            pass  # it helps other programs only
    os.chdir(plan["cwd"])
    drop_capabilities()
    if landlock_version() >= MIN_LANDLOCK:
        restrict_files(_rules(plan), allows_tcp=plan["is_mapped"])
    filter_calls(plan["filter"])
    command = plan["command"]
    os.execvpe(command[0], command, os.environ)  # noqa: S606 - that is its purpose


def _supervise(plan: dict[str, Any]) -> int:
    """Run the command until it ends, end all other processes, and return its exit status."""
    try:
        if plan["is_mapped"]:
            make_root(plan["mounts"], plan["size_bytes"])
        command = os.fork()
        if command == 0:
            _run_and_exit(lambda: _execute(plan))
        # A handler could run just before a call that waits, which would then wait on.
        while sigwait((SIGCHLD, SIGTERM)) == SIGCHLD:
            for pid, status in _ended():
                if pid == command:
                    return _status(status)
        return int(128 + SIGTERM)
    finally:
        _end_descendants()


def _ended() -> Iterator[tuple[int, int]]:
    """Yield the ids and statuses of the children that have ended, until there is no more."""
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended
    except ChildProcessError:
        pass


def _status(status: int) -> int:
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _end_descendants() -> None:
    """Kill all processes that the command left; this process adopts orphans."""
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in descendants(os.getpid()):
            _libc.kill(pid, SIGKILL)  # unless it has ended
        time.sleep(0.001)


def descendants(ancestor: int) -> set[int]:
    """Return the ids of the processes that a process has started, and those that they have."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                pass  # it has ended
    family, size = {ancestor}, 0
    while len(family) > size:
        size = len(family)
        family |= {pid for pid, parent in parents.items() if parent in family}
    return family - {ancestor}


def _run_and_exit(function: Any) -> NoReturn:
    """Exit with the result of a function, or with a message."""
    try:
        status = function()
    except OSError as error:
        os.write(2, FAILED + str(error.strerror or error).encode() + b"\n")
        status = 1
    os._exit(status)


def main(plan_fd: int) -> NoReturn:
    """Run the plan of a file descriptor."""
    with os.fdopen(plan_fd, "rb") as file:
        plan = marshal.loads(file.read())  # noqa: S302 - written by our own process

    def start() -> int:
        call("prctl", DEATH_SIGNAL, SIGKILL, 0, 0, 0)
        if os.getppid() != plan["parent"]:
            return 1  # it is dead already
        if plan["is_mapped"]:
            enter_namespaces()
        listening, speaking = os.pipe()
        supervisor = os.fork()
        if supervisor:
            os.write(plan["info_fd"], b'{"child-pid": %d}' % supervisor)
            return _status(os.waitpid(supervisor, 0)[1])
        os.close(listening)
        os.close(plan["info_fd"])
        os.setsid()
        pthread_sigmask(SIG_BLOCK, (SIGCHLD, SIGTERM))
        call("prctl", SUBREAPER, 1, 0, 0, 0)
        call("prctl", DEATH_SIGNAL, SIGTERM, 0, 0, 0)
        os.write(speaking, b"1")  # fails if the launcher is dead already
        _run_and_exit(lambda: _supervise(plan))

    _run_and_exit(start)


def command_line(plan_fd: int) -> list[str]:
    """Return the command line that runs `main` in a new Python."""
    here = os.path.dirname(os.path.abspath(__file__))
    code = f"import sys; sys.path.append({here!r}); import confine; confine.main({plan_fd})"
    return [sys.executable, "-I", "-S", "-c", code]
