"""Build the seccomp filter of the sandbox: which system calls its commands may not make. Pure.

A filter is a program of the classic Berkeley packet filter, which the kernel runs before each
system call. It covers what namespaces leave open: keys of the kernel, tracing, new namespaces,
rarely used interfaces of the kernel, and sockets that no network namespace contains.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

EPERM: Final = 1
ENOSYS: Final = 38
ENOTSUP: Final = 95
NEW_NAMESPACES: Final = 0x7E020000
"""The flags CLONE_NEW… of `clone`: mount, cgroup, uts, ipc, user, pid and net."""
FAMILIES: Final = (1, 2, 10)
"""Address families of sockets: AF_UNIX, AF_INET and AF_INET6."""
AF_NETLINK: Final = 16
IOCTLS: Final = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which write into a terminal's input."""
X32: Final = 0x40000000
"""Bit in the number of a system call with 32-bit pointers on x86-64."""
ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
ERRNO: Final = 0x00050000

_LOAD, _EQUAL, _GREATER_EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16


class Architecture(NamedTuple):
    """A processor architecture."""

    audit: int
    """Its identifier in the kernel's audit system."""
    numbers: dict[str, int]
    """System calls that the filter concerns."""


def _numbers(text: str) -> dict[str, int]:
    words = text.split()
    return {name: int(number) for name, number in zip(words[::2], words[1::2], strict=True)}


_SHARED: Final = _numbers(
    "open_tree 428 move_mount 429 fsopen 430 fsconfig 431 fsmount 432 fspick 433 mount_setattr 442"
    " io_uring_setup 425 io_uring_enter 426 io_uring_register 427 clone3 435 pidfd_getfd 438"
    " process_madvise 440 quotactl_fd 443 fchmodat2 452 open_tree_attr 467 setxattrat 463"
    " removexattrat 466 file_setattr 469"
)
ARCHITECTURES: Final = {
    "x86_64": Architecture(
        0xC000003E,
        _SHARED
        | _numbers(
            "keyctl 250 add_key 248 request_key 249 bpf 321 perf_event_open 298 userfaultfd 323"
            " ptrace 101 process_vm_readv 310 process_vm_writev 311 kcmp 312 mount 165 umount2 166"
            " pivot_root 155 chroot 161 setns 308 unshare 272 init_module 175 finit_module 313"
            " delete_module 176 kexec_load 246 kexec_file_load 320 reboot 169 swapon 167"
            " swapoff 168 quotactl 179 open_by_handle_at 304 acct 163"
            " syslog 103 fanotify_init 300 move_pages 279 migrate_pages 256"
            " vhangup 153 settimeofday 164 clock_settime 227 clock_adjtime 305 adjtimex 159"
            " iopl 172 ioperm 173 modify_ldt 154 personality 135 clone 56 ioctl 16 socket 41"
            " chmod 90 fchmod 91 fchmodat 268 chown 92 fchown 93 lchown 94 fchownat 260"
            " setxattr 188 lsetxattr 189 fsetxattr 190 removexattr 197 lremovexattr 198"
            " fremovexattr 199 utime 132 utimes 235 futimesat 261 utimensat 280 prlimit64 302"
            " shmget 29 shmat 30 shmctl 31 semget 64 semop 65 semctl 66 semtimedop 220 msgget 68"
            " msgsnd 69 msgrcv 70 msgctl 71 mq_open 240 mq_unlink 241"
        ),
    ),
    "aarch64": Architecture(
        0xC00000B7,
        _SHARED
        | _numbers(
            "keyctl 219 add_key 217 request_key 218 bpf 280 perf_event_open 241 userfaultfd 282"
            " ptrace 117 process_vm_readv 270 process_vm_writev 271 kcmp 272 mount 40 umount2 39"
            " pivot_root 41 chroot 51 setns 268 unshare 97 init_module 105 finit_module 273"
            " delete_module 106 kexec_load 104 kexec_file_load 294 reboot 142 swapon 224"
            " swapoff 225 quotactl 60 open_by_handle_at 265 acct 89"
            " syslog 116 fanotify_init 262 move_pages 239 migrate_pages 238"
            " vhangup 58 settimeofday 170 clock_settime 112 clock_adjtime 266 adjtimex 171"
            " personality 92 clone 220 ioctl 29 socket 198"
            " fchmod 52 fchmodat 53 fchown 55 fchownat 54"
            " setxattr 5 lsetxattr 6 fsetxattr 7 removexattr 14 lremovexattr 15 fremovexattr 16"
            " utimensat 88 prlimit64 261 shmget 194 shmat 196 shmctl 195 semget 190 semop 193"
            " semctl 191 semtimedop 192 msgget 186 msgsnd 189 msgrcv 188 msgctl 187"
            " mq_open 180 mq_unlink 181"
        ),
    ),
}

_FORBIDDEN: Final = (
    "keyctl add_key request_key bpf perf_event_open userfaultfd io_uring_setup io_uring_enter"
    " io_uring_register ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp"
    " mount umount2 pivot_root chroot setns unshare open_tree open_tree_attr move_mount fsopen"
    " fsconfig fsmount fspick mount_setattr init_module finit_module delete_module kexec_load"
    " kexec_file_load reboot swapon swapoff quotactl quotactl_fd open_by_handle_at"
    " acct syslog fanotify_init move_pages migrate_pages vhangup"
    " settimeofday clock_settime clock_adjtime adjtimex iopl ioperm modify_ldt"
)

_UNMAPPED: Final = (
    "chmod fchmodat fchmodat2 chown lchown fchownat setxattr lsetxattr setxattrat removexattr"
    " lremovexattr removexattrat file_setattr utime utimes futimesat shmget shmat shmctl semget"
    " semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink"
)
"""What is forbidden without a mount namespace: Landlock does not cover these calls, so they
would reach every file of the user, or other programs of the user."""


class _Program:
    """A filter in the making."""

    def __init__(self, architecture: Architecture) -> None:
        self._numbers = architecture.numbers
        self._code: list[tuple[int, int, int, int]] = []

    def bytes(self) -> bytes:
        return b"".join(struct.pack("=HBBI", *each) for each in self._code)

    def load(self, offset: int) -> None:
        self._code.append((_LOAD, 0, 0, offset))

    def returns(self, value: int) -> None:
        self._code.append((_RETURN, 0, 0, value))

    def when(self, test: int, value: int, then: int) -> None:
        """Return `then` if the loaded value passes a test."""
        self._code.append((test, 0, 1, value))
        self.returns(then)

    def unless(self, test: int, value: int, then: int) -> None:
        """Return `then` if the loaded value fails a test."""
        self._code.append((test, 1, 0, value))
        self.returns(then)

    def forbid(self, name: str, error: int = EPERM) -> None:
        """Let a system call fail."""
        if name in self._numbers:
            self.when(_EQUAL, self._numbers[name], ERRNO | error)

    def inspect(self, name: str, checks: _Program) -> None:
        """Run `checks`, which must return, if the system call is this one."""
        code = checks._code
        self._code += [(_EQUAL, 0, len(code), self._numbers[name]), *code]


def make_filter(machine: str, *, is_mapped: bool) -> bytes:
    """Return a filter as an array of `struct sock_filter`; b"" for an unknown architecture.

    Args:
        machine: `platform.machine()`.
        is_mapped: the command has namespaces of its own, in which its files are mounted.
    """
    architecture = ARCHITECTURES.get(machine)
    if architecture is None:
        return b""
    program = _Program(architecture)
    program.load(_ARCHITECTURE)
    program.unless(_EQUAL, architecture.audit, KILL)
    program.load(_NUMBER)
    if machine == "x86_64":
        program.when(_GREATER_EQUAL, X32, ERRNO | ENOSYS)
    for name in _FORBIDDEN.split():
        program.forbid(name)
    program.forbid("clone3", ENOSYS)  # its flags are in memory; the C library falls back to clone
    if not is_mapped:
        for name in _UNMAPPED.split():
            program.forbid(name)
        for name in ("fsetxattr", "fremovexattr"):
            program.forbid(name, ENOTSUP)
        for name in ("fchmod", "fchown"):
            # Without effect, but without an error: `sed -i` and `cp` use them for new files.
            program.forbid(name, 0)

    def inspect(name: str, index: int) -> _Program:
        checks = _Program(architecture)
        checks.load(_FIRST_ARGUMENT + 8 * index)
        return checks

    checks = inspect("clone", 0)
    checks.when(_ANY_BIT, NEW_NAMESPACES, ERRNO | EPERM)
    checks.returns(ALLOW)
    program.inspect("clone", checks)
    checks = inspect("ioctl", 1)
    for number in IOCTLS:
        checks.when(_EQUAL, number, ERRNO | EPERM)
    checks.returns(ALLOW)
    program.inspect("ioctl", checks)
    checks = inspect("personality", 0)
    for number in (0, 0xFFFFFFFF):  # the default, and the question which one is set
        checks.when(_EQUAL, number, ALLOW)
    checks.returns(ERRNO | EPERM)
    program.inspect("personality", checks)
    checks = inspect("socket", 0)
    for family in FAMILIES if is_mapped else ():
        checks.when(_EQUAL, family, ALLOW)
    checks.unless(_EQUAL, AF_NETLINK, ERRNO | EPERM)
    checks.load(_FIRST_ARGUMENT + 16)
    checks.when(_EQUAL, 0, ALLOW)  # NETLINK_ROUTE, to list network interfaces
    checks.returns(ERRNO | EPERM)
    program.inspect("socket", checks)
    if not is_mapped:
        for name, index in (("prlimit64", 0), ("utimensat", 1)):
            # Only of the process itself, and of open files.
            checks = inspect(name, index)
            checks.unless(_EQUAL, 0, ERRNO | EPERM)
            checks.load(_FIRST_ARGUMENT + 8 * index + 4)
            checks.unless(_EQUAL, 0, ERRNO | EPERM)
            checks.returns(ALLOW)
            program.inspect(name, checks)
    program.returns(ALLOW)
    return program.bytes()
