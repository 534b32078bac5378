"""Random changes of two agents are accepted in a text that the user has changed meanwhile.

Each case has a base and three texts made from it: the user's and those of two agents. Changes of
both agents are accepted one after the other, as `edit.resume` puts them onto the present text.
Lines are unique, so a lost or a doubled one shows. Where no changes touch, the result must equal
that of `git merge-file`.
"""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lcursor.changes import diff
from lcursor.changes.merge import rebase
from lcursor.changes.records import Lines
from tests.thorough import is_thorough

WRITERS = ("user", "A", "B")
MAX_LINES = 40
CHANGED = 0.2
"""Share of the base's lines that each one changes."""


@dataclass(frozen=True, slots=True)
class Case:
    """A base and the texts made from it."""

    base: Lines
    texts: tuple[Lines, ...]
    """Of `WRITERS`."""
    is_apart: bool
    """No line that one changes touches a line that another one changes."""


@dataclass(slots=True)
class Totals:
    """The outcomes of all cases."""

    apart: int = 0
    """Cases without overlaps, compared with `git merge-file`."""
    conflicts: int = 0
    """Changes that were left out because the lines had changed."""
    lost: int = 0
    """Cases with a line missing."""
    doubled: int = 0
    unequal: int = 0
    """Cases without overlaps whose result differs from git's, or with a conflict."""

    @property
    def is_right(self) -> bool:
        """Whether no case failed."""
        return self.lost == self.doubled == self.unequal == 0


def made(rng: random.Random) -> Case:
    """Return a random case."""
    base = tuple(f"line {number}" for number in range(rng.randrange(MAX_LINES)))
    owners = [rng.randrange(len(WRITERS)) if rng.random() < 3 * CHANGED else -1 for _ in base]
    is_apart = rng.random() < 0.5
    for row in range(1, len(owners)):  # an untouched line between the changes of two writers
        if owners[row - 1] not in (-1, owners[row]):
            owners[row] = -1
    texts = []
    for number, name in enumerate(WRITERS):
        text = list[str]()
        for row, line in enumerate(base):
            is_own = owners[row] == number if is_apart else rng.random() < CHANGED
            if not is_own:
                text.append(line)
                continue
            new = [f"{name} {row}.{at}" for at in range(rng.randrange(4))]
            text += new if is_apart else rng.choice((new, [line, *new], [*new, line]))
        texts.append(tuple(text))
    return Case(base, tuple(texts), is_apart)


def judge(case: Case, totals: Totals, folder: Path) -> None:
    """Accept the changes of both agents, and count what is wrong."""
    now, conflicts, lost, doubled = case.texts[0], 0, False, False
    for text in case.texts[1:]:
        before = now
        changes = rebase(diff.changes(case.base, text), case.base, before)
        accepted = [each for each in changes if each is not None]
        now, left = diff.apply(before, accepted), len(changes) - len(accepted)
        conflicts += left
        added, gone = {*text} - {*case.base}, {*case.base} - {*text}
        stays = {*before} - gone
        # All that the agent did not touch, in its order; all of the agent's if nothing conflicts.
        rest = [line for line in now if line in stays]
        lost = lost or rest != [line for line in before if line in stays]
        lost = lost or (not left and {*now} != stays | added)
        doubled = doubled or len({*now}) < len(now) or not {*now} <= {*before} | added
    totals.conflicts += conflicts
    totals.lost += lost
    totals.doubled += doubled
    if case.is_apart:
        totals.apart += 1
        totals.unequal += conflicts > 0 or now != by_git(case, folder)


def by_git(case: Case, folder: Path) -> Lines | None:
    """Return the result of `git merge-file`; None for a conflict."""
    user, base = folder / "user", folder / "base"
    base.write_text("".join(f"{line}\n" for line in case.base))
    user.write_text("".join(f"{line}\n" for line in case.texts[0]))
    for text in case.texts[1:]:
        (folder / "agent").write_text("".join(f"{line}\n" for line in text))
        command = ["git", "merge-file", "-q", "user", "base", "agent"]
        if subprocess.run(command, cwd=folder, check=False).returncode:
            return None
    return tuple(user.read_text().splitlines())


def measure(count: int, folder: Path) -> Totals:
    """Judge random cases."""
    rng, totals = random.Random(2), Totals()
    for _ in range(count):
        judge(made(rng), totals, folder)
    return totals


def test_no_line_is_lost_or_doubled(tmp_path: Path) -> None:
    totals = measure(10_000 if is_thorough() else 300, tmp_path)
    assert totals.is_right, totals
    assert totals.apart > 100
    assert totals.conflicts > 20
