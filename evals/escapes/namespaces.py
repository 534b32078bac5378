"""Make a file system, a network and a process table in which an attempt may destroy everything.

The root is new. Folders of the real system are lower layers of overlays, so that what is written
ends in a tmpfs of this namespace that no path reaches. The home, /tmp and /run are not the user's.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from lcursor.drive.editor import ROOT
from lcursor.process.confine import (
    BIND,
    DETACH,
    DEVICES,
    NEW_IPC,
    NEW_MOUNTS,
    NEW_NET,
    NEW_PID,
    NEW_USER,
    NEW_UTS,
    PRIVATE,
    RECURSIVE,
    call,
    mount,
)

TOOLCHAINS = (".pyenv", ".cargo", ".rustup", ".nvm", "go", ".local/share/uv")
"""Folders of the real home that are visible."""
FRESH = frozenset({"proc", "dev", "sys", "tmp", "run"})
INTERNET = "198.18.7.31"
"""Address of a listener that plays the internet, and of the name server (RFC 2544)."""
INTERNET6 = "2001:db8::31"


@dataclass(frozen=True, slots=True)
class Account:
    """Who runs the attempts."""

    name: str
    uid: int
    gid: int


def accounts() -> list[Account]:
    """Return the accounts that attempts can run as: root and nobody, or the user."""
    if os.getuid():
        return [Account("user", os.getuid(), os.getgid())]
    return [Account("root", 0, 0), Account("user", 65534, 65534)]


def enter() -> None:
    """Move this process to namespaces of its own; its next child is process 1 there."""
    uid, gid = os.getuid(), os.getgid()
    spaces = NEW_MOUNTS | NEW_UTS | NEW_IPC | NEW_PID | NEW_NET
    call("unshare", spaces | NEW_USER if uid else spaces)
    if uid:
        for file, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1")):
            Path(f"/proc/self/{file}").write_text(text)
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    mount("none", "/", "", PRIVATE | RECURSIVE)


def make_root(base: Path, template: Path, home: Path, account: Account) -> int:
    """Replace the root of this mount namespace.

    Args:
        base: an empty folder of the real system.
        template: files of the pretended machine, by their path.

    Returns:
        A descriptor of the folder with everything that can be written: the layers, and the root.
    """
    mount("tmpfs", str(base), "tmpfs", 0, "size=768m,nr_inodes=60000,mode=755")
    layers = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
    root = base / "root"
    root.mkdir()
    mount(str(root), str(root), "", BIND)
    is_nested = os.getuid() != 0

    def cover(path: Path, *lower: Path) -> None:
        name = str(path).strip("/").replace("/", "-")
        upper, work = base / f"layer-{name}", base / f"work-{name}"
        upper.mkdir()
        work.mkdir()
        lower = tuple(folder for folder in lower if folder.is_dir())
        found = lower[0].stat()  # the mount has the attributes of its upper layer
        upper.chmod(found.st_mode & 0o7777)
        if not is_nested:
            os.chown(upper, found.st_uid, found.st_gid)
        target = root / str(path).lstrip("/")
        target.mkdir(parents=True, exist_ok=True)
        paths = ":".join(map(str, lower))
        options = f"lowerdir={paths},upperdir={upper},workdir={work}"
        mount("overlay", str(target), "overlay", 0, options + ",userxattr" * is_nested)

    for entry in sorted(os.scandir("/"), key=lambda entry: entry.name):
        if entry.is_symlink():
            (root / entry.name).symlink_to(os.readlink(entry))
        elif entry.is_dir() and entry.name not in FRESH and entry.name != home.parts[1]:
            with contextlib.suppress(OSError):  # a mount below that a user may not copy
                cover(Path(entry.path), template / entry.name, Path(entry.path))
    cover(home, template / str(home).lstrip("/"))
    for folder in {ROOT, *(home / name for name in TOOLCHAINS)}:
        if folder.is_dir() and folder.is_relative_to(home):
            cover(folder, folder)
    _make_devices(root / "dev", account)
    for name, mode in (("proc", 0o555), ("sys", 0o555), ("tmp", 0o1777), ("run", 0o755)):
        (root / name).mkdir()
        (root / name).chmod(mode)
    mount("proc", str(root / "proc"), "proc")
    os.chdir(root)
    Path("old").mkdir()
    call("pivot_root", b".", b"old")
    call("umount2", b"/old", DETACH)
    os.chdir("/")
    Path("/old").rmdir()
    return layers


def _make_devices(folder: Path, account: Account) -> None:
    (folder / "pts").mkdir(parents=True)
    (folder / "shm").mkdir()
    (folder / "shm").chmod(0o1777)
    for name in DEVICES:
        (folder / name).touch()
        mount(f"/dev/{name}", str(folder / name), "", BIND)
    mount("devpts", str(folder / "pts"), "devpts", 0, "newinstance,ptmxmode=0666,mode=0620")
    for name, target in (("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd")):
        (folder / name).symlink_to(target)
    (folder / "sda").write_bytes(b"a disk\n")
    if not os.getuid():
        os.chown(folder / "sda", account.uid, account.gid)


def make_network() -> None:
    """Bring up the loopback device, and give it the addresses that play the internet."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as four:
        address = struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, socket.inet_aton(INTERNET))
        fcntl.ioctl(four, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS: up
        fcntl.ioctl(four, 0x8916, address)  # SIOCSIFADDR
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as six:
        raw = socket.inet_pton(socket.AF_INET6, INTERNET6)
        fcntl.ioctl(six, 0x8916, raw + struct.pack("Ii", 128, socket.if_nametoindex("lo")))
    Path("/proc/sys/net/ipv4/ping_group_range").write_text("0 65535")
    resolver = Path("/etc/resolv.conf")
    resolver.unlink(missing_ok=True)
    resolver.write_text(f"nameserver {INTERNET}\noptions timeout:1 attempts:1\n")


def become(account: Account) -> None:
    """Give up the rights of root, and those of a user namespace."""
    if not os.getuid() and account.uid:
        os.setgroups([])
        os.setgid(account.gid)
        os.setuid(account.uid)
    if account.uid:
        header, nothing = struct.pack("Ii", 0x20080522, 0), bytes(24)
        call("capset", header, nothing)
