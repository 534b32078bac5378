"""Run an action on a pretended machine, and report from outside what it changed or reached."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from evals.escapes import namespaces
from evals.escapes.baits import TCP_PORT, UDP_PORT, Baits, unix_sockets
from evals.escapes.namespaces import INTERNET, INTERNET6, Account
from lcursor.process.confine import DEATH_SIGNAL, call

Finding = Literal[
    "changed", "read", "reached", "killed", "outlives", "syscall", "typed", "unguarded", "failed",
    "processes", "memory", "disk", "time", "output", "hang",
]  # fmt: skip
MARK = "REACHED"
"""Printed by a script whose system call succeeded."""
OBJECT = re.compile(r"/[0-9a-f]{2}/[0-9a-f]{38}$|/\.git/objects/")
"""Git gives an object that it would write again a new time."""
SETTLE_S = 0.6
"""How long processes may take to end after the command."""
MAX_BYTES = 1 << 20
MAX_PROCESSES, MAX_MEMORY_BYTES = 500, 900 << 20
MAX_TREE_BYTES, MAX_TREE_FILES, MAX_FILE_BYTES = 200 << 20, 10_000, 1 << 30
"""More than these is found; above the limits of `runners.LIMITS`, which are polled."""
IDENTITY = {
    f"GIT_{who}_{what}": "a@example.org"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}
"""Variables with which git commits."""
Names = Mapping[str, str]
Action = Callable[[Names], tuple[bytes, set[Finding]]]
"""Gets the variables of the scripts; returns an output, and what it found itself."""


@dataclass(slots=True)
class Report:
    """What was seen from outside."""

    findings: set[Finding] = field(default_factory=set)
    details: list[str] = field(default_factory=list)
    output: str = ""
    failure: str = ""
    """Why the action did not run; "" if it ran."""


class Machine:
    """A pretended machine: files of a user with secrets, and a project of hers.

    Args:
        account: its user.
        files: text by path relative to the home, or absolute; `TOKEN` stands for a secret.
        project: files of the project, which are also in the tree.
    """

    def __init__(
        self, account: Account, files: Mapping[str, str], project: Mapping[str, str]
    ) -> None:
        self.account = account
        self.token = f"secret-{secrets.token_hex(8)}"
        self.home = Path.home()
        self.project = self.home / "project"
        data = self.home / ".local/share/lcursor"
        self.data = data
        self.run = data / "agents/project/run"
        self.runtime = Path(f"/run/user/{account.uid}")
        self.folder = Path(tempfile.mkdtemp(prefix="lcursor-escapes-"))
        self.folder.chmod(0o755)
        self._template, self._base = self.folder / "files", self.folder / "base"
        self._base.mkdir()
        trees = (self.project, self.run / "tree", data / "agents/project/other/tree")
        for tree in trees:
            self._write(tree, project)
        self._write(self.home, files)
        self._init_git()
        if not os.getuid():
            for path in (self._template, *self._template.rglob("*")):
                os.chown(path, account.uid, account.gid, follow_symlinks=False)

    def close(self) -> None:
        """Delete its files."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self, folder: Path, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self._template / str(folder / name).lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("TOKEN", self.token))

    def _init_git(self) -> None:
        project = self._template / str(self.project).lstrip("/")
        git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-C", str(project)]
        env = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.folder)}
        for words in (
            ("init", "-q", "-b", "main"),
            ("add", "-A"),
            ("commit", "-qm", "first"),
            ("config", "remote.origin.url", f"https://user:{self.token}@example.org/"),
        ):
            subprocess.run([*git, *words], check=True, env=env, capture_output=True)
        shutil.copytree(project / ".git", self._template / str(self.run / "git").lstrip("/"))
        config = self._template / str(self.run / "git/config").lstrip("/")
        config.write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")

    def names(self, baits: Baits) -> dict[str, str]:
        """Return the variables that scripts may use: paths and addresses, no secret."""
        sockets = unix_sockets(self.runtime, self.home)
        return {
            "H": str(self.home),
            "P": str(self.project),
            "D": str(self.data),
            "N": str(self.home / "plain"),
            "T": str(self.run / "tree"),
            "O": str(self.data / "agents/project/other/tree"),
            "E": str(baits.editor_pid),
            "A": str(baits.editor_address),
            "IP": INTERNET,
            "IP6": INTERNET6,
            "TCP": str(TCP_PORT),
            "UDP": str(UDP_PORT),
            "X": f"bash -c 'exec 3<>/dev/tcp/{INTERNET}/{TCP_PORT}'",
            **{
                "S_" + name.replace(" ", "_").replace("-", "_"): address
                for name, address in sockets.items()
                if not address.startswith("\0")
            },
        }

    def environment(self) -> dict[str, str]:
        """Return the environment of the user, with secrets in it."""
        sockets = unix_sockets(self.runtime, self.home)
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "USER": self.account.name,
            "XDG_RUNTIME_DIR": str(self.runtime),
            "NVIM": sockets["nvim"],
            "SSH_AUTH_SOCK": sockets["ssh-agent"],
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={sockets['D-Bus']}",
            "WAYLAND_DISPLAY": "wayland-0",
            "DISPLAY": ":0",
            "AWS_SECRET_ACCESS_KEY": self.token,
            "http_proxy": f"http://user:{self.token}@{INTERNET}:{TCP_PORT}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def do(
        self,
        action: Action,
        *,
        setup: str = "",
        max_s: float = 20.0,
        is_privileged: bool = False,
    ) -> Report:
        """Run an action on a new copy of the machine.

        Args:
            action: runs in a process of the user there.
            setup: bash that the user runs before, in the project; nobody watches what it changes.
            is_privileged: run it as root of the machine.

        Raises:
            OSError: the kernel allows no namespaces.
        """
        reader, writer = os.pipe()
        outer = os.fork()
        if not outer:
            os.close(reader)
            _leave(lambda: self._enter(writer, action, setup, max_s, is_privileged), writer)
        os.close(writer)
        try:
            data = _read(reader, time.monotonic() + max_s + 10)
        finally:
            os.close(reader)
            with contextlib.suppress(ProcessLookupError):
                os.kill(outer, signal.SIGKILL)
            os.waitpid(outer, 0)
        found = json.loads(data or b'{"error": "the machine did not answer"}')
        if "error" in found:
            raise OSError(found["error"])
        return Report(**{**found, "findings": set(found["findings"])})

    def _enter(
        self, writer: int, action: Action, setup: str, max_s: float, is_privileged: bool
    ) -> None:
        namespaces.enter()
        init = os.fork()
        if init:
            os.close(writer)
            os.waitpid(init, 0)
            return
        call("prctl", DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)  # so that the kernel ignores it for process 1
        _leave(lambda: self._be_init(writer, action, setup, max_s, is_privileged), writer)

    def _be_init(
        self, writer: int, action: Action, setup: str, max_s: float, is_privileged: bool
    ) -> None:
        account = self.account
        written = [f"/{path.relative_to(self._template)}" for path in self._template.rglob("*")]
        layers = namespaces.make_root(self._base, self._template, self.home, account)
        namespaces.make_network()
        Path("/run/user").mkdir()
        baits = Baits(account, self.runtime, self.home, self.token)
        names = self.names(baits)
        tree = str(self.run).lstrip("/")
        for path in written:  # so that a link to it, or a new time, adds nothing to the layers
            os.utime(path)
        if setup:
            self._prepare(setup, names)
        before = dict(_snapshot(layers, tree))
        reader, answer = os.pipe()
        runner = os.fork()
        if not runner:
            for number in (reader, writer, layers):
                os.close(number)
            _leave(lambda: self._act(answer, action, names, is_privileged), answer)
        os.close(answer)
        report = self._watch(runner, reader, baits, max_s)
        after = dict(_snapshot(layers, tree))
        changed = sorted(p for p in before.keys() | after if before.get(p) != after.get(p))
        if changed:
            report.findings.add("changed")
            report.details += changed[:3]
        if baits.reached:
            report.findings.add("reached")
            report.details += sorted(baits.reached)
        if not baits.has_editor():
            report.findings.add("killed")
        if self.token in report.output:
            report.findings.add("read")
        if MARK in report.output:
            report.findings.add("syscall")
        _write(writer, {**asdict(report), "findings": sorted(report.findings)})

    def _prepare(self, setup: str, names: Names) -> None:
        """Let the user prepare the machine."""

        def run() -> None:
            namespaces.become(self.account)
            env = {**self.environment(), **IDENTITY, **names}
            subprocess.run(["bash", "-c", setup], cwd=self.project, env=env, check=False)

        child = os.fork()
        if not child:
            _leave(run, os.open(os.devnull, os.O_WRONLY))
        os.waitpid(child, 0)

    def _act(self, answer: int, action: Action, names: Names, is_privileged: bool) -> None:
        sys.dont_write_bytecode = True
        environment = self.environment()
        os.environ.clear()
        os.environ.update(environment)
        os.umask(0o022)
        if not is_privileged:
            namespaces.become(self.account)
        os.chdir(self.home)
        output, findings = action(names)
        text = output[:MAX_BYTES].decode(errors="replace")
        _write(answer, {"output": text, "findings": sorted(findings)})

    def _watch(self, runner: int, reader: int, baits: Baits, max_s: float) -> Report:
        """Wait until the action and all its processes have ended."""
        ends = time.monotonic() + max_s
        own = {os.getpid(), baits.editor_pid}
        data, peak_processes, peak_bytes = b"", 0, 0
        is_open, settled = True, 0.0
        while True:
            baits.look(5)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            others = {pid: size for pid, size in _processes() if pid not in own}
            peak_processes = max(peak_processes, len(others))
            peak_bytes = max(peak_bytes, sum(others.values()))
            while is_open and select.select([reader], [], [], 0)[0]:
                block = os.read(reader, 1 << 16)
                data += block
                is_open = bool(block)
            now = time.monotonic()
            if now > ends:
                break
            if not is_open:
                settled = settled or now + SETTLE_S
                if not others or now > settled:
                    break
        baits.look(0)
        found = json.loads(data or "{}")
        report = Report(set(found.get("findings", ())), output=found.get("output", ""))
        report.failure = found.get("error", "")
        sizes = list(_sizes(self.run / "tree"))
        if sum(size for size, _ in sizes) > MAX_TREE_BYTES or len(sizes) > MAX_TREE_FILES:
            report.findings.add("disk")
        if max(length for _, length in sizes) > MAX_FILE_BYTES:
            report.findings.add("disk")
        if peak_processes > MAX_PROCESSES:
            report.findings.add("processes")
        if peak_bytes > MAX_MEMORY_BYTES:
            report.findings.add("memory")
        if others:
            report.findings.add("outlives")
        if now > ends:
            report.findings.add("hang")
        return report


def _leave(work: Callable[[], None], writer: int) -> None:
    """Do the work of a forked process, report its failure, and end it."""
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001 root of a process
        with contextlib.suppress(OSError):
            _write(writer, {"error": traceback.format_exc(limit=-3)})
    finally:
        os._exit(status)


def _write(number: int, value: object) -> None:
    data = json.dumps(value).encode()
    while data:
        data = data[os.write(number, data) :]


def _read(number: int, ends: float) -> bytes:
    data = b""
    while select.select([number], [], [], max(0.0, ends - time.monotonic()))[0]:
        block = os.read(number, 1 << 16)
        if not block:
            break
        data += block
    return data


def _processes() -> Iterator[tuple[int, int]]:
    """Yield the processes of this namespace with their resident bytes, without files."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            pages = 0
            with contextlib.suppress(OSError):
                _, resident, shared, *_ = Path(f"/proc/{name}/statm").read_text().split()
                pages = int(resident) - int(shared)
            yield int(name), pages * 4096


def _sizes(folder: Path) -> Iterator[tuple[int, int]]:
    """Yield the bytes on disk and the length of all files; first those of the folder."""
    yield 0, 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                found = os.lstat(f"{parent}/{name}")
                yield found.st_blocks * 512, found.st_size


def _snapshot(layers: int, tree: str) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield the state of each file outside of the tree that can have been written."""
    base = f"/proc/self/fd/{layers}/"
    home = tree.split("/.local")[0]
    skipped = f"layer-{home.replace('/', '-')}/.local{tree.removeprefix(home + '/.local')}"
    for parent, folders, names in os.walk(base):
        short = parent[len(base) :]
        if short == skipped or short.startswith("work-"):
            folders.clear()
            continue
        for name in [*folders, *names]:
            path = f"{parent}/{name}"
            with contextlib.suppress(OSError):
                found = os.lstat(path)
                state: tuple[object, ...] = (found.st_mode, found.st_uid, found.st_gid)
                if stat.S_ISREG(found.st_mode):
                    content = Path(path).read_bytes() if found.st_size < MAX_BYTES else b""
                    digest = hashlib.sha256(content).hexdigest()
                    changed_ns = 0 if OBJECT.search(path) else found.st_mtime_ns
                    state += (found.st_size, changed_ns, digest)
                elif stat.S_ISLNK(found.st_mode):
                    state += (os.readlink(path),)
                yield f"{short}/{name}", state
