"""What commands of an agent see of a repository's history."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lcursor.config import AgentConfig
from lcursor.workspace import git_history
from tests.unit.project.trees import git
from tests.unit.workspace.projects import Project, files_in, project

__all__ = ["project"]
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n"


def see(project: Project, *words: str) -> str:
    """Return what git prints for a command that sees the history."""
    tree = project.tree()
    ((folder, _),) = tree.confinement(AgentConfig()).read_only
    assert folder == project.run / git_history.NAME
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", f"--git-dir={folder}", f"--work-tree={tree.path}", "--no-pager", *words]
    done = subprocess.run(command, cwd=tree.path, env=env, capture_output=True)
    return (done.stdout + done.stderr).decode(errors="replace")


def commit(project: Project, message: str, files: dict[str, str]) -> str:
    """Commit files, and return the commit."""
    project.write(files)
    git(project.root, "add", "-f", "-A")
    git(project.root, "commit", "-qm", message)
    return git(project.root, "rev-parse", "HEAD").strip()


def contents(project: Project) -> str:
    """Return all objects that commands can read."""
    return see(project, "cat-file", "--batch-all-objects", "--batch")


def test_ordinary_files_have_their_history_with_the_users_ids(project: Project) -> None:
    project.repository({"a.py": "one\n"})
    second = commit(project, "second", {"a.py": "one\ntwo\n"})
    assert see(project, "rev-parse", "HEAD").strip() == second
    (project.root / "a.py").write_text("one\ntwo\nthree\n")
    for words, expected in {
        ("log", "--format=%s"): "second\none\n",
        ("show", "HEAD~1:a.py"): "one\n",
        ("status", "--short"): "",
    }.items():
        project.run = project.run.with_name(project.run.name + "x")
        shown = see(project, *words)
        assert shown == expected or (words[0] == "status" and " M a.py" in shown)
    for words, part in (("blame", "a.py"), "two"), (("diff", "HEAD"), "+three"):
        project.run = project.run.with_name(project.run.name + "x")
        assert part in see(project, *words)


@pytest.mark.parametrize("is_packed", [False, True])
def test_no_secret_is_in_any_object(project: Project, is_packed: bool) -> None:
    project.repository({"a.py": "one\n"})
    commit(
        project, "secret", {".env": "SECRET1", "conf/.env": "SECRET2", "notes.txt": KEY + "SECRET3"}
    )
    git(project.root, "rm", "-q", "--cached", ".env", "notes.txt")
    project.write({".gitignore": ".env\n", "notes.txt": "plain\n", ".env": "SECRET4"})
    commit(project, "later", {"b.py": "b\n"})
    git(project.root, "checkout", "-q", "-b", "other")
    commit(project, "other", {"other.txt": "SECRET5"})
    git(project.root, "checkout", "-q", "main")
    project.write({"a.py": "SECRET6\n"})
    git(project.root, "stash")
    commit(project, "lost", {"lost.txt": "SECRET7"})
    git(project.root, "reset", "-q", "--hard", "HEAD~1")
    project.write({"prod.env": "SECRET8"})
    git(project.root, "add", "-f", "prod.env")
    if is_packed:
        git(project.root, "repack", "-q", "-A", "-d")
    shown = contents(project)
    assert "SECRET" not in shown
    assert "plain" in shown
    project.run = project.run.with_name("second")
    log = see(project, "log", "-p", "--all")
    assert "SECRET" not in log
    assert git_history.PLACEHOLDER.decode() in log
    assert "fatal" not in log
    control = git(project.root, "cat-file", "--batch-all-objects", "--batch")
    assert all(f"SECRET{number}" in control for number in (1, 2, 3, 5, 6, 7, 8))


def test_a_content_that_once_had_an_ordinary_name_is_hidden_unless_it_can_be_read_now(
    project: Project,
) -> None:
    project.repository({"config.txt": "SECRET\n", "__init__.py": "", "empty/.env": ""})
    git(project.root, "mv", "config.txt", ".env")
    commit(project, "renamed", {})
    assert "SECRET" not in see(project, "log", "-p", "--all")
    project.run = project.run.with_name("second")
    assert see(project, "show", "HEAD:__init__.py") == ""


def test_history_ends_after_some_commits(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_history, "MAX_COMMITS", 3)
    project.repository({"a.py": "0\n"})
    for number in range(1, 7):
        commit(project, f"change {number}", {"a.py": f"{number}\n"})
    assert see(project, "log", "--format=%s").split("\n")[:4] == [
        f"change {number}" for number in (6, 5, 4, 3)
    ]
    project.run = project.run.with_name("second")
    assert see(project, "fsck").strip() == ""


def test_the_default_branch_and_tags_of_shown_commits_are_there(project: Project) -> None:
    project.repository({"a.py": "one\n"})
    git(project.root, "tag", "-a", "v1", "-m", "version 1")
    git(project.root, "checkout", "-q", "-b", "topic")
    commit(project, "topic", {"a.py": "two\n"})
    git(project.root, "checkout", "-q", "--orphan", "hidden")
    commit(project, "hidden", {"a.py": "three\n"})
    git(project.root, "checkout", "-q", "topic")
    refs = see(project, "for-each-ref", "--format=%(refname)").split()
    assert refs == ["refs/heads/main", "refs/heads/topic", "refs/tags/v1"]
    project.run = project.run.with_name("second")
    assert "+two" in see(project, "diff", "main...HEAD")
    project.run = project.run.with_name("third")
    assert see(project, "describe").startswith("v1-1-g")


def test_a_shallow_clone_and_a_repository_without_commits_work(
    project: Project, tmp_path: Path
) -> None:
    project.repository({"a.py": "one\n"})
    for number in range(3):
        commit(project, f"change {number}", {"a.py": f"{number}\n"})
    original = project.root
    project.root = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{original}", "shallow")
    assert see(project, "log", "--format=%s").split("\n")[:2] == ["change 2", "change 1"]
    project.root, project.run = tmp_path / "new", tmp_path / "run-new"
    project.root.mkdir()
    git(project.root, "init", "-q")
    project.write({"a.py": "staged\n"})
    git(project.root, "add", "a.py")
    assert "+staged" in see(project, "diff", "--cached")


def test_a_repository_that_names_files_of_the_user_shows_none(project: Project) -> None:
    project.repository({"a.py": "one\n"})
    secret = project.home / "secret"
    secret.write_text("SECRET\n")
    marks = project.root / ".git"
    git(project.root, "config", "core.excludesFile", str(secret))
    (marks / "objects/info/alternates").write_text(f"{project.home}\n")
    for name in ("info/exclude", "shallow"):
        (marks / name).unlink(missing_ok=True)
        (marks / name).symlink_to(secret)
    tree = project.tree()
    tree.confinement(AgentConfig())
    assert b"SECRET" not in b"".join(files_in(project.run).values())
