"""Surveys of real directories, most of them real git repositories."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from lcursor.errors import Cancelled, IndexFailed
from lcursor.project import ignore, listing
from lcursor.project.listing import Found, Survey
from lcursor.project.root import is_home_like
from tests.unit.project.trees import anybody, git, modules, repository, write


@pytest.fixture(params=["git", "no git"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A project that is a repository, and one that is none."""
    top = tmp_path / "project"
    top.mkdir()
    if request.param == "git":
        git(top, "init", "-q")
    return top


def paths(survey: Survey) -> set[str]:
    return {file.path for file in survey.files}


def test_a_survey_has_size_and_time_of_each_file(root: Path) -> None:
    write(root, "a.py", "sub/b.py", text="12345")
    survey = listing.survey(root)
    status = os.stat(root / "sub/b.py")
    assert survey.files == [
        Found("a.py", 5, os.stat(root / "a.py").st_mtime_ns),
        Found("sub/b.py", 5, status.st_mtime_ns),
    ]
    assert survey.seconds > 0
    assert survey.remarks == ()


def test_nested_ignore_files_and_what_they_take_in_again(root: Path) -> None:
    write(root, "a.log", "keep.log", "sub/b.log", "sub/c.txt", "sub/deep/c.txt", "gen/x/y.py")
    (root / ".gitignore").write_text("*.log\n!keep.log\n/gen/\n")
    (root / "sub/.gitignore").write_text("/c.txt\n!b.log\n")
    survey = listing.survey(root)
    assert paths(survey) == {
        *(".gitignore", "keep.log", "sub/.gitignore", "sub/b.log", "sub/deep/c.txt")
    }
    assert {path for path, _ in survey.ignored} >= {"a.log", "sub/c.txt", "gen/"}


def test_our_own_ignore_file_counts_also_for_what_git_tracks(root: Path) -> None:
    write(root, "a.py", "data/big.json", "sub/data/x.json", "sub/y.json")
    if (root / ".git").exists():
        git(root, "add", "-A")
    (root / ".lcursorignore").write_text("/data/\n")
    (root / "sub/.lcursorignore").write_text("y.json\n")
    survey = listing.survey(root)
    assert paths(survey) == {".lcursorignore", "a.py", "sub/.lcursorignore", "sub/data/x.json"}
    assert dict(survey.ignored) == {
        "data/": ".lcursorignore:1: /data/",
        "sub/y.json": "sub/.lcursorignore:1: y.json",
    }


def test_other_tools_ignore_files_are_not_read(root: Path) -> None:
    write(root, "a.py")
    for name in (".prettierignore", ".dockerignore", ".npmignore", ".ignore"):
        (root / name).write_text("*\n")
    assert "a.py" in paths(listing.survey(root))


def test_thousands_of_modules_are_one_ignored_path(root: Path) -> None:
    write(root, "a.js")
    modules(root, 50, 120)
    survey = listing.survey(root)
    assert paths(survey) == {"a.js"}
    assert survey.ignored == [("node_modules/", "node_modules: left out by default")]


def test_a_default_can_be_taken_in_again(root: Path) -> None:
    write(root, "node_modules/a/b.js", ".venv/c.py")
    (root / ".lcursorignore").write_text("!node_modules/\n")
    assert paths(listing.survey(root)) == {".lcursorignore", "node_modules/a/b.js"}


def test_build_directories_count_where_git_knows_them(tmp_path: Path) -> None:
    plain, known = tmp_path / "plain", repository(tmp_path / "known", "build/tool.py")
    write(plain, "build/tool.py", "a.py")
    assert paths(listing.survey(known)) == {"build/tool.py"}
    assert paths(listing.survey(plain)) == {"a.py"}


@pytest.mark.parametrize("mark", ["pyvenv.cfg", "CACHEDIR.TAG"])
def test_marked_directories_are_left_out_whatever_their_name(root: Path, mark: str) -> None:
    write(root, "a.py", f"thing/{mark}", "thing/lib/b.py", f"in/other/{mark}", "in/other/c.py")
    survey = listing.survey(root)
    assert paths(survey) == {"a.py"}
    assert {path for path, _ in survey.ignored} == {"thing/", "in/other/"}
    assert ignore.why(root, "thing/lib/b.py") == "thing is a cache or a Python environment"


NAMES = [
    b"with space.py",
    b"with\nnewline.py",
    b"caf\xe9.py",
    b"\xff\xfe.py",
    "ünï/日本.py".encode(),
    b'"quoted".py',
    b"-dash.py",
    b":(top)magic.py",
    b"back\\slash.py",
    b"tab\t.py",
    b"line\ndir/a.py",
    b"*star[1].py",
]


def test_names_of_any_bytes(root: Path) -> None:
    for name in NAMES:
        full = os.path.join(os.fsencode(root), name)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            file.write(name)
    (root / ".gitignore").write_bytes(b"left*out.py\n")
    with open(os.path.join(os.fsencode(root), b"left\n\xe9out.py"), "wb"):
        pass
    survey = listing.survey(root)
    assert {os.fsencode(path) for path in paths(survey)} == {*NAMES, b".gitignore"}
    for known in survey.files:
        assert listing.found(root, known.path) == known
        assert ignore.why(root, known.path) == ""
    assert ignore.why(root, os.fsdecode(b"left\n\xe9out.py")).endswith(".gitignore:1: left*out.py")


def test_links_are_not_followed_and_loops_end(root: Path, tmp_path: Path) -> None:
    write(tmp_path, "outside/secret.py")
    write(root, "sub/a.py")
    (root / "loop").symlink_to(".")
    (root / "sub/up").symlink_to("..")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "one.py").symlink_to("sub/a.py")
    (root / "self").symlink_to("self")
    survey = listing.survey(root)
    assert paths(survey) == {"sub/a.py"}
    assert ("one.py", "a symbolic link") in survey.ignored
    assert ignore.why(root, "one.py") == "it is a symbolic link"
    assert ignore.why(root, "out/secret.py") == "it is below a symbolic link: out"
    assert listing.found(root, "one.py") is None


def test_files_behind_a_folder_that_became_a_link_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "mine/a.txt", "mine/deep/b.txt")
    root = repository(tmp_path / "project", "a.py", "link/a.txt", "link/deep/b.txt")
    shutil.rmtree(root / "link")
    (root / "link").symlink_to("../mine")
    survey = listing.survey(root)
    assert paths(survey) == {"a.py"}
    assert set(survey.ignored) == {
        ("link/a.txt", ignore.BEHIND_LINK),
        ("link/deep/b.txt", ignore.BEHIND_LINK),
        ("link", ignore.LINK),
    }
    assert listing.names(root).files == ("a.py", "link")
    assert listing.found(root, "link/a.txt") is None


@pytest.mark.parametrize("kind", ["link", "pipe", "large"])
def test_an_ignore_file_that_is_no_small_file_is_reported(
    root: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(ignore, "MAX_BYTES", 99)
    write(root, "a.py")
    path = root / ".lcursorignore"
    if kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_text("*.py\n" * 99)
    survey = listing.survey(root)
    assert "a.py" in paths(survey)
    (remark,) = survey.remarks
    assert remark.startswith(".lcursorignore is not applied: ")


def test_pipes_and_sockets_are_no_files(root: Path) -> None:
    write(root, "a.py")
    os.mkfifo(root / "pipe.py")
    assert paths(listing.survey(root)) == {"a.py"}
    assert ignore.why(root, "pipe.py") == "it is not a regular file"


def test_an_unreadable_directory_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with anybody() as root:
        monkeypatch.setenv("HOME", str(root))
        write(root, "a.py", "closed/b.py")
        (root / "closed").chmod(0)
        survey = listing.survey(root)
        (root / "closed").chmod(0o700)
    assert paths(survey) == {"a.py"}
    assert survey.ignored == [("closed/", "the directory cannot be read")]


def test_a_project_that_is_not_there_is_no_empty_project(tmp_path: Path) -> None:
    with pytest.raises(IndexFailed, match="No such file"):
        listing.survey(tmp_path / "unmounted")
    (tmp_path / "file").touch()
    with pytest.raises(IndexFailed, match="Not a directory"):
        listing.survey(tmp_path / "file")


@pytest.mark.parametrize("leftover", ["a.py~", ".a.py.swp", ".#a.py", "#a.py#", "4913"])
def test_editors_leftovers_are_left_out(root: Path, leftover: str) -> None:
    write(root, "a.py", leftover, "b#.py")
    assert paths(listing.survey(root)) == {"a.py", "b#.py"}
    assert ignore.why(root, leftover) == "a temporary file of an editor"


def test_a_survey_can_be_cancelled(root: Path) -> None:
    write(root, "a.py")
    asked = threading.Event()

    def cancel() -> bool:
        asked.set()
        return True

    with pytest.raises(Cancelled):
        listing.survey(root, cancel)
    assert asked.is_set()


def test_without_git_on_the_machine_rules_still_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "project", "a.py", "b.log", ignore="*.log\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    survey = listing.survey(root)
    assert paths(survey) == {".gitignore", "a.py"}
    assert survey.remarks == (
        "git's ignore rules are not applied: git cannot be run: No such file or directory",
    )


def test_a_broken_repository_is_walked(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", "a.py")
    (root / ".git/HEAD").write_text("nonsense")
    (root / ".git/config").write_text("[broken")
    survey = listing.survey(root)
    assert paths(survey) == {"a.py"}
    assert survey.remarks != ()


# What only git knows.


def test_tracked_untracked_deleted_and_ignored(tmp_path: Path) -> None:
    root = repository(tmp_path, "a.py", "gone.py", "forced.log", "b.log")
    git(root, "rm", "-q", "--cached", "b.log")
    (root / ".gitignore").write_text("*.log\n")
    git(root, "add", "-f", "forced.log")
    (root / "gone.py").unlink()
    write(root, "new.py")
    (root / ".git/info/exclude").write_text("private.txt\n")
    write(root, "private.txt")
    survey = listing.survey(root)
    assert paths(survey) == {".gitignore", "a.py", "forced.log", "new.py"}
    assert survey.ignored == [("b.log", "git ignores it"), ("private.txt", "git ignores it")]
    assert ignore.why(root, "b.log") == "git ignores it: .gitignore:1: *.log"
    assert ignore.why(root, "private.txt").endswith("info/exclude:1: private.txt")
    assert ignore.why(root, "forced.log") == ""


def test_a_directory_of_ignored_files_is_not_ignored_itself(tmp_path: Path) -> None:
    root = repository(tmp_path, "a.py", ignore="*.log\n")
    write(root, "logs/a.log", "logs/b.log")
    assert listing.survey(root).ignored == [
        ("logs/a.log", "git ignores it"),
        ("logs/b.log", "git ignores it"),
    ]


def test_paths_in_conflict_are_one_path(tmp_path: Path) -> None:
    root = repository(tmp_path, "a.py")
    git(root, "checkout", "-qb", "other")
    write(root, "a.py", text="other")
    git(root, "commit", "-qam", "two")
    git(root, "checkout", "-q", "main")
    write(root, "a.py", text="main")
    git(root, "commit", "-qam", "three")
    with pytest.raises(subprocess.CalledProcessError, match="merge"):
        git(root, "merge", "other")
    assert [file.path for file in listing.survey(root).files] == ["a.py"]


def test_a_part_of_a_repository_is_a_project(tmp_path: Path) -> None:
    root = repository(tmp_path, "a.py", "sub/b.py", "sub/c.log", ignore="*.log\n")
    git(root, "rm", "-q", "--cached", "sub/c.log")
    survey = listing.survey(root / "sub")
    assert paths(survey) == {"b.py"}
    assert survey.git_folder == root / ".git"
    assert ignore.why(root / "sub", "c.log") == "git ignores it: .gitignore:1: *.log"


def test_a_home_under_git_that_ignores_all_is_not_asked(tmp_path: Path) -> None:
    home = repository(tmp_path, ignore="*\n")
    write(home, "project/a.py")
    survey = listing.survey(home / "project")
    assert paths(survey) == {"a.py"}
    assert survey.repositories == ()
    assert ignore.why(home / "project", "a.py") == ""


def test_repositories_within_are_part_of_it_other_work_trees_are_not(tmp_path: Path) -> None:
    root = repository(tmp_path / "top", "a.py")
    library = repository(tmp_path / "library", "lib.py", "lib.log")
    git(library, "rm", "-q", "--cached", "lib.log")
    (library / ".gitignore").write_text("*.log\n")
    git(library, "add", "-A")
    git(library, "commit", "-qm", "two")
    add = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "sub")
    git(root, *add)
    write(root, "sub/lib.log", "sub/new.py", "sub/node_modules/m/x.js")
    repository(root / "nested", "n.py", "gen/g.py")
    (root / "nested/.git/info/exclude").write_text("gen\n")
    git(root / "nested", "rm", "-rq", "--cached", "gen")
    git(root, "worktree", "add", "-q", "trees/feature", "-b", "feature")
    survey = listing.survey(root)
    assert paths(survey) == {
        *("a.py", ".gitmodules", "sub/.gitignore", "sub/lib.py", "sub/new.py", "nested/n.py")
    }
    assert survey.repositories == ("", "sub/", "nested/")
    assert dict(survey.ignored) == {
        "nested/gen/": "git ignores it",
        "sub/lib.log": "git ignores it",
        "sub/node_modules/": "node_modules: left out by default",
        "trees/feature/": "another work tree of a repository",
    }
    assert ignore.why(root, "sub/lib.log").startswith("git ignores it: .gitignore:1: *.log")
    assert ignore.why(root, "nested/gen/g.py").endswith("info/exclude:1: gen")
    assert ignore.why(root, "trees/feature/a.py").endswith("another work tree of a repository")


def test_a_submodule_that_was_not_fetched_is_nothing(tmp_path: Path) -> None:
    library = repository(tmp_path / "library", "lib.py")
    top = repository(tmp_path / "top", "a.py")
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "sub")
    git(top, "commit", "-qm", "two")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(top), str(clone))
    assert paths(listing.survey(clone)) == {"a.py", ".gitmodules"}


def test_a_work_tree_is_a_project_of_its_own(tmp_path: Path) -> None:
    root = repository(tmp_path / "top", "a.py")
    git(root, "worktree", "add", "-q", str(tmp_path / "feature"), "-b", "feature")
    survey = listing.survey(tmp_path / "feature")
    assert paths(survey) == {"a.py"}
    assert survey.git_folder == root / ".git/worktrees/feature"


def test_the_submodules_of_a_work_tree_are_part_of_it(tmp_path: Path) -> None:
    library = repository(tmp_path / "library", "lib.py")
    root = repository(tmp_path / "top", "a.py")
    local = ("-c", "protocol.file.allow=always", "submodule", "-q")
    for name in ("sub", "worktrees/sub"):
        git(root, *local, "add", str(library), name)
    git(root, "commit", "-qm", "two")
    feature = tmp_path / "feature"
    git(root, "worktree", "add", "-q", str(feature), "-b", "feature")
    git(feature, *local, "update", "--init")
    for top in (root, feature):
        survey = listing.survey(top)
        assert paths(survey) == {"a.py", ".gitmodules", "sub/lib.py", "worktrees/sub/lib.py"}
        assert survey.ignored == []
        assert ignore.why(top, "sub/lib.py") == ""


def test_the_environment_of_a_git_hook_does_not_mislead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = repository(tmp_path / "other", "other.py")
    root = repository(tmp_path / "project", "a.py")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    assert paths(listing.survey(root)) == {"a.py"}


def test_nothing_that_a_repository_configures_is_run(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", "a.py")
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    hook.chmod(0o755)
    git(root, "config", "core.fsmonitor", str(hook))
    listing.survey(root)
    assert not (tmp_path / "was-run").exists()
    git(root, "status")
    assert (tmp_path / "was-run").exists()  # or the test would prove nothing


# Why, home, report.


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a.py", ""),
        ("sub", ""),
        ("", ""),
        ("missing.py", "it cannot be read: No such file or directory"),
        ("../elsewhere", "it is not in the project: "),
        ("/etc/passwd", "it is not in the project: "),
        (".git", "git's own"),
        (
            "node_modules/m/x.js",
            "node_modules: left out by default; "
            "a line !node_modules/ in .lcursorignore includes it",
        ),
    ],
)
def test_why(root: Path, path: str, reason: str) -> None:
    write(root, "a.py", "sub/b.py", "node_modules/m/x.js")
    (root / ".git").mkdir(exist_ok=True)
    told = ignore.why(root, path)
    assert told.startswith(reason) if reason.endswith(": ") else told == reason
    assert ignore.why(root, root / path) == told


def test_why_of_a_project_behind_a_link(root: Path, tmp_path: Path) -> None:
    write(root, "a.py", "__pycache__/x.pyc")
    link = tmp_path / "link"
    link.symlink_to(root)
    assert ignore.why(link, link / "a.py") == ""
    assert ignore.why(link, root / "a.py") == ""
    assert "by default" in ignore.why(link, link / "__pycache__/x.pyc")
    assert paths(listing.survey(link)) == {"a.py"}


def test_home_and_all_above_it_ask_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home/me"
    (home / "project").mkdir(parents=True)
    (tmp_path / "link").symlink_to(home)
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    asks = [home, tmp_path / "link", home.parent, tmp_path, Path("/")]
    assert [is_home_like(folder) for folder in asks] == [True] * len(asks)
    assert not is_home_like(home / "project")
    assert not is_home_like(tmp_path / "elsewhere")
