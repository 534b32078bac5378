"""Which changes of an edit are marked, so that they are accepted one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.changes import guards
from lcursor.changes.records import FileChange, FileKind


def is_marked(root: Path, path: Path | str, kind: FileKind = "create", to: str = "") -> bool:
    change = FileChange(str(root / path), kind, to=str(root / to) if to else "")
    (found,) = guards.marked(root, [change])
    assert (found.path, found.kind, found.to) == (change.path, kind, change.to)
    return found.is_guarded


@pytest.mark.parametrize(
    ("path", "kind", "to", "is_guarded"),
    [
        ("a.py", "create", "", False),
        ("sub/.envrc", "create", "", True),
        ("Makefile", "edit", "", True),
        ("Makefile", "delete", "", False),
        ("a.js", "rename", "eslint.config.js", True),
        ("eslint.config.js", "rename", "a.js", False),
    ],
)
def test_a_change_is_marked_by_what_it_leaves(
    tmp_path: Path, path: str, kind: FileKind, to: str, is_guarded: bool
) -> None:
    assert is_marked(tmp_path, path, kind, to) is is_guarded


def test_only_names_below_the_project_count(tmp_path: Path) -> None:
    root = tmp_path / ".vim/plugin"
    root.mkdir(parents=True)
    assert not is_marked(root, "a.lua")
    assert is_marked(root, tmp_path / ".vim/other.lua", "edit")


def test_links_do_not_hide_a_name(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / ".github").mkdir(parents=True)
    (root / "Makefile").touch()
    (root / "ci").symlink_to(".github")
    (root / "notes").symlink_to("Makefile")
    assert is_marked(root, "ci/a.yml")
    assert is_marked(root, "notes", "edit")
    (tmp_path / "link").symlink_to(root)
    assert is_marked(root, tmp_path / "link/Makefile", "edit")
    assert not is_marked(tmp_path / "link", root / "a.py")


def test_a_repository_without_a_working_tree_cannot_be_made_or_changed(tmp_path: Path) -> None:
    inside = ("sub/config", "sub/objects/a", "sub/refs/heads/main", "sub/hooks/post-checkout")
    assert not any(is_marked(tmp_path, path) for path in inside)
    assert is_marked(tmp_path, "sub/HEAD")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/HEAD").touch()
    assert all(is_marked(tmp_path, path) for path in inside)
    assert not is_marked(tmp_path, "sub/main.py")


def test_a_file_that_is_marked_already_stays_marked(tmp_path: Path) -> None:
    change = FileChange(str(tmp_path / "tool"), "create", is_guarded=True)
    assert guards.marked(tmp_path, [change]) == [change]
