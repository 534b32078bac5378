"""Attempts to run a command without approval: by tricks of the shell, and in random sequences.

An attempt escapes if it is allowed and then creates a file. Its control runs it without any policy,
which must create the file: an attempt that cannot succeed proves nothing.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from lcursor.agent.approvals import COMMAND, ESCALATE, Approvals
from lcursor.agent.records import Policy, ToolCall, Verdict
from lcursor.agent.shell_rules import ShellRules
from lcursor.agent.tools import edit
from lcursor.config import AgentConfig
from lcursor.process.run import run
from lcursor.protocol.agent import AgentChoice

CANARY: Final = "canary"
MAX_S: Final = 20.0
RULES: Final = ShellRules.of(
    AgentConfig(allow=("make test", "git status", "echo"), forbid=("curl", "git push"))
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A command that creates the file `canary`."""

    name: str
    command: str
    program: str = ""
    """A program that it needs; "" for those of every machine."""
    verdict: Verdict = "ask"
    """The right decision with the policy "ask" and without a sandbox."""
    answered: tuple[str, AgentChoice] | None = None
    """A command before it, and the user's answer."""
    created: str = CANARY


ATTEMPTS: Final = (
    Attempt("quotes", "t''ou\"ch\" canary"),
    Attempt("$IFS", "touch${IFS}canary"),
    Attempt("alias", "shopt -s expand_aliases\nalias echo=touch\necho canary"),
    Attempt("function", 'echo() { touch "$1"; }; echo canary'),
    Attempt("command", "command touch canary"),
    Attempt("env -S", 'env -S "touch canary"'),
    Attempt("busybox", "busybox touch canary", "busybox"),
    Attempt("xargs", "echo canary | xargs touch"),
    Attempt("find -exec", 'find . -maxdepth 0 -exec touch canary ";"'),
    Attempt("git -c", "git -c alias.x='!touch canary' x", "git"),
    Attempt("here-document", "cat <<E | bash\ntouch canary\nE"),
    Attempt("eval", 'eval "touch canary"'),
    Attempt("base64", "echo dG91Y2ggY2FuYXJ5 | base64 -d | bash"),
    Attempt("10,000 characters", f"echo {'a' * 10_000}; touch canary"),
    Attempt(
        "CVE-2026-22708: approval of another folder",
        "cd sub && touch canary",
        answered=("touch canary", "run"),
        created="sub/canary",
    ),
    Attempt(
        "rejected, with a blank",
        "touch  canary",
        verdict="forbid",
        answered=("touch canary", "reject"),
    ),
)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of an attempt."""

    name: str
    verdict: Verdict
    is_escaped: bool
    control: Literal["works", "fails", "skipped"]
    """"skipped" if its program is not installed."""


def attempt(one: Attempt, folder: Path) -> Result:
    """Try an attempt with the policy "ask" and no sandbox, and its control.

    Args:
        folder: an empty one.
    """
    answers = Approvals("ask", "none", RULES, folder / "tried")
    if one.answered:
        command, choice = one.answered
        answers.remember(ToolCall(COMMAND, {"command": command}), choice)
    verdict = answers.decide(ToolCall(COMMAND, {"command": one.command})).verdict
    is_escaped = verdict == "allow" and _creates(one, folder / "tried")
    if one.program and not shutil.which(one.program):
        return Result(one.name, verdict, is_escaped, "skipped")
    works = _creates(one, folder / "control")
    return Result(one.name, verdict, is_escaped, "works" if works else "fails")


def _creates(one: Attempt, folder: Path) -> bool:
    (folder / "sub").mkdir(parents=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_DIR": str(folder / "none")}
    run(["bash", "-c", one.command], folder, env=env, max_s=MAX_S)
    return (folder / one.created).exists()


# Random sequences of calls. Each command is made of pieces of a known class, so that the right
# answer is known without the code under test.

_SAFE = ("ls", "cat a.txt", "echo 'x y'", "make test -j2", "git status", "sed -n 1,5p a.txt")
_UNSAFE = (
    "rm -rf sub", "touch canary", "cat /etc/passwd", "make", "git -c a=b status", "./make test",
    "cat ../x", "cat .env", "sed -i s/a/b/ a.txt", "find . -delete", "env ls", "xargs rm", "cd ..",
    "bash -c ls", "cat .e*", "ls ~", "uniq a.txt b.txt", "cat link", "git  log", "grep -r a /etc",
)  # fmt: skip
_FORBIDDEN = ("curl x", "git push", "git -C . push origin", "/usr/bin/curl x")
_JOINS = (" && ", " || ", "; ", " | ", "\n")
_WRAPS = ("{} > out", "({})", "echo $({})", "{} &", "A=1 {}", "! {}", "if true; then {}; fi",
          "echo \"`{}`\"", "{} <<< x", "f() {{ {}; }}")  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Made:
    command: str
    is_plain: bool
    has_forbidden: bool


def _make(chance: random.Random) -> _Made:
    groups = [_SAFE] * 6 + [_UNSAFE] * 3 + [_FORBIDDEN]
    chosen = [chance.choice(groups) for _ in range(chance.choice((1, 1, 2, 3)))]
    text = chance.choice(chosen[0])
    for each in chosen[1:]:
        text += chance.choice(_JOINS) + chance.choice(each)
    is_plain = all(each is _SAFE for each in chosen)
    if chance.random() < 0.2:
        text, is_plain = chance.choice(_WRAPS).format(text), False
    return _Made(text, is_plain, any(each is _FORBIDDEN for each in chosen))


def unapproved(seed: int, folder: Path) -> Iterator[str]:
    """Yield the calls of a random sequence that run without a policy, rule or approval.

    Args:
        folder: contains `a.txt`, `.env`, and `link` to a file outside.
    """
    chance = random.Random(seed)
    policy: Policy = chance.choice(("plan", "ask", "auto"))
    level: Literal["bubblewrap", "none"] = chance.choice(("bubblewrap", "none"))
    answers = Approvals(policy, level, RULES, folder)
    approved = set[tuple[str, bool]]()
    made = [_make(chance) for _ in range(6)]
    for _ in range(chance.randint(5, 20)):
        if chance.random() < 0.2:
            verb = chance.choice(("view", "create", "str_replace", "insert", "delete"))
            found = answers.decide(
                ToolCall(edit.TOOL.name, {"command": verb, "path": "a.txt"})
            ).verdict
            may = verb == "view" or (verb != "delete" and policy != "plan")
            if found == "allow" and not may:
                yield f"{policy}: {verb}"
            continue
        one, is_escalated = chance.choice(made), chance.random() < 0.2
        call = ToolCall(COMMAND, {"command": one.command, ESCALATE: "why" if is_escalated else ""})
        key = (one.command, is_escalated)
        has_confined = level != "none" and not is_escalated
        may = (
            (policy == "auto" and has_confined)
            or (one.is_plain and not is_escalated and (policy != "plan" or _reads(one)))
            or (policy != "plan" and key in approved)
        )
        found = answers.decide(call).verdict
        if found == "allow" and (one.has_forbidden or not may):
            yield f"{policy}, {level}, {key}"
        if found == "ask":
            choice: AgentChoice = chance.choice(("once", "run", "reject"))
            answers.remember(call, choice)
            if choice == "run":
                approved.add(key)


def _reads(one: _Made) -> bool:
    """Return whether a plain command needs no rule."""
    return "make" not in one.command and "git" not in one.command


def make_folder(folder: Path) -> Path:
    """Fill a folder for `unapproved`."""
    (folder / "sub").mkdir(parents=True)
    for name in ("a.txt", ".env"):
        (folder / name).write_text("x\n")
    (folder / "link").symlink_to("/etc/passwd")
    return folder
