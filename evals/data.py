"""The tasks of `eval fim`: programs with a part removed, and cursor positions in that part.

Reads the benchmark's files, or one source file. A cut depends only on the seed and its task: a run
over more tasks contains the run over fewer.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from lcursor.errors import LcursorError

Kind = Literal["char", "word", "span"]
KINDS: tuple[Kind, ...] = get_args(Kind)

DATA = Path(__file__).resolve().parent / "data/human-eval-infilling"
LINES = "HumanEval-SingleLineInfilling.jsonl.gz"
SPANS = "HumanEval-RandomSpanInfillingLight.jsonl.gz"
MIN_LINE_CHARS = 15
"""Of a line of a source file that is cut."""
COMMENTS = ("#", '"', "'", "//", "--", "/*", "*")
"""The beginnings of lines that are not code."""


@dataclass(frozen=True, slots=True)
class Task:
    """A program with a part removed, and its test.

    Attributes:
        test: "" if there is none, as for a line of a source file.
        file: its name in the prompt.
        project: the name of the project in the prompt.
    """

    name: str
    entry_point: str
    before: str
    masked: str
    after: str
    test: str
    file: str = "solution.py"
    project: str = "humaneval"


@dataclass(frozen=True, slots=True)
class Cut:
    """A cursor in a program, and the text that should be written there."""

    kind: Kind
    task: Task
    prefix: str
    rest: str
    """The true text; without the newline if it is the rest of a line."""
    suffix: str

    @property
    def single_line(self) -> bool:
        """Whether the editor would ask for one line only.

        It does for the rest of a line, and for a span if there is text after the cursor.
        """
        return self.kind != "span" or bool(self.suffix.partition("\n")[0].strip())

    def program(self, text: str) -> str:
        """Return the program with `text` written at the cursor, and its test at the end."""
        task = self.task
        code = self.prefix + text + self.suffix
        return f"{code}\n{task.test}\ncheck({task.entry_point})\n"


def load(path: Path) -> list[Task]:
    """Read one of the benchmark's files.

    Raises:
        LcursorError: the file is missing or malformed.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        return [_task(row) for row in rows]
    except FileNotFoundError as error:
        raise LcursorError(
            f"There is no file {path}", f"Give the folder that has it: --data {DATA}"
        ) from error
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise LcursorError(
            f"{path} is not a file of HumanEval infilling ({error!r})",
            "Restore it: git checkout evals/data",
        ) from error


def _task(row: Mapping[str, str]) -> Task:
    return Task(
        name=row["task_id"],
        entry_point=row["entry_point"],
        before=row["prompt"],
        masked=row["canonical_solution"],
        after=row["suffix"],
        test=row["test"],
    )


def cuts(folder: Path, kind: Kind, count: int, seed: int) -> list[Cut]:
    """Choose tasks and cut them.

    Args:
        folder: where the benchmark's files are.
        kind: `char` inside the masked line at any character, `word` there at the start of a word,
            `span` the benchmark's own random spans.
        count: maximum number of cuts.
        seed: for the choice and for every place.

    Raises:
        LcursorError: see `load`.
    """
    return _chosen(load(folder / (SPANS if kind == "span" else LINES)), kind, count, seed)


def source_cuts(path: Path, kind: Kind, count: int, seed: int) -> list[Cut]:
    """Choose lines of code of a source file and cut them; there is no test for them.

    Args:
        path: the file.
        kind: `char` or `word`, as for the benchmark.
        count: maximum number of cuts.
        seed: for the choice and for every place.

    Raises:
        LcursorError: the file cannot be read, or has no line of code.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        raise LcursorError(f"{path} cannot be read ({error})", "Name a source file") from error
    tasks = [
        Task(
            name=f"{path.name}:{row + 1:05}",
            entry_point="",
            before="".join(lines[:row]),
            masked=line,
            after="".join(lines[row + 1 :]),
            test="",
            file=path.name,
            project=path.resolve().parent.name,
        )
        for row, line in enumerate(lines)
        if len(text := line.strip()) >= MIN_LINE_CHARS and not text.startswith(COMMENTS)
    ]
    if not tasks:
        raise LcursorError(f"{path} has no line of code", "Name a source file")
    return _chosen(tasks, kind, count, seed)


def _chosen(tasks: list[Task], kind: Kind, count: int, seed: int) -> list[Cut]:
    random.Random(seed).shuffle(tasks)
    found = (_CUTTERS[kind](task, random.Random(f"{seed}:{kind}:{task.name}")) for task in tasks)
    return [cut for cut in found if cut][:count]


def _char(task: Task, rng: random.Random) -> Cut | None:
    line = task.masked.strip()
    return _line_cut("char", task, rng.randrange(1, len(line))) if len(line) > 1 else None


def _word(task: Task, rng: random.Random) -> Cut | None:
    starts = [match.start() for match in re.finditer(r"(?<!\w)\w", task.masked.strip())]
    inside = [start for start in starts if start > 0]
    return _line_cut("word", task, rng.choice(inside)) if inside else None


def _line_cut(kind: Kind, task: Task, at: int) -> Cut:
    """Cut `at` characters after the indentation of the masked line."""
    line, newline, behind = task.masked.partition("\n")
    at += len(line) - len(line.lstrip())
    return Cut(kind, task, task.before + line[:at], line[at:], newline + behind + task.after)


def _span(task: Task, _rng: random.Random) -> Cut:
    return Cut("span", task, task.before, task.masked, task.after)


_CUTTERS: dict[Kind, Callable[[Task, random.Random], Cut | None]] = {
    "char": _char,
    "word": _word,
    "span": _span,
}
