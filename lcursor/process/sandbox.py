"""Run commands that a model wrote, or that run code of a model, confined by the operating system.

    sandbox = open_sandbox()
    sandbox.run(["make", "test"], Confinement(tree, root), max_s=60, max_bytes=1 << 20)

The command sees the system's programs and a writable copy of the project, at the project's own
path. It sees no other file of the user, has no network, and none of its processes outlives it. The
levels differ in the mechanism, strongest first:

- `bubblewrap`: a program of the distribution makes namespaces, in which only these files exist;
- `unshare`: our own launcher (`confine.py`) makes them;
- `landlock`: without namespaces. Landlock and a stricter filter of system calls deny what the
  others hide: the copy stays at its own path, no socket can be opened, `chmod` fails, and only
  `$TMPDIR` takes temporary files;
- `none`: nothing runs. It is the only one on other systems than Linux.
"""

from __future__ import annotations

import contextlib
import json
import marshal
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final, Literal

from lcursor import system
from lcursor.errors import SandboxFailed, SandboxMissing
from lcursor.process import bubblewrap, confine, mounts, run, seccomp
from lcursor.process.relay import NO_NETWORK, Network, Relay, interpreter_folders
from lcursor.process.run import Cancel, Output
from lcursor.process.visibility import home
from lcursor.process.watch import Watch

Level = Literal["bubblewrap", "unshare", "landlock", "none"]

LEVELS: Final[tuple[Level, ...]] = ("bubblewrap", "unshare", "landlock")
SWITCHES: Final = (
    (
        "kernel.apparmor_restrict_unprivileged_userns",
        "1",
        # Allows bubblewrap what Ubuntu forbids, and no other program.
        "sudo apt install apparmor-profiles"
        " && sudo cp /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/"
        " && sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict",
    ),
    ("user.max_user_namespaces", "0", "sudo sysctl user.max_user_namespaces=9999"),
    (
        "kernel.unprivileged_userns_clone",
        "0",
        "sudo sysctl kernel.unprivileged_userns_clone=1",
    ),
)
"""Settings of the kernel that forbid namespaces: name, value, and the command that helps."""
CONTAINERS: Final = ("/.dockerenv", "/run/.containerenv")
INSTALLERS: Final = {
    "apt": "sudo apt install",
    "dnf": "sudo dnf install",
    "pacman": "sudo pacman -S",
    "zypper": "sudo zypper install",
    "apk": "sudo apk add",
}
PROBE_S: Final = 10.0
END_S: Final = 2.0
"""How long `run` waits for processes that were killed."""
NICE: Final = 10
STARTERS: Final = (b"bwrap: ", confine.FAILED)
"""How the messages of a sandbox begin that cannot be set up."""
FAILED: Final = "The sandbox cannot be set up: "
HELP: Final = (
    "Run python -m lcursor sandbox check, which names the command that helps"
    if system.IS_LINUX
    else "lcursor has a sandbox on Linux only"
)
WITHOUT: Final = (
    "agents ask before each command, checks once in each project; servers with tools (MCP) and"
    " agents of others do not start"
)
"""What holds at the level `none`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources of a command. Those of memory, processor and files are for each process."""

    memory_bytes: int = 4 << 30
    """Also the limit of what all processes share without a file."""
    file_bytes: int = 1 << 30
    open_files: int = 4096
    cpu_s: int = 3600
    processes: int = 1024
    """Of all, as the next two."""
    growth_bytes: int = 2 << 30
    """What the files written may take on disk."""
    growth_files: int = 200_000


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a command may touch."""

    tree: Path
    """The writable folder on disk."""
    root: Path
    """The path at which the command sees it: that of the user's project."""
    read_only: tuple[tuple[Path, Path], ...] = ()
    """Folders of our own to show, as pairs of their path on disk and for the command."""
    packages: tuple[Path, ...] = ()
    """Folders and files of the user's project to show, at their own path. Links are not followed.
    `visibility` decides about them and about `readable`."""
    readable: tuple[Path, ...] = ()
    """Folders and files that the user chose in the settings."""
    writable: tuple[Path, ...] = ()
    """Folders that the user chose to be written to, except for each `.git` that is in them."""
    private: tuple[Path, ...] = ()
    """Folders of our own to be written to."""
    environments: tuple[Path, ...] = ()
    """See `mounts.environments`."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables in addition to the fixed ones."""
    limits: Limits = Limits()
    secrets: tuple[str, ...] = ()
    """Globs of files that are covered in `packages` and `readable`."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether a level of the sandbox works here."""

    level: Level
    works: bool
    output: str = ""
    """What the attempt printed if it failed."""
    fix: str = ""
    """The command or step that helps."""


@dataclass(frozen=True, slots=True)
class Running:
    """A program that runs."""

    process: subprocess.Popen[bytes]
    watch: Watch


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A command line with what it needs."""

    words: Sequence[str]
    env: Mapping[str, str]
    fds: Sequence[int]
    """To pass."""
    watch: Watch
    passed: contextlib.ExitStack
    """Closes `fds`; done on leaving, too."""


class Sandbox:
    """A way to run commands confined. Thread: any."""

    def __init__(self, level: Level) -> None:
        self.level = level

    def run(
        self,
        command: Sequence[str],
        confinement: Confinement,
        *,
        cwd: Path | None = None,
        max_s: float | None,
        max_bytes: int,
        cancel: Cancel | None = None,
    ) -> Output:
        """Run a command to its end, and end all its processes.

        Args:
            command: the program and its arguments; no shell.
            cwd: working directory, as the command sees it; `visible_path` by default.
            max_bytes: limit of standard output, and of standard error; the rest is dropped.

        Raises:
            Cancelled: `cancel` returned true.
            SandboxMissing: the level is "none".
            SandboxFailed: the sandbox could not be set up.
        """
        with self._prepared(command, confinement, cwd) as prepared:
            output = run.run(
                prepared.words,
                Path("/"),
                env=prepared.env,
                max_bytes=max_bytes,
                max_error_bytes=max_bytes,
                drops_excess=True,
                max_s=max_s,
                pass_fds=prepared.fds,
                exceeded=prepared.watch.exceeded,
                cancel=cancel,
            )
        if output.status is None or (output.status and output.errors.startswith(STARTERS)):
            raise SandboxFailed(f"{FAILED}{output.failure}")
        return output

    @contextlib.contextmanager
    def start(
        self,
        command: Sequence[str],
        confinement: Confinement,
        *,
        cwd: Path | None = None,
        network: Network = NO_NETWORK,
    ) -> Iterator[Running]:
        """Start a program with the standard streams of this process; end all of it on leaving.

        Call it on a thread that lives as long: the program ends with it.

        Args:
            network: what it may connect to.

        Raises:
            SandboxMissing: the level is "none", or has no network to give.
            SandboxFailed: the sandbox could not be set up.
        """
        with contextlib.ExitStack() as stack:
            words, fds = list(command), list[int]()
            relay = None
            if network != NO_NETWORK:
                if self.level == "landlock":
                    raise SandboxMissing("The sandbox that works here gives no network", HELP)
                relay = stack.enter_context(Relay(network))
                words, fds = relay.wrap(words), [relay.inner]
                shown = [
                    (each, each) for each in interpreter_folders() if not mounts.is_system(each)
                ]
                confinement = replace(
                    confinement,
                    env={**relay.env, **confinement.env},
                    read_only=(*confinement.read_only, *shown),
                )
            prepared = stack.enter_context(self._prepared(words, confinement, cwd))
            process = subprocess.Popen(
                prepared.words, cwd="/", env=prepared.env, pass_fds=[*prepared.fds, *fds]
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            prepared.passed.close()
            if relay is not None:
                relay.serve()
            yield Running(process, prepared.watch)

    @contextlib.contextmanager
    def _prepared(
        self, command: Sequence[str], confinement: Confinement, cwd: Path | None
    ) -> Iterator[_Prepared]:
        """Prepare a command, and wait for its last process on leaving.

        Raises:
            SandboxMissing: the level is "none".
            SandboxFailed: the sandbox could not be set up.
        """
        if self.level == "none":
            raise SandboxMissing("No sandbox works on this machine, so this was not run", HELP)
        if not confinement.tree.is_dir():
            raise SandboxFailed(f"The folder {confinement.tree} is missing")
        limits, writable = confinement.limits, [confinement.tree]
        with contextlib.ExitStack() as stack, contextlib.ExitStack() as passed:
            try:
                if self.level == "landlock":
                    temporary = tempfile.TemporaryDirectory(prefix="lcursor-run-")
                    writable.append(Path(stack.enter_context(temporary)))
                words, variables, fds = self._prepare(
                    [*_limited(limits, is_mapped=self.level != "landlock"), *command],
                    confinement,
                    str(cwd or self.visible_path(confinement)),
                    writable,
                    stack,
                    passed,
                )
            except OSError as error:
                raise SandboxFailed(f"{FAILED}{error}") from error
            watch = Watch(
                [*writable, *confinement.writable, *confinement.private],
                max_bytes=limits.growth_bytes,
                max_files=limits.growth_files,
                max_processes=limits.processes,
                max_shared_bytes=limits.memory_bytes,
            )
            yield _Prepared(words, variables, fds, watch, passed)

    def visible_path(self, confinement: Confinement) -> Path:
        """Return the path at which commands see the tree."""
        return confinement.tree if self.level == "landlock" else confinement.root

    def _prepare(
        self,
        command: Sequence[str],
        confinement: Confinement,
        cwd: str,
        writable: Sequence[Path],
        stack: contextlib.ExitStack,
        passed: contextlib.ExitStack,
    ) -> tuple[list[str], dict[str, str], tuple[int, int]]:
        """Return the command line, its environment, and the file descriptors to pass.

        Args:
            writable: the tree, and at the level `landlock` a folder for temporary files.
            stack: left after the end of the last process.
            passed: left after the end of the command.
        """
        search_path = os.environ.get("PATH", "")
        seen = mounts.all_mounts(
            confinement.tree,
            confinement.root,
            confinement.read_only,
            confinement.packages,
            confinement.readable,
            search_path,
            confinement.environments,
            confinement.writable,
            confinement.private,
            confinement.secrets,
            can_cover=self.level != "landlock",
        )
        variables = mounts.variables(seen, confinement.env, search_path)
        if self.level == "landlock":
            seen.append(mounts.Mount("write", str(writable[1]), str(writable[1])))
            variables |= {"HOME": str(writable[1]), "TMPDIR": str(writable[1])}
            for folder, root in ((writable[1], home()), (writable[0], confinement.root)):
                stack.enter_context(mounts.linked(seen, folder, root))
        else:
            seen = mounts.with_mount_points(seen, confinement.tree, confinement.root)
        code = seccomp.make_filter(platform.machine(), is_mapped=self.level != "landlock")
        info, info_fd = os.pipe()
        stack.callback(os.close, info)
        stack.callback(_wait_for_end, info, kills=self.level == "bubblewrap")
        passed.callback(os.close, info_fd)
        size_bytes = confinement.limits.file_bytes
        if self.level == "bubblewrap":
            fd = _file_of(code, passed)
            words = bubblewrap.command_line(
                bubblewrap.find(),
                seen,
                command,
                cwd=cwd,
                filter_fd=fd,
                info_fd=info_fd,
                size_bytes=size_bytes,
            )
            return words, variables, (fd, info_fd)
        plan = {
            "is_mapped": self.level == "unshare",
            "mounts": [(each.kind, each.target, each.source) for each in seen],
            "command": command,
            "cwd": cwd,
            "filter": code,
            "info_fd": info_fd,
            "parent": os.getpid(),
            "size_bytes": size_bytes,
            "nice": str(NICE),
        }
        fd = _file_of(marshal.dumps(plan), passed)
        return confine.command_line(fd), variables, (fd, info_fd)


def _wait_for_end(info: int, *, kills: bool) -> None:
    """Wait until the last process has ended.

    Args:
        info: a descriptor with the id of the process that all others end before.
        kills: end that process. If bubblewrap is killed while it starts, the child stays alive
            when it has left its process group, but does not depend on its parent yet.
    """
    with contextlib.suppress(ValueError):  # never started
        system.wait_for_end(json.loads(os.read(info, 4096))["child-pid"], END_S, kills=kills)


def _file_of(data: bytes, stack: contextlib.ExitStack) -> int:
    """Return the descriptor of a file in memory."""
    fd = system.memory_file()
    stack.callback(os.close, fd)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _limited(limits: Limits, *, is_mapped: bool) -> list[str]:
    """Return a prefix for a command that sets its limits, in terms of any POSIX shell.

    A high `oom_score_adj` lets the kernel end it first when memory runs out. Where sessions are
    weighed against each other (autogroup), `nice` alone would have no effect.
    """
    # Without a namespace, all processes of the user count.
    processes = limits.processes + (0 if is_mapped else system.threads_of_user())
    script = (
        f"{{ ulimit -c 0; ulimit -d {limits.memory_bytes >> 10}; ulimit -f {limits.file_bytes >> 9}"
        f"; ulimit -n {limits.open_files}; ulimit -t {limits.cpu_s}"
        f"; ulimit -u {processes} || ulimit -p {processes}"
        f"; echo 1000 >{system.OOM_SCORE}; echo {NICE} >{system.AUTOGROUP}; }} 2>/dev/null"
        f'; exec nice -n {NICE} "$@"'
    )
    return ["/bin/sh", "-c", script, "sh"]


@cache
def open_sandbox() -> Sandbox:
    """Return the strongest sandbox that works here.

    The first call tries the levels, which takes up to 0.1 s; the result holds for this process.
    """
    return Sandbox(next((each for each in LEVELS if probe(each).works), "none"))


def probe_all() -> list[Probe]:
    """Try each level."""
    return [probe(each) for each in LEVELS]


def probe(level: Level) -> Probe:
    """Try a level with the command line of every command, running `true`."""
    if not system.IS_LINUX:
        return Probe(level, False, "it needs Linux")
    if platform.machine() not in seccomp.ARCHITECTURES:
        return Probe(level, False, f"it is not made for {platform.machine()}")
    if level == "bubblewrap" and not bubblewrap.find():
        return Probe(level, False, "bwrap is missing from the system's folders", _installation())
    version = confine.landlock_version()
    if level == "landlock" and version < confine.MIN_LANDLOCK:
        output = f"the kernel has version {version} of Landlock, not {confine.MIN_LANDLOCK}"
        return Probe(level, False, output, "Use Linux 6.12 or newer, with Landlock enabled")
    with tempfile.TemporaryDirectory(prefix="lcursor-probe-") as folder:
        confinement = Confinement(Path(folder), Path(folder))
        try:
            output = (
                Sandbox(level).run(["true"], confinement, max_s=PROBE_S, max_bytes=1 << 12).failure
            )
        except SandboxFailed as error:
            output = error.message.removeprefix(FAILED)
    return Probe(level, not output, output, _fix(output) if output else "")


def _installation() -> str:
    """Return the command that installs bubblewrap here."""
    for program, words in INSTALLERS.items():
        if shutil.which(program):
            return f"{words} bubblewrap"
    return "Install bubblewrap"


def _fix(output: str) -> str:
    """Return what helps against a failure of namespaces."""
    if "nknown option" in output:
        return "Update bubblewrap to version 0.8 or newer"
    for name, value, fix in SWITCHES:
        if system.kernel_setting(name) == value:
            return fix
    if any(Path(each).exists() for each in CONTAINERS):
        return "Let the container create namespaces: docker run --security-opt seccomp=unconfined"
    return "Let users create namespaces: see user_namespaces(7)"
