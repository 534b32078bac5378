"""What git is asked, and how."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lcursor.project import git
from tests.unit.project.trees import repository


def plain(folder: Path, *words: str) -> str:
    """Run git as a user does."""
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True)
    return done.stdout


def test_a_rule_that_ignores_is_named(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", "a.py", ignore="*.log\n!keep.log\nbuild/\n")
    (root / "build").mkdir()
    asked = ["a.py", "b.log", "keep.log", "build", "build/x/y.py"]
    assert git.ignored(root, asked) == {
        "b.log": ".gitignore:1: *.log",
        "build": ".gitignore:3: build/",
        "build/x/y.py": ".gitignore:3: build/",
    }


def lines_of(root: Path, *words: str) -> list[str]:
    return git.output(root, *words).data.decode().splitlines()


def test_a_bare_repository_among_the_files_is_never_used(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", "a.py", "sub/b.py", ignore="*.log\n")
    plain(root / "sub", "init", "-q", "--bare", ".")
    plain(root / "sub", "config", "core.bare", "false")
    plain(root / "sub", "config", "core.worktree", "..")
    assert "b.py" in git.list_files(root / "sub", []).tracked
    assert git.ignored(root / "sub", ["x.log"]) == {"x.log": ".gitignore:1: *.log"}
    assert lines_of(root / "sub", "rev-parse", "--absolute-git-dir") == [f"{root}/.git"]


def test_a_folder_outside_of_repositories_starts_no_git(tmp_path: Path) -> None:
    plain(tmp_path, "init", "-q", "--bare", ".")
    assert git.top_of(tmp_path) is None
    assert git.repository(tmp_path) is None
    assert git.output(tmp_path, "rev-parse", "HEAD").failure == git.NO_REPOSITORY


@pytest.mark.parametrize("is_link", [False, True])
def test_the_repository_of_another_project_is_not_read(tmp_path: Path, is_link: bool) -> None:
    other = repository(tmp_path / "other", "secret.py")
    root = tmp_path / "project"
    root.mkdir()
    if is_link:
        (root / ".git").symlink_to(other / ".git")
    else:
        (root / ".git").write_text(f"gitdir: {other}/.git\n")
    with pytest.raises(git.GitFailed, match="another project"):
        git.repository(root)
    assert "another project" in git.output(root, "log").failure


def test_linked_work_trees_and_separate_git_directories_work(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", "a.py")
    plain(root, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "first")
    plain(root, "worktree", "add", "-q", str(tmp_path / "linked"))
    separate = tmp_path / "separate"
    separate.mkdir()
    plain(separate, "init", "-q", "--separate-git-dir", str(tmp_path / "elsewhere"))
    assert git.list_files(tmp_path / "linked", []).tracked == ["a.py"]
    assert git.repository(separate) == git.Repository(separate, tmp_path / "elsewhere")


def test_a_work_tree_elsewhere_is_not_read(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", "a.py")
    (tmp_path / "a.py").write_text("secret\n")
    plain(root, "config", "core.worktree", "../..")
    assert "secret" in plain(root, "diff")
    assert b"secret" not in git.output(root, "diff").data


def test_filters_do_not_run(tmp_path: Path) -> None:
    root, canary = repository(tmp_path / "project", "a.py"), tmp_path / "canary"
    (root / ".git/info/attributes").write_text("* filter=x.y\n")
    for key in ("clean", "smudge", "process"):
        plain(root, "config", f"filter.x.y.{key}", f"touch {canary}; false")
    plain(root, "config", "filter.x.y.required", "true")
    (root / "a.py").write_text("changed\n")
    assert b"+changed" in git.output(root, "diff").data
    assert not canary.exists()
    plain(root, "diff")
    assert canary.exists()


def test_a_filter_that_cannot_be_switched_off_is_an_error(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", "a.py")
    plain(root, "config", "filter.x=y.clean", "false")
    assert "switched off" in git.output(root, "diff").failure


def test_another_command_is_an_error(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", "a.py")
    with pytest.raises(KeyError):
        git.output(root, "archive", "HEAD")


def test_words_are_found_in_a_folder_of_a_repository_and_outside(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", "a.py", "sub/b.py")
    (root / "sub/b.py").write_text("needle\n")
    loose = tmp_path / "loose"
    loose.mkdir()
    (loose / "c.py").write_text("needle\n")
    for folder, name in ((root, b"sub/b.py"), (root / "sub", b"b.py"), (loose, b"c.py")):
        found = git.grep(folder, ["-l", "-e", "needle"], ["*.lock"], max_bytes=999, max_s=9)
        assert found.data.split() == [name]


def test_a_git_of_the_project_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, canary = repository(tmp_path / "project", "a.py"), tmp_path / "canary"
    for folder in (root, root / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "git").write_text(f"#!/bin/sh\ntouch {canary}\n")
        (folder / "git").chmod(0o755)
    for start in ("bin:", "./bin:", ":", "::"):
        monkeypatch.setenv("PATH", start + os.environ["PATH"])
        assert "a.py" in git.list_files(root, []).tracked
    for path in ("bin", "", "."):
        monkeypatch.setenv("PATH", path)
        assert "a.py" in git.list_files(root, []).tracked
    assert not canary.exists()


@pytest.mark.parametrize("name", [".gitignore", "named"])
def test_git_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    root = repository(tmp_path / "project", "a.py")
    os.mkfifo(root / name)
    plain(root, "config", "core.excludesFile", "named")
    monkeypatch.setattr(git, "MAX_S", 0.3)
    with pytest.raises(git.GitFailed, match="git ls-files took longer than"):
        git.list_files(root, [])


def test_the_time_limit_of_a_diff_includes_its_filters(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", "a.py")
    os.mkfifo(tmp_path / "named")
    plain(root, "config", "include.path", str(tmp_path / "named"))
    assert git.output(root, "diff", max_s=0.3).failure == "stopped after 0.3 s"


@pytest.mark.parametrize("key", ["core.attributesFile", "diff.orderFile", "mailmap.file"])
def test_messages_of_git_show_no_line_of_a_file(tmp_path: Path, key: str) -> None:
    root, secret = repository(tmp_path / "project", "a.py"), tmp_path / "netrc"
    secret.write_text("machine a.b login me password s3cr3t/T0K+EN==\n")
    plain(root, "config", key, str(secret))
    blob = plain(root, "rev-parse", "HEAD:a.py").strip()
    (root / f".git/objects/{blob[:2]}/{blob[2:]}").unlink()
    (root / "a.py").write_text("changed\n")
    assert git.output(root, "diff").failure == "git failed with status 128"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("[core", "fatal: bad config line"),
        ("[core]\nrepositoryFormatVersion = 9", "fatal: Expected git repo version <= 1, found 9"),
        ("[core]\nrepositoryFormatVersion = 1\n[extensions]\nx = 1", "fatal: unknown repository"),
    ],
)
def test_messages_of_git_that_a_user_needs_are_shown(
    tmp_path: Path, section: str, message: str
) -> None:
    root = repository(tmp_path / "project", "a.py")
    (root / ".git/config").write_text(section)
    assert git.output(root, "log").failure.startswith(message)
