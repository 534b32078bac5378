"""A Python environment in which each process lacks what Python lacks on macOS.

It is this one's environment with a startup file, so that it also holds in isolated processes (`-I`)
and for those that they start with `sys.executable`. The machine stays Linux underneath: what is
really there on macOS, such as FSEvents and Metal, is not tested by it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import signal
import socket
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

MISSING = {
    os: "O_DIRECT O_NOATIME O_PATH O_TMPFILE close_range copy_file_range eventfd eventfd_read"
    " eventfd_write fdatasync getrandom getresgid getresuid getxattr listxattr"
    " memfd_create pidfd_open pipe2 posix_fadvise posix_fallocate removexattr sched_getaffinity"
    " sched_getparam sched_getscheduler sched_setaffinity sched_setparam sched_setscheduler setns"
    " setresgid setresuid setxattr splice unshare waitid",
    signal: "pidfd_send_signal sigtimedwait sigwaitinfo",
    socket: "AF_ALG AF_NETLINK AF_PACKET AF_VSOCK MSG_CMSG_CLOEXEC MSG_NOSIGNAL SOCK_CLOEXEC"
    " SOCK_NONBLOCK SO_PEERCRED SO_PASSCRED",
    fcntl: "F_ADD_SEALS F_GETPIPE_SZ F_OFD_SETLK F_SETPIPE_SZ",
    resource: "RLIMIT_SIGPENDING RLIMIT_MSGQUEUE RLIMIT_NICE prlimit",
}
"""Names of Linux by module."""
FOLDERS = ("/proc/", "/sys/")
C_FUNCTIONS = {"malloc_trim", "prctl", "unshare", "memfd_create", "pidfd_open"}


def make_environment(folder: Path) -> Path:
    """Make the environment in an empty folder; return its Python."""
    import venv

    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    own = next(path for path in sys.path if path.endswith("site-packages"))
    start = f"import runpy; runpy.run_path({__file__!r})['pretend']()"
    (packages / "macos.pth").write_text(f"{own}\n{start}\n")
    return folder / "bin/python"


def pretend() -> None:
    """Take away from this process what Python lacks on macOS."""
    sysconfig.get_config_vars()  # a generated module has the name of the platform
    sys.platform = "darwin"
    for module, names in MISSING.items():
        for name in names.split():
            vars(module).pop(name, None)
    machine = os.uname_result(("Darwin", "mac", "24.0.0", "Darwin Kernel", "arm64"))
    os.uname = lambda: machine
    _hide_folders()
    _hide_c_functions()
    _replace_modules()


def _replace_modules() -> None:
    """Replace those that call libraries of macOS."""
    proxies: Any = types.ModuleType("_scproxy")
    proxies._get_proxies = proxies._get_proxy_settings = dict
    sys.modules["_scproxy"] = proxies
    certificates: Any = types.ModuleType("truststore._macos")
    certificates._configure_context = contextlib.nullcontext
    certificates._verify_peercerts_impl = print
    sys.modules["truststore._macos"] = certificates


def _refuse(path: object) -> None:
    if not isinstance(path, str | bytes | os.PathLike):
        return
    if f"{os.fsdecode(path)}/".startswith(FOLDERS):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _hide_folders() -> None:
    """Let the folders of the kernel be missing."""
    for name in ("stat", "lstat", "readlink"):
        real = getattr(os, name)

        def guarded(path: Any, *args: Any, real: Any = real, **more: Any) -> Any:
            _refuse(path)
            return real(path, *args, **more)

        setattr(os, name, guarded)
        for kind in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            if real in kind:
                kind.add(guarded)

    def audit(event: str, args: tuple[Any, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir"):
            _refuse(args[0])

    sys.addaudithook(audit)


def _hide_c_functions() -> None:
    """Let functions of glibc be missing; a call of the kernel by its number ends the process."""
    find = ctypes.CDLL.__getattr__

    def guarded(library: ctypes.CDLL, name: str) -> Any:
        if name in C_FUNCTIONS:
            raise AttributeError(name)
        if name == "syscall":
            return lambda *_: os.kill(os.getpid(), signal.SIGSYS)
        return find(library, name)

    ctypes.CDLL.__getattr__ = guarded  # type: ignore[method-assign]
