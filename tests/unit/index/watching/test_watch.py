"""Watching real directories through the kernel's inotify. What is simulated says so."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lcursor.index import watch
from lcursor.project import listing
from tests.unit.index.watching.conftest import Start
from tests.unit.project.trees import git, modules, repository, write
from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(300)  # surveys take long on a busy machine


def test_a_save_and_a_deletion(root: Path, watched: Start) -> None:
    seen = watched(root)
    write(root, "sub/deep/b.py", text="y = 2\n")
    seen.wait("sub/deep/b.py")
    (root / "sub/deep/b.py").unlink()
    seen.wait("sub/deep/b.py")
    assert listing.found(root, "sub/deep/b.py") is None


def test_reading_is_not_a_change(plain: Path, watched: Start) -> None:
    seen = watched(plain)
    for _ in range(3):
        (plain / "a.py").read_text()
        os.listdir(plain / "sub")
    seen.wait()


def test_new_files_and_those_that_are_ignored(root: Path, watched: Start) -> None:
    seen = watched(root)
    write(root, "new.py", "noise.log", "sub/noise.log", "gen/g.py", "node_modules/m/x.js", "n.py~")
    seen.wait("new.py")
    assert seen.watcher.watched == {"", "sub", "sub/deep"}


# Vim's ways of saving, call by call.


def vim_copy(path: Path) -> None:
    """`backupcopy=yes`: the backup is a copy, the file is written over."""
    backup = path.with_name(path.name + "~")
    backup.write_bytes(path.read_bytes())
    path.write_text("copied\n")
    backup.unlink()


def vim_rename(path: Path) -> None:
    """`backupcopy=no`: the file becomes the backup, a new one takes its name."""
    trial = path.with_name("4913")
    trial.touch()
    trial.unlink()
    backup = path.with_name(path.name + "~")
    path.rename(backup)
    path.write_text("renamed\n")
    backup.unlink()


def vim_backup(path: Path) -> None:
    """`backup`: as before, but the backup stays."""
    path.rename(path.with_name(path.name + "~"))
    path.write_text("with backup\n")


def vim_swap(path: Path) -> None:
    """A swap file beside it."""
    swap = path.with_name(f".{path.name}.swp")
    swap.write_bytes(b"b0VIM")
    path.write_text("with swap file\n")
    swap.unlink()


def by_rename(path: Path) -> None:
    """As most other programs do it."""
    new = path.with_name(".tmpXYZ123")
    new.write_text("moved here\n")
    os.replace(new, path)


@pytest.mark.parametrize("save", [vim_copy, vim_rename, vim_backup, vim_swap, by_rename])
def test_ways_of_saving(plain: Path, watched: Start, save: Callable[[Path], None]) -> None:
    seen = watched(plain)
    save(plain / "sub/deep/b.py")
    seen.wait("sub/deep/b.py")
    assert listing.found(plain, "sub/deep/b.py")


def test_names_of_any_bytes(root: Path, watched: Start) -> None:
    names = [b"with space.py", b"new\nline.py", b"caf\xe9.py", b"\xff/a.py", b"di\nr/b.py"]
    seen = watched(root)
    for name in names:
        full = os.path.join(os.fsencode(root), name)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            file.write(b"x")
    with open(os.path.join(os.fsencode(root), b"\xfe\n.log"), "wb"):
        pass
    seen.wait(*map(os.fsdecode, names))
    with open(os.path.join(os.fsencode(root), b"\xff/a.py"), "wb") as file:
        file.write(b"y")
    seen.wait(os.fsdecode(b"\xff/a.py"))


# Directories.


def test_a_new_directory_is_watched_with_its_content(root: Path, watched: Start) -> None:
    seen = watched(root)
    write(root, "x/y/z/one.py", "x/y/noise.log", "x/node_modules/m.js")
    seen.wait("x/y/z/one.py")
    assert seen.watcher.watched >= {"x", "x/y", "x/y/z"}
    assert "x/node_modules" not in seen.watcher.watched
    write(root, "x/y/z/two.py")
    seen.wait("x/y/z/two.py")


def test_a_directory_that_was_empty_before(plain: Path, watched: Start) -> None:
    (plain / "empty/inner").mkdir(parents=True)
    seen = watched(plain)
    write(plain, "empty/inner/a.py")
    seen.wait("empty/inner/a.py")


def test_a_renamed_directory_is_gone_and_new(plain: Path, watched: Start) -> None:
    write(plain, "sub/c.py")
    seen = watched(plain)
    (plain / "sub").rename(plain / "other")
    seen.wait("sub/deep/b.py", "sub/c.py", "other/deep/b.py", "other/c.py")
    assert seen.watcher.watched == {"", "other", "other/deep"}
    write(plain, "other/deep/b.py", text="again")
    seen.wait("other/deep/b.py")
    write(plain, "sub/deep/b.py")  # the old name, taken by another directory
    seen.wait("sub/deep/b.py")


def test_directories_that_swap_their_names(plain: Path, watched: Start) -> None:
    write(plain, "one/a.py", "two/b.py")
    seen = watched(plain)
    (plain / "one").rename(plain / "three")
    (plain / "two").rename(plain / "one")
    (plain / "three").rename(plain / "two")
    seen.wait("one/a.py", "one/b.py", "two/a.py", "two/b.py")
    write(plain, "one/b.py", "two/a.py", text="after")
    seen.wait("one/b.py", "two/a.py")


def test_a_deleted_directory_and_one_moved_out_and_in(
    plain: Path, watched: Start, tmp_path: Path
) -> None:
    write(plain, "there/a.py", "there/b/c.py")
    seen = watched(plain)
    (plain / "there").rename(tmp_path / "there")
    seen.wait("there/a.py", "there/b/c.py")
    assert seen.watcher.watched == {"", "sub", "sub/deep"}
    write(tmp_path, "there/a.py", text="not ours any more")
    seen.wait()
    (tmp_path / "there").rename(plain / "in")
    seen.wait("in/a.py", "in/b/c.py")
    (plain / "in/b/c.py").unlink()
    (plain / "in/b").rmdir()
    seen.wait("in/b/c.py")
    assert seen.watcher.watched == {"", "sub", "sub/deep", "in"}


def test_a_python_environment_is_left_alone(root: Path, watched: Start, tmp_path: Path) -> None:
    write(tmp_path, "made/pyvenv.cfg", "made/lib/a.py")
    write(root, "begun/lib/b.py")
    seen = watched(root)
    assert "begun/lib" in seen.watcher.watched
    (tmp_path / "made").rename(root / "made")
    seen.settle()
    assert not any(path.startswith("made") for path in seen.paths)
    write(root, "begun/pyvenv.cfg")
    assert "begun/lib/b.py" not in seen.wait_survey("a.py")
    wait_for(lambda: seen.watcher.watched == {"", "sub", "sub/deep"})


def test_a_directory_moved_to_an_ignored_name(root: Path, watched: Start) -> None:
    seen = watched(root)
    (root / "sub").rename(root / "gen")
    seen.wait("sub/deep/b.py")
    assert seen.watcher.watched == {""}


def test_links_are_not_followed(plain: Path, watched: Start, tmp_path: Path) -> None:
    write(tmp_path, "outside/a.py")
    (plain / "loop").symlink_to(".")
    (plain / "out").symlink_to(tmp_path / "outside")
    seen = watched(plain)
    (plain / "late").symlink_to(tmp_path / "outside")
    (plain / "sub/up").symlink_to("..")
    write(tmp_path, "outside/a.py", text="changed")
    seen.wait()
    assert seen.watcher.watched == {"", "sub", "sub/deep"}


def test_thousands_of_modules_take_no_watch(root: Path, watched: Start) -> None:
    modules(root, 30, 100)
    seen = watched(root)
    assert seen.watcher.watched == {"", "sub", "sub/deep"}
    write(root, "node_modules/p7/new.js")
    seen.wait()


# The gap between the survey and the watches.


def test_changes_since_the_survey_are_reported(root: Path, watched: Start) -> None:
    write(root, "gone.py")
    survey = listing.survey(root)
    write(root, "new.py", "x/new.py", "noise.log", "gen/g.py")
    write(root, "a.py", text="changed since")
    (root / "gone.py").unlink()
    seen = watched(root, survey)
    seen.wait("a.py", "new.py", "x/new.py", "gone.py")


# Surveys.


def test_many_changes_are_one_survey(plain: Path, watched: Start) -> None:
    seen = watched(plain)
    new = {f"many/{folder}/{number}.py" for folder in range(20) for number in range(40)}
    with pytest.MonkeyPatch.context() as patch:  # writing them is one burst, however slow it is
        for name in ("QUIET_FEW_S", "QUIET_S", "MAX_WAIT_S"):
            patch.setattr(watch, name, 3600.0)
        write(plain, *new)
    write(plain, "a.py", text="the end of the burst")  # `many` is not watched yet

    def heard() -> set[str]:
        """Return what was told: where writing is slow, the last ones may come after the survey."""
        surveys = list(seen.surveys)
        return seen.paths.union(*({file.path for file in each.files} for each in surveys))

    wait_for(lambda: seen.surveys and heard() >= new, what="no survey has them", timeout_s=120)
    seen.told.clear()
    seen.settle()
    write(plain, "many/7/7.py", text="y")
    wait_for(lambda: "many/7/7.py" in seen.paths)


def test_many_ignored_changes_are_none(root: Path, watched: Start) -> None:
    seen = watched(root)
    write(root, *(f"sub/{number}.log" for number in range(watch.STORM + 100)))
    seen.wait()


def test_a_checkout_requests_a_survey(tmp_path: Path, watched: Start) -> None:
    root = repository(tmp_path / "project", "a.py", "settled.py")
    git(root, "checkout", "-qb", "other")
    write(root, "a.py", "new/b.py", text="other")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "two")
    git(root, "checkout", "-q", "main")
    seen = watched(root)
    git(root, "checkout", "-q", "other")
    assert seen.wait_survey("new/b.py") == {"a.py", "settled.py", "new/b.py"}
    seen.settle()
    seen.told.clear()
    write(root, "new/b.py", text="more")
    wait_for(lambda: "new/b.py" in seen.paths)


def test_a_checkout_in_a_work_tree_requests_a_survey(tmp_path: Path, watched: Start) -> None:
    main = repository(tmp_path / "main", "a.py")
    git(main, "worktree", "add", "-q", str(tmp_path / "feature"), "-b", "feature")
    seen = watched(tmp_path / "feature")
    git(tmp_path / "feature", "checkout", "-qb", "another")
    seen.wait_survey()


def test_an_ignore_file_changes_what_is_watched(root: Path, watched: Start) -> None:
    write(root, "gen/g.py", "free/f.py")
    seen = watched(root)
    assert seen.watcher.watched == {"", "sub", "sub/deep", "free"}
    (root / ".gitignore").write_text("/free/\n")
    there = seen.wait_survey("gen/g.py")
    assert there == {".gitignore", "a.py", "settled.py", "sub/deep/b.py", "gen/g.py"}
    wait_for(lambda: seen.watcher.watched == {"", "sub", "sub/deep", "gen"})
    write(root, "gen/g.py", text="seen now")
    wait_for(lambda: "gen/g.py" in seen.paths)


def test_a_directory_becomes_a_repository(tmp_path: Path, watched: Start) -> None:
    root = tmp_path / "project"
    write(root, "build/a.py", "b.py")
    seen = watched(root)
    assert seen.watcher.watched == {""}
    repository(root)
    assert seen.wait_survey() == {"build/a.py", "b.py"}
    wait_for(lambda: seen.watcher.watched == {"", "build"})


def test_a_file_added_to_git_against_its_rules(
    tmp_path: Path, watched: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lcursor.index.watch.GIT_INDEX_S", 0.1)
    root = repository(tmp_path / "project", "a.py", ignore="*.log\n")
    write(root, "b.log")
    seen = watched(root)
    git(root, "add", "-f", "b.log")
    seen.wait_survey("b.log")
