"""`bench agent-tools`: what an agent's tools cost on 5,000 files, without a model and its commands.

The project consists of this one's Python files, repeated with other names.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from bench.report import Json, Report, measuring, ms_since
from lcursor.agent.dialects.native import Native
from lcursor.agent.records import Observation, ToolCall
from lcursor.agent.tools.lookup import open_codebase
from lcursor.agent.tools.toolbox import make_toolbox
from lcursor.config import AgentConfig, EditConfig
from lcursor.drive.editor import ROOT
from lcursor.errors import LcursorError
from lcursor.index.client import Client
from lcursor.llm.tokens import BYTES_PER_TOKEN
from lcursor.process.sandbox import open_sandbox
from lcursor.workspace.tree import Tree

FILES = 5000
ROUNDS = 60
TOKENS = 2000
VIEW_MS, GREP_MS, SEARCH_MS, EDIT_MS = 5.0, 150.0, 60.0, 50.0
INDEX_S = 400.0
QUERIES = (
    "where are unsaved buffers searched", "class Reader", "kill the whole process group",
    "tokens of the prompt", "how is a file written atomically", "def parse", "secrets globs",
)  # fmt: skip
PATTERNS = (r"def \w+_of\(", "class Seen", "TimeoutError", r"import (os|re)$", "nowhere at all")


@contextlib.contextmanager
def _project(files: int) -> Iterator[tuple[Path, Path]]:
    """Make a project of that many files; return its root and a folder for the run."""
    sources = [path for path in sorted(ROOT.glob("lcursor/**/*.py")) if path.stat().st_size]
    with tempfile.TemporaryDirectory(prefix="lcursor-bench-", ignore_cleanup_errors=True) as name:
        root = Path(name) / "project"
        for number in range(files):
            source = sources[number % len(sources)]
            copy = root / f"part{number // len(sources)}" / source.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
        for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "one")):
            identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
            subprocess.run(["git", "-C", str(root), *identity, *words], check=True)
        os.environ["LCURSOR_DATA"] = f"{name}/data"
        os.environ["XDG_CACHE_HOME"] = f"{name}/cache"
        yield root, Path(name) / "run"


def _build_index(root: Path) -> Client:
    """Index the project by words, and return a client."""
    measuring("the index is built")
    client = Client(root, start=True, embedder="none")
    client.call("begin", confirmed=True, rebuild=False)
    end_s = time.monotonic() + INDEX_S
    while client.call("status")["phase"] != "ready":
        if time.monotonic() > end_s:
            raise LcursorError("the index was not built in time", "Run it on an idle machine")
        time.sleep(0.5)
    return client


def command(
    files: Annotated[int, typer.Option(help="Files of the project.")] = FILES,
    has_index: Annotated[bool, typer.Option("--index/--no-index")] = True,
    as_json: Json = False,
) -> None:
    """Measure the tools of an agent; exits with 1 when a promise is not kept."""
    with _project(files) as (root, run):
        report = Report()
        worker = _build_index(root) if has_index else None
        try:
            _measure(report, root, run)
        finally:
            if worker:
                worker.call("stop")
                worker.close()
    sandbox = open_sandbox().level
    report.finish(as_json, f"Project: {files:,} Python files; sandbox: {sandbox}")


def _measure(report: Report, root: Path, run: Path) -> None:
    measuring("the copy")
    began_s = time.perf_counter()
    tree = Tree.create(root, run, unsaved={})
    report.add("copy of the project", [ms_since(began_s)])
    tools = make_toolbox(
        tree,
        open_sandbox(),
        open_codebase(tree),
        AgentConfig(),
        EditConfig(),
        dialect=Native(),
        count=lambda text: int(len(text) / BYTES_PER_TOKEN),
        budget_tokens=TOKENS,
    )

    def timed(name: str, calls: Callable[[int], ToolCall], limit: float | None = None) -> None:
        measuring(name)
        samples = []
        for number in range(ROUNDS):
            call = calls(number)
            began_s = time.perf_counter()
            found: Observation = tools.run(call, lambda: False)
            samples.append(ms_since(began_s))
            if found.is_error:
                raise LcursorError(f"{name}: {found.text}")
        report.add(name, samples, limit=limit)

    def editor(command: str, path: str, **given: object) -> ToolCall:
        return ToolCall("str_replace_editor", {"command": command, "path": path, **given})

    names = sorted(path.relative_to(tree.path).as_posix() for path in tree.path.rglob("*.py"))
    longest = sorted(names, key=lambda name: -(tree.path / name).stat().st_size)[:ROUNDS]
    timed("view", lambda n: editor("view", names[n * 31 % len(names)]), VIEW_MS)
    timed("view of a folder", lambda n: editor("view", "part0/lcursor"))
    timed("grep", lambda n: ToolCall("grep", {"pattern": PATTERNS[n % len(PATTERNS)]}), GREP_MS)
    timed("glob", lambda n: ToolCall("glob", {"pattern": "*_file.py"}))
    timed("search", lambda n: ToolCall("search", {"query": QUERIES[n % len(QUERIES)]}), SEARCH_MS)
    for name in longest:
        tools.run(editor("view", name, view_range=[1, 5]), lambda: False)

    def edit(number: int) -> ToolCall:
        head = (tree.path / longest[number]).read_text().split("\n", 1)[0]
        return editor("str_replace", longest[number], old_str=f"{head}\n", new_str=f"{head} #\n")

    timed("edit with checks, longest files", edit, EDIT_MS)
    tree.checkpoint()
    timed(f"search with {ROUNDS} changed files",
          lambda n: ToolCall("search", {"query": QUERIES[n % len(QUERIES)]}),
          SEARCH_MS)  # fmt: skip
    timed("bash: true", lambda n: ToolCall("bash", {"command": "true"}))
