"""Run a script on the pretended machine: in the sandbox, or without it as the control."""

from __future__ import annotations

import array
import fcntl
import os
import pty
import select
import socket
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from string import Template

from evals import policy_escapes
from evals.escapes.attempts import (
    LEAKED_FILE,
    LEAKED_FOLDER,
    LEAKED_SOCKET,
    PRELUDE,
    Attempt,
)
from evals.escapes.baits import PYTHON
from evals.escapes.host import IDENTITY, MAX_BYTES, Finding, Names
from lcursor.agent.result import file_changes
from lcursor.config import AgentConfig
from lcursor.errors import LcursorError
from lcursor.process.sandbox import Confinement, Level, Limits, Sandbox
from lcursor.workspace.tree import Tree

Runner = Callable[[Attempt, Level | None, Names], tuple[bytes, set[Finding]]]
"""Makes an attempt at a level; None is the control. Returns its output, and what it found."""
LIMITS = Limits(
    memory_bytes=256 << 20,
    file_bytes=16 << 20,
    open_files=256,
    processes=100,
    growth_bytes=64 << 20,
    growth_files=5000,
)
"""Of attempts, smaller than usual."""
CONTROL_S = 4.0
WORK_S = 120.0
REJECTED = "rejected: "
"""Printed where the sandbox did not start the command."""
_CARELESS = """
git add -A; git status; git diff; git diff HEAD; git commit -qm x
for d in */; do git -C $d status; done
"""
"""What a host without precautions does with the files of an agent."""


def copy(names: Names, root: str = "P", readable: tuple[str, ...] = ()) -> tuple[Tree, Confinement]:
    """Copy a project for an agent; return the copy, and what commands may touch.

    Args:
        root: variable with the project.
        readable: the setting `agent.readable`.
    """
    tree = Tree.create(Path(names[root]), Path(names["T"]).parent / "copy", unsaved={})
    confinement = tree.confinement(AgentConfig(readable=readable))
    return tree, replace(confinement, env={**names, **IDENTITY})


def words(script: str) -> list[str]:
    """Return the command that runs a script."""
    if script.startswith("#py"):
        return [PYTHON, "-I", "-S", "-c", PRELUDE + script[3:]]
    return ["bash", "-c", script]


def attempt(attempt: Attempt, level: Level | None, names: Names) -> tuple[bytes, set[Finding]]:
    """Make an attempt; None as the level is the control."""
    started = time.monotonic()
    _leak(names)
    # Its end sends SIGHUP to the processes in it, so other attempts run without.
    terminal = _open_terminal() if attempt.expects == "typed" else -1
    scripts = list(filter(None, (attempt.script, attempt.second)))
    if level is None:
        output = b"".join(_freely(attempt, script, names) for script in scripts)
    else:
        _, confinement = copy(names)
        output = b"".join(
            _confined(attempt, script, level, confinement, names) for script in scripts
        )
    findings: set[Finding] = set()
    if terminal >= 0 and select.select([terminal], [], [], 0)[0]:
        findings.add("typed")
    if time.monotonic() - started > attempt.max_s + 2:
        findings.add("time")
    if len(output) > 2 * MAX_BYTES:
        findings.add("output")
    return output, findings


def handoff(attempt: Attempt, level: Level | None, names: Names) -> tuple[bytes, set[Finding]]:
    """Make an attempt in a copy of a project; then do what a host does with the files."""
    root = attempt.cwd or "P"
    if level is None:
        freely = {**names, "EDITOR": str(Path(sys.executable).with_name("nvim"))}
        scripts = (attempt.script, attempt.opens or _CARELESS)
        done = [_freely(replace(attempt, cwd=root), script, freely) for script in scripts]
        return b"".join(done), set()
    tree, confinement = copy(names, root)
    output = _confined(replace(attempt, cwd=""), attempt.script, level, confinement, names)
    tree.checkpoint()
    offered = {file.path: file.is_guarded for file in file_changes(tree).files}
    tree.restore(tree.base)
    path = f"{names[root]}/{attempt.guards}"
    is_careless = attempt.guards and not offered.get(path, True)
    return output, {"unguarded"} if is_careless else set()


def project(attempt: Attempt, level: Level | None, names: Names) -> tuple[bytes, set[Finding]]:
    """Make an attempt in a project that its setup has prepared; the control, in the project itself.

    A project that cannot be copied is no escape, but what the error says may be one.
    """
    if attempt.path:
        first = Template(attempt.path).substitute(names)
        os.environ["PATH"] = f"{first}:{os.environ['PATH']}"
    if level is None:
        return _freely(replace(attempt, cwd="P"), attempt.script, names), set()
    readable = (Template(attempt.readable).substitute(names),) if attempt.readable else ()
    try:
        _, confinement = copy(names, readable=readable)
    except LcursorError as error:
        return f"{REJECTED}{error}".encode(), set()
    return _confined(attempt, attempt.script, level, confinement, names), set()


def policy(attempt: Attempt, level: Level | None, names: Names) -> tuple[bytes, set[Finding]]:
    """Let a command ask for permission; without a policy, it runs."""
    tried = next(each for each in policy_escapes.ATTEMPTS if each.name == attempt.name)
    found = policy_escapes.attempt(tried, Path(names["T"]).parent / "policy")
    runs = found.control == "works" if level is None else found.is_escaped
    return b"", {"changed"} if runs else set()


def _confined(
    attempt: Attempt, script: str, level: Level, confinement: Confinement, names: Names
) -> bytes:
    try:
        done = Sandbox(level).run(
            words(script),
            replace(confinement, limits=LIMITS),
            cwd=Path(names[attempt.cwd]) if attempt.cwd else None,
            max_s=attempt.max_s,
            max_bytes=MAX_BYTES,
        )
    except LcursorError as error:
        return f"{REJECTED}{error}".encode()
    return done.data + done.errors


def _freely(attempt: Attempt, script: str, names: Names) -> bytes:
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            words(script),
            cwd=names[attempt.cwd or "T"],
            env={**os.environ, **IDENTITY, **names},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            close_fds=False,
        )
        try:
            process.wait(attempt.max_s + CONTROL_S)
        except subprocess.TimeoutExpired:
            process.kill()
        output.seek(0)
        return output.read()


def _leak(names: Names) -> None:
    """Leave open what a careless caller might."""
    secret = os.open(f"{names['H']}/.netrc", os.O_RDONLY)
    here, there = socket.socketpair()
    here.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [secret]))])
    os.set_inheritable(os.dup2(secret, LEAKED_FILE), True)
    os.dup2(os.open(names["H"], os.O_RDONLY | os.O_DIRECTORY), LEAKED_FOLDER)
    os.dup2(there.detach(), LEAKED_SOCKET)
    here.detach()


def _open_terminal() -> int:
    """Make a terminal that controls this process and its children."""
    os.setsid()
    _, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    return terminal


def work(workload: Attempt, level: Level | None, names: Names) -> tuple[bytes, set[Finding]]:
    """Do ordinary work with the usual limits."""
    assert level
    _, usual = copy(names)
    environment = (Path(sys.prefix), usual.root / ".venv")
    done = Sandbox(level).run(
        ["bash", "-e", "-c", workload.script],
        replace(usual, read_only=(*usual.read_only, environment), env={}),
        max_s=WORK_S,
        max_bytes=MAX_BYTES,
    )
    output = done.data + done.errors + done.failure.encode()
    return output, {"failed"} if done.status else set()
