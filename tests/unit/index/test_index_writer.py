"""What has to be read again."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lcursor.index.index_writer import Plan, difference
from lcursor.index.records import FileState
from lcursor.project.listing import Found, Survey


def survey(*files: Found) -> Survey:
    return Survey(list(files), [], 0.0, Path("/project"))


def known(**files: tuple[int, int]) -> dict[str, FileState]:
    return {path: FileState(size, mtime, b"d" * 16) for path, (size, mtime) in files.items()}


def test_new_changed_and_gone() -> None:
    before = known(same=(1, 10), larger=(1, 10), later=(1, 10), gone=(1, 10))
    now = survey(
        Found("same", 1, 10), Found("larger", 2, 10), Found("later", 1, 30), Found("new", 1, 20)
    )
    assert difference(before, now) == Plan(["later", "new", "larger"], ["gone"])


names = st.sampled_from("abcdef")
marks = st.tuples(st.integers(0, 2), st.integers(0, 2))


@given(st.dictionaries(names, marks), st.dictionaries(names, marks))
def test_after_a_plan_the_two_agree(
    before: dict[str, tuple[int, int]], now: dict[str, tuple[int, int]]
) -> None:
    plan = difference(known(**before), survey(*(Found(path, *mark) for path, mark in now.items())))
    result = {path: mark for path, mark in before.items() if path not in plan.gone}
    result.update({path: now[path] for path in plan.read})
    assert result == now
    assert all(before.get(path) != now[path] for path in plan.read)
    assert len(set(plan.read)) == len(plan.read)
