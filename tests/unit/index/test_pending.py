"""When what changed is told: pure, with a clock of the test's own."""

from __future__ import annotations

import pytest

from lcursor.index.watch import (
    FEW_PATHS,
    GIT,
    GIT_INDEX_S,
    MAX_PENDING,
    MAX_WAIT_S,
    QUIET_FEW_S,
    QUIET_S,
    SURVEY_REST,
    Pending,
)


def test_without_changes_nothing_is_due() -> None:
    pending = Pending()
    assert pending.paths_due_s() is None
    assert pending.survey_due_s(5.0, 1.0) is None


def test_a_save_is_due_soon_and_many_changes_later() -> None:
    pending = Pending()
    assert pending.add_entry("sub", "a.py", False, 100.0)
    assert pending.paths == {"sub/a.py"}
    assert pending.paths_due_s() == pytest.approx(100.0 + QUIET_FEW_S)
    for number in range(FEW_PATHS):
        pending.add_entry("", f"{number}.py", False, 100.05)
    assert pending.paths_due_s() == pytest.approx(100.05 + QUIET_S)


def test_continuous_changes_are_reported_after_the_longest_wait() -> None:
    pending = Pending()
    now_s = 100.0
    while now_s < 110:
        pending.add_entry("", "a.py", False, now_s)
        now_s += QUIET_FEW_S / 2
    assert pending.paths_due_s() == pytest.approx(100.0 + MAX_WAIT_S)


@pytest.mark.parametrize(
    ("folder", "name", "is_folder"),
    [
        (GIT, "HEAD", False),
        (GIT, "", True),
        ("", ".git", True),
        ("sub", ".git", False),
        ("", ".gitignore", False),
        ("sub/deep", ".lcursorignore", False),
        ("env", "pyvenv.cfg", False),
    ],
)
def test_ignore_files_and_head_request_a_survey(folder: str, name: str, is_folder: bool) -> None:
    pending = Pending()
    assert pending.add_entry(folder, name, is_folder, 100.0)
    assert pending.survey_due_s(0.0, 0.1) == pytest.approx(100.0 + QUIET_S)


@pytest.mark.parametrize("name", ["config", "HEAD.lock", "index.lock", "COMMIT_EDITMSG"])
def test_other_files_of_git_do_not_matter(name: str) -> None:
    pending = Pending()
    assert not pending.add_entry(GIT, name, False, 100.0)
    assert pending.survey_due_s(0.0, 0.1) is None
    assert pending.paths_due_s() is None


def test_gits_index_asks_for_a_survey_only_now_and_then() -> None:
    pending = Pending()
    pending.add_entry(GIT, "index", False, 100.0)
    assert pending.survey_due_s(99.0, 0.1) == pytest.approx(99.0 + GIT_INDEX_S)
    assert pending.survey_due_s(10.0, 0.1) == pytest.approx(100.0 + QUIET_S)
    pending.add_entry("", "a.py", False, 100.0)
    taken = pending.pop_paths()
    assert taken.paths == {"a.py"}
    assert pending.paths_due_s() is None
    assert pending.survey_due_s(10.0, 0.1) == pytest.approx(100.0 + QUIET_S)


def test_a_slow_survey_is_followed_by_a_long_pause() -> None:
    pending = Pending()
    pending.add_entry(GIT, "HEAD", False, 100.0)
    assert pending.survey_due_s(99.0, 4.0) == pytest.approx(99.0 + SURVEY_REST * 4.0)


def test_too_many_paths_are_a_survey() -> None:
    pending = Pending()
    for number in range(MAX_PENDING + 1):
        pending.add_entry("out", str(number), False, 100.0)
    assert pending.survey_due_s(0.0, 0.1) == pytest.approx(100.0 + QUIET_S)
    assert len(pending.paths) < MAX_PENDING
