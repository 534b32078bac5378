"""`python -m lcursor eval summaries`: the size of an agent's summaries, and what they keep.

Each run is made of a commit of a repository: its message is the task, its files are read, searched,
changed and tested in 20 to 170 steps. The counts are those of the model's tokenizer. The model's
own part has the greatest length that it may have, so that the sizes are upper bounds.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.report import Json, percent, percentile, table
from evals.corpus import ROOT
from lcursor.agent import summary
from lcursor.agent.records import Call, Observation, Shown
from lcursor.agent.run_log import RunState, Step
from lcursor.catalog import store
from lcursor.config import CompletionConfig
from lcursor.errors import LcursorError
from lcursor.fim.engine import Engine
from lcursor.workspace.tree import Changed

MIN_FILES, MAX_FILES = 2, 14
MIN_STEPS, MAX_STEPS = 20, 170
MAX_LINES = 60
MAX_TOKENS, MAX_REREAD_TOKENS = 1000, 1300
SAID = (
    "Keep the public names.", "Do not touch the tests, please.", "Use the words of the glossary.",
    "The last function was fine as it was; leave it, and look at how its callers use the result.",
)  # fmt: skip
WRITTEN = "Known:\n" + "- the function reads each row of the file and returns the first one\n" * 99


@dataclass(frozen=True, slots=True)
class Files:
    """The files that a commit changes."""

    listed: tuple[Changed, ...]
    texts: Mapping[str, bytes]

    def changed(self, since: str = "") -> Sequence[Changed]:
        """Return them."""
        return self.listed

    def contents(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return their contents."""
        return {key: self.texts[key] for key in keys}


@dataclass(frozen=True, slots=True)
class Made:
    """A run, with what its summary must keep."""

    state: RunState
    files: Files
    failure: str
    """The name of the last failing test."""


def command(
    repo: Annotated[Path, typer.Option(help="A repository.", show_default=False)] = ROOT,
    count: Annotated[int, typer.Option(help="Number of runs.")] = 180,
    seed: Annotated[int, typer.Option(help="Of the random choices.")] = 1,
    as_json: Json = False,
) -> None:
    """Measure summaries of made runs with the tokenizer of the default model."""
    name = CompletionConfig().model
    engine = Engine(store.resolve(name, "completion"), "", CompletionConfig(), lambda _: True)
    try:
        rows = [_measure(each, engine) for each in _runs(repo, count, seed)]
    finally:
        engine.close()
    if not rows:
        raise LcursorError(f"{repo} has no commit of {MIN_FILES} files", "Give another one: --repo")
    document = _as_dict(rows)
    if not as_json:
        typer.echo("\n".join(_as_markdown(document)) + "\n")
    typer.echo(json.dumps(document))


def _runs(repo: Path, count: int, seed: int) -> Iterator[Made]:
    """Make runs of commits that are chosen at random."""
    chance = random.Random(seed)
    commits = _git(repo, "log", "--no-merges", "--format=%H").split()
    chance.shuffle(commits)
    made = 0
    for commit in commits:
        names = _git(repo, "diff-tree", "-r", "--no-commit-id", "--name-status", commit)
        rows = [row.split("\t") for row in names.splitlines()]
        edits = [path for kind, path, *_ in rows if kind in "AMD" and not path.endswith(".md")]
        if made < count and MIN_FILES <= len(edits) <= MAX_FILES:
            made += 1
            yield _run(repo, commit, edits, chance)


def _run(repo: Path, commit: str, paths: Sequence[str], chance: random.Random) -> Made:
    texts, listed = dict[str, bytes](), []
    for path in paths:
        before, after = (_show(repo, at, path) for at in (f"{commit}^", commit))
        kind = "edit" if before and after else "create" if after else "delete"
        keys = (f"{path}^" if before else "0", path if after else "0")
        texts |= {keys[0]: before, keys[1]: after}
        added, removed = len(after.splitlines()), len(before.splitlines())
        listed.append(Changed(path, kind, added=added, removed=removed, keys=keys))  # type: ignore[arg-type]
    others = _git(repo, "ls-tree", "-r", "--name-only", commit).splitlines()
    failure = f"tests/test_{chance.choice(paths).rpartition('/')[2].partition('.')[0]}.py::test_it"
    steps: list[Step] = []
    total = chance.randint(MIN_STEPS, MAX_STEPS)
    while len(steps) < total:
        path = chance.choice([*paths, chance.choice(others)])
        lines = _show(repo, commit, path).decode("utf-8", "replace").splitlines() or [""]
        call, found = _step(path, lines, failure, chance)
        steps.append(Step(len(steps) + 1, call, observation=found))
    state = RunState(task=_git(repo, "show", "-s", "--format=%B", commit).strip(), steps=steps)
    state.said = chance.sample(SAID, chance.randint(0, len(SAID)))
    state.read = len(state.said)
    return Made(state, Files(tuple(listed), texts), failure)


def _step(
    path: str, lines: Sequence[str], failure: str, chance: random.Random
) -> tuple[Call, Observation]:
    """Return a call with what a tool would return."""
    first = chance.randrange(len(lines))
    last = min(first + chance.randint(5, MAX_LINES), len(lines))
    rows = "\n".join(f"{row + 1:6d}\t{lines[row]}" for row in range(first, last))
    what = chance.random()
    if what < 0.2:
        words = f"pytest -q {failure.partition('::')[0]}"
        is_good = chance.random() < 0.3
        text = "12 passed" if is_good else f"{rows}\nE  AssertionError\nFAILED {failure}\n1 failed"
        status = 0 if is_good else 1
        call = Call("bash", {"command": words})
        return call, Observation(text, not is_good, words, f"exit {status}", status=status)
    if what < 0.3:
        call = Call("bash", {"command": f"git log -3 --oneline -- {path} | head -{first + 1}"})
        return call, Observation("a b c", False, call.arguments["command"], "exit 0", status=0)
    if what < 0.4:
        call = Call("grep", {"pattern": chance.choice(lines).strip()[:30]})
        return call, Observation(f"{path}:{first + 1}: {lines[first]}", target="grep")
    verb = "view" if what < 0.8 else "str_replace"
    shown = (Shown(path, first, last),)
    call = Call("str_replace_editor", {"command": verb, "path": path})
    return call, Observation(rows, target=f"{path}:{first + 1}-{last}", shown=shown)


def _measure(run: Made, engine: Engine) -> dict[str, Any]:
    """Summarize a run, and compare the summary with the run."""

    def count(text: str) -> int:
        return len(engine.model.tokenize(text))

    whole = summary.compose(run.state, run.files, WRITTEN, count)
    own = whole.partition("\n\nResult of ")[0]
    ran = [step for step in run.state.steps if step.kind == "command" and step.observation]
    tests = [step for step in ran if "pytest" in step.target]
    is_red = bool(tests and tests[-1].observation and tests[-1].observation.status)
    return {
        "steps": len(run.state.steps),
        "tokens": count(own),
        "facts": count(own.partition("\n\nKnown:")[0]),
        "reread": count(whole),
        "files": [each.path.rpartition("/")[2] in own for each in run.files.changed()],
        "said": [text in own for text in run.state.said],
        "failures": [run.failure in own] if is_red else [],
    }


def _as_dict(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    sizes = {
        f"{name}_{kind}": int(percentile([row[name] for row in rows], size))
        for name in ("steps", "facts", "tokens", "reread")
        for kind, size in (("p50", 50), ("p95", 95), ("most", 100))
    }
    kept = {
        name: [sum(map(sum, (row[name] for row in rows))), sum(len(row[name]) for row in rows)]
        for name in ("files", "failures", "said")
    }
    return {"runs": len(rows), **sizes, "kept": kept}


def _as_markdown(found: Mapping[str, Any]) -> list[str]:
    names = {
        "steps": ("steps of the run", ""),
        "facts": ("tokens that the program wrote", ""),
        "tokens": ("tokens of the summary", MAX_TOKENS),
        "reread": ("tokens with the last results", MAX_REREAD_TOKENS),
    }
    rows = [
        (text, *(found[f"{name}_{kind}"] for kind in ("p50", "p95", "most")), limit)
        for name, (text, limit) in names.items()
    ]
    lines = table([f"{found['runs']} runs", "p50:", "p95:", "most:", "limit of p95:"], rows)
    texts = {"files": "changed files", "failures": "failing tests", "said": "messages of the user"}
    counts = [
        (texts[name], f"{kept} of {all_}", percent(kept / max(all_, 1)))
        for name, (kept, all_) in found["kept"].items()
    ]
    return [*lines, "", *table(["named in the summary", "count:", "share:"], counts)]


def _show(repo: Path, commit: str, path: str) -> bytes:
    """Return a file's content; empty if it does not exist."""
    words = ["git", "-C", str(repo), "show", f"{commit}:{path}"]
    return subprocess.run(words, capture_output=True, check=False).stdout


def _git(repo: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(repo), *words], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")
