"""What other systems get in the place of what only Linux has: here it is taken away."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from lcursor import system


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("pidfd_open", "memfd_create", "sched_getaffinity", "listxattr"):
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.delattr(socket, "SO_PEERCRED", raising=False)
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(system, "IS_LINUX", False)
    monkeypatch.setattr(system, "PROC", tmp_path / "proc")
    monkeypatch.setattr(system, "POWER_SUPPLIES", tmp_path / "supplies")


def test_nothing_is_known_of_the_machine() -> None:
    assert system.usable_cores() == os.cpu_count()
    assert (system.cpu_info(), system.cpu_features()) == ("", [])
    assert system.processor_times() is None
    assert not system.is_on_battery()
    assert system.memory_of_machine("MemAvailable") is None
    assert system.resident_bytes() == 0
    assert system.running_threads() == system.threads_of_user() == 0
    assert system.shared_bytes([os.getpid()]) == 0
    assert system.listening_sockets(80) == []
    assert system.program_of_socket("1") == ""
    assert system.unix_sockets() == set()
    assert system.kernel_setting("kernel.pid_max") == ""
    assert not system.has_nvidia_driver()
    assert not system.is_on_network(Path("/"))
    system.trim_memory()
    here, there = socket.socketpair()
    with here, there:
        assert system.peer_user(here) is None


def test_a_file_has_no_extended_attributes(tmp_path: Path) -> None:
    assert system.extended_attributes(str(tmp_path)) == {}
    with (tmp_path / "a").open("wb") as file:
        system.set_extended_attributes(file.fileno(), {"user.note": b"1"})


def test_a_file_in_memory_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fd = system.memory_file()
    os.write(fd, b"text")
    os.lseek(fd, 0, os.SEEK_SET)
    assert os.read(fd, 99) == b"text"
    os.close(fd)
    assert list(tmp_path.iterdir()) == []


def test_a_process_is_ended() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        assert system.open_process(process.pid) is None
        system.wait_for_end(process.pid, 600, kills=False)
        assert process.poll() is None
        system.wait_for_end(process.pid, 600, kills=True)
        assert process.wait() == -9
    with pytest.raises(ProcessLookupError):
        system.open_process(process.pid)
    system.wait_for_end(process.pid, 600, kills=True)


def test_only_a_main_thread_lowers_the_priority_of_its_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lowered = list[int]()
    monkeypatch.setattr(os, "nice", lowered.append)
    thread = threading.Thread(target=system.lower_priority, args=(5,))
    thread.start()
    thread.join()
    assert lowered == []
    system.lower_priority(5)
    assert lowered == [5]


def test_no_call_of_the_kernel_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """There the numbers mean something else, and one without a meaning kills the process."""
    called = list[object]()
    monkeypatch.setattr(system, "_syscall", lambda *arguments: called.append(arguments))
    monkeypatch.setattr(os, "nice", lambda _: None)
    system.has_openat2.cache_clear()
    try:
        assert not system.has_openat2()
    finally:
        system.has_openat2.cache_clear()
    system.lower_priority(5)
    assert called == []


@pytest.mark.parametrize(
    ("path", "is_far"),
    [("/home/me/p", False), ("/mnt/nas/p", True), ("/mnt/nas", True), ("/mnt/my disk/p", True),
     ("/mnt/nas2/p", False), ("/mnt/nas/local/p", False)],
)  # fmt: skip
def test_disks_of_other_machines_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, is_far: bool
) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mountinfo").write_text(
        "22 1 0:1 / / rw - overlay overlay rw\n"
        "23 22 0:2 / /mnt/nas rw shared:1 - nfs4 nas:/x rw\n"
        "24 22 0:3 / /mnt/my\\040disk rw - cifs //nas/y rw\n"
        "25 23 0:4 / /mnt/nas/local rw - ext4 /dev/sda rw\n"
    )
    monkeypatch.setattr(system, "PROC", tmp_path)
    assert system.is_on_network(Path(path)) == is_far
