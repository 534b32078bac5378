"""The copy that the index's bench works on: the original stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.index_project import Copy

SOURCE = {
    "pkg/a.py": '"""Reads the first lines of a file."""\n\n\ndef first_lines(x):\n    return x\n',
    "pkg/b.lua": "local function collect() end\n",
    "logo.png": "x",
    ".env": "A=1",
    "site-packages/other/c.py": "x = 1\n",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A project without git."""
    for name, text in SOURCE.items():
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "source"


@pytest.fixture
def copy(source: Path, tmp_path: Path) -> Copy:
    """A copy of it."""
    return Copy(source, tmp_path / "copy")


def test_only_what_would_be_indexed_is_copied(copy: Copy, source: Path) -> None:
    assert sorted(copy.names) == ["pkg/a.py", "pkg/b.lua"]
    assert copy.bytes == sum(len(SOURCE[name]) for name in copy.names)
    assert not (source / ".git").exists()


def test_queries_are_names_and_sentences_of_the_project(copy: Copy) -> None:
    names, sentences = copy.queries(20, seed=1)
    assert set(names) == {"first_lines", "collect"}
    assert set(sentences) == {"Reads the first lines of a file"}
    assert copy.queries(20, seed=1) == (names, sentences)


def test_a_branch_has_words_that_the_other_has_not(copy: Copy) -> None:
    words = copy.branch()
    assert copy.branch_files == 2
    for branch, is_there in (("one", False), ("two", True), ("one", False)):
        copy.switch(branch)
        for word, name in words.items():
            assert (word in (copy.root / name).read_text()) == is_there
