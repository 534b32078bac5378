"""Build the seccomp filter of the sandbox: which system calls its commands may not make. Pure.

A filter is a program of the classic Berkeley packet filter, which the kernel runs before each
system call. It covers what namespaces leave open: keys of the kernel, tracing, new namespaces,
rarely used interfaces of the kernel, and sockets that no network namespace contains.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

EPERM: Final = 1
ENOSYS: Final = 38
ENOTSUP: Final = 95
NEW_NAMESPACES: Final = 0x7E020000
"""The flags CLONE_NEW… of `clone`: mount, cgroup, uts, ipc, user, pid and net."""
FAMILIES: Final = (1, 2, 10)
"""Address families of sockets: AF_UNIX, AF_INET and AF_INET6."""
AF_NETLINK: Final = 16
NETLINK_ROUTE: Final = 0
"""The protocol that lists network interfaces."""
PERSONALITIES: Final = (0, 0xFFFFFFFF)
"""The default, and the question which one is set."""
IOCTLS: Final = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which write into a terminal's input."""
X32: Final = 0x40000000
"""Bit in the number of a system call with 32-bit pointers on x86-64."""
ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
ERRNO: Final = 0x00050000
DENY: Final = ERRNO | EPERM

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
    " semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink socket"
)
"""What is forbidden without a mount namespace: Landlock does not cover these calls, so they
would reach every file of the user, or other programs of the user."""


Code = list[tuple[int, int, int, int]]
"""Instructions: the operation, how many to skip if a test passes or fails, and a number."""


def _load(offset: int) -> Code:
    return [(_LOAD, 0, 0, offset)]


def _return(value: int) -> Code:
    return [(_RETURN, 0, 0, value)]


def _when(test: int, values: Iterable[int], then: int) -> Code:
    """Return `then` if the loaded number passes a test with one of the values."""
    return [each for value in values for each in ((test, 0, 1, value), *_return(then))]


def _unless(test: int, value: int, then: int) -> Code:
    """Return `then` if the loaded number fails a test."""
    return [(test, 1, 0, value), *_return(then)]


def make_filter(machine: str, *, is_mapped: bool) -> bytes:
    """Return a filter as an array of `struct sock_filter`.

    Args:
        machine: a key of `ARCHITECTURES`.
        is_mapped: the command has namespaces of its own, in which its files are mounted.
    """
    audit, numbers = ARCHITECTURES[machine]
    errors = dict.fromkeys(_FORBIDDEN.split(), EPERM)
    errors["clone3"] = ENOSYS  # its flags are in memory; the C library falls back to clone
    checks = {
        "clone": [*_argument(0), *_when(_ANY_BIT, [NEW_NAMESPACES], DENY), *_return(ALLOW)],
        "ioctl": [*_argument(1), *_when(_EQUAL, IOCTLS, DENY), *_return(ALLOW)],
        "personality": [*_argument(0), *_when(_EQUAL, PERSONALITIES, ALLOW), *_return(DENY)],
    }
    if is_mapped:
        checks["socket"] = [
            *_argument(0),
            *_when(_EQUAL, FAMILIES, ALLOW),
            *_unless(_EQUAL, AF_NETLINK, DENY),
            *_argument(2),
            *_when(_EQUAL, [NETLINK_ROUTE], ALLOW),
            *_return(DENY),
        ]
    else:
        errors |= dict.fromkeys(_UNMAPPED.split(), EPERM)
        errors |= dict.fromkeys(("fsetxattr", "fremovexattr"), ENOTSUP)
        # Without effect, but without an error: `sed -i` and `cp` use them for new files.
        errors |= dict.fromkeys(("fchmod", "fchown"), 0)
        for name, index in (("prlimit64", 0), ("utimensat", 1)):
            # Only of the process itself, and of open files.
            checks[name] = [*_zero(index, 0), *_zero(index, 4), *_return(ALLOW)]
    code = [*_load(_ARCHITECTURE), *_unless(_EQUAL, audit, KILL), *_load(_NUMBER)]
    if machine == "x86_64":
        code += _when(_GREATER_EQUAL, [X32], ERRNO | ENOSYS)
    for name, error in errors.items():
        if name in numbers:
            code += _when(_EQUAL, [numbers[name]], ERRNO | error)
    for name, check in checks.items():
        code += [(_EQUAL, 0, len(check), numbers[name]), *check]
    return b"".join(struct.pack("=HBBI", *each) for each in [*code, *_return(ALLOW)])


def _argument(index: int) -> Code:
    """Load the lower half of an argument."""
    return _load(_FIRST_ARGUMENT + 8 * index)


def _zero(index: int, byte: int) -> Code:
    """Deny the call unless the half of an argument that starts at a byte is zero."""
    return [*_load(_FIRST_ARGUMENT + 8 * index + byte), *_unless(_EQUAL, 0, DENY)]
