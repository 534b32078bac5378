"""What becomes of the replies of the corpus if they, or the files, are a little different.

A change of the rules shows here which of them it concerns:
`pytest tests/unit/edit/test_recorded.py --update-recorded`, then read `git diff tests/recorded`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from evals import apply
from lcursor.changes.apply.parse import blocks
from lcursor.changes.apply.resolve import Ask, Resolved, Unresolved, resolve
from lcursor.changes.records import Lines, digest

COUNT = 1500
MAX_FILE_LINES = 700
Change = Callable[[list[str], random.Random], list[str]]


def _without_row(lines: list[str], draw: random.Random) -> list[str]:
    at = draw.randrange(len(lines))
    return [*lines[:at], *lines[at + 1 :]]


def _row_twice(lines: list[str], draw: random.Random) -> list[str]:
    at = draw.randrange(len(lines))
    return [*lines[: at + 1], *lines[at:]]


def _block_twice(lines: list[str], draw: random.Random) -> list[str]:
    at = draw.randrange(len(lines))
    return [*lines, "", *lines[at : at + draw.randint(2, 12)]]


def _rows_swapped(lines: list[str], draw: random.Random) -> list[str]:
    at = draw.randrange(len(lines))
    return [*lines[:at], *lines[at : at + 2][::-1], *lines[at + 2 :]]


def _rows_above(lines: list[str], draw: random.Random) -> list[str]:
    return [*[f"# note {row}" for row in range(draw.randint(1, 9))], *lines]


def _indented(lines: list[str], draw: random.Random) -> list[str]:
    first = draw.randrange(len(lines))
    last = first + draw.randint(1, 40)
    return [*lines[:first], *("    " + line for line in lines[first:last]), *lines[last:]]


def _to_the_left(lines: list[str], draw: random.Random) -> list[str]:
    size = draw.choice([1, 2, 4])
    return [line[size:] if line.startswith(" " * size) else line for line in lines]


def _tabs(lines: list[str], draw: random.Random) -> list[str]:
    size = draw.choice([2, 4])
    return [
        re.sub(rf"^((?: {{{size}}})+)", lambda m: "\t" * (len(m[1]) // size), line)
        for line in lines
    ]


def _other_word(lines: list[str], draw: random.Random) -> list[str]:
    names = re.findall(r"\w{4,}", "\n".join(lines)) or ["name"]
    old = draw.choice(names)
    return [re.sub(rf"\b{old}\b", f"{old}_2", line) for line in lines]


def _other_word_once(lines: list[str], draw: random.Random) -> list[str]:
    at = draw.randrange(len(lines))
    return [*lines[:at], re.sub(r"\w{3,}", "other", lines[at], count=1), *lines[at + 1 :]]


def _other_quotes(lines: list[str], draw: random.Random) -> list[str]:
    return [line.replace('"', "'") for line in lines]


def _blanks_at_ends(lines: list[str], draw: random.Random) -> list[str]:
    return [line + " " * (draw.random() < 0.3) for line in lines]


def _without_blank_rows(lines: list[str], draw: random.Random) -> list[str]:
    return [line for line in lines if line.strip()]


def _more_blank_rows(lines: list[str], draw: random.Random) -> list[str]:
    return [one for line in lines for one in ([line, ""] if draw.random() < 0.1 else [line])]


def _cut(lines: list[str], draw: random.Random) -> list[str]:
    return lines[: draw.randint(len(lines) // 2, len(lines))]


def _other_numbers(lines: list[str], draw: random.Random) -> list[str]:
    def other(found: re.Match[str]) -> str:
        return str(max(int(found[0]) + draw.choice([-9, -1, 1, 4, 30]), 0))

    return [re.sub(r"\d+", other, line) if line.startswith("@@") else line for line in lines]


def _without_marks(lines: list[str], draw: random.Random) -> list[str]:
    return [line[1:] if line.startswith(" ") and draw.random() < 0.5 else line for line in lines]


def _commas(lines: list[str], draw: random.Random) -> list[str]:
    return [line.rstrip(",") if draw.random() < 0.5 else line for line in lines]


def _escaped(lines: list[str], draw: random.Random) -> list[str]:
    return [line.replace("&", "&amp;").replace('"', "&quot;") for line in lines]


def _elided(lines: list[str], draw: random.Random) -> list[str]:
    rows = [row for row, line in enumerate(lines) if line.startswith("    ")] or [0]
    at = draw.choice(rows)
    return [*lines[:at], "    # ... existing code ...", *lines[at + draw.randint(1, 6) :]]


ALIKE: tuple[Change, ...] = (
    _without_row, _row_twice, _rows_swapped, _indented, _to_the_left, _tabs, _other_word,
    _other_word_once, _other_quotes, _blanks_at_ends, _without_blank_rows, _more_blank_rows,
    _commas,
)  # fmt: skip
OF_FILES = (*ALIKE, _block_twice, _rows_above)
OF_REPLIES = (*ALIKE, _cut, _other_numbers, _without_marks, _escaped, _elided)


def outcome(reply: str, file: str, files: apply.TaskFiles) -> str:
    """Return in one line what a reply does."""
    found = resolve(blocks(reply, file), files)
    if isinstance(found, Ask):
        rows = (f"{one.first_row}-{one.last_row}" for one in found.choices)
        return f"asks: {found.text[:90]} {', '.join(rows)}"
    changed = [
        f"{one.kind} {one.path} "
        + " ".join(
            f"{each.first_row}-{each.last_row}:{digest(each.new)[:6]}" for each in one.changes
        )
        for one in found.files
    ]
    if isinstance(found, Unresolved):
        sketches = f", {len(found.sketches)} sketches" if found.sketches else ""
        return f"no{sketches}: {found.reason[:90]} {'; '.join(changed)}".rstrip()
    assert isinstance(found, Resolved)
    return "; ".join([*changed, found.note]).rstrip("; ") or "nothing"


def test_replies_and_files_that_differ_a_little_have_the_recorded_outcome(
    recorded: Callable[[str, str], None],
) -> None:
    draw, rows = random.Random(1), list[str]()
    tasks = [
        task
        for task in apply.load()
        if task.files and max(map(len, task.files.values())) <= MAX_FILE_LINES
    ]
    for _ in range(COUNT):
        task = draw.choice(tasks)
        files, reply = dict(task.files), task.reply
        if draw.random() < 0.5:
            change: Change = draw.choice(OF_FILES)
            path = draw.choice([*files])
            lines: Lines = tuple(change([*files[path]] or [""], draw))
            files[path], what = lines, f"file{change.__name__}"
        else:
            change = draw.choice(OF_REPLIES)
            reply, what = "\n".join(change(reply.split("\n"), draw)), f"reply{change.__name__}"
        made = outcome(reply, task.file, apply.TaskFiles(files, task.current))
        rows.append(f"{task.name} {what} -> {made}")
    recorded("replies", "\n".join(rows) + "\n")
