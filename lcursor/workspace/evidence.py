"""Show what a program did before a test failed: its command runs again, under a tracer.

A model that reads only an assertion guesses. It also gets what a person would look at in a
debugger: the last calls with their arguments and results, the values where it failed, and the lines
that ran in this test but in none that passed (not for JavaScript). Programs in Python, JavaScript
and Lua are traced; others get nothing.

A tracer is loaded by an environment variable of the interpreter. It appends a line of JSON for each
failure to a file of its own, with the fields that `_failure` reads. `message` is the text of an
error that may have been handled: then the output tells whether it was a failure.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lcursor.process.run import Cancel
from lcursor.project.reading import open_regular
from lcursor.storage import json_text, stored
from lcursor.workspace.copy_folder import CopyFolder
from lcursor.workspace.outputs import cut_line, printable
from lcursor.workspace.shell import NOT_STARTED, CommandResult, Shell

TRACERS: Final = Path(__file__).with_name("tracers")
MAX_S: Final = 20.0
"""A command that took longer is not repeated."""
SLOWER: Final = 5.0
"""How much longer it may take under a tracer."""
MAX_FAILURES: Final = 2
MAX_LINES: Final = 6
"""Of those that ran only in failing tests."""
MAX_CHARS: Final = 1600
MAX_BYTES: Final = 1 << 20
TEST: Final = re.compile(
    r"\b(?:pytest|unittest|jest|mocha|vitest|busted)\b|Plenary|MiniTest"
    r"|\bnode --test\b|\bnpm (?:run )?test\b"
)
"""Matches commands of a model that may be repeated, as they run tests."""
MAX_SEARCHED: Final = 200
"""Lines of the output, from its end."""
NEOVIM: Final = (
    'export LCURSOR_EVIDENCE_NVIM="$(command -v nvim)" PATH="$LCURSOR_EVIDENCE/bin:$PATH"; '
)
"""What comes before a command so that `nvim` is the script of the tracers that starts Neovim."""
HEAD: Final = "It was run again under a tracer. What happened before it failed:"

ReadLines = Callable[[str], Sequence[str]]
"""Returns the lines of a file of the project; none if it cannot be read."""
Variables = Mapping[str, str]
"""Of the environment."""


def _python(folder: Path, own: Variables) -> Variables:
    return {
        "PYTHONPATH": _joined(":", str(folder), own.get("PYTHONPATH")),
        "PYTEST_PLUGINS": _joined(",", "lcursor_pytest", own.get("PYTEST_PLUGINS")),
    }


def _javascript(folder: Path, own: Variables) -> Variables:
    load = f'--require "{folder}/node.cjs"'
    return {"NODE_OPTIONS": _joined(" ", load, own.get("NODE_OPTIONS"))}


def _lua(folder: Path, own: Variables) -> Variables:
    return {
        "LUA_INIT": f"@{folder}/trace.lua",
        "LCURSOR_LUA_INIT": own.get("LUA_INIT", ""),
        "XDG_CONFIG_DIRS": _joined(":", str(folder), own.get("XDG_CONFIG_DIRS", "/etc/xdg")),
    }


def _joined(separator: str, *parts: str | None) -> str:
    return separator.join(filter(None, parts))


LANGUAGES: Final = (
    (re.compile(r"python|pytest|unittest|\.py\b|^Traceback "), _python),
    (re.compile(r"\b(?:node|npm|npx|yarn|pnpm|jest|mocha|vitest)\b|\.[cm]?[jt]sx?\b"), _javascript),
    (re.compile(r"\b(?:lua(?:jit)?[\d.]*|nvim|[Bb]usted|luaunit)\b|\.lua\b"), _lua),
)
"""What matches a command, or a line of its output, that has to do with a language; and what returns
the variables that load the tracer of a folder, given the variables that commands have anyway."""


def is_test(command: str, tests: str) -> bool:
    """Return whether a command may be repeated.

    Args:
        tests: the user's command for tests.
    """
    return command == tests or TEST.search(command) is not None


def collect(
    shell: Shell, command: str, result: CommandResult, cancel: Cancel, folder: Path
) -> list[str]:
    """Return what a failed command did, as lines; nothing if that cannot be found out. Blocks.

    Args:
        result: of its first run.
        folder: the files that it ran on.

    Raises:
        Cancelled: `cancel` returned true.
    """
    has_failed = result.status and result.status not in NOT_STARTED
    if not has_failed or not shell.is_confined or result.seconds > MAX_S:
        return []
    texts = (command, *result.lines[-MAX_SEARCHED:])
    loaders = [load for about, load in LANGUAGES if any(map(about.search, texts))]
    if not loaders:
        return []
    try:
        copy = CopyFolder()
    except OSError:
        return []
    try:
        shutil.copytree(TRACERS, copy.path, dirs_exist_ok=True)
        root = shell.visible_path(folder)
        env = {"LCURSOR_EVIDENCE": str(copy.path), "LCURSOR_EVIDENCE_ROOT": str(root)}
        for load in loaders:
            env |= load(copy.path, shell.env)
        max_s = SLOWER * result.seconds + SLOWER
        if _lua in loaders:
            command = NEOVIM + command
        output = shell.run(
            command, cancel, max_s=max_s, folder=folder, private=copy.path, env=env
        ).lines
        records = [each for each in _records(copy.path) if _is_reported(each, output)]
        return describe(records, lambda name: _lines(folder, name))
    finally:
        copy.delete()


def describe(records: Sequence[Mapping[str, Any]], read: ReadLines) -> list[str]:
    """Return the records of a tracer as lines for a model; nothing if there are none."""
    found, size = [HEAD], len(HEAD)
    for record in records[:MAX_FAILURES]:
        for line in ("", *_failure(record, read)):
            text = cut_line(printable(line))
            size += len(text) + 1
            if size > MAX_CHARS:
                return found
            found.append(text)
    return found if records else []


def _is_reported(record: Mapping[str, Any], output: Sequence[str]) -> bool:
    """Return whether an error is one that a command reports, by the first line of its message."""
    first = next(iter(printable(record.get("message") or "").splitlines()), "").strip()
    return not first or any(first in line for line in output)


def _failure(record: Mapping[str, Any], read: ReadLines) -> Iterator[str]:
    if record["test"]:
        yield f"Test {record['test']}: {record['error']}"
    for call in record["calls"]:
        given = ", ".join(f"{name}={value}" for name, value in call["arguments"])
        end = f"raised {call['raised']}" if call["raised"] else f"returned {call['result']}"
        yield f"  {call['name']}({given}) {end}  [{call['path']}:{call['line']}]"
    for frame in record["frames"]:
        code = _line(read, frame["path"], frame["line"])
        yield f"At {frame['path']}:{frame['line']} in {frame['name']}: {code}"
        yield from (f"  {name} = {value}" for name, value in frame["names"])
    only = [(path, line) for path, _, lines in record["only"] for line in lines]
    if only:
        yield "Lines that ran in this test and in none that passed:"
        for path, line in only[:MAX_LINES]:
            yield f"  {path}:{line}: {_line(read, path, line)}"


def _line(read: ReadLines, path: str, number: int) -> str:
    lines = read(path)
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def _records(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield what the tracers wrote: a program of the project may have written it, too."""
    for path in sorted(folder.glob("*.jsonl")):
        with contextlib.suppress(OSError), open_regular(path, follows_links=False) as file:
            for line in file.read(MAX_BYTES).splitlines():
                with contextlib.suppress(*stored.DAMAGE):
                    record = json_text.parse(line.decode("utf-8", "replace"))
                    [*_failure(record, lambda _: ()), str.strip(record.get("message") or "")]
                    # It has the right form.
                    yield record


def _lines(folder: Path, name: str) -> Sequence[str]:
    with contextlib.suppress(OSError, ValueError):
        path = (folder / name).resolve()
        if path.is_relative_to(folder.resolve()):
            with open_regular(path, follows_links=False) as file:
                return file.read(MAX_BYTES).decode("utf-8", "replace").splitlines()
    return ()
