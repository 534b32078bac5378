"""Ignore files without git, compared with what git itself says of the same tree."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcursor.project import listing
from lcursor.project.ignore import IgnoreMatcher, IgnoreRules
from tests.unit.project.trees import git, repository, write

FOLDERS = ["a", "b", "foo"]
NAMES = [*FOLDERS, "x.py", "y.c", "bar.txt"]
LINES = [
    *("a", "b/", "*.py", "!*.py", "/foo", "foo/", "!foo/", "a/b", "a/**", "!a/b", "**/b", "*"),
    *("!*/", "a/*", "!a/foo", "[ab]", "foo/**/b", "!x.py", "*.c", "a/b/", "/a/*/b", "?", "!?"),
    *(r"\!a", "#x", "b/**/x.py", "!a/", "**/foo/*", "b/*.py", "fo*", "!b/x.py", "**/", "*/"),
    *("/*", "[!a]", "x.p[a-z]", "!", "/"),
]

tree = st.sets(
    st.tuples(st.lists(st.sampled_from(FOLDERS), max_size=3), st.sampled_from(NAMES)).map(
        lambda parts: "/".join([*parts[0], parts[1]])
    ),
    min_size=4,
    max_size=14,
)
ignore_file = st.lists(st.sampled_from(LINES), min_size=1, max_size=4)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree, ignore_file, st.dictionaries(st.sampled_from(FOLDERS), ignore_file, max_size=2))
def test_a_walk_finds_what_git_finds(
    paths: set[str], top: list[str], below: dict[str, list[str]]
) -> None:
    root = Path(tempfile.mkdtemp(prefix="lcursor-test-"))
    try:
        for path in sorted(paths):
            full = root / path
            if not full.exists() and all(not above.is_file() for above in full.parents):
                write(root, path)
        for folder, lines in {"": top, **below}.items():
            if (root / folder).is_dir():
                (root / folder / ".gitignore").write_text("\n".join(lines) + "\n")
        walked = {file.path for file in listing.survey(root).files}
        git(root, "init", "-q")
        listed = git(root, "ls-files", "-oz", "--exclude-standard")
        assert walked == {path for path in listed.split("\0") if path}
    finally:
        shutil.rmtree(root)


@pytest.mark.parametrize(
    ("lines", "path", "is_out"),
    [
        ("*.log", "a/b.log", True),
        ("*.log\n!b.log", "a/b.log", False),
        ("a\n!a/b.log", "a/b.log", True),  # what is below an ignored directory stays out
        ("a/*\n!a/b.log", "a/b.log", False),
        ("a/**\n!a/b.log", "a/b.log", False),
        ("# a\n\n  \n\\#b", "#b", True),
        ("b \n", "b", True),
        ("b\\ \n", "b ", True),
        ("b\r\n", "b", True),
        ("\ufeffb\n", "b", True),
        ("é.py\n", "é.py", True),
        ("x*y\n", "x\ny", True),
        ("[\n", "[", False),
        ("***\n", "a", True),
    ],
)
def test_one_file(tmp_path: Path, lines: str, path: str, is_out: bool) -> None:
    (tmp_path / ".lcursorignore").write_text(lines, newline="")
    assert bool(IgnoreRules(tmp_path, is_in_git=True).reason(path)) is is_out


def test_an_ignore_file_of_any_bytes(tmp_path: Path) -> None:
    (tmp_path / ".lcursorignore").write_bytes(b"caf\xe9.py\n")
    rules = IgnoreRules(tmp_path, is_in_git=True)
    assert rules.reason("caf\udce9.py") == ".lcursorignore:1: caf\udce9.py"
    assert rules.reason("caf\u00e9.py") == ""


def test_a_directory_in_the_place_of_an_ignore_file(tmp_path: Path) -> None:
    (tmp_path / ".lcursorignore").mkdir()
    assert IgnoreRules(tmp_path, is_in_git=True).reason("a.py") == ""


def test_many_paths_at_once(tmp_path: Path) -> None:
    root = repository(tmp_path / "top", "a.py", "forced.log", ignore="*.log\n/lib/gen/\n")
    write(root, "b.log", "new.py", "node_modules/m/x.js", "lib/gen/g.py", "lib/a.py")
    repository(root / "lib/nested", "n.py", "n.tmp", ignore="*.tmp\n")
    git(root / "lib/nested", "rm", "-q", "--cached", "n.tmp")
    paths = [
        *("a.py", "forced.log", "b.log", "new.py", "node_modules/", "node_modules/m/x.js"),
        *("lib/", "lib/a.py", "lib/gen/", "lib/gen/g.py"),
        *("lib/nested/", "lib/nested/n.py", "lib/nested/n.tmp", "lib/nested/x.log"),
    ]
    matcher = IgnoreMatcher(root)
    found = matcher.reasons(paths)
    assert found == {
        "b.log": "git ignores it: .gitignore:1: *.log",
        "node_modules/": "node_modules: left out by default",
        "node_modules/m/x.js": "node_modules: left out by default",
        "lib/gen/": "git ignores it: .gitignore:2: /lib/gen/",
        "lib/gen/g.py": "git ignores it: .gitignore:2: /lib/gen/",
        "lib/nested/n.tmp": "git ignores it: .gitignore:1: *.tmp",
    }
    (root / ".gitignore").unlink()
    assert matcher.reasons(paths) == found  # it remembers
    assert IgnoreMatcher(root).reasons(["b.log"]) == {}


def test_where_git_is_not_asked_the_ignore_files_are_read(tmp_path: Path) -> None:
    root = repository(tmp_path / "top", "a.py", ignore="*.log\n")
    write(root, "b.log", "build/x.py")
    assert IgnoreMatcher(root).reasons(["b.log", "build/"]) == {
        "b.log": "git ignores it: .gitignore:1: *.log"
    }
    assert IgnoreMatcher(root, is_in_git=False).reasons(["a.py", "b.log", "build/"]) == {
        "b.log": ".gitignore:1: *.log",
        "build/": "build: left out by default",
    }
