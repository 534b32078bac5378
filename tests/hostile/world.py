"""A pretended user with secrets, a project of a stranger in the home, and a program to notice.

The program `canary` writes down that it ran. Secrets are texts that occur nowhere else, so that
whatever an operation gives out can be searched for them.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SECRET_FILES = {
    "ssh key": ".ssh/id_ed25519",
    "netrc": ".netrc",
    "aws": ".aws/credentials",
    "chat": ".local/share/lcursor/chats/p/1.jsonl",
    "keyring": ".local/share/keyrings/login.keyring",
    "other project": "other/main.py",
    "letters": "letters/to-a-friend.txt",
}
"""What the user has in the home, by the name of its token."""
TOKENS = {
    name: f"canary-{name.replace(' ', '-')}-{number * 7919 + 104729:x}"
    for number, name in enumerate(
        (
            *SECRET_FILES,
            *("work tree", "old commit", "staged", "stash", "branch", "unreachable", "tag"),
            *("other history", "file name"),
        )
    )
}
"""Secrets in the home, in secret files of the project, and in their history."""
MAIN = "def main():\n    return {}\n"
TERMINAL = "import pty, sys; pty.spawn(sys.argv[1:])"
CONTROL_S = 20.0
SILENT = {"TERM": "dumb", "PAGER": "cat", "EDITOR": "true"}
"""So that git waits for nobody."""


@dataclass(frozen=True, slots=True)
class Trick:
    """A way in which a project reaches for a program or for a secret."""

    name: str
    build: Callable[[World], None]
    """Changes the project."""
    control: str
    """Bash, in the project: what a tool without precautions might do, which must succeed."""
    shows: str = ""
    """What the control prints, a token by its name; "" if it runs the canary."""
    keys: tuple[str, ...] = ()
    """The keys of git-config(1) that it uses, as `git help --config` spells them."""
    is_alone: bool = False
    """Whether git stops early because of it, or other tricks are not reached any more."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Inherited variables; `{name}` as in `World.filled`."""


class World:
    """The files of the user, below `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.home, self.project = path / "home", path / "home/src/project"
        self.canary, self._ran = path / "tools/canary", path / "ran"
        self.env: dict[str, str] = {}
        """Variables that the tricks set."""
        self._last: list[Callable[[], object]] = []

    @classmethod
    def create(cls, path: Path, pristine: World | None = None) -> World:
        """Create the home, and a project with history and nothing bad in it.

        Args:
            pristine: another one on which no trick was played, to copy.
        """
        world = cls(path)
        if pristine:
            shutil.copytree(pristine.home, world.home, symlinks=True)
        else:
            world._write_home()
            world._write_project()
        world.write(world.canary, f'#!/bin/sh\necho "$*" >>{world._ran}\n')
        world.canary.chmod(0o755)
        return world

    def build(self, *tricks: Trick) -> World:
        """Play tricks on the project; the program may have run, which is forgotten."""
        for trick in tricks:
            trick.build(self)
            self.env |= {name: self.filled(value) for name, value in trick.env.items()}
        for each in self._last:
            each()
        self.forget()
        return self

    def ran(self) -> list[str]:
        """Return the arguments of the canary, each time that it ran."""
        return self._ran.read_text().splitlines() if self._ran.exists() else []

    def forget(self) -> None:
        """Forget that the canary ran."""
        self._ran.unlink(missing_ok=True)

    def filled(self, text: str) -> str:
        """Replace `{canary}`, `{home}`, `{project}` and `{path}`."""
        for name in ("canary", "home", "project", "path"):
            text = text.replace(f"{{{name}}}", str(getattr(self, name)))
        return text

    def variables(self) -> dict[str, str]:
        """Return the environment of this user, without what the tricks set."""
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": f"{self.home}/.config",
            "XDG_DATA_HOME": f"{self.home}/.local/share",
            "XDG_CACHE_HOME": f"{self.home}/.cache",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TEMPLATE_DIR": "",
        }

    def git(self, *words: str, cwd: Path | None = None, stdin: str = "") -> str:
        """Run git without precautions; return its output."""
        return subprocess.run(
            ["git", *words],
            cwd=cwd or self.project,
            env=self.variables(),
            input=stdin,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    def works(self, trick: Trick) -> bool:
        """Return whether the control of a trick reaches what it wants."""
        script = self.filled(trick.control).replace("{pty}", f"{sys.executable} -c '{TERMINAL}'")
        said = self.shell(script)
        return TOKENS.get(trick.shows, trick.shows) in said if trick.shows else bool(self.ran())

    def shell(self, script: str) -> str:
        """Run a script in the project without precautions; return what it prints."""
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.project,
            env=self.variables() | SILENT | self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=CONTROL_S,
            check=False,
        )
        return done.stdout.decode(errors="replace")

    def write(self, path: Path | str, text: str) -> Path:
        """Write a file of the project, or one by its absolute path."""
        full = self.project / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(self.filled(text))
        return full

    def at_last(self, step: Callable[[], object]) -> None:
        """Do something after all other steps of tricks, which it would disturb."""
        self._last.append(step)

    def append(self, path: Path | str, text: str) -> None:
        """Append to a file of the project."""
        full = self.project / path
        self.write(path, (full.read_text() if full.exists() else "") + text)

    def configure(self, values: Mapping[str, str], file: Path | str = ".git/config") -> None:
        """Append to a configuration file of git, by key."""
        lines = []
        for key, value in values.items():
            section, _, rest = key.partition(".")
            middle, _, name = rest.rpartition(".")
            quoted = self.filled(value).replace("\\", "\\\\").replace('"', '\\"')
            head = f'[{section} "{middle}"]' if middle else f"[{section}]"
            lines.append(f'{head}\n\t{name} = "{quoted}"\n')
        self.append(file, "".join(lines))

    def _write_home(self) -> None:
        for name, path in SECRET_FILES.items():
            self.write(self.home / path, f"{TOKENS[name]}\n")
        self.write(self.home / f"letters/{TOKENS['file name']}.txt", "x\n")
        self.write(
            self.home / ".gitconfig",
            "[user]\n\tname = A\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n",
        )
        other = self.home / "other"
        self.git("init", "-q", cwd=other)
        self.write(other / "history.py", f"x = '{TOKENS['other history']}'\n")
        self._commit("one", cwd=other)

    def _write_project(self) -> None:
        """Make a project whose secret files are known to git in all ways in which they can be."""
        self.write("main.py", MAIN.format(0))
        self.write("docs/notes.md", "Notes on gamma.\n")
        self.write("lib/util.py", "def gamma():\n    return 3\n")
        self.git("init", "-q")
        self._add_secret(".env", "old commit")
        self._commit("one")
        self.git("rm", "-q", "--cached", ".env")
        self.write(".gitignore", ".env\n.venv/\n")
        self._commit("two")
        self.git("checkout", "-qb", "topic")
        self.write("main.py", MAIN.format(1))
        self._add_secret("prod.env", "branch")
        self._commit("on a branch")
        self.git("checkout", "-q", "main")
        self._add_secret("tagged.env", "tag")
        self._commit("tagged")
        self.git("tag", "old")
        self.git("reset", "-q", "--hard", "HEAD~1")
        self._add_secret("lost.env", "unreachable")
        self._commit("lost")
        self.git("reset", "-q", "--hard", "HEAD~1")
        self._add_secret("set-aside.env", "stash")
        self.git("stash", "-q")
        self.write("main.py", MAIN.format(2))
        self._commit("three")
        self._add_secret("prod.env", "staged")
        self.write("lib/util.py", "def gamma():\n    return 4\n")
        self.git("add", "lib/util.py")
        self.write("main.py", MAIN.format("gamma()"))
        self.write(".env", f"KEY={TOKENS['work tree']}\n")

    def _add_secret(self, path: str, name: str) -> None:
        self.write(path, f"KEY={TOKENS[name]}\n")
        self.git("add", "-f", path)

    def _commit(self, subject: str, *, cwd: Path | None = None) -> None:
        self.git("add", "-A", cwd=cwd)
        self.git("commit", "-qm", subject, cwd=cwd)


def leaks(text: str) -> list[str]:
    """Return the names of the tokens in a text."""
    return [name for name, token in TOKENS.items() if token in text]


def everything_below(folder: Path) -> str:
    """Return the names, the targets of links and the contents of all files below a folder."""
    found = []
    for parent, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            path = Path(parent, name)
            found.append(str(path))
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                found.append(os.readlink(path))
            elif stat.S_ISREG(mode):
                found.append(path.read_bytes().decode(errors="replace"))
    return "\n".join(found)
