"""A copy of a project that `bench index` indexes and modifies, and queries for it."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from lcursor.errors import LcursorError
from lcursor.project import filetypes, listing

MAX_BRANCH_FILES = 2000
SEEN_OF_BRANCH = 40
INSTALLED = "site-packages"
"""Skipped: installed packages next to the standard library."""
_NAME = re.compile(
    r"^\s*(?:[a-z]+ +){0,3}?(?:def|class|function|fn|func|struct|interface) +(\w{5,})", re.M
)
_SENTENCE = re.compile(r'^\s*(?:"""|#|//|--)\s*([A-Z][a-z]+(?: [a-z]+){3,9})\.?', re.M)


def rare_word(kind: str, number: int) -> str:
    """Return a unique word of letters that no project contains."""
    letters = "".join(chr(ord("a") + int(digit)) for digit in str(number))
    return f"zq{kind}q{letters}z"


class Copy:
    """The files of a project that would be indexed, in a new repository.

    Args:
        source: the project.
        folder: where the copy is made; it must not exist.
    """

    def __init__(self, source: Path, folder: Path) -> None:
        self.root = folder.resolve()
        self.names: list[str] = []
        for each in listing.survey(source).files:
            if INSTALLED in each.path.split("/") or filetypes.by_name(each.path, each.size_bytes):
                continue
            data = (source / each.path).read_bytes()
            if filetypes.by_content(data):
                continue
            target = self.root / each.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            self.names.append(each.path)
        if not self.names:
            raise LcursorError(f"{source} has no file that would be indexed")
        self.branch_files = 0
        self.bytes = sum((self.root / name).stat().st_size for name in self.names)
        self._git("init", "--quiet", "--initial-branch=one")
        self._commit("as it was")

    def queries(self, count: int, seed: int) -> tuple[list[str], list[str]]:
        """Return names that are defined in the project, and sentences that stand in it."""
        chosen = random.Random(seed)
        names: set[str] = set()
        sentences: set[str] = set()
        for name in chosen.sample(self.names, min(len(self.names), 400)):
            text = (self.root / name).read_text(errors="replace")
            names.update(_NAME.findall(text))
            sentences.update(_SENTENCE.findall(text))

        def some(found: Iterable[str], instead: str) -> list[str]:
            ordered = sorted(found) or [instead]
            return [chosen.choice(ordered) for _ in range(count)]

        return some(names, "main"), some(sentences, "read the file and return what it holds")

    def branch(self) -> dict[str, str]:
        """Make a branch `two` on which up to 2,000 files have one more line; stay on `one`.

        Returns:
            some of the words that stand only there, with the file of each.
        """
        self._git("checkout", "--quiet", "-b", "two")
        step = max(1, len(self.names) // MAX_BRANCH_FILES)
        changed = self.names[::step][:MAX_BRANCH_FILES]
        words = {rare_word("branch", number): name for number, name in enumerate(changed)}
        for word, name in words.items():
            with (self.root / name).open("a", errors="replace") as file:
                file.write(f"\n# {word}\n")
        self.branch_files = len(changed)
        self._commit("another line")
        self.switch("one")
        every = max(1, len(words) // SEEN_OF_BRANCH)
        return dict(list(words.items())[::every])

    def settle(self) -> None:
        """Take what was changed into the branch that is checked out."""
        self._commit("changed")

    def switch(self, branch: str) -> None:
        """Check a branch out."""
        self._git("checkout", "--quiet", branch)

    def _commit(self, message: str) -> None:
        self._git("add", "--all", "--force")
        self._git("commit", "--quiet", "--message", message)

    def _git(self, *arguments: str) -> None:
        who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
        done = subprocess.run(
            ["git", *who, "-c", "gc.auto=0", "-c", "commit.gpgsign=false", *arguments],
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise LcursorError(f"git {arguments[0]} failed: {done.stderr.strip()}")
