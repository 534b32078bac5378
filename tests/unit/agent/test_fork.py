"""A run that begins with the first steps of another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.agent import runs
from lcursor.agent.fork import fork
from lcursor.agent.run_log import RunLog
from lcursor.errors import AgentBusy, AgentFailed
from lcursor.workspace.tree import Tree
from tests.unit.agent.runs_over_http import Make, Session, check_log, finish, replace, view

pytestmark = pytest.mark.sandbox
STEPS = [view(), replace("1", "2"), replace("2", "3"), finish("x is 3")]


@pytest.fixture
def it(session: Make) -> Session:
    """A session in which a run has ended; another one finishes at once."""
    made = session([*STEPS, finish("forked")])
    made.start(group="g", attempt=2)
    assert made.wait("agent.done")["message"] == "x is 3"
    return made


def text_of(it: Session, folder: Path) -> str:
    return (Tree.open(it.root, folder).path / "a.py").read_text()


def test_a_fork_has_the_files_and_the_conversation_of_its_step(it: Session) -> None:
    source = it.run_folder
    before = RunLog.open(source).state
    folder = fork(it.root, source.name, 2, it.folder)
    state = RunLog.open(folder).state
    assert (state.key, len(state.steps), state.is_over) == (folder.name, 2, False)
    assert (state.group, state.attempt, state.task) == ("", 0, before.task)
    assert state.answer is None  # the model has read the result
    ids = state.talk["ids"]
    assert 0 < len(ids) < len(before.talk["ids"])
    assert before.talk["ids"][: len(ids)] == ids
    assert (text_of(it, folder), text_of(it, source)) == ("x = 2\n", "x = 3\n")


def test_a_fork_continues_and_reads_nothing_again(it: Session) -> None:
    it.send("agent.fork", id=7, run=it.run_folder.name, step=2, path=str(it.root))
    key = it.wait("agent.forked", 7)["run"]
    it.resume(8, key)
    done = it.wait("agent.done", 8)
    assert (done["run"], done["message"], done["state"]) == (key, "forked", "done")
    check_log(it.folder / it.run_folder.parent.name / key)
    assert it.server.ids[-1] == it.server.ids[2]  # the prompt after the second step
    assert len(runs.rows(it.root, it.folder)) == 2


def test_what_cannot_be_forked(it: Session) -> None:
    source = it.run_folder
    for step in (0, 5):
        with pytest.raises(AgentFailed, match="has no step"):
            fork(it.root, source.name, step, it.folder)
    with runs.lock(source), pytest.raises(AgentBusy):
        fork(it.root, source.name, 1, it.folder)
    assert len(runs.rows(it.root, it.folder)) == 1


def test_a_fork_that_fails_leaves_nothing(it: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    source = it.run_folder
    monkeypatch.setattr("lcursor.agent.fork.shutil.copytree", fail)
    with pytest.raises(AgentFailed, match="No space left"):
        fork(it.root, source.name, 1, it.folder)
    assert [each.name for each in source.parent.iterdir()] == [source.name]
