"""Attempts to leave the tree by the file tools, which run in the host and not in the sandbox."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from string import Template

from evals.escapes.attempts import Attempt
from evals.escapes.host import Finding, Names
from lcursor.agent.dialects.native import Native
from lcursor.agent.records import ToolCall
from lcursor.agent.tools.toolbox import make_toolbox
from lcursor.config import AgentConfig, EditConfig
from lcursor.context.codebase import GrepSearch
from lcursor.process.sandbox import Level, Sandbox
from lcursor.workspace.tree import Tree

EDITOR = "str_replace_editor"
TOKENS = 4000
REPEATS = {"a link that changes meanwhile": (40, 5000)}
"""In the sandbox, and by the control, which takes less time than a change of the link."""


def calls(path: str) -> Iterator[ToolCall]:
    """Yield every way to read or write a path."""
    yield ToolCall("grep", {"pattern": "secret|evil", "path": path})
    yield ToolCall("glob", {"pattern": path})
    yield ToolCall("grep", {"pattern": "secret", "glob": path})
    yield ToolCall(EDITOR, {"command": "view", "path": path})
    yield ToolCall(EDITOR, {"command": "str_replace", "path": path, "old_str": "e", "new_str": "f"})
    yield ToolCall(EDITOR, {"command": "insert", "path": path, "insert_line": 0, "new_str": "evil"})
    yield ToolCall(EDITOR, {"command": "create", "path": path, "file_text": "evil\n"})


def attempt(attempt: Attempt, level: Level | None, names: Names) -> tuple[bytes, set[Finding]]:
    """Use the tools on paths that a command has prepared: the control, on the same paths naively.

    The script of an attempt prepares files, without a sandbox; its `second` is a list of paths, one
    a line.
    """
    root = Path(names["P"])
    here = root
    if level is not None:
        tree = Tree.create(root, Path(names["T"]).parent / "copy", unsaved={})
        here = tree.path
    prepare = subprocess.Popen(
        ["bash", "-c", attempt.script], cwd=here, env={**os.environ, **names}
    )
    with suppress(subprocess.TimeoutExpired):
        prepare.wait(0.5)
    try:
        paths = [Template(line).substitute(names) for line in attempt.second.splitlines()]
        paths = [path.replace("\\n", "\n").replace("\\xff", "\udcff") for path in paths]
        paths *= REPEATS.get(attempt.name, (1, 1))[level is None]
        if level is None:
            return b"".join({_naively(here / path) for path in paths}), set()
        output = _properly(tree, level, paths)
        prepare.kill()  # no process outlives a command
        prepare.wait()
        tree.checkpoint()
        return output, set()
    finally:
        prepare.kill()
        prepare.wait()


def _properly(tree: Tree, level: Level, paths: list[str]) -> bytes:
    tools = make_toolbox(
        tree,
        Sandbox(level),
        GrepSearch(tree.path),
        AgentConfig(),
        EditConfig(),
        dialect=Native(),
        count=lambda text: len(text) // 3,
        budget_tokens=TOKENS,
    )
    found = [tools.run(call, lambda: False).text for path in paths for call in calls(path)]
    return "\n".join(found).encode(errors="replace")


def _naively(path: Path) -> bytes:
    """Read and write a file as a tool without precautions does."""
    found = b""
    with suppress(OSError):
        found = path.read_bytes()
    with suppress(OSError):
        number = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.write(number, b"evil\n")
        os.close(number)
    return found[: 1 << 20]
