"""The benchmark's files as they are in the repository, and where they are cut."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evals.data import DATA, KINDS, LINES, SPANS, Kind, cuts, load, source_cuts


def test_the_files_are_whole_and_have_their_licence() -> None:
    assert len(load(DATA / LINES)) == 1033
    assert len(load(DATA / SPANS)) == 164
    assert "MIT License" in (DATA / "LICENSE").read_text()


@pytest.mark.parametrize(("kind", "least"), [*zip(KINDS, (1000, 900, 164), strict=True)])
def test_a_cut_loses_nothing(kind: Kind, least: int) -> None:
    found = cuts(DATA, kind, 2000, 1)
    assert len(found) >= least
    for cut in found:
        task = cut.task
        assert cut.prefix + cut.rest + cut.suffix == task.before + task.masked + task.after
        assert cut.rest.strip()


def test_a_character_cut_is_strictly_inside_the_line() -> None:
    found = cuts(DATA, "char", 2000, 1)
    assert len(found) > 1000
    for cut in found:
        assert "\n" not in cut.rest
        assert cut.prefix.rpartition("\n")[2].strip()
        assert cut.suffix.startswith("\n")
        assert cut.single_line


def test_a_word_cut_is_where_a_word_starts() -> None:
    found = cuts(DATA, "word", 2000, 1)
    assert len(found) > 900
    for cut in found:
        kept = cut.prefix.rpartition("\n")[2]
        assert kept.strip()
        assert re.match(r"\w", cut.rest)
        assert re.search(r"\W$", kept)


def test_a_span_is_one_line_only_where_text_follows() -> None:
    found = cuts(DATA, "span", 2000, 1)
    assert {cut.single_line for cut in found} == {True, False}
    for cut in found:
        assert cut.single_line == bool(cut.suffix.split("\n")[0].strip())


@pytest.mark.parametrize("kind", KINDS)
def test_more_cuts_begin_with_the_fewer(kind: Kind) -> None:
    few, many = cuts(DATA, kind, 20, 7), cuts(DATA, kind, 60, 7)
    assert len(few) == 20
    assert many[:20] == few
    assert cuts(DATA, kind, 20, 8) != few


@pytest.mark.parametrize("kind", ["char", "word"])
def test_lines_of_code_of_a_source_file_are_cut(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "steps.py"
    text = "# a remark that is long enough\nx = 1\nfirst = step_of(values)\n\nlast = first.end()\n"
    path.write_text(text)
    found = source_cuts(path, kind, 9, 1)
    assert sorted(cut.task.name for cut in found) == ["steps.py:00003", "steps.py:00005"]
    for cut in found:
        assert cut.prefix + cut.rest + cut.suffix == text
        assert (cut.task.file, cut.task.project) == ("steps.py", tmp_path.name)
        assert not cut.task.test
