"""`eval merges`: accept random changes of two agents in a text that the user has changed meanwhile.

Each case has a base and three texts made from it: the user's and those of two agents. Changes of
both agents are accepted one after the other, as `edit.resume` puts them onto the present text.
Lines are unique, so a lost or a doubled one shows. Where no changes touch, the result must equal
that of `git merge-file`. Asks no model.
"""

from __future__ import annotations

import random
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from bench.report import Json, emit
from lcursor.changes import diff
from lcursor.changes.merge import rebase
from lcursor.changes.records import Lines

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

    cases: int = 0
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


def accept(base: Lines, text: Lines, now: Lines) -> tuple[Lines, int]:
    """Return a text with an agent's changes, and the number of those that conflict."""
    changes = rebase(diff.changes(base, text), base, now)
    found = [each for each in changes if each is not None]
    return diff.apply(now, found), len(changes) - len(found)


def judge(case: Case, totals: Totals, folder: Path) -> None:
    """Accept the changes of both agents, and count what is wrong."""
    now, conflicts, lost, doubled = case.texts[0], 0, False, False
    for text in case.texts[1:]:
        before = now
        now, left = accept(case.base, text, before)
        conflicts += left
        added, gone = {*text} - {*case.base}, {*case.base} - {*text}
        stays = {*before} - gone
        # All that the agent did not touch, in its order; all of the agent's if nothing conflicts.
        rest = [line for line in now if line in stays]
        lost = lost or rest != [line for line in before if line in stays]
        lost = lost or (not left and {*now} != stays | added)
        doubled = doubled or len({*now}) < len(now) or not {*now} <= {*before} | added
    totals.cases += 1
    totals.conflicts += conflicts
    totals.lost += lost
    totals.doubled += doubled
    if case.is_apart:
        totals.apart += 1
        totals.unequal += conflicts > 0 or now != _by_git(case, folder)


def _by_git(case: Case, folder: Path) -> Lines | None:
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


def measure(count: int, seed: int = 1) -> Totals:
    """Judge random cases."""
    rng, totals = random.Random(seed), Totals()
    with tempfile.TemporaryDirectory(prefix="lcursor-merges-") as folder:
        for _ in range(count):
            judge(made(rng), totals, Path(folder))
    return totals


def command(
    count: Annotated[int, typer.Option(help="Number of cases.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the random cases.")] = 1,
    as_json: Json = False,
) -> None:
    """Merge random changes; exits with 1 if a line was lost or doubled."""
    totals = measure(count, seed)
    document = {**asdict(totals), "valid": totals.is_right}
    emit(document, [f"{name}: {value}" for name, value in document.items()], as_json)
    if not totals.is_right:
        raise typer.Exit(1)
