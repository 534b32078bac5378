"""Commands by a toolbox: confined, without state, and bounded."""

from __future__ import annotations

import os
import shutil
import venv
from pathlib import Path

import pytest

from lcursor.agent.records import ToolCall
from lcursor.config import AgentConfig, EditConfig
from lcursor.workspace import shell
from tests.unit.agent.toolboxes import ToolUser
from tests.unit.workspace.projects import Project, project

pytestmark = pytest.mark.sandbox

__all__ = ["project"]


@pytest.fixture
def agent(project: Project) -> ToolUser:
    project.repository({"a.txt": "a\n"})
    return ToolUser(project)


def test_a_command_runs_at_the_root_of_the_project(agent: ToolUser) -> None:
    found = agent.bash("pwd; cat a.txt; echo oops >&2; exit 3")
    head, *lines = found.text.splitlines()
    assert head.startswith("exit 3 · ")
    assert lines == [str(agent.tree.root), "a", "oops"]
    assert (found.status, found.result, found.is_error) == (3, "exit 3", True)
    assert found.output == ""
    agent.bash("cd /tmp; export A=1")
    assert agent.bash("echo $PWD-$A").text.splitlines()[1] == f"{agent.tree.root}-"


def test_the_environment_is_for_programs_without_a_terminal(agent: ToolUser) -> None:
    found = agent.bash("echo $PAGER $GIT_PAGER $TERM $CI; read -r x; echo $?; tty")
    assert found.text.splitlines()[1:] == ["cat cat dumb 1", "1", "not a tty"]


def test_variables_of_the_settings_are_passed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "yes")
    monkeypatch.setenv("OTHER", "no")
    project.repository({"a.txt": ""})
    agent = ToolUser(project, config=AgentConfig(env=("MINE",)))
    assert agent.bash("echo $MINE-$OTHER").text.splitlines()[1] == "yes-"


def test_a_long_output_is_stored(agent: ToolUser) -> None:
    found = agent.bash("seq 2000; printf 'x%.0s' $(seq 900)")
    assert found.output == "out:1"
    assert found.text.endswith("full output: out:1, 2,001 lines")
    lines = found.text.splitlines()
    assert lines[1:3] == ["1", "2"]
    assert "2000" in lines[-4:]
    assert agent.output("out:1") == [*map(str, range(1, 2001)), "x" * 900]
    part = agent.view("out:1", [1500, 1502])
    assert part.text.splitlines()[1:] == ["  1500\t1500", "  1501\t1501", "  1502\t1502"]
    assert agent.bash("echo short").output == ""


def test_a_flood_is_dropped_with_a_note(agent: ToolUser) -> None:
    found = agent.bash(f"head -c {shell.MAX_BYTES + 10} /dev/zero | tr '\\0' 'z'; echo end")
    assert "output after the first 4 MB was dropped" in found.text


def test_a_slow_command_is_stopped(agent: ToolUser) -> None:
    found = agent.bash("echo before; sleep 60", timeout_s=1)
    assert found.text.startswith("stopped after 1 s · ")
    assert "before" in found.text
    assert (found.status, found.is_error) == (None, True)


def test_background_jobs_are_killed_and_mentioned(agent: ToolUser) -> None:
    found = agent.bash("sleep 61 & (sleep 62; touch late) & echo started")
    assert "started" in found.text
    assert "2 background jobs were killed" in found.text
    assert "killed" not in agent.bash("sleep 0.01 & wait").text
    assert not (agent.tree.path / "late").exists()


def test_pipes_named_as_rules_of_git_block_no_checkpoint(agent: ToolUser) -> None:
    agent.bash("mkdir sub; mkfifo .gitignore sub/.gitattributes; ln -s p sub/.gitignore; touch b")
    assert [each.path for each in agent.tree.changed()] == ["b", "sub/.gitignore"]
    assert len(agent.tree.problems) == 2


def test_line_numbers_of_messages_are_right(agent: ToolUser) -> None:
    assert "line 2" in agent.bash("echo one\nif then").text
    assert agent.bash("true &&").status == 2


def test_the_network_and_the_users_files_are_out_of_reach(agent: ToolUser) -> None:
    secret = Path(os.environ["HOME"]) / "secret"
    secret.write_text("canary")
    found = agent.bash(f"cat {secret}; exec 3<>/dev/tcp/example.org/80")
    assert "canary" not in found.text
    assert "commands have no network" in found.text


def test_without_a_sandbox_a_command_needs_approval(project: Project) -> None:
    project.repository({"a.txt": "a\n"})
    agent = ToolUser(project, level="none")
    denied = agent.bash("touch made")
    assert denied.is_error
    assert "only with approval" in denied.text
    assert not (agent.tree.path / "made").exists()
    found = agent.tools.run(
        ToolCall("bash", {"command": "touch made; pwd"}), lambda: False, is_unconfined=True
    )
    assert found.text.splitlines()[1:] == [str(agent.tree.path)]
    assert (agent.tree.path / "made").exists()
    assert not (agent.tree.root / "made").exists()


def with_tests(project: Project, command: str, config: AgentConfig | None = None) -> ToolUser:
    if not project.root.exists():
        project.repository({"a.txt": "a\n"})
    return ToolUser(project, edit=EditConfig(test=command), config=config)


def make_environment(folder: Path) -> str:
    """Make an environment whose interpreter is a link; return its path."""
    venv.create(folder, symlinks=True)
    return f"{folder}/bin/python"


def test_tests_run_in_an_environment_elsewhere(project: Project) -> None:
    command = f"{make_environment(project.home / 'venvs/one')} -c 'print(1)'"
    found = with_tests(project, command).bash(command)
    assert (found.status, found.obstacle) == (0, ""), found.text


def test_tests_whose_program_is_hidden_name_the_option_that_helps(project: Project) -> None:
    folder = project.home / "other"
    command = f"{make_environment(folder)} -c 'print(1)'"
    (folder / ".git").mkdir()  # commands must not see other projects, unless the user wants it
    found = with_tests(project, command).bash(command)
    assert found.result == f"exit 127: bash: line 1: {folder}/bin/python: No such file or directory"
    assert f'agent.readable = {{ "{folder}" }} (in a shell: --readable {folder})' in found.obstacle
    config = AgentConfig(readable=(str(folder),))
    shutil.rmtree(project.run)
    found = with_tests(project, command, config).bash(command)
    assert (found.status, found.obstacle) == (0, ""), found.text


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("no-such-program x", "no-such-program: command not found. Install it, or correct edit.t"),
        ("sh -c no-such-program", "no-such-program: not found. Install it"),
        ("env no-such-program", "No such file or directory. Install it"),
        ("./a.txt", "./a.txt: Permission denied. Make it executable"),
        ("python3 -m no_such_module -q", "Install no_such_module for this Python"),
        ("~/bin/tool", "/home/bin/tool, because its name says that it holds secrets. Name another"),
    ],
)
def test_tests_that_cannot_start(project: Project, command: str, words: str) -> None:
    (project.home / "bin").mkdir()
    (project.home / ".env").touch()
    (project.home / "bin/tool").symlink_to(project.home / ".env")
    found = with_tests(project, command).bash(command)
    assert found.obstacle.startswith("The tests cannot start: ")
    assert words in found.obstacle


@pytest.mark.parametrize("status", [126, 127])
def test_output_of_tests_never_suggests_a_folder_to_make_readable(
    project: Project, status: int
) -> None:
    """The last line is of the project: it could name any folder of the user."""
    folder = project.home / "notes"
    make_environment(folder)
    for path in (folder, f"{folder}/bin/python", f"{project.home}/../home/notes/bin/python"):
        words = f"\x1b[2Jsh: line 1: {path}: No such file"
        project.repository({"test.sh": f"echo '{words}'; exit {status}\n"})
        shutil.rmtree(project.run, ignore_errors=True)
        found = with_tests(project, "sh test.sh").bash("sh test.sh")
        assert found.obstacle.startswith("The tests cannot start: ")
        assert "readable" not in found.obstacle
        assert "\x1b" not in found.obstacle


@pytest.mark.parametrize("command", ["exit 1", "echo \"No module named 'x'\"; exit 1", "true"])
def test_tests_that_fail_have_started(project: Project, command: str) -> None:
    assert with_tests(project, command).bash(command).obstacle == ""


def test_a_command_that_a_change_broke_is_no_obstacle(project: Project) -> None:
    project.repository({"a.txt": "a\n", "test.sh": "exit 0\n"})
    (project.root / "test.sh").chmod(0o755)
    agent = with_tests(project, "./test.sh")
    assert agent.bash("no-such-program").obstacle == ""
    assert agent.bash("rm test.sh").obstacle == ""
    assert agent.bash("./test.sh").status == 127
    assert agent.bash("./test.sh").obstacle == ""
    found = agent.call("finish", summary="x")
    assert (found.result, found.obstacle) == ("tests failed", "")
    agent = ToolUser(project, edit=EditConfig(test="./none.sh"), folder="other")
    agent.bash("echo b > a.txt")
    assert "The tests cannot start" in agent.call("finish", summary="x").obstacle
