"""Which changes of a run no test needs, with real tests in the sandbox and with random ones."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcursor.agent import minimal
from lcursor.agent.minimal import marked
from lcursor.agent.result import file_changes
from lcursor.agent.tools.toolbox import checks_of
from lcursor.changes import diff
from lcursor.changes.history import History
from lcursor.changes.records import Check, FileChange, Lines
from lcursor.changes.sources import Sources
from lcursor.config import AgentConfig, EditConfig
from lcursor.process.run import Cancel
from lcursor.process.sandbox import open_sandbox
from tests.unit.workspace.projects import Project, project

__all__ = ["project"]
BASE = "".join(f"def f{number}():\n    return {number}\n\n\n" for number in range(6))
TESTS = """\
import unittest

import code_


class Tests(unittest.TestCase):
    def test_two(self):
        self.assertEqual(code_.f2(), 22)

    def test_four(self):
        self.assertEqual(code_.f4(), 44)
"""
TEST = f"{shlex.quote(sys.executable)} -m unittest -q"


class Run:
    """A run that has changed files, whose tests pass."""

    def __init__(self, project: Project, files: Mapping[str, str]) -> None:
        self.root = project.repository({"code_.py": BASE, "test_code.py": TESTS, "notes.md": "a\n"})
        self.tree = project.tree()
        for name, text in files.items():
            (self.tree.path / name).write_text(text)
        self.changes = file_changes(self.tree)

    def marked(self, config: EditConfig | None = None) -> tuple[FileChange, ...]:
        """Mark what the tests do not need."""
        checks = checks_of(
            self.tree, open_sandbox(), AgentConfig(), config or EditConfig(test=TEST)
        )

        def write(name: str, lines: Lines) -> None:
            (self.tree.path / name).write_text("\n".join(lines) + "\n")

        files, bases = self.changes.files, self.changes.bases
        return marked(self.root, files, bases, write, checks, bool)


def fixed(*numbers: int) -> str:
    """Return the code with other results of some functions."""
    text = BASE
    for number in numbers:
        text = text.replace(f"return {number}\n", f"return {number}{number}\n")
    return text


def new_lines(file: FileChange) -> list[str]:
    """Return the first new line of each marked change."""
    return [each.new[0].strip() for each in file.changes if each.key in file.unneeded]


@pytest.fixture(autouse=True)
def _sandbox() -> None:
    if open_sandbox().level == "none":
        pytest.skip("no sandbox works here")


def test_changes_that_no_test_needs_are_marked(project: Project) -> None:
    run = Run(project, {"code_.py": fixed(1, 2, 4, 5)})
    (file,) = run.marked()
    assert new_lines(file) == ["return 11", "return 55"]
    wire = Sources(run.root).to_wire(file)
    assert wire["unneeded"] == [0, 3]


def test_marks_survive_in_the_history(project: Project) -> None:
    run = Run(project, {"code_.py": fixed(1, 2, 4)})
    files = run.marked()
    data = run.root.parent / "data"
    key = History(run.root, data).begin("task", files, bases=run.changes.bases)
    (file,) = History(run.root, data).open_files(key)
    assert new_lines(file) == ["return 11"]


@pytest.mark.parametrize(
    "files",
    [
        {"code_.py": fixed(2, 4)},  # all are needed
        {"code_.py": fixed(2, 4), "notes.md": "b\n"},  # no test runs it
        {"code_.py": fixed(2, 4), "test_code.py": TESTS + "\n# more\n"},
        {"code_.py": fixed(2, 4), "new.py": "x = 1\n"},
    ],
)
def test_nothing_else_is_marked(project: Project, files: Mapping[str, str]) -> None:
    assert [file.unneeded for file in Run(project, files).marked() if file.unneeded] == []


def test_tests_that_pass_without_any_change_say_nothing(project: Project) -> None:
    run = Run(project, {"code_.py": fixed(1, 5)})
    (file,) = run.marked(EditConfig(test="true"))
    assert file.unneeded == ()


def test_a_change_that_the_linter_needs_stays(project: Project) -> None:
    run = Run(project, {"code_.py": fixed(1, 2, 4)})
    lint = "grep -n 'return 1$' {path} && exit 1 || true"
    (file,) = run.marked(EditConfig(test=TEST, lint=lint))
    assert file.unneeded == ()


class Oracle:
    """Tests that pass if the files have some changes, and a count of their runs."""

    def __init__(self, texts: dict[str, Lines], needed: Sequence[str]) -> None:
        self.texts, self.needed, self.runs = texts, needed, 0

    def test(self, path: str, cancel: Cancel) -> Check | None:
        self.runs += 1
        return Check("test", self.passes())

    def lint(self, path: str, lines: Sequence[str], cancel: Cancel) -> list[str]:
        return []

    def passes(self) -> bool:
        return {line for lines in self.texts.values() for line in lines} >= set(self.needed)


def test_equal_changes_are_marked_together_or_not_at_all() -> None:
    base = ("if a:", "    return", "", "if b:", "    return", "", "c = 1")
    after = ("if a:", "    raise", "", "if b:", "    raise", "", "c = 2")
    file = FileChange("/p/a.py", changes=diff.changes(base, after))
    for needed, count in (("    raise", 1), ("c = 2", 2)):
        oracle = Oracle({"a.py": after}, [needed])
        found = marked(
            Path("/p"), [file], {file.path: base}, oracle.texts.__setitem__, oracle, bool
        )
        assert minimal.count(found) == count
        assert oracle.passes()


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_what_is_marked_can_be_left_out_together(data: Any) -> None:
    root, texts, files, bases = Path("/p"), {}, list[FileChange](), {}
    for name in ("a.py", "b.py"):
        rows = data.draw(st.sets(st.integers(0, 19), max_size=8))
        base = tuple(f"{name} {row}" for row in range(40))
        after = tuple(f"new {line}" if row // 2 in rows and row % 2 == 0 else line
                      for row, line in enumerate(base))  # fmt: skip
        if after != base:
            path = str(root / name)
            files.append(FileChange(path, changes=diff.changes(base, after)))
            texts[name], bases[path] = after, base
    lines = [line for text in texts.values() for line in text if line.startswith("new")]
    needed = data.draw(st.lists(st.sampled_from(lines), unique=True)) if lines else []
    oracle = Oracle(dict(texts), needed)
    found = marked(root, files, bases, oracle.texts.__setitem__, oracle, bool)
    assert oracle.passes()
    assert oracle.runs <= minimal.MAX_CHANGES
    kept = {
        line
        for file in found
        for each in file.changes
        if each.key not in file.unneeded
        for line in each.new
    }
    if minimal.count(found):
        assert kept == set(needed)  # exactly what the tests need
    assert [each.changes for each in found] == [each.changes for each in files]
