"""Tasks that are found in a project, and how they are worked on."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lcursor.agent import queue
from lcursor.catalog.hardware import Load, Power
from lcursor.config import Config, EditConfig
from lcursor.errors import Cancelled
from lcursor.stop import Stop
from lcursor.workspace.outputs import failed_tests
from tests.unit.agent.runs_over_http import Make, bash, finish, replace, view

TESTS = """\
import unittest
from a import x
from b import f

class T(unittest.TestCase):
    def test_x(self):
        self.assertEqual(x, 2)

    def test_f(self):
        self.assertEqual(f(), 3)

    def test_fine(self):
        self.assertTrue(x)
"""
COMMAND = "python3 -m unittest"
X, F = "test_x (test_all.T.test_x)", "test_f (test_all.T.test_f)"


def failing(root: Path) -> list[str]:
    found, _ = queue.find(root, Config(edit=EditConfig(test=COMMAND)), (), lambda: False)
    return [each["test"] for each in found if each["test"]]


@pytest.mark.sandbox
def test_failing_tests_and_marked_comments_are_found(session: Make) -> None:
    it = session([finish()])
    (it.root / "test_all.py").write_text(TESTS)
    (it.root / "c.py").write_text("\n# TODO(agent): sort the rows\n# TODO: later\n")
    (it.root / ".env").write_text("# TODO(agent): a secret\n")
    (it.root / "odd\nname.py").write_text("# TODO(agent): not this one\n")
    found, note = queue.find(it.root, Config(edit=EditConfig(test=COMMAND)), (), lambda: False)
    assert not note
    assert [each["task"] for each in found] == [
        "Fix the failing test test_f (test_all.T.test_f).",
        "Fix the failing test test_x (test_all.T.test_x).",
        "sort the rows (c.py:2)",
    ]
    assert found[2]["context"].startswith("c.py:2: # TODO(agent): sort the rows\n")
    assert not (it.root / "__pycache__").exists()  # they ran on a copy
    _, note = queue.find(it.root, Config(edit=EditConfig(test="echo no; false")), (), lambda: False)
    assert note == "the tests (echo no; false) ended with exit 1, and name no failed test"
    it.send("agent.find", id=5, path=str(it.root))  # without a test command
    assert [each["test"] for each in it.wait("agent.found", 5)["tasks"]] == [""]


@pytest.mark.sandbox
@pytest.mark.parametrize(("test", "is_checked"), [(X, True), (F, False), ("", False)])
def test_a_task_about_one_test_may_leave_others_failing(
    test: str, is_checked: bool, session: Make
) -> None:
    it = session([view(), replace(), finish("x is 2")], test=COMMAND)
    (it.root / "test_all.py").write_text(TESTS)
    assert failing(it.root) == [F, X]
    it.start(test=test)
    done = it.wait("agent.done")
    assert (done["is_checked"], bool(done["turn"])) == (is_checked, True), done


@pytest.mark.sandbox
def test_a_correction_that_breaks_another_test_does_not_count(session: Make) -> None:
    it = session([view(), replace("1", "0"), finish("x is 0")], test=COMMAND)
    (it.root / "test_all.py").write_text(TESTS.replace("(x, 2)", "(x, 0)"))
    it.start(test=X)
    assert not it.wait("agent.done")["is_checked"]


@pytest.mark.sandbox
@pytest.mark.parametrize(("test", "is_checked"), [(X, False), ("", True)])
def test_a_test_that_the_agent_changes_shows_nothing(
    test: str, is_checked: bool, session: Make
) -> None:
    script = [bash("sed -i 's/(x, 2)/(x, 1)/' test_all.py"), *[finish("done")] * 4]
    it = session(script, test=COMMAND)
    (it.root / "test_all.py").write_text(TESTS.replace("(f(), 3)", "(f(), f())"))
    it.start(test=test)
    done = it.wait("agent.done")
    assert (done["is_checked"], bool(done["turn"])) == (is_checked, True), done
    note = "The tests passed, but these tests were changed: test_all.py"
    assert (note in done["message"]) == is_checked
    if test:
        assert "restore test_all.py;" in "".join(map(chr, it.server.requests[-1]["prompt"]))


def test_names_of_failed_tests() -> None:
    output = "FAIL: test_x (m.T)\nFAILED tests/a.py::test_y - no\n--- FAIL: TestZ (0.0s)\nok fine"
    assert failed_tests(output) == {"test_x (m.T)", "tests/a.py::test_y", "TestZ"}
    tap = "ok 1 - a\nnot ok 2 - the path of a route\n    not ok 1 - b # TODO later\n# fail 1"
    assert failed_tests(tap) == {"the path of a route"}
    marks = "✔ one (0.5ms)\n✖ two words (1.25ms)\n  ✕ three (5 ms)\n × four 12ms\n✖ failing tests:"
    assert failed_tests(marks) == {"two words", "three", "four"}


def test_it_waits_until_the_machine_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "WAIT_S", 0.01)
    monkeypatch.setattr(queue, "LOAD_S", 0.0)
    looked = list[str]()

    class Battery(Power):
        def is_on_battery(self) -> bool:
            looked.append("power")
            return len(looked) < 2

    class Others(Load):
        def is_busy(self) -> bool:
            looked.append("load")
            return len(looked) < 5

    queue.wait_until_idle(Stop(), Battery(), Others())
    assert looked == ["power", "power", "load", "power", "load"]
    stopped = Stop()
    threading.Timer(0.05, stopped.set).start()
    looked.clear()
    with pytest.raises(Cancelled):
        queue.wait_until_idle(stopped, _AlwaysOnBattery(), Others())


class _AlwaysOnBattery(Power):
    def is_on_battery(self) -> bool:
        return True
