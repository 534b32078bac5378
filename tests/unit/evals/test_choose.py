"""The eval of single decisions: what counts as valid and right, and the transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals import choose
from lcursor.agent.guided.choice import Choice
from lcursor.agent.records import Answer, Known, Shown
from lcursor.errors import LcursorError

KNOWN = Known(
    ("a.py",), {"a.py": ("load",)}, {"a.py#load": Shown("a.py", 1, 3)}, {"test": "pytest"}
)
RIGHT = [
    ("read", "a.py#load"),
    ("run", "test"),
    ("edit", "a.py#load"),
    ("grep", "Load"),
    ("done", ""),
]
DECISIONS = choose.load()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("# why\nread a.py#load", (True, True, True)),
        ("# why\nread a.py", (True, True, False)),
        ("# why\nread b.py", (False, False, False)),
        ("# why\nedit a.py#load : change : it", (True, True, True)),
        ("# why\ngrep def load", (True, True, True)),
        ("# why\ngrep save", (True, True, False)),
        ("# why\nfind load", (True, False, False)),
        ("# why\ndone : all", (True, True, True)),
        ("# why\nrun tes", (False, False, False)),
    ],
)
def test_a_choice_is_judged(text: str, wanted: tuple[bool, bool, bool]) -> None:
    decision = choose.Decision("one", "", (), KNOWN, RIGHT)
    assert choose.judge(decision, text) == wanted


def test_each_action_of_the_transcripts_is_valid() -> None:
    assert len(DECISIONS) >= 40
    for one in DECISIONS:
        for action, _ in one.turns:
            assert Choice().parse(Answer(action), (), one.known).calls, (one.name, action)


def test_each_right_action_can_be_chosen() -> None:
    for one in DECISIONS:
        for verb, target in one.right:
            words = " : words" if verb == "edit" else ""
            text = f"# why\n{verb} {': words' if verb == 'done' else target}{words}"
            assert choose.judge(one, text) == (True, True, True), (one.name, text)


def test_a_report_counts() -> None:
    right = choose.Chosen("a", "# x\nrun test", True, True, True, 10, 5, 1.0)
    wrong = choose.Chosen("b", "# x\nrun lint", True, True, False, 30, 5, 2.0)
    facts = {"machine": {}, "command": "c", "model": "small"}
    document = choose.as_dict([right, wrong], facts)
    assert (document["valid"], document["right_verb"], document["right"]) == (1.0, 1.0, 0.5)
    assert (document["prompt_tokens"], document["seconds"]) == (20.0, 1.5)
    lines = choose.as_markdown(document)
    assert "Model: small  " in lines
    assert "- b: # x / run lint" in lines


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LcursorError, match="not a file of transcripts"):
        choose.load(tmp_path / "none")
