"""Runs whose conversation is summarized in the middle: nothing is forgotten, nothing done twice.

The model knows only its prompt: each answer depends on what the prompt says, in any form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.script_server import Entry, Fault
from tests.unit.agent.runs_over_http import FILES, Session, bash, finish, replace, view

pytestmark = pytest.mark.sandbox

CHECK = "grep -q 'x = 2' a.py && grep -q 'return 3' b.py || { echo 'FAILED test_both'; exit 1; }"
TASK = "Set x to 2, so that the check passes."
SAID = "f must return 3."
ANSWERS = 7
"""Of a run without a summary."""


def answer(prompt: str) -> Entry:
    """Work on the next part of the task that the prompt does not say is done."""
    if "Write a summary to go on with" in prompt[-900:]:
        return "Known:\n- nothing"
    assert TASK in prompt
    changed = re.findall(r"Changed files:\n((?:- .*\n)*)", prompt)[-1:]
    has_edited = {
        name: f"- {name} " in "".join(changed) or replace(*what, name) in prompt
        for name, what in (("a.py", ("1", "2")), ("b.py", ("2", "3")))
    }
    has_failed = "FAILED test_both" in prompt
    has_passed = re.search(r"(?s)FAILED test_both.*exit 0", prompt)
    if not has_edited["a.py"]:
        return replace("1", "2", "a.py") if _has_read(prompt, "a.py", "x = 1") else view("a.py")
    if not has_failed and not has_passed and not has_edited["b.py"]:
        return bash(CHECK)
    if not has_edited["b.py"]:
        assert SAID in prompt
        return replace("2", "3", "b.py") if _has_read(prompt, "b.py", "return 2") else view("b.py")
    return finish("both") if has_passed else bash(CHECK)


def _has_read(prompt: str, name: str, text: str) -> bool:
    return f"- {name}:1-" in prompt or text in prompt


class ScriptedAnswers:
    """Answers, but claims once that the context is full, and says something in the middle."""

    def __init__(self, full_at: int) -> None:
        self.full_at, self.count = full_at, 0
        self.session: Session

    def __call__(self, prompt: str) -> Entry:
        self.count += 1
        if self.count == 2:
            self.session.send("agent.say", id=1, text=SAID)
        if self.count == self.full_at:
            return Fault.FULL
        return answer(prompt)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[list[Session]]:
    made: list[Session] = []
    yield made
    for each in made:
        each.close()


@pytest.mark.parametrize("full_at", range(ANSWERS + 1))
def test_a_run_is_finished_after_a_forced_summary(
    full_at: int, tmp_path: Path, folder: list[Session]
) -> None:
    answers = ScriptedAnswers(full_at)
    is_raw = full_at % 2 == 1  # tokens, else messages
    it = answers.session = Session(tmp_path, answers, is_raw=is_raw)
    folder.append(it)
    it.start(task=TASK)
    done = it.wait("agent.done")
    assert (done["state"], done["message"]) == ("done", "both")
    assert it.files() == {**FILES, "a.py": "x = 2\n", "b.py": "def f():\n    return 3\n"}
    kinds = [step.kind for step in it.log.state.steps]
    assert kinds == ["read", "edit", "command", "read", "edit", "command", "finish"]
    ops = (it.run_folder / "run.jsonl").read_text()
    assert ops.count('"is_summary":true') == (full_at > 0)

    it.resume(2, continues=False)  # what was summarized can still be read
    it.wait("agent.done", 2)
    assert [row["text"] for row in it.all("agent.step", 2)] == it.texts()
    assert "x = 1" in it.texts()[0]
