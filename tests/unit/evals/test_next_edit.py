"""`eval next`: steps of commits, labels, the replay and its figures."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from evals.next_edit import commits, labels, replay, report, traps
from evals.next_edit.commits import Commit, Step
from lcursor.changes import diff
from lcursor.next_edit.predict import predict
from lcursor.next_edit.records import Edit, Proposal, Texts

BASE = ("def f(a):", "    b = a", "    return b", "", "", "print(f(1))", "x = 1")
FINAL = ("def f(c):", "    b = c", "    return b", "", "", "print(f(1))", "x = 2", "y = 3", "z = 4")


def commit_of(base: Sequence[str], final: Sequence[str], path: str = "a.py") -> Commit:
    steps = [
        step
        for first, end, start, stop in diff.spans(base, final)
        for step in commits.split(path, first, base[first:end], final[start:stop])
    ]
    return Commit("c", {path: tuple(base)}, {path: tuple(final)}, tuple(steps))


def silent(_texts: Texts, _edits: Sequence[Edit]) -> list[Proposal]:
    return []


def perfect(final: Sequence[str]) -> replay.Predict:
    """Return a predictor that knows the result, for commits that keep all lines."""

    def found(texts: Texts, _edits: Sequence[Edit]) -> list[Proposal]:
        (lines,) = texts.values()
        rows = [row for row, line in enumerate(lines) if line != final[row]]
        return [proposal(row, lines[row], final[row]) for row in rows]

    return found


def proposal(row: int, old: str, new: str, group: str = "g") -> Proposal:
    return Proposal("rename", "a.py", row, (old,), (new,), 1.0, "because", group)


def test_a_hunk_is_split_into_pairs_and_the_lines_between() -> None:
    old = ("first(a)", "second(a)", "gone = 1")
    new = ("first(b)", "added = 2", "second(b)")
    assert commits.split("p", 7, old, new) == [
        Step("p", 7, ("first(a)",), ("first(b)",)),
        Step("p", 8, (), ("added = 2",)),
        Step("p", 8, ("second(a)",), ("second(b)",)),
        Step("p", 9, ("gone = 1",), ()),
    ]
    assert commits.split("p", 0, (), new) == [Step("p", 0, (), new)]


def test_steps_make_the_final_text_in_every_order() -> None:
    commit = commit_of(BASE, FINAL)
    assert len(commit.steps) == 4
    for session in replay.replay(commit, silent):
        assert len(session.done) == 4
        assert not session.shown
        assert all(one.keys == one.keys_by_hand for one in session.done)
        assert [one.is_first for one in session.done] == [True, False, False, False]
    assert replay.ordered(commit, "bottom-up") == [3, 2, 1, 0]
    assert replay.ordered(commit, "definitions first") == [0, 1, 2, 3]


def test_right_proposals_are_accepted_and_save_keys() -> None:
    base, final = BASE, (*FINAL[:6], "x = 2")
    commit = commit_of(base, final)
    for session in replay.replay(commit, perfect(final)):
        assert [one.is_right for one in session.shown] == [True, True]
        assert [one.is_accepted for one in session.done] == [False, True, True]
        assert all(one.keys < one.keys_by_hand for one in session.done[1:])
        assert all(not one.kind for one in session.silences)


def test_a_wrong_proposal_is_rejected_and_its_group_is_silent() -> None:
    commit = commit_of(BASE, FINAL)

    def wrong(texts: Texts, _edits: Sequence[Edit]) -> list[Proposal]:
        return [proposal(3, "", "oops"), proposal(4, "", "oops")]

    first = next(iter(replay.replay(commit, wrong)))
    (shown,) = first.shown
    assert (shown.is_right, shown.is_located, shown.is_harmful) == (False, False, True)
    assert [one.kind for one in first.silences if one.state == "done"] == [""]


def test_a_proposal_after_the_last_step_is_wrong() -> None:
    commit = commit_of(BASE, FINAL)

    def late(texts: Texts, edits: Sequence[Edit]) -> list[Proposal]:
        return [proposal(5, "print(f(1))", "print(f(1)")] if len(edits) == 4 else []

    first = next(iter(replay.replay(commit, late)))
    assert [one.kind for one in first.silences if one.state == "done"] == ["rename"]
    assert [(one.is_right, one.adds_error) for one in first.shown] == [(False, True)]


def test_a_part_of_a_block_is_right_and_the_rest_remains() -> None:
    base = ("call(", "    one,", "    two,", ")", "x = 1")
    final = ("run(", "    uno,", "    dos,", ")", "x = 2")
    commit = Commit(
        "c",
        {"a.py": base},
        {"a.py": final},
        (Step("a.py", 0, base[:3], final[:3]), Step("a.py", 4, base[4:], final[4:])),
    )

    def part(texts: Texts, edits: Sequence[Edit]) -> list[Proposal]:
        return [proposal(1, "    one,", "    uno,")] if len(edits) == 1 else []

    session = [*replay.replay(commit, part)][1]
    assert [one.is_right for one in session.shown] == [True]
    assert [one.is_accepted for one in session.done] == [False, False]


@pytest.mark.parametrize(
    ("base", "final", "wanted"),
    [
        (BASE[:3], FINAL[:3], ["rename", "rename"]),
        (
            ("def f(a, b):", "    return a", "f(1, 2)"),
            ("def f(a):", "    return a", "f(1)"),
            ["signature", "signature"],
        ),
        (
            ("x.get(one)", "y.get(two)", "z = 1"),
            ("x.get(one, 0)", "y.get(two, 0)", "z = 2"),
            ["repetition", "repetition", "other"],
        ),
        (
            ("import os", "", "", "x = 1"),
            ("import os", "import re", "", "", 'x = re.compile("a")'),
            ["companion", "other"],
        ),
        (("x = 1", "", "use(x)"), ("y = 1", "", "use(y)"), ["rename", "rename"]),
        (("int a;", "int c;", "int b;"), ("long a;", "int c;", "long b;"), ["repetition"] * 2),
    ],
)
def test_the_label_of_each_step(
    base: tuple[str, ...], final: tuple[str, ...], wanted: list[str]
) -> None:
    assert [one.label for one in labels.label(commit_of(base, final))] == wanted


def test_the_report_has_all_figures() -> None:
    base, final = BASE, (*FINAL[:6], "x = 2")
    sessions = [*replay.replay(commit_of(base, final), perfect(final))]
    facts = {"machine": {"cpu": "abacus"}, "command": "eval next", "repository": "r"}
    document = report.as_dict(sessions, [], {**facts, "revision": "1"}, seed=1)
    assert document["precision"] == {
        "all": 1.0,
        "rename": 1.0,
        "repetition": None,
        "rename_local": None,
        "rename_other": 1.0,
    }
    of_renames = document["basis"]["rename"]
    assert sum(one["steps"] for one in of_renames.values()) == 6
    assert of_renames["declaration"]["proposed"] == 1.0
    assert document["keys_saved"]["ceiling"] == document["keys_saved"]["repetitive_ceiling"] > 0.1
    assert document["coverage"]["all"] == 1.0
    assert document["coverage"]["rename"] == 1.0
    assert document["quiet"]["all"] == 1.0
    assert document["keys_saved"]["all"] > 0.2
    assert document["steps"] == 18
    text = "\n".join(report.as_markdown(json.loads(json.dumps(document))))
    assert "| rename | 12 | 100 % | 100 % | 0 % |" in text
    assert "| top-down | 3 | 2 | 100 % | 100 % |" in text


def git(folder: Path, *words: str) -> None:
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e@x", *words]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    spaced = tuple(line.replace("(", "( ") for line in FINAL)
    texts = [BASE, FINAL, spaced, (*spaced, "q = 1")]
    for number, lines in enumerate(texts):
        (tmp_path / "a.py").write_text("\n".join(lines) + "\n")
        (tmp_path / "notes.md").write_text(f"{number}\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", f"Change {number}")
    return tmp_path


def test_only_usable_commits_are_read(repository: Path) -> None:
    (found,) = commits.load(repository, 10)  # the others: added, white space only, one hunk
    assert found.base == {"a.py": BASE}
    assert found.final == {"a.py": FINAL}


def test_no_trap_catches_the_predictors() -> None:
    found = traps.load()
    assert len({trap.name for trap in found}) == len(found) >= 40
    assert [one for one in traps.judge(found, predict) if one.outcome != "right"] == []


def test_a_wrong_proposal_and_a_missing_one_are_seen_in_traps() -> None:
    (trap,) = [one for one in traps.load() if one.name == "local-of-another-function"]
    (judged,) = traps.judge([trap], silent)
    assert judged.outcome == "missed"
    (judged,) = traps.judge([trap], lambda *_: [proposal(6, "x", "    length = 2")])
    assert (judged.outcome, judged.detail) == ("wrong", "a.py:7 `length = 2`")
