"""Run shell commands in the sandbox, each in a shell of its own at the project's root. Blocks."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from lcursor.config import AgentConfig
from lcursor.errors import Cancelled, LcursorError
from lcursor.process import run
from lcursor.process.mounts import environment_of, environments
from lcursor.process.run import Cancel
from lcursor.process.sandbox import Confinement, Sandbox
from lcursor.process.visibility import why_hidden
from lcursor.workspace.outputs import cut_line, lines_of
from lcursor.workspace.tree import Tree

DEFAULT_S: Final = 120
MAX_S: Final = 600
MAX_BYTES: Final = 4 << 20
"""Maximum of an output; the rest is dropped, with a note."""
ENVIRONMENT: Final = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "TERM": "dumb",
    "CI": "1",
    # Python's bytecode cache cannot distinguish two versions of a file within a second.
    "PYTHONDONTWRITEBYTECODE": "1",
}
PRELUDE: Final = "exec 9>&2 2>&1; trap 'jobs -pr >&9' EXIT; "
"""Joins both outputs, and reports background jobs at the end. On the command's first line, so that
line numbers in messages are right."""
CANNOT_RUN: Final = 126
NOT_STARTED: Final = (CANNOT_RUN, 127)
"""Statuses of a shell that did not find a program, or could not run it."""
UNKNOWN_PROGRAM: Final = re.compile(
    r"(?:line|sh:) \d+: ([^:\s]+): |(?:env|command)\W+([^\s'’\"]+)['’\"]?: No such file"
)
MODULE: Final = re.compile(r"No module named '?([\w.]+)")
NO_SANDBOX: Final = "no sandbox works on this machine, so commands run only with approval"
PRIVATE: Final = re.compile(
    r"GIT_|LCURSOR_|NVIM$|NVIM_LISTEN_ADDRESS$|SSH_AUTH_SOCK$|SSH_AGENT_PID$"
    r"|.*(TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_KEY|PRIVATE_KEY)",
    re.IGNORECASE,
)
"""Variables hidden from the commands: the user's repository, the editor, keys and passwords."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command."""

    lines: list[str]
    seconds: float
    status: int | None
    """None if it was stopped or did not run."""
    why: str = ""
    """Why it has no status."""
    jobs: int = 0
    """Number of background jobs that were running at its end."""
    is_cut: bool = False
    """Whether there was more output."""

    @property
    def is_ok(self) -> bool:
        """Whether it ended with status 0."""
        return self.status == 0

    def problems(self) -> list[str]:
        """Return what a linter or tests complain about."""
        return [] if self.is_ok else self.lines or [self.head]

    @property
    def head(self) -> str:
        """Its end in a few words."""
        return f"exit {self.status}" if self.status is not None else self.why

    @property
    def brief(self) -> str:
        """Its end in a few words, for the user: also why a program did not start."""
        has_reason = self.status in NOT_STARTED and self.lines
        return f"{self.head}: {cut_line(self.lines[-1])}" if has_reason else self.head


class Shell:
    """Runs commands on the files of a tree.

    Args:
        commands: of the settings, whose environments are shown.
    """

    def __init__(
        self, tree: Tree, sandbox: Sandbox, config: AgentConfig, commands: Sequence[str] = ()
    ) -> None:
        self._tree, self._sandbox, self._config = tree, sandbox, config
        self._commands = commands

    @cached_property
    def _confinement(self) -> Confinement:
        given = self._tree.confinement(self._config)
        shown = tuple(environments(self._tree.root, self._commands))
        return replace(given, environments=shown, env={**ENVIRONMENT, **given.env})

    def visible_path(self, folder: Path) -> Path:
        """Return the path at which commands in the sandbox see the files of a folder."""
        return self._sandbox.visible_path(replace(self._confinement, tree=folder))

    @property
    def env(self) -> Mapping[str, str]:
        """The environment variables of commands in the sandbox, besides the fixed ones."""
        return self._confinement.env

    @property
    def is_confined(self) -> bool:
        """Whether there is a sandbox."""
        return self._sandbox.level != "none"

    def run(
        self,
        command: str,
        cancel: Cancel,
        *,
        max_s: float = DEFAULT_S,
        is_unconfined: bool = False,
        folder: Path | None = None,
        private: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run a command to its end.

        Args:
            folder: files to show at the project's path, instead of the tree.
            private: a folder outside of the tree that its programs may write to, in a sandbox.
            env: more environment variables, in a sandbox.

        Raises:
            Cancelled: `cancel` returned true.
        """
        words = ["bash", "-c", PRELUDE + command]
        began_s = time.monotonic()
        try:
            if is_unconfined:
                output = run.run(
                    words,
                    folder or self._tree.path,
                    env={**environment(), **ENVIRONMENT, "PWD": str(folder or self._tree.path)},
                    max_bytes=MAX_BYTES,
                    max_error_bytes=MAX_BYTES,
                    drops_excess=True,
                    max_s=max_s,
                    cancel=cancel,
                )
            elif not self.is_confined:
                return CommandResult([], 0.0, None, NO_SANDBOX)
            else:
                confinement = replace(self._confinement, tree=folder or self._tree.path)
                if private is not None:
                    confinement = replace(confinement, private=(*confinement.private, private))
                if env is not None:
                    confinement = replace(confinement, env={**confinement.env, **env})
                output = self._sandbox.run(
                    words,
                    confinement,
                    max_s=max_s,
                    max_bytes=MAX_BYTES,
                    cancel=cancel,
                )
        except Cancelled:
            raise
        except LcursorError as error:
            return CommandResult([], time.monotonic() - began_s, None, str(error))
        seconds = time.monotonic() - began_s
        errors = output.errors.decode("utf-8", "replace").splitlines()
        jobs = [line for line in errors if line.isdigit()]
        rest = "\n".join(line for line in errors if not line.isdigit())
        lines = [*lines_of(output.data), *lines_of(rest.encode())]
        is_cut = len(output.data) >= MAX_BYTES
        if output.is_cut or output.status is None:
            return CommandResult(lines, seconds, None, output.failure, len(jobs), is_cut)
        return CommandResult(lines, seconds, output.status, "", len(jobs), is_cut)


def obstacle(result: CommandResult, command: str, root: Path) -> str:
    """Return why the user's tests cannot start, and what helps; "" if they did.

    Args:
        root: the project, in which the command runs.
    """
    if not is_missing(result, command):
        return ""
    last = result.lines[-1] if result.lines else ""
    if result.status in NOT_STARTED:
        match = UNKNOWN_PROGRAM.search(last)
        program = (match[1] or match[2]) if match else next(iter(command.split()), "")
        help_text = _advice(program, command, root)
        if result.status == CANNOT_RUN:
            help_text = "Make it executable, or correct edit.test (in a shell: --test)"
    else:
        module = _missing_module(result, command)
        help_text = (
            f"Install {module} for this Python, or name that of your environment in edit.test "
            f"(in a shell: --test), such as .venv/bin/python -m {module}"
        )
    return f"The tests cannot start: {last or result.head}. {help_text}"


def is_missing(result: CommandResult, command: str) -> bool:
    """Return whether a program did not start, or Python lacks the module that it is to run."""
    return result.status in NOT_STARTED or bool(_missing_module(result, command))


def _missing_module(result: CommandResult, command: str) -> str:
    """Return the module that Python lacks and that it is to run; "" for none."""
    is_failed = result.status == 1 and result.lines
    missing = MODULE.search(result.lines[-1]) if is_failed else None
    return missing[1] if missing and f"-m {missing[1]}" in command else ""


def _advice(program: str, command: str, root: Path) -> str:
    """Return what helps if commands do not find a program.

    The project may have printed its name, so a path has to be in the user's command.
    """
    program = os.path.expanduser(program)
    path = os.path.normpath(root / program) if "/" in program else shutil.which(program)
    if not path or not os.path.exists(path):
        return "Install it, or correct edit.test (in a shell: --test)"
    if Path(path).is_relative_to(root):
        why = why_hidden(Path(path), follows_links=False)
        reason = f", because {why}" if why else ""
        return f"Commands do not see it{reason}. Name a program that they see in edit.test"
    named = map(os.path.expanduser, re.split(r"[\s;&|'\"=]+", command))
    if "/" in program and program not in named:
        return "Correct the tests, or edit.test (in a shell: --test)"
    shown = environment_of(root, path) or Path(path)
    if why := why_hidden(shown, is_chosen=True):
        return f"Commands must not see {shown}, because {why}. Name another one in edit.test"
    option = f"--readable {shlex.quote(str(shown))}"
    return f'Show it to commands: agent.readable = {{ "{shown}" }} (in a shell: {option})'


def environment() -> dict[str, str]:
    """Return the environment of commands without a sandbox: ours without `PRIVATE`."""
    return {name: value for name, value in os.environ.items() if not PRIVATE.match(name)}
