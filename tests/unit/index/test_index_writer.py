"""What has to be read again."""

from __future__ import annotations

from lcursor.index.index_writer import difference
from lcursor.index.records import FileState
from lcursor.project.listing import Found, Survey


def survey(*files: Found) -> Survey:
    return Survey(list(files), [], 0.0)


def known(**files: tuple[int, int]) -> dict[str, FileState]:
    return {path: FileState(size, mtime, b"d" * 16) for path, (size, mtime) in files.items()}


def test_new_changed_and_gone() -> None:
    before = known(same=(1, 10), larger=(1, 10), later=(1, 10), older=(1, 10), gone=(1, 10))
    now = survey(
        *(Found("same", 1, 10), Found("larger", 2, 10), Found("later", 1, 30)),
        *(Found("older", 1, 1), Found("new", 1, 20)),
    )
    changed, gone = difference(before, now)
    assert [file.path for file in changed] == ["later", "new", "larger", "older"]
    assert gone == ["gone"]
