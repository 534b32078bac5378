"""The linter after an edit; linter and tests at the end."""

from __future__ import annotations

import pytest

from lcursor.agent.tools.toolbox import checks_of
from lcursor.config import AgentConfig, EditConfig
from lcursor.process.sandbox import open_sandbox
from lcursor.workspace import commands
from lcursor.workspace.edit_checks import MAX_SHOWN_CHARS
from lcursor.workspace.outputs import failed_tests, new_lines
from tests.unit.agent.toolboxes import ToolUser
from tests.unit.workspace.projects import Project, project

pytestmark = pytest.mark.sandbox

__all__ = ["project"]
LINT = "! grep -nH bad {path}"
TEST = "echo ran >> runs; sh test.sh"


@pytest.fixture
def files(project: Project) -> Project:
    project.repository(
        {"a.txt": "bad one\ngood\n", "test.sh": "echo checking; grep -q better a.txt\n"}, "runs\n"
    )
    return project


def make(files: Project, **given: str) -> ToolUser:
    agent = ToolUser(files, edit=EditConfig(**given))  # type: ignore[arg-type]
    agent.view("a.txt")
    return agent


def test_names_of_failed_tests_are_part_of_a_long_output(files: Project) -> None:
    test = "echo 'not ok 1 - a b'; seq 1000; echo 'not ok 2 - c'; false"
    checks = checks_of(files.tree(), open_sandbox(), AgentConfig(), EditConfig(test=test))
    found = checks.test("a.txt", lambda: False)
    assert found is not None
    assert failed_tests(found.text) == {"a b", "c"}
    assert found.text.startswith("✖ a b\n")
    assert len(found.text) < 2 * MAX_SHOWN_CHARS


def test_only_new_lint_is_reported_after_an_edit(files: Project) -> None:
    agent = make(files, lint=LINT)
    found = agent.replace("a.txt", "good", "fine")
    assert "linter" not in found.text
    found = agent.replace("a.txt", "fine", "fine\nbad two")
    assert found.text.endswith("new problems of the linter:\na.txt:3:bad two")
    assert "linter" not in agent.replace("a.txt", "bad one", "zero\nbad one").text  # it moved


def test_without_changes_nothing_is_run(files: Project) -> None:
    found = make(files, test="false").call("finish", summary="looked\naround")
    assert (found.result, found.is_error, found.status) == ("done", False, None)
    assert (found.text, found.target) == ("finished; no file was changed", "looked")


def test_without_commands_the_run_is_done(files: Project) -> None:
    agent = make(files)
    agent.replace("a.txt", "good", "fine")
    found = agent.call("finish", summary="x")
    assert (found.result, found.status) == ("done", None)
    assert "not set a test command" in found.text


def test_a_run_whose_tests_pass_ends(files: Project) -> None:
    agent = make(files, test=TEST, lint=LINT)
    agent.replace("a.txt", "good", "better")
    found = agent.call("finish", summary="x")
    assert (found.result, found.status, found.text) == ("done", 0, "finished; the tests passed")
    assert agent.call("finish", summary="x") == found
    assert agent.text("runs") == "ran\n"  # once for the same files


def test_failed_tests_say_whether_they_failed_before(files: Project) -> None:
    agent = make(files, test=TEST)
    agent.replace("a.txt", "good", "fine")
    found = agent.call("finish", summary="x")
    assert (found.result, found.is_error, found.status) == ("tests failed", True, 1)
    assert "failed, as before your changes (exit 1)" in found.text
    assert "checking" in found.text
    assert agent.text("runs") == "ran\n"
    assert agent.text("a.txt") == "bad one\nfine\n"
    assert not (agent.tree.folder / commands.BASE).exists()


def test_tests_that_failed_only_now(files: Project) -> None:
    agent = make(files, test="! grep fine a.txt")
    agent.replace("a.txt", "good", "fine")
    assert "but not before your changes" in agent.call("finish", summary="x").text


def test_a_run_with_new_lint_does_not_end(files: Project) -> None:
    agent = make(files, lint=LINT, test="false")
    agent.bash("echo bad three >> a.txt; echo bad new > 'b c.txt'; rm test.sh")
    found = agent.call("finish", summary="x")
    assert (found.result, found.is_error) == ("linter failed", True)
    assert "a.txt:3:bad three" in found.text
    assert "bad one" not in found.text
    agent.bash("sed -i 3d a.txt")
    assert "b c.txt:1:bad new" in agent.call("finish", summary="x").text
    agent.bash("rm 'b c.txt'")
    assert agent.call("finish", summary="x").result == "tests failed"


def test_a_linter_that_is_missing_is_named_at_the_end(files: Project) -> None:
    agent = make(files, lint="no-such-linter {path}", test="true")
    agent.replace("a.txt", "good", "fine")
    found = agent.call("finish", summary="x")
    assert (found.result, found.status) == ("done", 0)
    assert "the tests passed; the linter was not run: " in found.text


def test_deleted_files_are_not_linted(files: Project) -> None:
    agent = make(files, lint="test -e {path}")
    agent.bash("rm test.sh; git mv a.txt b.txt || mv a.txt b.txt")
    assert agent.call("finish", summary="x").result == "done"


def test_without_a_sandbox_nothing_is_run(files: Project) -> None:
    agent = ToolUser(files, edit=EditConfig(test=TEST, lint=LINT), level="none")
    agent.view("a.txt")
    agent.replace("a.txt", "good", "bad")
    found = agent.call("finish", summary="x")
    assert (found.result, found.status) == ("done", None)
    assert "not run" in found.text
    assert not (agent.tree.path / "runs").exists()


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ([], ["a:1: x"], ["a:1: x"]),
        (["a:1: x"], ["a:9: x"], []),
        (["a:1: x"], ["a:1: x", "a:9: x"], ["a:9: x"]),
        (["a:1: x", "1 error"], ["a:1: x", "a:2: y", "2 errors"], ["a:2: y", "2 errors"]),
        (["a:1: x"], [], []),
    ],
)
def test_numbers_do_not_make_a_problem_new(
    before: list[str], after: list[str], new: list[str]
) -> None:
    assert new_lines(before, after) == new


def test_tests_run_again_after_a_command(files: Project) -> None:
    agent = make(files, test="grep -q made runs")
    agent.replace("a.txt", "good", "fine")
    assert agent.call("finish", summary="x").result == "tests failed"
    agent.bash("echo made > runs")  # git ignores it
    assert agent.call("finish", summary="x").result == "done"


def test_only_a_plain_command_is_repeated_for_evidence(files: Project) -> None:
    agent = ToolUser(files, edit=EditConfig(evidence=True))
    agent.bash("echo once >> log.txt; python3 -m pytest missing")
    assert agent.text("log.txt") == "once\n"
