"""The loop with scripted models: every kind of answer, failure, decision and end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lcursor.agent.loop import Loop
from lcursor.agent.parts import End, RunLimits
from lcursor.agent.records import Answer, Policy
from lcursor.agent.run_log import NAME, RunLog
from lcursor.errors import ContextFull, ServerDenied, ServerFailed, ServerUnreachable
from lcursor.stop import Stop
from tests.fakes.agent import (
    FolderTree,
    Scripted,
    ScriptModel,
    Watcher,
    bash,
    call,
    finish,
    parts,
    replace,
    view,
)

BROKEN = "{broken"


@dataclass
class Result:
    end: End
    model: ScriptModel
    tree: FolderTree
    user: Watcher
    log: RunLog

    @property
    def ops(self) -> list[str]:
        lines = (self.log.folder / NAME).read_text().splitlines()
        return [json.loads(line)["op"] for line in lines]


def start(folder: Path, policy: Policy = "auto", task: str = "Do it.") -> RunLog:
    log = RunLog(folder)
    fields: dict[str, Any] = {"root": "/p", "task": task, "context": "", "policy": policy}
    log.start(key="k", model="m", dialect="native", sandbox="none", note="", **fields)
    return log


def run(
    folder: Path,
    script: Sequence[Scripted],
    user: Watcher | None = None,
    policy: Policy = "auto",
    said: Sequence[str] = (),
    **options: Any,
) -> Result:
    log = start(folder, policy)
    for text in said:
        log.write("said", text=text)
    made, model, tree, _ = parts(folder, script, **options)
    user = user or Watcher()
    end = Loop(log, made, user, Stop()).run()
    return Result(end, model, tree, user, log)


def test_a_run_reads_edits_tests_and_finishes(tmp_path: Path) -> None:
    script = [view("a.py"), replace("a.py", "1", "2"), bash("cat a.py"), finish("x is 2 now")]
    done = run(tmp_path, script)
    assert done.end == End("done", "x is 2 now", is_checked=True)
    assert done.tree.files() == {"a.py": "x = 2\n"}
    ended = [each for each in done.user.steps if each[2] != "running"]
    assert ended == [
        (1, "read", "done"), (2, "edit", "done"), (3, "command", "done"), (4, "finish", "done")
    ]  # fmt: skip
    steps = ["answer", "begin", "end", "talk"]
    assert done.ops == [
        "start", "talk", "answer", "end", "talk", *steps, *steps, "answer", "end"
    ]  # fmt: skip
    last = done.log.state.steps[2].observation
    assert last is not None
    assert "x = 2" in last.text


# What becomes of an answer: the script, the end, the number of requests, and what is forced.
MALFORMED: dict[str, tuple[Sequence[Scripted], str, Sequence[int]]] = {
    "the first malformed call is asked for again": ([BROKEN, finish()], "done", [0, 1]),
    "the second one is commented on": ([BROKEN, BROKEN, finish()], "done", [0, 1, 1]),
    "the third one ends the run": ([BROKEN] * 3, "failed", [0, 1, 1]),
    "an unknown tool": ([call("fly")] * 3, "failed", [0, 1, 1]),
    "a valid call starts the count again": (
        [BROKEN, BROKEN, view("a.py"), BROKEN, BROKEN, finish()], "done", [0, 1, 1, 0, 1, 1]
    ),
    "a cut answer": ([Answer(BROKEN, "length"), finish()], "done", [0, 1]),
    "a cut answer with a call": ([Answer(finish(), "length")], "done", [0]),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_answers_are_asked_for_again(name: str, tmp_path: Path) -> None:
    script, state, forced = MALFORMED[name]
    done = run(tmp_path, script)
    assert done.end.state == state
    assert [each["is_forced"] for each in done.model.asked] == [bool(each) for each in forced]
    assert [each["temperature"] for each in done.model.asked] == [0 if f else 0.5 for f in forced]


def test_a_dropped_answer_is_in_no_later_prompt(tmp_path: Path) -> None:
    done = run(tmp_path, [BROKEN, finish()])
    assert done.model.prompts[0] == done.model.prompts[1]


def test_the_comment_on_a_malformed_answer(tmp_path: Path) -> None:
    done = run(tmp_path, [BROKEN, BROKEN, finish()])
    assert done.model.prompts[2][-2:] == [["assistant", BROKEN], ["user", "This is no JSON."]]
    cut = run(tmp_path / "cut", [Answer(BROKEN, "length", answer_tokens=7), finish()])
    assert "cut off after 7 tokens" in cut.model.prompts[1][-1][1]


def test_repeated_text_stops_the_answer(tmp_path: Path) -> None:
    done = run(tmp_path, ["I will look at the file and then I will change it. " * 40, finish()])
    assert done.end.state == "done"
    assert len(done.user.text) < 1000


def test_a_message_without_a_call_is_the_answer_the_second_time(tmp_path: Path) -> None:
    done = run(tmp_path, ["I looked.", "There is nothing to do."])
    assert done.end == End("done", "There is nothing to do.", is_checked=True)
    assert "called no tool" in done.model.prompts[1][-1][1]


@pytest.mark.parametrize(
    ("gate", "requests", "is_checked"),
    [((True,), 1, True), ((False, True), 2, True), ((False, False, True), 3, True),
     ((False,), 3, False)],
)  # fmt: skip
def test_failing_tests_give_at_most_three_rounds(
    gate: Sequence[bool], requests: int, is_checked: bool, tmp_path: Path
) -> None:
    script = [finish("done"), finish("done again"), finish("done now"), finish("never")]
    done = run(tmp_path, script, gate=gate)
    assert done.end.state == "done"
    assert (done.end.is_checked, len(done.model.asked)) == (is_checked, requests)
    assert "the tests fail" not in done.model.prompts[0][-1][1]
    if requests > 1:
        assert done.model.prompts[1][-1][1] == "the tests fail"


# Approvals.


def test_a_rejected_call_does_not_run_and_its_reason_is_read(tmp_path: Path) -> None:
    user = Watcher([("reject", "use make")])
    done = run(tmp_path, [bash("touch b; curl x"), finish()], user, asks="curl")
    assert done.tree.files() == {"a.py": "x = 1\n"}
    assert "use make" in done.model.prompts[1][-1][1]
    assert user.questions == ["uses curl"]
    assert [each[2] for each in user.steps if each[0] == 1] == ["waiting", "rejected"]
    assert "begin" not in done.ops


@pytest.mark.parametrize(("choice", "questions"), [("once", 2), ("run", 1)])
def test_an_approval_for_once_or_for_the_run(choice: Any, questions: int, tmp_path: Path) -> None:
    user = Watcher([(choice, "")] * 2)
    script = [bash("echo curl >> b"), bash("echo curl >> b"), finish()]
    done = run(tmp_path, script, user, asks="curl")
    assert done.tree.files()["b"] == "curl\ncurl\n"
    assert len(user.questions) == questions


def test_a_changed_command_runs_as_changed(tmp_path: Path) -> None:
    user = Watcher([("once", "touch c")])
    done = run(tmp_path, [bash("touch b; curl"), finish()], user, asks="curl")
    assert set(done.tree.files()) == {"a.py", "c"}


def test_calls_after_a_failed_one_do_not_run(tmp_path: Path) -> None:
    script = ["\n".join([replace("a.py", "absent", "y"), bash("touch b"), view("a.py")]), finish()]
    done = run(tmp_path, script)
    assert set(done.tree.files()) == {"a.py"}
    assert [each[2] for each in done.user.steps if each[2] != "running"] == [
        "failed", "rejected", "rejected", "done"
    ]  # fmt: skip


def test_a_failed_read_stops_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, ["\n".join([view("absent.py"), bash("touch b")]), finish()])
    assert set(done.tree.files()) == {"a.py", "b"}


def test_a_plan_is_shown_and_carried_out_as_edited(tmp_path: Path) -> None:
    user = Watcher(plans=["1. only this"])
    script = [bash("touch b"), finish("1. that"), bash("touch c"), finish("done")]
    done = run(tmp_path, script, user, "plan")
    assert user.shown_plans == ["1. that"]
    assert set(done.tree.files()) == {"a.py", "c"}
    assert done.model.prompts[1][-1][1] == "This is plan mode."
    assert "1. only this" in done.model.prompts[2][-1][1]
    assert done.end == End("done", "done", is_checked=True)


def test_a_rejected_plan_ends_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, [finish("1. that")], Watcher(plans=["  "]), "plan")
    assert done.end.state == "stopped"


def test_messages_of_the_user_are_read_with_the_next_step(tmp_path: Path) -> None:
    done = run(tmp_path, [view("a.py"), finish()], said=["Use tabs.", "And spaces."])
    assert done.model.prompts[0][-1][1] == "The user says: Use tabs.\n\nThe user says: And spaces."
    assert done.log.state.read == 2


# Failures of the server.


@pytest.fixture
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lcursor.agent.loop.RETRY_S", (0.0, 0.0, 0.0))


@pytest.mark.usefixtures("no_delay")
@pytest.mark.parametrize("count", [1, 3])
def test_a_temporary_failure_is_repeated(count: int, tmp_path: Path) -> None:
    script: list[Scripted] = [view("a.py"), *[ServerUnreachable("away")] * count, finish()]
    assert run(tmp_path, script).end.state == "done"


@pytest.mark.usefixtures("no_delay")
@pytest.mark.parametrize(
    "failures",
    [[ServerUnreachable("away")] * 4, [ServerFailed("500")] * 4, [ServerDenied("no key")],
     [ContextFull("full")] * 2],
)  # fmt: skip
def test_a_lasting_failure_ends_the_run(failures: list[Exception], tmp_path: Path) -> None:
    with pytest.raises(type(failures[0])):
        run(tmp_path, [view("a.py"), *failures, finish()])
    log = RunLog.open(tmp_path)
    made, model, _, _ = parts(tmp_path, [finish()])
    log.write("resume", sandbox="none")
    assert Loop(log, made, Watcher(), Stop()).run().state == "done"
    assert model.prompts[0][-1] == ["user", "x = 1\n"]  # nothing was lost


def test_a_full_context_is_summarized(tmp_path: Path) -> None:
    done = run(tmp_path, [view("a.py"), ContextFull("full"), finish()])
    assert done.end.state == "done"
    assert "summary of 1 steps" in done.model.prompts[2][1][1]


def test_a_file_is_shown_again_in_full_after_a_summary(tmp_path: Path) -> None:
    done = run(tmp_path, [view("a.py"), ContextFull("full"), view("a.py"), finish()])
    texts = [each.observation.text for each in done.log.state.steps if each.observation]
    assert texts[:2] == ["x = 1\n"] * 2


def test_a_long_conversation_is_summarized_before_it_is_full(tmp_path: Path) -> None:
    files = {f"{n}.txt": f"{n}" * 2000 for n in range(6)}
    script = [*(view(f"{n}.txt") for n in range(6)), finish()]
    done = run(tmp_path, script, files=files, context_tokens=2000)
    assert done.end.state == "done"
    assert max(sum(len(t) // 4 + 4 for _, t in each) for each in done.model.prompts) < 2000
    summaries = [p for p in done.model.prompts if "summary" in p[1][1]]
    assert summaries


# Stuck.


def test_a_repeated_call_is_shortened_then_skipped_then_ends_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, [view("a.py")])
    assert done.end.state == "stuck"
    texts = [each.observation.text for each in done.log.state.steps if each.observation]
    assert texts[0] == "x = 1\n"
    assert texts[1] == "The same result as in step 1."
    assert texts[2].startswith("Not run")
    assert len(done.log.state.steps) == 4


def test_a_call_that_the_user_wants_again_is_no_repetition(tmp_path: Path) -> None:
    log = start(tmp_path)

    def look(model: ScriptModel) -> str:
        log.write("said", text="Look again.")
        return view("a.py")

    made, *_ = parts(tmp_path, [look] * 5 + [finish()])
    assert Loop(log, made, Watcher(), Stop()).run().state == "done"
    texts = [each.observation.text for each in log.state.steps if each.observation]
    assert texts[:5] == ["x = 1\n"] * 5


def test_tests_after_a_change_are_no_repetition(tmp_path: Path) -> None:
    edits = [replace("a.py", f"x = {n}", f"x = {n + 1}") for n in range(1, 6)]
    script = [each for edit in edits for each in (edit, bash("true"))]
    assert run(tmp_path, [*script, finish()]).end.state == "done"


CIRCLES = {
    "repeated the same 2 calls": [view("a.py"), bash("cat missing.py")] * 2,
    "undone your own changes": [replace("a.py", "1", "2"), replace("a.py", "2", "1")],
    "showed nothing new": [
        call("str_replace_editor", command="view", path="a.py", view_range=[1, n])
        for n in range(1, 14)
    ],
}


@pytest.mark.parametrize("reason", CIRCLES)
def test_a_run_without_progress_is_warned_once(reason: str, tmp_path: Path) -> None:
    done = run(tmp_path, CIRCLES[reason] * 4)
    assert done.end.state == "stuck"
    assert reason in done.end.message
    notes = [row for row in done.model.rows if "Note: you have" in row[1] or "Note: the" in row[1]]
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (RunLimits(steps=3), "3 steps"),
        (RunLimits(seconds=0.0), "minutes"),
        (RunLimits(tokens=5), "tokens"),
    ],
)
def test_a_run_ends_when_a_budget_is_used(limits: RunLimits, reason: str, tmp_path: Path) -> None:
    done = run(tmp_path, [bash(f"echo {n}") for n in range(20)], limits=limits)
    assert done.end.state == "stuck"
    assert reason in done.end.message
    count = len(done.log.state.steps)
    done.log.write("resume", sandbox="none")
    made, _, _, _ = parts(tmp_path, [bash(f"echo {n}") for n in range(20)], limits=limits)
    Loop(done.log, made, Watcher(), Stop()).run()
    assert len(done.log.state.steps) >= count  # a continued run has a new budget
