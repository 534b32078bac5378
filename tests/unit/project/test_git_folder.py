"""Which repositories git may read: not what a `.git` of a stranger leads to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lcursor.project import git, git_folder
from tests.unit.project import trees
from tests.unit.project.trees import repository

FILE_PROTOCOL = ("-c", "protocol.file.allow=always")


def skeleton(folder: Path) -> Path:
    """Make a repository without history by hand."""
    for name in ("objects/info", "refs/heads"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text("[core]\n\tbare = false\n")
    return folder


def replaced(folder: Path, name: str, target: str) -> None:
    """Replace something in a repository by a link."""
    path = folder / name
    if path.is_dir():
        for each in ("info", "heads"):
            if (path / each).exists():
                (path / each).rmdir()
        path.rmdir()
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def links_to_objects_and_refs(root: Path) -> None:
    folder = skeleton(root / ".git")
    replaced(folder, "objects", "../../other/.git/objects")
    replaced(folder, "refs", "../../other/.git/refs")


def borrowed_objects_and_a_linked_branch(root: Path) -> None:
    folder = skeleton(root / ".git")
    (folder / "objects/info/alternates").write_text("../../../other/.git/objects\n")
    replaced(folder, "refs/heads/main", "../../../../other/.git/refs/heads/main")


def borrowed_objects_and_a_link_in_a_linked_folder(root: Path) -> None:
    folder = skeleton(root / ".git")
    (folder / "objects/info/alternates").write_text("../../../other/.git/objects\n")
    (folder / "x").mkdir()
    (folder / "x/main").symlink_to("../../../other/.git/refs/heads/main")
    replaced(folder, "refs/heads", "../x")


def borrowed_objects_and_a_linked_log(root: Path) -> None:
    folder = skeleton(root / ".git")
    (folder / "objects/info/alternates").write_text("../../../other/.git/objects\n")
    replaced(folder, "logs/refs/heads/main", "../../../../../other/.git/logs/refs/heads/main")


def borrowed_objects_and_a_linked_index(root: Path) -> None:
    folder = skeleton(root / ".git")
    (folder / "objects/info/alternates").write_text("../../../other/.git/objects\n")
    replaced(folder, "index", "../../other/.git/index")


def a_branch_that_names_one_in_a_linked_folder(root: Path) -> None:
    folder = skeleton(root / ".git")
    (folder / "objects/info/alternates").write_text("../../../other/.git/objects\n")
    (folder / "hooks").symlink_to("../../other/.git")
    (folder / "refs/heads/main").write_text("ref: hooks/refs/heads/main\n")


def a_branch_that_names_a_link_in_the_objects(root: Path) -> None:
    folder = skeleton(root / ".git")
    (folder / "objects/info/alternates").write_text("../../../other/.git/objects\n")
    (folder / "objects/m").symlink_to("../../../other/.git/refs/heads/main")
    (folder / "refs/heads/main").write_text("ref:  objects/m   \n")


def a_name_that_ends_before_the_line(root: Path) -> None:
    (root / ".git").write_bytes(b"gitdir: ../other/.git\0x\n")


def a_link_whose_name_begins_with_a_blank(root: Path) -> None:
    (root / "l").mkdir()
    (root / " l").symlink_to("../other/.git")
    (root / ".git").write_text("gitdir:  l\n")


def a_common_folder_whose_name_ends_before_the_line(root: Path) -> None:
    (skeleton(root / ".git") / "commondir").write_bytes(b"../../other/.git\0x\n")


def a_common_folder_whose_name_begins_with_a_blank(root: Path) -> None:
    folder = skeleton(root / ".git")
    (folder / " c").symlink_to("../../other/.git")
    (folder / "commondir").write_text(" c\n")


def a_common_folder_elsewhere(root: Path) -> None:
    (skeleton(root / ".git") / "commondir").write_text("../../bare\n")


def a_linked_work_tree_of_its_own_with_links(root: Path) -> None:
    common = skeleton(root / "fake")
    replaced(common, "objects", "../../other/.git/objects")
    replaced(common, "refs", "../../other/.git/refs")
    folder = skeleton(common / "worktrees/x")
    (folder / "commondir").write_text("../..\n")
    (folder / "gitdir").write_text(f"{root}/.git\n")
    (root / ".git").write_text("gitdir: fake/worktrees/x\n")


def the_linked_work_tree_of_another_project(root: Path) -> None:
    trees.git(root.parent / "other", "worktree", "add", "-q", "../linked")
    (root / ".git").write_text("gitdir: ../other/.git/worktrees/linked\n")


def a_bare_repository(root: Path) -> None:
    (root / ".git").write_text("gitdir: ../bare\n")


def a_link_to_a_bare_repository(root: Path) -> None:
    (root / ".git").symlink_to("../bare")


def links_to_a_bare_repository(root: Path) -> None:
    folder = skeleton(root / ".git")
    replaced(folder, "objects", "../../bare/objects")
    replaced(folder, "packed-refs", "../../bare/packed-refs")


def a_repository_for_another_work_tree(root: Path) -> None:
    bare = root.parent / "bare"
    trees.git(bare, "config", "core.bare", "false")
    trees.git(bare, "config", "core.worktree", "..")
    (root / ".git").write_text("gitdir: ../bare\n")


@pytest.mark.parametrize(
    "make",
    [
        links_to_objects_and_refs,
        borrowed_objects_and_a_linked_branch,
        borrowed_objects_and_a_link_in_a_linked_folder,
        borrowed_objects_and_a_linked_log,
        borrowed_objects_and_a_linked_index,
        a_branch_that_names_one_in_a_linked_folder,
        a_branch_that_names_a_link_in_the_objects,
        a_name_that_ends_before_the_line,
        a_link_whose_name_begins_with_a_blank,
        a_common_folder_whose_name_ends_before_the_line,
        a_common_folder_whose_name_begins_with_a_blank,
        a_common_folder_elsewhere,
        a_linked_work_tree_of_its_own_with_links,
        the_linked_work_tree_of_another_project,
        a_bare_repository,
        a_link_to_a_bare_repository,
        links_to_a_bare_repository,
        a_repository_for_another_work_tree,
    ],
)
def test_the_history_of_another_project_is_not_read(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    other = repository(tmp_path / "other", "secret.py")
    trees.git(tmp_path, "clone", "-q", "--bare", "other", "bare")
    root = tmp_path / "project"
    root.mkdir()
    make(root)
    reasons = (
        r"of another project|leads out of the repository|link to a folder|names no (folder|branch)"
    )
    with pytest.raises(git.GitFailed, match=reasons):
        git.ask(root, "show", "HEAD")
    assert git.output(root, "for-each-ref").data == b""
    assert b"secret.py" in git.output(other, "show", "HEAD").data


def test_the_repositories_that_git_makes_elsewhere_are_read(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", "a.py")
    trees.git(root, *FILE_PROTOCOL, "submodule", "--quiet", "add", f"{root}", 'lib/it\'s "b"')
    trees.git(root, "commit", "-qm", "two")
    trees.git(root, "worktree", "add", "-q", "../linked")
    linked = tmp_path / "linked"
    trees.git(linked, *FILE_PROTOCOL, "submodule", "--quiet", "update", "--init")
    trees.git(tmp_path, "clone", "-q", "--shared", "project", "shared")
    trees.git(tmp_path, "clone", "-q", "--separate-git-dir", "elsewhere", "project", "separate")
    trees.git(tmp_path, "clone", "-q", "--bare", "project", "bare")
    trees.git(tmp_path / "bare", "worktree", "add", "-q", "../of-bare")
    for name in ("project", "linked", "shared", "separate", "of-bare"):
        assert "a.py" in git.list_files(tmp_path / name, []).tracked
        assert b"+++ b/a.py" in git.output(tmp_path / name, "show", "HEAD~1").data, name
    for name in ("project", "linked"):
        module = tmp_path / name / 'lib/it\'s "b"'
        assert git.list_files(module, []).tracked == ["a.py"]
        assert git.is_other_work_tree(tmp_path / name / ".git") == (name == "linked")


def test_the_folders_of_the_tool_repo_are_read(tmp_path: Path) -> None:
    made = repository(tmp_path / "made", "a.py")
    root, store = tmp_path / "top/project", tmp_path / "top/.repo/projects/project.git"
    store.parent.mkdir(parents=True)
    (made / ".git").rename(store)
    trees.git(store, "config", "--unset", "core.bare")
    objects = tmp_path / "top/.repo/project-objects/p.git/objects"
    objects.parent.mkdir(parents=True)
    (store / "objects").rename(objects)
    (store / "objects").symlink_to(os.path.relpath(objects, store))
    (root / ".git").mkdir(parents=True)
    for name in ("config", "refs", "logs", "objects", "info", "hooks"):
        (root / ".git" / name).symlink_to(f"../../.repo/projects/project.git/{name}")
    for name in ("HEAD", "index"):
        shutil.copy(store / name, root / ".git" / name)
    assert git.list_files(root, []).tracked == ["a.py"]
    assert b"+++ b/a.py" in git.output(root, "show", "HEAD").data


WHOLE = (
    *("HEAD", "config", "config.worktree", "commondir", "gitdir", "shallow"),
    *("info/exclude", "info/attributes", "info/grafts", "info/sparse-checkout"),
    "objects/info/alternates",
)
OF_ANY_SIZE = ("index", "packed-refs", "refs/heads/x", "logs/HEAD")


@pytest.mark.parametrize("name", [*WHOLE, *OF_ANY_SIZE])
@pytest.mark.parametrize("kind", ["a pipe", "a link to a pipe", "a link to a device"])
def test_what_git_would_read_without_end_is_an_error(tmp_path: Path, name: str, kind: str) -> None:
    root = repository(tmp_path / "project", "a.py")
    path = root / ".git" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a link to a pipe":
        (root / ".git/sub").mkdir()
        os.mkfifo(root / ".git/sub/pipe")
        path.symlink_to(root / ".git/sub/pipe")
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(git.GitFailed, match=name):
        git.top_of(root, has_revisions=True)


@pytest.mark.parametrize("name", WHOLE)
def test_a_file_that_is_too_large_to_be_read_as_a_whole_is_an_error(
    tmp_path: Path, name: str
) -> None:
    root = repository(tmp_path / "project", "a.py")
    path = root / ".git" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.truncate(path, git_folder.MAX_FILE_BYTES + 1)
    with pytest.raises(git.GitFailed, match=f"{name} is too large"):
        git.top_of(root)


def test_a_pipe_in_place_of_a_repository_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")
    with pytest.raises(git.GitFailed, match="not a regular file"):
        git.top_of(tmp_path)
    assert not git.is_other_work_tree(tmp_path / ".git")


def test_links_within_a_repository_and_sockets_are_fine(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", "a.py")
    (root / ".git/HEAD").unlink()
    (root / ".git/HEAD").symlink_to("refs/heads/main")
    os.mknod(root / ".git/fsmonitor--daemon.ipc", 0o140600)
    (root / ".git/hooks").mkdir(exist_ok=True)
    (root / ".git/hooks/pre-commit").symlink_to("/bin/true")
    assert b"+++ b/a.py" in git.output(root, "show", "HEAD").data


def test_too_many_files_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "project", "a.py")
    assert git.top_of(root) == root
    monkeypatch.setattr(git_folder, "MAX_ENTRIES", 2)
    with pytest.raises(git.GitFailed, match="refs has over 2 files"):
        git.ask(root, "log")


@pytest.mark.parametrize(
    ("value", "is_fine"),
    [
        ("files", True),
        ('"reftable"', True),
        ("files://../../other/.git", False),
        ("fi\\\nles:/x", False),
    ],
)
def test_branches_elsewhere_are_an_error(tmp_path: Path, value: str, is_fine: bool) -> None:
    root = repository(tmp_path / "project", "a.py")
    with (root / ".git/config").open("a") as file:
        file.write(f"[extensions]\n\trefStorage = {value}\n")
    problem = git_folder.problem(root / ".git", has_revisions=False)
    assert problem == ("" if is_fine else f"{root}/.git/config names a location of branches")
