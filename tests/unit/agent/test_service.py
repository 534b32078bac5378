"""The service of agents: its messages, questions, stops, and runs that wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lcursor.agent import runs
from lcursor.agent.assembly import Assembly
from lcursor.agent.loop import ModelWork
from lcursor.agent.parts import AssembledRun, RecordedTurn, RunLimits, RunRequest, Work
from lcursor.agent.run_log import RunLog, RunState
from lcursor.agent.service import LATE, AgentService
from lcursor.config import Config
from lcursor.errors import ModelMissing
from lcursor.stop import Stop
from lcursor.storage import file_lock
from tests.fakes.agent import (
    Scripted,
    ScriptModel,
    bash,
    finish,
    parts,
    replace,
    view,
)
from tests.unit.agent.messages import Messages
from tests.waiting import wait_for


@dataclass
class FakeAssembly(Assembly):
    """Assembles runs of scripts, one for each run."""

    scripts: list[Sequence[Scripted]]
    asks: str = ""
    limits: RunLimits = field(default_factory=RunLimits)
    wanted: list[RunRequest] = field(default_factory=list)

    def assemble(self, wanted: RunRequest) -> AssembledRun:
        self.wanted.append(wanted)
        script = self.scripts.pop(0)
        if isinstance(script, Exception):
            raise script
        made, *_ = parts(wanted.folder, script, asks=self.asks, limits=self.limits)
        return AssembledRun(ModelWork(made), "fake", "bubblewrap")

    def record(
        self, state: RunState, work: Work, stopped: Stop, *, is_checked: bool = False
    ) -> RecordedTurn:
        changed = [f"{state.root}/{each.path}" for each in work.tree.changed()]
        return RecordedTurn("turn-1" if changed else "", tuple(changed))


class Editor(Messages):
    """An editor with scripted runs."""

    def __init__(self, folder: Path, *scripts: Sequence[Scripted], asks: str = "") -> None:
        super().__init__(folder / "project")
        self.folder = folder / "agents"
        self.root.mkdir()
        (self.root / "Makefile").touch()
        self.busy: list[bool] = []
        self.assembly = FakeAssembly(list(scripts), asks)
        self.service = AgentService(
            Config(), self.receive, self.assembly, folder=self.folder, busy=self.busy.append
        )


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Callable[..., Editor]]:
    made: list[Editor] = []

    def make(*scripts: Sequence[Scripted], **options: Any) -> Editor:
        made.append(Editor(tmp_path, *scripts, **options))
        return made[-1]

    yield make
    for each in made:
        each.service.close()


EDIT = [view("a.py"), replace("a.py", "1", "2"), finish("x is 2")]


def test_a_run_from_start_to_its_turn(editor: Callable[..., Editor]) -> None:
    it = editor(EDIT)
    it.start(context="line 3")
    done = it.wait("agent.done")
    assert (done["state"], done["message"], done["turn"]) == ("done", "x is 2", "turn-1")
    assert done["paths"] == [f"{it.root}/a.py"]
    started = it.all("agent.started")[0]
    assert (started["run"], started["sandbox"]) == (done["run"], "bubblewrap")
    steps = [(row["number"], row["kind"], row["state"]) for row in it.all("agent.step")]
    assert steps == [
        (1, "read", "running"), (1, "read", "done"), (2, "edit", "running"), (2, "edit", "done"),
        (3, "finish", "running"), (3, "finish", "done"),
    ]  # fmt: skip
    states = [row["state"] for row in it.all("agent.status")]
    assert (states[:2], states[-1]) == (["preparing", "running"], "checking")
    assert it.all("agent.status")[-1]["added"] == 1
    text = "".join(row["text"] for row in it.all("agent.delta"))
    assert text == "".join(EDIT)
    assert [row["is_new"] for row in it.all("agent.delta")].count(True) >= 1
    wait_for(lambda: it.busy == [True, False], what="the end of work")
    log = RunLog.open(runs.find(it.root, done["run"], it.folder))
    assert (log.state.state, log.state.turn, log.state.context) == ("done", "turn-1", "line 3")


def test_text_is_sent_in_few_messages(editor: Callable[..., Editor]) -> None:
    text = " ".join(map(str, range(2000)))  # 1,111 pieces
    it = editor([f"{text}\n{finish()}"])
    it.start()
    it.wait("agent.done")
    found = it.all("agent.delta")
    assert "".join(row["text"] for row in found) == f"{text}\n{finish()}"
    assert len(found) < 500


def test_unsaved_buffers_reach_the_copy(editor: Callable[..., Editor]) -> None:
    it = editor([finish()])
    it.start(buffers=[{"path": f"{it.root}/a.py", "tick": 1, "text": "x = 9"}])
    it.wait("agent.done")
    assert it.assembly.wanted[0].unsaved == {f"{it.root}/a.py": "x = 9"}


def test_a_run_that_cannot_start_leaves_nothing(editor: Callable[..., Editor]) -> None:
    it = editor(ModelMissing("no such model", "Pull it"))
    it.start()
    assert it.wait("agent.done")["state"] == "failed"
    assert it.all("error")[0]["code"] == "model_missing"
    assert runs.rows(it.root, it.folder) == []


@pytest.mark.parametrize(
    ("choice", "text", "files"),
    [
        ("once", "", {"a.py", "curl"}),
        ("reject", "no", {"a.py"}),
        ("once", "touch c", {"a.py", "c"}),
    ],
)
def test_a_command_is_approved_rejected_or_changed(
    choice: str, text: str, files: set[str], editor: Callable[..., Editor]
) -> None:
    it = editor([bash("touch curl"), finish()], asks="curl")
    it.start()
    asked = it.wait("agent.asks")
    assert (asked["command"], asked["why"], asked["number"]) == ("touch curl", "uses curl", 1)
    wait_for(lambda: it.busy == [True, False], what="the pause")
    it.send("agent.decide", id=1, ask=asked["ask"] + 1, choice="run", text="")  # not this one
    it.send("agent.decide", id=1, ask=asked["ask"], choice=choice, text=text)
    it.send("agent.decide", id=1, ask=asked["ask"], choice="reject", text="late")
    done = it.wait("agent.done")
    tree = runs.find(it.root, done["run"], it.folder) / "tree"
    assert {each.name for each in tree.iterdir()} == files


def test_a_message_to_a_running_agent(editor: Callable[..., Editor]) -> None:
    def answer(model: ScriptModel) -> str:
        it.send("agent.say", id=1, text="Use tabs.")
        wait_for(lambda: "said" in _ops(it), what="the message in the log")
        return view("a.py")

    seen: list[str] = []

    def end(model: ScriptModel) -> str:
        seen.append(model.rows[-1][1])
        return finish()

    it = editor([answer, end])
    it.start()
    it.wait("agent.done")
    assert seen == ["The user says: Use tabs."]
    it.send("agent.say", id=1, text="too late")
    assert it.wait("error")["code"] == "agent_missing"


def test_a_message_before_the_run_has_begun(
    editor: Callable[..., Editor], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def answer(model: ScriptModel) -> str:
        seen.append(model.rows[-1][1])
        return finish()

    it = editor([answer])
    assemble = it.assembly.assemble

    def slow(wanted: RunRequest) -> AssembledRun:
        it.send("agent.say", id=1, text="Use tabs.")
        run = it.service._runs.find(1)
        wait_for(lambda: run and run._early, what="the message")
        return assemble(wanted)

    monkeypatch.setattr(it.assembly, "assemble", slow)
    it.start()
    it.wait("agent.done")
    assert seen == ["The user says: Use tabs."]
    assert it.all("error") == []


def test_a_message_while_the_last_answer_is_written(editor: Callable[..., Editor]) -> None:
    def last(model: ScriptModel) -> str:
        it.send("agent.say", id=1, text="Use tabs.")
        wait_for(lambda: "said" in _ops(it), what="the message in the log")
        return finish("done without tabs")

    seen: list[str] = []

    def end(model: ScriptModel) -> str:
        seen.append(model.rows[-1][1])
        return finish("done with tabs")

    it = editor([last, end])
    it.start()
    assert it.wait("agent.done")["message"] == "done with tabs"
    assert seen[0].endswith("The user says: Use tabs.")


def test_a_message_after_the_work_is_read_when_the_run_is_continued(
    editor: Callable[..., Editor], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def again(model: ScriptModel) -> str:
        seen.append(model.rows[-1][1])
        return finish()

    it = editor(EDIT, [*EDIT, again])
    record = it.assembly.record

    def slow(state: RunState, *given: Any, **named: Any) -> RecordedTurn:
        if not state.said:
            it.send("agent.say", id=1, text="Use tabs.")
            wait_for(lambda: state.said, what="the message in the log")
        return record(state, *given, **named)

    monkeypatch.setattr(it.assembly, "record", slow)
    it.start()
    assert it.wait("agent.done")["message"] == f"x is 2\n\n{LATE}"
    it.resume(2)
    it.wait("agent.done", 2)
    assert seen == ["The user says: Use tabs."]


def _ops(it: Editor) -> str:
    return next(it.folder.glob("*/*/run.jsonl")).read_text()


# Stops.


def test_a_stop_while_it_waits_for_the_user(editor: Callable[..., Editor]) -> None:
    it = editor([bash("touch curl"), finish()], asks="curl")
    it.start()
    it.wait("agent.asks")
    it.send("agent.stop", id=1)
    assert it.wait("agent.done")["state"] == "stopped"
    count = len(it.messages)
    it.send("agent.decide", id=1, ask=1, choice="once", text="")
    assert len(it.messages) == count


def test_a_run_that_does_not_end_in_time_ends_once(editor: Callable[..., Editor]) -> None:
    has_begun, go_on, has_ended = threading.Event(), threading.Event(), threading.Event()

    def hang(model: ScriptModel) -> str:
        has_begun.set()
        assert go_on.wait(20)
        has_ended.set()
        return finish()

    it = editor([hang])
    it.start()
    assert has_begun.wait(20)
    it.service.close()
    assert it.all("agent.done")[0]["state"] == "stopped"
    threads = [each for each in threading.enumerate() if each.name == "lcursor-agent"]
    go_on.set()
    assert has_ended.wait(20)
    for thread in threads:
        thread.join(20)
    assert len(it.all("agent.done")) == 1


# Several runs.


def test_runs_work_at_once(editor: Callable[..., Editor]) -> None:
    has_begun = threading.Event()

    def first(model: ScriptModel) -> str:
        assert has_begun.wait(10)
        return finish("first")

    def second(model: ScriptModel) -> str:
        has_begun.set()
        return finish("second")

    it = editor([first], [second])
    it.start(1)
    it.wait("agent.started", 1)
    it.start(2)
    assert it.wait("agent.done", 2)["message"] == "second"
    assert it.wait("agent.done", 1)["message"] == "first"


# Lists and continued runs.


def test_a_list_and_a_run_that_is_shown_again(editor: Callable[..., Editor]) -> None:
    it = editor(EDIT)
    it.start()
    key = it.wait("agent.done")["run"]
    it.send("agent.list", id=5, path=str(it.root))
    [row] = it.wait("agent.listed", 5)["runs"]
    assert (row["run"], row["task"], row["state"], row["steps"]) == (key, "Set x to 2.", "done", 3)
    it.resume(6, "last", continues=False)
    done = it.wait("agent.done", 6)
    assert (done["message"], done["turn"]) == ("x is 2", "turn-1")
    assert [step["number"] for step in it.all("agent.step", 6)] == [1, 2, 3]
    assert "".join(each["text"] for each in it.all("agent.delta", 6)) == "".join(EDIT)


def test_a_stopped_run_is_continued(editor: Callable[..., Editor]) -> None:
    script = [replace("a.py", "1", "2"), bash("touch curl"), finish("all done")]
    it = editor(script, script, asks="curl")
    it.start()
    it.wait("agent.asks")
    it.send("agent.stop", id=1)
    key = it.wait("agent.done")["run"]
    it.resume(2, key)
    asked = it.wait("agent.asks", 2)
    it.send("agent.decide", id=2, ask=asked["ask"], choice="once", text="")
    assert it.wait("agent.done", 2)["message"] == "all done"
    wanted = it.assembly.wanted[1]
    assert (wanted.is_new, wanted.model) == (False, "fake")


def test_a_running_run_is_not_executed_twice(editor: Callable[..., Editor]) -> None:
    it = editor(EDIT)
    it.start()
    key = it.wait("agent.done")["run"]
    folder = runs.find(it.root, key, it.folder)
    fd = file_lock.try_lock(folder / runs.LOCK)
    assert fd is not None
    it.resume(2, key)
    assert it.wait("error", 2)["code"] == "agent_busy"


def test_a_missing_run_is_an_error(editor: Callable[..., Editor]) -> None:
    it = editor()
    it.resume(2, "last")
    assert it.wait("error", 2)["code"] == "agent_missing"


def test_what_the_user_said_is_shown_between_the_steps(editor: Callable[..., Editor]) -> None:
    it = editor(EDIT, EDIT)
    it.start()
    it.wait("agent.done")
    it.resume(2, text="look again")
    it.wait("agent.done", 2)
    it.resume(3, continues=False)
    it.wait("agent.done", 3)
    found = [
        row.get("kind", row.get("text"))
        for name, row in it.messages
        if name in ("agent.said", "agent.step") and row["id"] == 3
    ]
    assert found[2:5] == ["finish", "look again", "finish"]


def test_files_of_a_killed_run_count_as_interrupted(editor: Callable[..., Editor]) -> None:
    it = editor(EDIT)
    it.start()
    done = it.wait("agent.done")
    path = runs.find(it.root, done["run"], it.folder) / "run.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + '{"op":"do')  # killed within a line
    assert runs.rows(it.root, it.folder)[0]["state"] == "stopped"
    it.resume(2, done["run"], continues=False)
    assert it.wait("agent.done", 2)["state"] == "stopped"


def test_the_attempts_of_a_group_are_compared(editor: Callable[..., Editor]) -> None:
    it = editor(EDIT, [finish("nothing to do")], EDIT)
    it.start(1, group="g", attempt=1)
    it.wait("agent.done", 1)
    it.start(2, group="g", attempt=2)
    assert it.wait("agent.started", 2)["attempt"] == 2
    it.wait("agent.done", 2)
    it.start(3)
    it.wait("agent.done", 3)
    assert [each.temperature > 0 for each in it.assembly.wanted] == [False, True, False]
    it.send("agent.compare", id=9, path=str(it.root), group="g")
    rows = it.wait("agent.compared", 9)["attempts"]
    assert [(row["attempt"], row["turn"], row["names"]) for row in rows] == [
        (1, "turn-1", ["a.py"]),
        (2, "", []),
    ]
