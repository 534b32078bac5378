"""Real projects on a real disk, for the tests of surveys and of watching."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OURSELVES = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "core.autocrlf=false")

NOBODY = 65534


def git(folder: Path, *words: str) -> str:
    """Run git, without the settings of whoever runs the tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", os.fspath(folder), *OURSELVES, *words]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, errors="replace"
    ).stdout


def write(root: Path, *paths: str, text: str = "x = 1\n") -> None:
    """Write files, with their directories."""
    for path in paths:
        full = root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)


@contextmanager
def anybody() -> Iterator[Path]:
    """Give a folder to somebody who may not read everything, as root may."""
    with tempfile.TemporaryDirectory() as name:  # pytest's own let nobody else in
        is_root = os.geteuid() == 0
        if is_root:
            os.chown(name, NOBODY, -1)
            os.seteuid(NOBODY)
        try:
            yield Path(name)
        finally:
            if is_root:
                os.seteuid(0)


def modules(root: Path, packages: int, files: int) -> None:
    """Make a `node_modules` of so many packages of so many empty files."""
    for package in range(packages):
        folder = root / f"node_modules/p{package}"
        folder.mkdir(parents=True)
        at = os.open(folder, os.O_RDONLY)
        for number in range(files):
            os.mknod(f"{number}.js", 0o600, dir_fd=at)  # a regular file; anybody may
        os.close(at)


def repository(root: Path, *paths: str, ignore: str = "") -> Path:
    """Make a repository with some files committed."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    write(root, *paths)
    if ignore:
        (root / ".gitignore").write_text(ignore)
    if paths or ignore:
        git(root, "add", "-A")
        git(root, "add", "-f", *([".gitignore"] if ignore else []), *paths)
        git(root, "commit", "-qm", "one")
    return root
