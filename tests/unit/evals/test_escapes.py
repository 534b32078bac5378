"""Escapes from the sandbox: a part of `python -m lcursor eval sandbox`, which has them all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from evals.escapes.attempts import all_attempts
from evals.escapes.workloads import WORKLOADS
from lcursor.drive.editor import ROOT
from lcursor.process.sandbox import open_sandbox

GROUPS = {
    "writes": 14, "reads": 14, "links": 14, "git": 16, "processes": 12, "sockets": 12,
    "network": 14, "kernel": 14, "resources": 10, "tools": 14, "policy": 16,
    "history": 34, "mounts": 37, "programs": 9,
}  # fmt: skip
INCIDENTS = (
    "CVE-2026-50548", "CVE-2026-50549", "CVE-2026-39861", "CVE-2026-25724", "CVE-2026-25725",
    "CVE-2026-26268", "CVE-2026-48124", "CVE-2026-22708", "CVE-2025-55284",
)  # fmt: skip
SOME = (
    "CVE-", "~/.ssh", "the user's checkout by its path", "rename to outside", "environment of",
    "magic link", "open in the caller", "a link that changes meanwhile", "daemon", "kill -1",
    "Neovim", "inherited descriptors", "on the machine's loopback", "32-bit", "typing into",
    "huge file", "an earlier commit", "the place of which", "tag of a file", "tracked link vendor",
    "objects borrowed from the home", "pyvenv.cfg of ~/.local", "shims in the home",
    "socket of the Nix daemon", "socket in agent.readable", "memory of another program",
    "command line of the editor",
)  # fmt: skip
WORK = ("asyncio", "SQLite", "git status", "shared memory", "executable script")


def run(*words: str) -> dict[str, Any]:
    """Return what the command says, even if something escapes."""
    command = [sys.executable, "-m", "lcursor", "eval", "sandbox", "--json", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_the_attempts_are_230_and_contain_each_known_incident() -> None:
    attempts = list(all_attempts())
    assert Counter(each.group for each in attempts) == GROUPS
    assert len({(each.group, each.name) for each in attempts}) == sum(GROUPS.values()) == 230
    for number in INCIDENTS:
        assert any(number in each.name for each in attempts), number


@pytest.mark.timeout(300)  # about 80 processes one after the other, on a busy machine
def test_no_attempt_escapes_from_the_strongest_sandbox_and_each_succeeds_without_one() -> None:
    level = open_sandbox().level
    assert level != "none"
    names = [word for name in (*SOME, *WORK) for word in ("--name", name)]
    found = run("--level", level, "--account", "user", *names)
    if any("no namespace can be made" in line for line in found["missing"]):
        pytest.skip("mounting is not allowed here")
    assert found["wrong"] == []
    count = sum(any(n.lower() in each.name.lower() for n in SOME) for each in all_attempts())
    assert found["attempts"] == found["controls"] == {level: {"user": count}}
    assert found["escapes"] == {level: {"user": 0}}
    assert found["workloads"] == {level: {"user": len(WORK)}}
    assert all(any(n in each.name for each in WORKLOADS) for n in WORK)
