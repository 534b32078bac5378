"""What a sandboxed command can do, and what not, at each level that works here."""

from __future__ import annotations

import contextlib
import mmap
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lcursor.errors import Cancelled, SandboxFailed, SandboxMissing
from lcursor.process import bubblewrap
from lcursor.process.run import Output
from lcursor.process.sandbox import LEVELS, Confinement, Level, Limits, Sandbox, probe
from tests.waiting import wait_for


@pytest.fixture(params=LEVELS)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Return a sandbox of a level."""
    level: Level = request.param
    if not probe(level).works:
        pytest.skip("no sandbox of this level works here")
    return Sandbox(level)


@pytest.fixture
def folders(tmp_path: Path) -> Confinement:
    """Return a copy of a project, and the place of the project."""
    for name in ("tree", "project"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(f"from the {name}\n")
    python = Path(sys.prefix)
    return Confinement(tmp_path / "tree", tmp_path / "project", readable=(python,))


def shell(sandbox: Sandbox, script: str, confinement: Confinement, max_s: float = 60) -> Output:
    """Run a shell script."""
    return sandbox.run(["sh", "-c", script], confinement, max_s=max_s, max_bytes=1 << 20)


def test_tree_at_its_place(sandbox: Sandbox, folders: Confinement) -> None:
    """A command sees and changes the copy, at the project's path."""
    output = shell(sandbox, "pwd; cat a.txt; echo new > b.txt; exit 3", folders)
    path = sandbox.visible_path(folders)
    assert output.data.decode() == f"{path}\nfrom the tree\n"
    assert output.status == 3
    assert (folders.tree / "b.txt").read_text() == "new\n"
    assert sorted(os.listdir(folders.root)) == ["a.txt"]


def test_a_program_has_its_streams_and_folder(sandbox: Sandbox, folders: Confinement) -> None:
    """Output and error are connected, and the working directory can be chosen."""
    (folders.tree / "sub").mkdir()
    output = sandbox.run(
        ["sh", "-c", "pwd; cat; echo bad >&2; set -- /proc/self/fd/*; echo $#"],
        folders,
        cwd=sandbox.visible_path(folders) / "sub",
        max_s=60,
        max_bytes=1000,
    )
    path, count = output.data.decode().splitlines()
    assert path == f"{sandbox.visible_path(folders)}/sub"
    assert int(count) == 4  # three, and the listed folder
    assert output.errors == b"bad\n"


def test_command_lines_of_other_processes(sandbox: Sandbox, folders: Confinement) -> None:
    """A command sees only its own processes."""
    with subprocess.Popen(["sleep", "60", "0.0002"]) as other:
        script = f"cat /proc/{other.pid}/cmdline /proc/[0-9]*/cmdline /proc/[0-9]*/environ"
        assert b"0.0002" not in shell(sandbox, script, folders).data
        assert b"0.0002" in Path(f"/proc/{other.pid}/cmdline").read_bytes()
        other.kill()
    assert shell(sandbox, "cat /proc/self/comm /proc/cpuinfo", folders).data


def test_files_outside_cannot_be_written(
    sandbox: Sandbox, folders: Confinement, tmp_path: Path
) -> None:
    """A command reads and writes no other file."""
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    for script in (
        f"cat {secret}",
        "cat ../secret",
        f"ln {secret} here",
        "echo x > /usr/lcursor-test",
        "cat /etc/shadow",
        f"chmod 777 {secret}",
        f"test -e {Path(__file__)}" if sandbox.level != "landlock" else "false",
    ):
        assert shell(sandbox, script, folders).status, script
    for script in (f"echo changed > {secret}", f"rm {secret}", f"mv a.txt {tmp_path}/b.txt"):
        shell(sandbox, script, folders)  # may change an empty folder of the sandbox
    assert secret.read_text() == "hidden"
    assert not (tmp_path / "b.txt").exists()


def test_a_read_only_folder_cannot_be_written(
    sandbox: Sandbox, folders: Confinement, tmp_path: Path
) -> None:
    """Folders of the user are shown read-only."""
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "index.js").write_text("code")
    target = folders.root / "node_modules"
    confined = replace(folders, read_only=((packages, target),))
    seen = packages if sandbox.level == "landlock" else target
    output = shell(sandbox, f"cat {seen}/index.js", confined)
    assert output.data == b"code"
    assert shell(sandbox, f"echo x > {seen}/index.js", confined).status
    assert shell(sandbox, f"rm {seen}/index.js", confined).status
    assert shell(sandbox, f"ln {seen}/index.js a && echo x > a", confined).status
    assert (packages / "index.js").read_text() == "code"


def test_links_in_place_of_mount_points(
    sandbox: Sandbox, folders: Confinement, tmp_path: Path
) -> None:
    """A link in the tree never makes the sandbox create or mount something outside of it."""
    away, packages = tmp_path / "away", tmp_path / "packages"
    away.mkdir()
    packages.mkdir()
    (folders.tree / "sub").symlink_to(away)
    confined = replace(folders, read_only=((packages, folders.root / "sub/node_modules"),))
    assert shell(sandbox, "true", confined).status == 0
    assert not [*away.iterdir()]


def test_only_given_variables_are_passed(
    sandbox: Sandbox, folders: Confinement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the environment only a few variables are passed."""
    monkeypatch.setenv("LCURSOR_SECRET", "1")
    confined = replace(folders, env={"MODE": "fast"})
    lines = shell(sandbox, "env", confined).data.decode().splitlines()
    names = {line.partition("=")[0] for line in lines}
    assert {"PATH", "HOME", "TMPDIR", "MODE"} <= names
    assert "LCURSOR_SECRET" not in names


def test_sockets_are_blocked(sandbox: Sandbox, folders: Confinement, tmp_path: Path) -> None:
    """A command reaches neither a port of this machine nor a socket in a file."""
    script = (
        "import socket, sys\n"
        "kind = socket.AF_UNIX if len(sys.argv) == 2 else socket.AF_INET\n"
        "to = sys.argv[1] if len(sys.argv) == 2 else (sys.argv[1], int(sys.argv[2]))\n"
        "socket.socket(kind).connect(to)\n"
    )
    with socket.socket(socket.AF_UNIX) as one, socket.socket() as other:
        address = str(tmp_path / "editor.sock")
        one.bind(address)
        one.listen()
        other.bind(("127.0.0.1", 0))
        other.listen()
        for words in ([address], ["127.0.0.1", str(other.getsockname()[1])]):
            output = sandbox.run(
                [sys.executable, "-c", script, *words],
                folders,
                max_s=60,
                max_bytes=1000,
            )
            assert output.status == 1, output
            assert b"Error" in output.errors
        for each in (one, other):
            each.setblocking(False)
            with pytest.raises(BlockingIOError):
                each.accept()


def processes(number: str) -> list[int]:
    """Return the processes that have a number as an argument."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            if number.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


@pytest.fixture
def number() -> str:
    """Return a number of seconds, which no other test sleeps."""
    return f"86400.{time.monotonic_ns()}"


ENDLESS = {
    "it hangs": "sleep {0}",
    "it ignores signals": "trap '' TERM HUP INT; while :; do sleep {0}; done",
    "its output has no end": "yes {0}",
    "it starts many": "for i in $(seq 99); do sleep {0} & done; wait",
    "it becomes a daemon": "setsid sh -c 'trap \"\" TERM; (sleep {0} &)' & sleep {0}",
    "it fills the disk": "sleep {0} & while :; do cat /proc/self/environ; done >> full",
}


@pytest.mark.parametrize("script", ENDLESS.values(), ids=ENDLESS)
def test_a_program_can_be_stopped(
    sandbox: Sandbox, folders: Confinement, script: str, number: str
) -> None:
    """When a stopped command returns, none of its processes is left."""
    with pytest.raises(Cancelled):
        sandbox.run(
            ["sh", "-c", script.format(number)],
            folders,
            max_s=None,
            max_bytes=1000,
            cancel=lambda: bool(processes(number)),
        )
    assert processes(number) == []


def test_stop_while_bubblewrap_starts(
    folders: Confinement, number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that does not depend on its parent yet is ended too."""
    if not probe("bubblewrap").works:
        pytest.skip("no sandbox of this level works here")
    words = bubblewrap.command_line

    def independent(*args: Any, **options: Any) -> list[str]:
        return [word for word in words(*args, **options) if word != "--die-with-parent"]

    monkeypatch.setattr(bubblewrap, "command_line", independent)
    test_a_program_can_be_stopped(Sandbox("bubblewrap"), folders, "sleep {0}", number)


def test_no_process_outlives_a_program(sandbox: Sandbox, folders: Confinement, number: str) -> None:
    """What a command leaves in the background, in a session of its own, ends with it."""
    started = f"setsid sh -c 'touch started; exec sleep {number}'"
    script = f"{started} & until [ -e started ]; do :; done"
    assert shell(sandbox, f"({script}) >/dev/null", folders).status == 0
    assert processes(number) == []


CALLER = """
import sys
from pathlib import Path
from lcursor.process.sandbox import Confinement, Sandbox
_, level, folder, script = sys.argv
confinement = Confinement(Path(folder), Path(folder))
Sandbox(level).run(["sh", "-c", script], confinement, max_s=None, max_bytes=1000)
"""


def test_death_of_the_caller(sandbox: Sandbox, folders: Confinement, number: str) -> None:
    """Everything ends with the process that runs the command, even if that is killed."""
    script = f"setsid sleep {number} & sleep {number}"
    words = [sys.executable, "-c", CALLER, sandbox.level, str(folders.tree), script]
    with subprocess.Popen(words) as caller:
        try:
            wait_for(lambda: len(processes(number)) == 2, what="the command runs")
        finally:
            caller.kill()
    wait_for(lambda: not processes(number), what="the command ends")


EXCESSIVE = {
    "time": ("sleep 60", "stopped after 1 s"),
    "bytes": ("for i in $(seq 400); do head -c 1M /dev/zero > $i; done", "20 MiB"),
    "files": ("for i in $(seq 5000); do : > f$i; done; sleep 60", "1,000 files"),
    "processes": ("for i in $(seq 500); do sleep 60 & done; wait", ""),
}


@pytest.mark.parametrize(("script", "failure"), EXCESSIVE.values(), ids=EXCESSIVE)
def test_output_above_the_limit_is_dropped(
    sandbox: Sandbox, folders: Confinement, script: str, failure: str
) -> None:
    """A command that exceeds a limit is killed."""
    if failure == "1,000 files" and not os.statvfs(folders.tree).f_files:
        return  # this file system can have any number
    limits = Limits(growth_bytes=20 << 20, growth_files=1000, processes=100)
    max_s = 1 if failure.endswith(" s") else 50
    output = shell(sandbox, f"{script}; echo end", replace(folders, limits=limits), max_s)
    assert failure in output.failure
    assert output.failure
    assert b"end" not in output.data


SHARE = (
    "import mmap; shared = mmap.mmap(-1, 300 << 20); "
    "[shared.write(bytes(1 << 20)) for _ in range(300)]"
)
SHARES = {
    "mapped": SHARE,
    "held by a child": f"{SHARE}; import os; os.fork() or time.sleep(60); shared.close()",
    "without a page": f"{SHARE}; shared.madvise(mmap.MADV_DONTNEED)",
    "in files": (
        "import os; fds = [os.memfd_create('a') for _ in range(3)]; "
        "[os.write(fd, bytes(1 << 20)) for fd in fds * 100]"
    ),
}


@pytest.mark.parametrize("script", SHARES.values(), ids=SHARES)
def test_memory_that_processes_share_is_limited(
    sandbox: Sandbox, folders: Confinement, script: str
) -> None:
    limits = Limits(memory_bytes=128 << 20)
    command = f"{sys.executable} -c {shlex.quote(f'import time; {script}; time.sleep(60)')}"
    output = shell(sandbox, f"{command}; echo end", replace(folders, limits=limits), 50)
    assert output.failure == "stopped: its processes shared more than 128 MiB of memory"
    assert b"end" not in output.data
    generous = replace(folders, limits=Limits(memory_bytes=512 << 20))
    assert shell(sandbox, command.replace("sleep(60)", "sleep(0.1)"), generous, 50).status == 0


def test_memory_that_other_programs_share_is_not_counted(
    sandbox: Sandbox, folders: Confinement
) -> None:
    limits = Limits(memory_bytes=128 << 20)
    ended: list[Output] = []

    def run() -> None:
        ended.append(shell(sandbox, "touch begun; sleep 1", replace(folders, limits=limits), 50))

    thread = threading.Thread(target=run)
    thread.start()
    wait_for((folders.tree / "begun").exists, what="the command runs")
    with mmap.mmap(-1, 300 << 20) as shared:
        shared.write(bytes(300 << 20))
        thread.join()
    assert (ended[0].status, ended[0].failure) == (0, "")


def test_a_program_has_resource_limits(sandbox: Sandbox, folders: Confinement) -> None:
    """The limits hold in the command."""
    limits = Limits(memory_bytes=256 << 20, file_bytes=1 << 20, open_files=64)
    confined = replace(folders, limits=limits)
    assert shell(sandbox, "head -c 2000000 /dev/zero > big", confined).status
    assert (folders.tree / "big").stat().st_size == 1 << 20
    memory = f"{sys.executable} -c 'bytearray(300 << 20)'"
    assert b"MemoryError" in shell(sandbox, memory, confined).errors
    assert shell(sandbox, "ulimit -n", confined).data == b"64\n"


def test_a_missing_sandbox_is_reported(folders: Confinement, tmp_path: Path) -> None:
    """Without a sandbox nothing runs, and neither without a tree."""
    with pytest.raises(SandboxMissing):
        Sandbox("none").run(["true"], folders, max_s=1, max_bytes=1)
    gone = Confinement(tmp_path / "gone", tmp_path)
    with pytest.raises(SandboxFailed):
        Sandbox("bubblewrap").run(["true"], gone, max_s=1, max_bytes=1)
