"""Change the code at random, one place at a time, and list the changes that no test notices.

    python -m scripts.mutate --count 100 --seed 1 --out bench/results/mutations.md

Each change is made in a copy of the checkout and tested there, until the first failure, with the
tests that call the changed function, the fastest first. Which these are is recorded once, and again
after the tests or the code have changed. Results are kept in the folder `--work`: a run that ended
after `--minutes` goes on with the next, and `--again` tests what survived once more.

The last column of the table has notes that are written by hand; they are kept. A note that begins
with "equivalent" says that no test could notice the change.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import hashlib
import itertools
import json
import os
import queue
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scripts.mutate_plugin import RECORD, ROOT, SELECT

TARGETS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "fim": (
        ["lcursor/fim/**/*.py"],
        ["tests/unit/fim/test_*.py", "tests/unit/host/test_dispatch.py"],
    ),
    "changes/apply": (
        ["lcursor/changes/apply/*.py"],
        ["tests/unit/changes/test_*.py", "tests/unit/evals/test_apply.py"],
    ),
    "index/rank": (
        [f"lcursor/index/{name}.py" for name in ("query", "rank", "retrieve", "search")],
        [
            f"tests/unit/index/test_{name}.py"
            for name in ("around", "overlay", "pending", "query", "rank", "retrieve", "search")
        ],
    ),
}
"""By name: what is changed, and the tests that should notice it."""
LIMIT_S = 400.0
"""Of the tests of one change; one that waits for ever is noticed by the limit of a test."""
CPU_S, CPU_FACTOR = 30, 3
"""CPU time that the tests of a change get: so much, and a multiple of what they took."""
MEMORY_BYTES = 8 << 30
BATCH = 6
"""Files of tests that are recorded at once."""
SWAPS: dict[type, Any] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Break: ast.Continue,
    ast.Continue: ast.Break,
}
RUNNING: set[subprocess.Popen[str]] = set()
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
"""Functions that are exchanged."""


@dataclass(frozen=True)
class Mutation:
    """One change of a file."""

    target: str
    path: Path
    function: str
    line: int
    before: str
    after: str
    start: int
    """Where it is, in bytes."""

    @property
    def text(self) -> str:
        """The whole changed file."""
        data, end = self.path.read_bytes(), self.start + len(self.before.encode())
        return (data[: self.start] + self.after.encode() + data[end:]).decode()

    @property
    def at(self) -> str:
        """Path and line."""
        return f"{self.path.relative_to(ROOT)}:{self.line}"

    @property
    def key(self) -> str:
        """Differs for each change."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Result:
    """What the tests say of a change."""

    key: str
    target: str
    at: str
    before: str
    after: str
    caught_by: str
    """The first test that failed; "" if none did."""
    tests: int
    seconds: float


# Changes


def variants(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield what can be changed in a node: each part that is replaced, and by what."""
    new: Any = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in SWAPS:
        new.ops[0] = SWAPS[type(new.ops[0])]()
    elif isinstance(new, ast.BinOp | ast.BoolOp) and type(new.op) in SWAPS:
        new.op = SWAPS[type(new.op)]()
    elif isinstance(new, ast.Break | ast.Continue):
        new = SWAPS[type(new)]()
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not):
        new = new.operand
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        new.value = not new.value
    elif isinstance(new, ast.Constant) and isinstance(new.value, int | float):
        new.value += 1 if isinstance(new.value, int) else new.value / 2
    elif isinstance(new, ast.Name) and new.id in NAMES:
        new.id = NAMES[new.id]
    elif isinstance(new, ast.Return):
        if new.value is None or ast.unparse(new.value) == "None":
            new = ast.Pass()
        else:
            new.value = ast.Constant(None)
    elif isinstance(new, ast.Expr) and isinstance(new.value, ast.Call):
        new = ast.Pass()
    elif isinstance(new, ast.If) and not new.orelse:
        yield node.test, ast.Constant(False)  # type: ignore[attr-defined]
    if ast.dump(new) != ast.dump(node):
        yield node, new


def in_functions(node: ast.AST, name: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Yield the nodes in the bodies of functions, each with the name of the innermost one."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for statement in node.body:
            yield from in_functions(statement, node.name)
        return
    if name:
        yield node, name
    for field, child in ast.iter_fields(node):
        for each in child if isinstance(child, list) else [child]:
            if isinstance(each, ast.AST) and field != "annotation":
                yield from in_functions(each, name)


def mutations(target: str, path: Path) -> Iterator[Mutation]:
    """Yield all changes of a file."""
    source = path.read_text()
    data, starts = source.encode(), [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    for node, function in in_functions(ast.parse(source)):
        for old, new in variants(node):
            start = starts[old.lineno - 1] + old.col_offset  # type: ignore[attr-defined]
            end = starts[old.end_lineno - 1] + old.end_col_offset  # type: ignore[attr-defined]
            before, after = data[start:end].decode(), ast.unparse(new)
            if isinstance(new, ast.expr):
                after = f"({after})"
            if _is_source_of(before, old):
                yield Mutation(target, path, function, old.lineno, before, after, start)  # type: ignore[attr-defined]


def _is_source_of(text: str, node: ast.AST) -> bool:
    """Return whether a text is that of a node: Python 3.11 misplaces what is in f-strings."""
    try:
        found: Any = ast.parse(f"({text})" if isinstance(node, ast.expr) else text).body[0]
    except SyntaxError:
        return False
    return ast.dump(found.value if isinstance(node, ast.expr) else found) == ast.dump(node)


def is_valid(mutation: Mutation) -> bool:
    """Return whether Python can read the changed file."""
    try:
        compile(mutation.text, "changed", "exec")
    except SyntaxError:
        return False
    return True


# Tests


class Tests:
    """The tests of each function."""

    def __init__(self, work: Path) -> None:
        self._path = work / "tests.json"
        self._files: dict[str, dict[str, Any]] = {}
        """By file of tests: its digest, and for each test its seconds and the functions."""
        if self._path.exists():
            self._files = json.loads(self._path.read_text())

    def record(self, checkout: Path, jobs: int, ends_s: float) -> None:
        """Run the tests of all files that are not known, and record what they call."""
        digests = {
            file: _digest([ROOT / file, *_glob(sources)])
            for target, (sources, _) in TARGETS.items()
            for file in test_files(target)
        }
        stale = [
            file
            for file, digest in digests.items()
            if self._files.get(file, {}).get("digest") != digest
        ]

        def run(files: list[str]) -> None:
            if time.monotonic() > ends_s:
                raise SystemExit("the time is over; run it again to go on")
            with tempfile.NamedTemporaryFile(suffix=".json") as out:
                done = run_tests(checkout, files, {RECORD: out.name})
                found = json.loads(Path(out.name).read_text() or "{}")
            if not found.get("tests"):
                raise SystemExit(f"no test of {files} passes:\n{done.output[-3000:]}")
            for test in found["failed"]:
                say(f"fails as it is: {test}")
            for file in files:
                own = {
                    test: it for test, it in found["tests"].items() if test.startswith(f"{file}::")
                }
                self._files[file] = {"digest": digests[file], "tests": own}
            self._path.write_text(json.dumps(self._files))
            say(f"recorded {len(found['tests'])} tests in {done.seconds:.0f} s: {' '.join(files)}")

        with ThreadPoolExecutor(jobs) as executor:
            list(executor.map(run, [stale[at : at + BATCH] for at in range(0, len(stale), BATCH)]))

    def of(self, mutation: Mutation) -> dict[str, float]:
        """Return the tests that call the changed function, and their seconds, fastest first."""
        name = f"{mutation.path.relative_to(ROOT)}:{mutation.function}"
        found = {
            test: seconds
            for file in test_files(mutation.target)
            for test, (seconds, called) in self._files[file]["tests"].items()
            if name in called
        }
        return dict(sorted(found.items(), key=lambda each: each[1]))


def test_files(target: str) -> list[str]:
    """Return the files with the tests of a target, relative to the checkout."""
    return sorted(str(path.relative_to(ROOT)) for path in _glob(TARGETS[target][1]))


def _glob(patterns: Sequence[str]) -> list[Path]:
    return sorted({path for pattern in patterns for path in ROOT.glob(pattern)})


def _digest(paths: Sequence[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


@dataclass(frozen=True)
class Run:
    """A finished run of pytest."""

    code: int
    output: str
    seconds: float


def run_tests(
    checkout: Path, files: Sequence[str], more: dict[str, str], cpu_s: int | None = None
) -> Run:
    """Run files of tests in a copy of the checkout, with limits if they run changed code."""
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider"]
    command += ["-p", "no:randomly", "-p", "scripts.mutate_plugin", "--hypothesis-seed=0"]
    started = time.monotonic()
    process = subprocess.Popen(  # in a session of its own, as tests start processes
        [*command, *(["-x"] if cpu_s else []), *files],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout), **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    RUNNING.add(process)
    if cpu_s:
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (cpu_s, cpu_s))
        resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        output, _ = process.communicate(timeout=LIMIT_S if cpu_s else None)
    except subprocess.TimeoutExpired:
        output = ""
    finally:
        kill(process)
        process.wait()
        RUNNING.discard(process)
    return Run(process.returncode, output, time.monotonic() - started)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a run of pytest and what its tests have started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def kill_all(*_: object) -> None:
    """Kill all runs, and end."""
    for process in [*RUNNING]:
        kill(process)
    os._exit(1)


def judge(mutation: Mutation, tests: dict[str, float], checkout: Path) -> Result:
    """Make a change in a copy of the checkout, and test it."""
    caught_by, seconds = "", 0.0
    if tests:
        path = checkout / mutation.path.relative_to(ROOT)
        path.write_text(mutation.text)
        files = [*dict.fromkeys(test.partition("::")[0] for test in tests)]
        try:
            with tempfile.NamedTemporaryFile("w", suffix=".json") as wanted:
                wanted.write(json.dumps([*tests]))
                wanted.flush()
                more = {SELECT: wanted.name, "PYTHONDONTWRITEBYTECODE": "1"}
                cpu_s = CPU_S + int(CPU_FACTOR * sum(tests.values()))
                done = run_tests(checkout, files, more, cpu_s)
        finally:
            shutil.copy2(mutation.path, path)  # with its time, so that its bytecode is valid
        seconds = done.seconds
        if done.code < 0:
            caught_by = f"it ran too long (signal {-done.code})"
        elif done.code in (1, 2):
            named = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.output, re.M)
            caught_by = named[1] if named else "an error"
        elif done.code:
            raise SystemExit(f"{mutation.at}: pytest ended with {done.code}\n{done.output[-3000:]}")
    return Result(
        mutation.key,
        mutation.target,
        mutation.at,
        mutation.before,
        mutation.after,
        caught_by,
        len(tests),
        round(seconds, 1),
    )


# Results


def table(results: Sequence[Result], seed: int, notes: dict[tuple[str, ...], str]) -> str:
    """Return the results in Markdown: the counts, then what survived."""
    rows, equivalent = [], Counter[str]()
    survived = sorted((one for one in results if not one.caught_by), key=lambda one: one.at)
    for one in survived:
        cells = (f"`{one.at}`", f"`{_short(one.before)}`", f"`{_short(one.after)}`")
        note = notes.get(cells, "" if one.tests else "no test calls it")
        equivalent[one.target] += note.startswith("equivalent")
        rows.append(f"| {' | '.join(cells)} | {note} |")
    lines = ["| | changes | caught | survived | equivalent | caught of the others |"]
    lines.append("|---|--:|--:|--:|--:|--:|")
    for name in (*TARGETS, "all"):
        own = [one for one in results if name in (one.target, "all")]
        same = sum(equivalent.values()) if name == "all" else equivalent[name]
        lost = sum(not one.caught_by for one in own) - same
        caught = len(own) - lost - same
        share = f"{100 * caught / max(caught + lost, 1):.0f} %"
        lines.append(f"| {name} | {len(own)} | {caught} | {lost} | {same} | {share} |")
    head = ["| survived at | before | after | note |", "|---|---|---|---|"]
    return "\n".join([f"Seed {seed}:", "", *lines, "", *head, *rows, ""])


def read_notes(path: Path | None) -> dict[tuple[str, ...], str]:
    """Return the notes in a table, by the other cells of their rows."""
    text = path.read_text() if path and path.exists() else ""
    rows = [re.split(r"(?<!\\)\|", line) for line in text.split("\n") if line.startswith("| `")]
    cells = [[cell.strip() for cell in row[1:-1]] for row in rows]
    return {tuple(row[:3]): row[3] for row in cells if len(row) == 4 and row[3]}


def _short(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("`", "'")[:70]


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Make the changes, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="test again what survived")
    parser.add_argument("--list", action="store_true", help="print the changes, and test nothing")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "mutations")
    parser.add_argument("--out", type=Path, help="write the table there as well")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no test later than that")
    options = parser.parse_args()
    ends_s = time.monotonic() + 60 * options.minutes
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, kill_all)
    possible = [
        each
        for target, (sources, _) in TARGETS.items()
        for path in _glob(sources)
        for each in mutations(target, path)
    ]
    random.Random(options.seed).shuffle(possible)
    chosen = [*itertools.islice(filter(is_valid, possible), options.count)]
    if options.list:
        say(f"{len(chosen)} of {len(possible)}")
        for one in chosen:
            say(f"{one.at} {one.function}: {_short(one.before)}  ->  {_short(one.after)}")
        return
    options.work.mkdir(parents=True, exist_ok=True)
    log = options.work / f"results-{options.seed}.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    every = [Result(**json.loads(line)) for line in lines]
    results = {one.key: one for one in every if one.caught_by or not options.again}
    with tempfile.TemporaryDirectory() as folder:
        checkouts = [Path(folder) / f"checkout{number}" for number in range(options.jobs)]
        ignored = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", ".hypothesis")
        shutil.copytree(ROOT, checkouts[0], ignore=ignored)
        tests = Tests(options.work)
        tests.record(checkouts[0], options.jobs, ends_s)
        every_file = [file for target in TARGETS for file in test_files(target)]
        run_tests(checkouts[0], ["--collect-only", *every_file], {})  # writes the bytecode
        for other in checkouts[1:]:
            shutil.copytree(checkouts[0], other)
        free = queue.SimpleQueue[Path]()
        for checkout in checkouts:
            free.put(checkout)

        def run(mutation: Mutation) -> None:
            if time.monotonic() > ends_s:
                return
            checkout = free.get()
            try:
                one = judge(mutation, tests.of(mutation), checkout)
            finally:
                free.put(checkout)
            results[one.key] = one
            with log.open("a") as file:
                file.write(json.dumps(asdict(one)) + "\n")
            say(f"{len(results)}: {one.at} {one.caught_by or 'SURVIVED'} ({one.seconds:.0f} s)")

        with ThreadPoolExecutor(options.jobs) as executor:
            list(executor.map(run, [one for one in chosen if one.key not in results]))
    found = [results[one.key] for one in chosen if one.key in results]
    made = table(found, options.seed, read_notes(options.out))
    if options.out:
        options.out.write_text(made)
    sys.stdout.write(made)


if __name__ == "__main__":
    main()
