"""Change the code at random, one place at a time, and list the changes that no test notices.

    python scripts/mutate.py --count 100 --seed 1 --out bench/results/mutations.md

Each change is made in a copy of the checkout and tested there with the tests of its package, until
the first failure. Equivalent changes count as unnoticed; look at the list.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {
    "lcursor/fim": "tests/unit/fim",
    "lcursor/edit/apply": "tests/unit/edit",
    "lcursor/index/rank.py": "tests/unit/index",
}
"""What is changed, and the tests that should notice."""
LIMIT_S = 300.0
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
}


@dataclass(frozen=True)
class Mutation:
    """One change of a file."""

    path: Path
    tests: str
    line: int
    before: str
    after: str
    text: str
    """The whole changed file."""


def changed(node: ast.AST) -> ast.AST | None:
    """Return a changed copy of a node, None if there is no change for its kind."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in SWAPS:
        new.ops[0] = SWAPS[type(new.ops[0])]()
    elif isinstance(new, ast.BinOp | ast.BoolOp) and type(new.op) in SWAPS:
        new.op = SWAPS[type(new.op)]()
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not):
        return new.operand
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        new.value = not new.value
    elif isinstance(new, ast.Constant) and isinstance(new.value, int):
        new.value += 1
    elif isinstance(new, ast.Return) and new.value is not None:
        new.value = ast.Constant(None)
    elif isinstance(new, ast.Expr) and isinstance(new.value, ast.Call):
        return ast.Pass()
    else:
        return None
    return new


def bodies(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes in the bodies of functions; annotations and defaults are left alone."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                yield from ast.walk(statement)


def mutations(path: Path, tests: str) -> list[Mutation]:
    """Return all changes of a file."""
    source = path.read_text()
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    data, found = source.encode(), []
    for node in {id(each): each for each in bodies(ast.parse(source))}.values():
        new = changed(node)
        if new is None:
            continue
        start = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        after = ast.unparse(new)
        if isinstance(new, ast.expr):
            after = f"({after})"
        text = (data[:start] + after.encode() + data[end:]).decode()
        before = data[start:end].decode()
        found.append(Mutation(path, tests, node.lineno, before, after, text))  # type: ignore[attr-defined]
    return found


def is_noticed(mutation: Mutation, checkout: Path) -> bool:
    """Run the tests on a change in a copy of the checkout; return whether one fails."""
    path = checkout / mutation.path.relative_to(ROOT)
    path.write_text(mutation.text)
    own = sorted((checkout / mutation.tests).rglob(f"test_{path.stem}*.py"))
    try:
        for tests in filter(None, (own, [checkout / mutation.tests])):
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
            try:
                done = subprocess.run(
                    [*command, *map(str, tests)],
                    cwd=checkout,
                    env={**os.environ, "PYTHONPATH": str(checkout)},
                    capture_output=True,
                    timeout=LIMIT_S,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return True
            if done.returncode:
                return True
        return False
    finally:
        path.write_text(mutation.path.read_text())


def main() -> None:
    """Make the changes and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the table there as well, after each change")
    options = parser.parse_args()
    possible: list[Mutation] = []
    for target, tests in TARGETS.items():
        path = ROOT / target
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        possible += [each for file in files for each in mutations(file, tests)]
    chosen = random.Random(options.seed).sample(possible, min(options.count, len(possible)))
    survivors: list[Mutation] = []
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "checkout"
        shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(".git", ".venv", ".*_cache"))
        for number, mutation in enumerate(chosen, 1):
            started = time.monotonic()
            if not is_noticed(mutation, checkout):
                survivors.append(mutation)
            seconds = time.monotonic() - started
            sys.stdout.write(
                f"{number}/{len(chosen)}: {len(survivors)} unnoticed, {seconds:.0f} s\n"
            )
            sys.stdout.flush()
            if options.out:
                options.out.write_text(table(number, survivors, options.seed))
    sys.stdout.write(table(len(chosen), survivors, options.seed))


def table(count: int, survivors: list[Mutation], seed: int) -> str:
    """Return the result in Markdown."""
    share = 100 * (count - len(survivors)) / count
    rows = [
        f"| {each.path.relative_to(ROOT)}:{each.line} | `{_short(each.before)}` "
        f"| `{_short(each.after)}` |"
        for each in survivors
    ]
    head = f"{count - len(survivors)} of {count} changes were noticed ({share:.0f} %), seed {seed}."
    return "\n".join([head, "", "| unnoticed at | before | after |", "|---|---|---|", *rows, ""])


def _short(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:70]


if __name__ == "__main__":
    main()
