"""Tries of a rewrite: when there is another one, what it is told, and which of them is shown."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from lcursor.changes import diff
from lcursor.changes.records import Lines, Region, digest
from lcursor.config import EditConfig
from lcursor.edit.rewriting.retry import NOW, SAME, WARMER, RetryLoop, RewriteResult, changes_inside
from lcursor.edit.rewriting.rewriter import ModelOutput, Rewriter
from lcursor.edit.rewriting.task import (
    FailedAttempt,
    RewriteListener,
    RewriteProgress,
    Task,
)
from lcursor.errors import Cancelled, ContextFull, LcursorError, ReplyUnusable, ServerEnded
from lcursor.llm.records import Usage, add_usage
from lcursor.stop import Stop
from lcursor.workspace.edit_checks import EditChecks

LINES = ("import os", "", "def f(a):", "    return a", "", "def g():", "    return 1")
REGION = Region(2, 4, "function f")
GOOD: Lines = ("def f(a):", "    return a + 1")
BAD: Lines = ("def f(a:", "    return a + 1")
TABBED: Lines = ("def f(a):", "\treturn a + 1")
"""It parses, and is not indented as the file is."""
OLD: Lines = LINES[2:4]


class Scripted(Rewriter):
    """Writes what it is told to, and keeps what it was asked."""

    def __init__(self, *replies: Lines | LcursorError) -> None:
        self.replies = list(replies)
        self.tasks: list[Task] = []
        self.asked: list[tuple[int, tuple[FailedAttempt, ...], str, float | None]] = []

    def run(
        self,
        task: Task,
        listener: RewriteListener,
        cancel: Stop,
        *,
        attempt: int = 1,
        feedback: Sequence[FailedAttempt] = (),
        remark: str = "",
        temperature: float | None = None,
    ) -> ModelOutput:
        self.tasks.append(task)
        self.asked.append((attempt, tuple(feedback), remark, temperature))
        reply = self.replies.pop(0)
        if isinstance(reply, LcursorError):
            raise reply
        usage = Usage(100 * attempt, 60, 20, 5.0, 7.0, True, passes=attempt)
        return ModelOutput(reply, f"note of try {attempt}", usage, "")


class Heard(RewriteListener):
    """Hears how an edit goes on."""

    def __init__(self) -> None:
        self.phases: list[str] = []

    def progress(self, now: RewriteProgress) -> None:
        self.phases.append(f"{now.phase} {now.detail}".strip())


def task(path: str = "/p/a.py", instruction: str = "add one") -> Task:
    return Task(path, "a.py", "python", LINES, REGION, instruction)


def run(
    writer: Scripted,
    config: EditConfig | None = None,
    checks: EditChecks | None = None,
    path: str = "/p/a.py",
    answer_tokens: int = 0,
) -> RewriteResult:
    attempts = RetryLoop(writer, checks, config or EditConfig(retries=2))
    return attempts.run(task(path), Heard(), Stop(), answer_tokens=answer_tokens)


def test_one_clean_try_is_enough() -> None:
    writer = Scripted(GOOD)
    made = run(writer)
    assert made.attempts == 1
    assert made.lines == GOOD
    assert made.file.base == digest(LINES)
    assert diff.apply(LINES, made.file.changes) == (*LINES[:2], *GOOD, *LINES[4:])
    assert all(each.is_ok for each in made.file.checks)
    assert not made.is_same


def test_all_tries_are_paid_and_the_note_is_of_the_one_that_is_shown() -> None:
    made = run(Scripted(BAD, TABBED, BAD))
    assert (made.attempts, made.note) == (3, "note of try 2")
    assert made.usage == Usage(600, 180, 60, 15.0, 21.0, True, passes=6)


def test_what_is_wrong_is_said_to_the_next_try() -> None:
    writer = Scripted(BAD, GOOD)
    made = run(writer)
    assert (made.attempts, made.lines) == (2, GOOD)
    assert made.usage.answer_tokens == 40
    (failed,) = writer.asked[1][1]
    assert failed.lines == BAD
    assert "does not parse" in failed.problems[0]
    assert "line 3" in failed.problems[0]


def test_where_none_is_clean_the_best_is_shown_with_what_is_wrong() -> None:
    made = run(Scripted(BAD, TABBED, BAD))
    assert made.attempts == 3
    assert made.lines == TABBED
    assert [each.name for each in made.file.checks if not each.is_ok] == ["indent"]


@pytest.mark.parametrize("instruction", ["remove f", "Entferne f", "gib eine Konstante zurück"])
def test_a_definition_that_is_gone_is_no_reason_for_another_try(instruction: str) -> None:
    writer = Scripted(("def h(a):", "    return a"))
    attempts = RetryLoop(writer, None, EditConfig(retries=2))
    made = attempts.run(task(instruction=instruction), Heard(), Stop())
    assert made.attempts == 1
    assert [each.text for each in made.file.checks if each.text] == ["removes f"]


def test_a_text_at_the_wrong_margin_is_moved() -> None:
    lines = ("class A:", "    def f(self):", "        return 1", "", "    x = 2")
    region = Region(1, 3, "method f")
    asked = Task("/p/a.py", "a.py", "python", lines, region, "return two")
    writer = Scripted(("def f(self):", "    # two", "    return 2"))
    made = RetryLoop(writer, None, EditConfig(retries=0)).run(asked, Heard(), Stop())
    assert made.lines == ("    def f(self):", "        # two", "        return 2")
    assert all(each.is_ok for each in made.file.checks)


def test_the_number_of_tries_is_the_settings() -> None:
    assert run(Scripted(BAD), EditConfig(retries=0)).attempts == 1
    assert run(Scripted(BAD, BAD), EditConfig(retries=1)).attempts == 2


@pytest.mark.parametrize(("most", "attempts"), [(0, 3), (20, 1), (39, 1), (40, 2), (60, 3)])
def test_no_try_begins_that_is_too_dear(most: int, attempts: int) -> None:
    assert run(Scripted(BAD, BAD, BAD), answer_tokens=most).attempts == attempts


def test_the_same_text_is_tried_again_and_then_is_no_change() -> None:
    writer = Scripted(OLD, GOOD)
    made = run(writer)
    assert (made.attempts, made.lines) == (2, GOOD)
    assert writer.asked[1][1] == (FailedAttempt((SAME,)),)
    assert writer.asked[1][3] == WARMER
    same = run(Scripted(OLD, OLD, OLD))
    assert same.is_same
    assert same.file.changes == ()


def test_a_try_that_says_the_same_again_is_followed_by_a_freer_one() -> None:
    writer = Scripted(BAD, BAD, GOOD)
    run(writer)
    temperatures = [each[3] for each in writer.asked]
    assert temperatures[:2] == [0.0, 0.0]
    assert temperatures[2] is not None
    assert temperatures[2] > 0


def test_a_change_that_does_not_parse_is_worse_than_none() -> None:
    assert run(Scripted(BAD, OLD, BAD)).is_same


def test_a_reply_of_no_use_is_tried_again() -> None:
    writer = Scripted(ReplyUnusable("prose", "there is no code in it"), GOOD)
    made = run(writer)
    assert (made.attempts, made.lines) == (2, GOOD)
    assert writer.asked[1][1] == (FailedAttempt(("there is no code in it",)),)


def test_replies_of_no_use_end_it() -> None:
    errors = [ReplyUnusable("empty", f"try {number}") for number in range(3)]
    with pytest.raises(ReplyUnusable, match="try 2"):
        run(Scripted(*errors))


@pytest.mark.parametrize(
    "error", [ContextFull("the prompt is too long"), ServerEnded("the server has ended")]
)
def test_a_failure_of_a_later_try_keeps_the_text_of_an_earlier_one(error: LcursorError) -> None:
    made = run(Scripted(TABBED, BAD, error), EditConfig(retries=3))
    assert made.lines == TABBED
    assert made.attempts == 3
    assert error.message in made.note


def test_a_failure_is_raised_where_no_try_changed_anything() -> None:
    for earlier in ([], [OLD], [ReplyUnusable("prose", "there is no code in it")]):
        with pytest.raises(ContextFull):
            run(Scripted(*earlier, ContextFull("the prompt is too long")))


def test_a_stop_during_a_later_try_keeps_nothing() -> None:
    with pytest.raises(Cancelled):
        run(Scripted(BAD, Cancelled("the edit was stopped")))


def test_a_remark_goes_along() -> None:
    writer = Scripted(GOOD)
    attempts = RetryLoop(writer, None, EditConfig())
    attempts.run(task(), Heard(), Stop(), "use a loop")
    assert writer.asked[0][2] == "use a loop"


def test_a_stop_is_noticed_after_a_try() -> None:
    cancel = Stop()
    cancel.set()
    with pytest.raises(Cancelled):
        RetryLoop(Scripted(GOOD), None, EditConfig()).run(task(), Heard(), cancel)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("\n".join(LINES) + "\n")
    return tmp_path


def test_tests_that_fail_are_reported_and_tried_again(root: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -c 'import a; assert a.f(1) == 2, a.f(1)'"
    config = EditConfig(retries=2, test=command)
    writer = Scripted(("def f(a):", "    return a + 7"), GOOD)
    with EditChecks(root, config) as checks:
        made = run(writer, config, checks, str(root / "a.py"))
    assert (made.attempts, made.lines) == (2, GOOD)
    assert {each.name for each in made.file.checks} == {
        "parses", "symbols", "indent", "size", "test",
    }  # fmt: skip
    assert "AssertionError: 8" in writer.asked[1][1][0].problems[0]


def test_who_asks_for_a_fix_sees_the_tests_at_once(root: Path) -> None:
    config = EditConfig(
        test=f"{shlex.quote(sys.executable)} -c 'import a; assert a.f(1) == 2, a.f(1)'"
    )
    for words, is_told in (("fix the bug", True), ("add a docstring", False)):
        writer = Scripted(GOOD)
        with EditChecks(root, config) as checks:
            attempts = RetryLoop(writer, checks, config)
            asked = task(str(root / "a.py"), words)
            assert attempts.run(asked, Heard(), Stop()).attempts == 1
        assert (NOW in writer.tasks[0].instruction) is is_told
        assert ("AssertionError: 1" in writer.tasks[0].instruction) is is_told
        assert asked.instruction == words


def test_what_does_not_parse_is_not_run(root: Path) -> None:
    config = EditConfig(retries=0, test="touch ran; false")
    with EditChecks(root, config) as checks:
        made = run(Scripted(BAD), config, checks, str(root / "a.py"))
    assert "test" not in {each.name for each in made.file.checks}


def test_the_formatter_changes_the_region_alone(root: Path) -> None:
    config = EditConfig(formatter="sed -e s/1/9/")
    with EditChecks(root, config) as checks:
        made = run(Scripted(GOOD), config, checks, str(root / "a.py"))
    assert made.lines == ("def f(a):", "    return a + 9")
    assert made.file.checks[-1].name == "format"
    assert [change.new for change in made.file.changes] == [("    return a + 9",)]


def test_a_formatter_that_fails_is_a_badge(root: Path) -> None:
    config = EditConfig(formatter="false", retries=0)
    with EditChecks(root, config) as checks:
        made = run(Scripted(GOOD), config, checks, str(root / "a.py"))
    assert made.lines == GOOD
    assert not made.file.checks[-1].is_ok


@pytest.mark.parametrize(
    ("wished", "expected"),
    [
        (("a", "B", "C", "d"), ("B", "C")),
        (("A", "b", "c", "D"), ("b", "c")),
        (("a", "b", "new", "c", "d"), ("b", "new", "c")),
        (("a", "c", "d"), ("c",)),
    ],
)
def test_wishes_elsewhere_are_left(wished: Lines, expected: Lines) -> None:
    assert changes_inside(("a", "b", "c", "d"), wished, 1, 2) == expected


def test_costs_add_up() -> None:
    one, other = Usage(10, 5, 3, 1.0, 2.0, True), Usage(7, 1, 20, 0.5, 0.25, True)
    assert add_usage(Usage(), one) == one
    assert add_usage(one, other) == Usage(17, 6, 23, 1.5, 2.25, True)
    guessed = Usage(1, 1, 1, 1.0, 1.0, False)
    assert not add_usage(guessed, one).is_exact
    assert not add_usage(one, guessed).is_exact
