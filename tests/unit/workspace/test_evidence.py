"""What failed tests did before they failed, with real programs in the sandbox."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lcursor.config import AgentConfig
from lcursor.process.sandbox import LEVELS, Level, Sandbox, open_sandbox, probe
from lcursor.workspace import evidence
from lcursor.workspace.evidence import HEAD, collect, describe, is_test
from lcursor.workspace.shell import CommandResult, Shell
from tests.unit.workspace.projects import Project, project

__all__ = ["project"]
pytestmark = pytest.mark.skipif(open_sandbox().level == "none", reason="no sandbox works here")

CART = """\
class Cart:
    def __init__(self):
        self.items = []

    def add(self, price, count=1):
        self.items.append((price, count))

    def total(self):
        result = 0
        for price, count in self.items:
            if count > 1:
                result += price
            else:
                result += price * count
        return result
"""
TESTS = """\
import unittest

from cart import Cart


class Tests(unittest.TestCase):
    def test_many(self):
        cart = Cart()
        cart.add(3, 2)
        total = cart.total()
        self.assertEqual(total, 6)

    def test_one(self):
        cart = Cart()
        cart.add(3)
        self.assertEqual(cart.total(), 3)
"""
DEFAULTS = AgentConfig()
UNITTEST = f"{shlex.quote(sys.executable)} -m unittest -q"
PYTEST = f"{shlex.quote(sys.executable)} -m pytest -q -p no:randomly -p no:cacheprovider"
CALL = "  Cart.add(self=Cart(items=[]), price=3, count=2) returned None  [cart.py:5]"


def traced(
    project: Project,
    command: str,
    files: Mapping[str, str],
    config: AgentConfig = DEFAULTS,
    sandbox: Sandbox | None = None,
) -> list[str]:
    """Return what is said of a command that fails in a project with some files."""
    project.repository(files)
    tree = project.tree()
    shell = Shell(tree, sandbox or open_sandbox(), config, (command,))
    result = shell.run(command, bool)
    return collect(shell, command, result, bool, tree.path)


@pytest.mark.parametrize(
    ("command", "test"),
    [
        (UNITTEST, "test_many (test_cart.Tests.test_many)"),
        (PYTEST, "test_cart.py::Tests::test_many"),
    ],
)
def test_calls_values_and_lines_of_a_failed_test(project: Project, command: str, test: str) -> None:
    found = traced(project, command, {"cart.py": CART, "test_cart.py": TESTS})
    assert found[0] == HEAD
    if sys.version_info >= (3, 11):  # earlier ones name neither the class nor the whole test
        assert f"Test {test}: AssertionError('3 != 6')" in found
        assert CALL in found
    assert "At test_cart.py:11 in test_many: self.assertEqual(total, 6)" in found
    assert "  cart = Cart(items=[(3, 2)])" in found
    assert "  total = 3" in found
    at = found.index("Lines that ran in this test and in none that passed:")
    assert found[at + 1 :] == ["  cart.py:12: result += price"]


def test_a_program_without_tests(project: Project) -> None:
    code = """\
def half(number):
    with open("half.py"):
        return number / 0


def main():
    half(3)


main()
"""
    found = traced(project, f"{shlex.quote(sys.executable)} half.py", {"half.py": code})
    assert "  half(number=3) raised ZeroDivisionError('division by zero')  [half.py:1]" in found
    assert "At half.py:3 in half: return number / 0" in found
    assert "  number = 3" in found


@pytest.mark.parametrize("level", LEVELS)
def test_a_program_is_traced_at_each_level_of_the_sandbox(project: Project, level: Level) -> None:
    if not probe(level).works:
        pytest.skip("no sandbox of this level works here")
    files = {"a.py": "x = 5\n1 / 0\n"}
    found = traced(project, "python3 a.py", files, sandbox=Sandbox(level))
    assert found[2:] == ["At a.py:2 in <module>: 1 / 0", "  x = 5"]


@pytest.mark.parametrize(
    "files",
    [
        {"test_a.py": "assert True\n"},
        {"test_a.py": "import unittest\n\nclass T(unittest.TestCase):\n def test_a(self): pass\n"},
    ],
)
def test_nothing_is_said_of_tests_that_pass(project: Project, files: dict[str, str]) -> None:
    assert traced(project, UNITTEST, files) == []


@pytest.mark.parametrize("command", ["false", "no-such-program", "exit 3", "python3 -I -c 1/0"])
def test_nothing_is_said_of_other_programs(project: Project, command: str) -> None:
    assert traced(project, command, {"a.py": ""}) == []


def test_values_that_cannot_be_shown_do_no_harm(project: Project) -> None:
    code = """\
import unittest


class Bad:
    def __repr__(self):
        raise KeyError("no")


class Loop:
    def __init__(self):
        self.me = self


def use(*values, key=None):
    return values


class Tests(unittest.TestCase):
    def test_values(self):
        bad, loop, long = Bad(), Loop(), list(range(10**5))
        many = [use(n) for n in range(10**4)]
        use(bad, loop, key="x" * 10**6)
        self.fail("here")
"""
    found = traced(project, UNITTEST, {"test_a.py": code})
    assert "  bad = <Bad: KeyError>" in found
    assert "  long = [0, 1, 2, 3, 4, 5, …]" in found
    assert any(line.startswith("  loop = Loop(me=Loop(me=") for line in found)
    assert max(map(len, found)) < 600
    assert sum(map(len, found)) <= evidence.MAX_CHARS


def test_a_generator_and_a_thread_are_traced(project: Project) -> None:
    code = """\
import threading
import unittest


def numbers():
    yield 1
    yield 2


def work(found):
    found.extend(numbers())


class Tests(unittest.TestCase):
    def test_thread(self):
        found = []
        thread = threading.Thread(target=work, args=(found,))
        thread.start()
        thread.join()
        self.assertEqual(found, [1])
"""
    found = traced(project, UNITTEST, {"test_a.py": code})
    assert "  work(found=[]) returned None  [test_a.py:10]" in found
    assert "  found = [1, 2]" in found


def test_a_slow_or_unconfined_command_is_not_repeated(project: Project) -> None:
    project.repository({"test_cart.py": TESTS, "cart.py": CART})
    tree = project.tree()
    shell = Shell(tree, open_sandbox(), AgentConfig(), (UNITTEST,))
    slow = CommandResult([], evidence.MAX_S + 1, 1)
    assert collect(shell, UNITTEST, slow, bool, tree.path) == []
    stopped = CommandResult([], 1.0, None, "stopped")
    assert collect(shell, UNITTEST, stopped, bool, tree.path) == []


@pytest.mark.parametrize(
    "record",
    [
        1,
        {},
        {"test": "a", "error": "b", "calls": 3, "frames": [], "only": []},
        {"test": "a", "error": "b", "calls": [], "frames": [{"path": 1}], "only": []},
        {"test": "", "error": "b", "calls": [], "frames": [], "only": [["../../a", "b", ["x"]]]},
    ],
)
def test_a_forged_record_is_ignored(tmp_path: Path, record: Any) -> None:
    (tmp_path / "1.jsonl").write_text(json.dumps(record) + "\nno json\n")
    assert [*evidence._records(tmp_path)] == []


def test_links_and_pipes_in_the_place_of_records_are_not_read(tmp_path: Path) -> None:
    good = {"test": "t", "error": "e", "calls": [], "frames": [], "only": []}
    (tmp_path / "elsewhere").write_text(json.dumps(good))
    folder = tmp_path / "tracers"
    folder.mkdir()
    (folder / "1.jsonl").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(folder / "2.jsonl")
    assert [*evidence._records(folder)] == []


def test_only_files_of_the_project_are_quoted(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "secret").write_text("key\n")
    (tmp_path / "project/link").symlink_to(tmp_path / "secret")
    paths = ("../secret", "link", str(tmp_path / "secret"))
    record: dict[str, Any] = {"test": "t", "error": "e", "calls": [], "frames": []}
    record["only"] = [[path, "f", [1]] for path in paths]
    shown = describe([record], lambda name: evidence._lines(tmp_path / "project", name))
    assert "key" not in "\n".join(shown)
    assert "  ../secret:1: " in shown


@pytest.mark.parametrize(
    ("command", "tests", "expected"),
    [
        ("make test", "make test", True),
        ("pytest -q tests/test_a.py", "", True),
        ("python3 -m unittest", "make test", True),
        ("node --test", "", True),
        ("npx vitest run", "", True),
        ("busted spec", "", True),
        ("npm run build", "", False),
        ("nvim -l a.lua", "", False),
        ("rm -rf build", "make test", False),
        ("python3 a.py", "", False),
    ],
)
def test_which_commands_are_repeated(command: str, tests: str, expected: bool) -> None:
    assert is_test(command, tests) is expected


def test_terminal_sequences_are_removed() -> None:
    record = {"test": "a\x1b[31m", "error": "b", "calls": [], "frames": [], "only": []}
    assert describe([record], lambda _: [])[2] == "Test a: b"
