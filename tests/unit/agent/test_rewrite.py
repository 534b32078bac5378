"""A region rewritten by a model, with the user's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from lcursor.agent.guided import rewrite
from lcursor.agent.guided.rewrite import ATTEMPTS, SAME, RegionRewriter
from lcursor.agent.tools.tool import Test
from lcursor.changes.records import Check
from lcursor.config import ChatConfig, EditConfig, ModelConfig
from lcursor.edit.rewriting.retry import MAX_SAME
from lcursor.llm.pool import ModelPool
from lcursor.llm.records import Usage
from lcursor.stop import Stop
from tests.fakes.chat_server import ChatServer, say

LINES = ["def one():", "    return 2", "", "two = 2"]
RIGHT, WRONG, OLD = (f"```python\ndef one():\n    return {value}\n```" for value in (1, 3, 2))


def passes(lines: Sequence[str]) -> Check:
    """Test the function `one`."""
    is_ok = "    return 1" in lines
    return Check("test", is_ok, "" if is_ok else f"FAIL: one\n{lines[1]}")


class RewriterOverHttp:
    """A rewriter, its server and the tokens that it reported."""

    def __init__(self, place: Path, answers: Sequence[str], task: str, stack: ExitStack) -> None:
        self.server = stack.enter_context(ChatServer([say(each) for each in answers]))
        server = ModelConfig(name="server", url=self.server.url)
        pool = ModelPool(ChatConfig(model="server", models=(server,), server="off"))
        stack.callback(pool.close)
        self.usages: list[Usage] = []
        self._rewriter = RegionRewriter(
            pool, "server", EditConfig(), place, task, Stop(), self.usages.append
        )

    def rewrite(
        self, test: Test = passes, last_row: int = 2, evidence: str = ""
    ) -> Sequence[str] | str:
        """Rewrite the first rows."""
        return self._rewriter("a.py", LINES, 0, last_row, "return three", evidence, test)

    def prompts(self) -> list[str]:
        """Return the user's message of each request."""
        return [str(body["messages"][-1]["content"]) for body in self.server.bodies]


@pytest.fixture
def rewriter(tmp_path: Path) -> Iterator[Callable[..., RewriterOverHttp]]:
    with ExitStack() as stack:
        yield lambda *answers, task="Fix one().": RewriterOverHttp(tmp_path, answers, task, stack)


def test_attempts_are_independent_until_the_tests_pass(
    rewriter: Callable[..., RewriterOverHttp],
) -> None:
    it = rewriter(OLD, WRONG, RIGHT)
    assert it.rewrite() == ("def one():", "    return 1")
    prompts = it.prompts()
    assert len(prompts) == 3
    assert prompts[0] == prompts[1] == prompts[2]
    assert "FAIL: one\n    return 2" in prompts[0]
    assert "return three" not in prompts[0]  # the task itself while the tests fail
    assert [body.get("temperature") for body in it.server.bodies] == [0.0, 0.5, 1.0]
    assert len(it.usages) == 1


FAILING = [
    ("FAIL: a\nFAIL: b (tests.A.b)", "FAIL: b (tests.A.b)", True),
    ("FAIL: a", "FAIL: a\n other output", False),
    ("FAIL: a", "FAIL: b", False),
    ("ERROR: a", "ERROR: a\nFAIL: b", False),
    ("FAILED tests/a.py::a - AssertionError\nFAILED tests/a.py::b", "FAILED tests/a.py::b", True),
    ("FAILED tests/a.py::a", "FAILED tests/a.py::a - OSError", False),
    (
        "--- FAIL: A (0.00s)\n--- FAIL: B (0.00s)\nFAIL\tgo/x",
        "--- FAIL: B (0.00s)\nFAIL\tgo/x",
        True,
    ),
    ("--- FAIL: A (0.00s)", "--- FAIL: A (0.01s)", False),
    ("test a::b ... FAILED\ntest c ... ok", "test a::b ... FAILED\ntest c ... FAILED", False),
    ("not ok 1 - a", "not ok 1 - a", False),
    ("not ok 1 - a b\n    not ok 2 - c", "ok 1 - a b\n    not ok 2 - c", True),
    ("1 of 9 is wrong", "1 of 9 is wrong", True),  # unknown form
]


@pytest.mark.parametrize(("before", "after", "is_better"), FAILING)
def test_a_fix_must_let_a_failing_test_pass(
    before: str, after: str, is_better: bool, rewriter: Callable[..., RewriterOverHttp]
) -> None:
    it = rewriter(*[WRONG] * ATTEMPTS)
    found = it.rewrite(lambda lines: Check("test", False, before if [*lines] == LINES else after))
    if is_better:
        assert found == ("def one():", "    return 3")
    else:
        assert found == f"none of {ATTEMPTS} attempts passes the checks"
    assert len(it.prompts()) == ATTEMPTS


def test_a_failing_test_that_is_not_in_the_task_is_ignored(
    rewriter: Callable[..., RewriterOverHttp],
) -> None:
    it = rewriter(*[WRONG] * ATTEMPTS, task="Write a new one().")
    assert it.rewrite(lambda _: Check("test", False, "FAIL: a")) == ("def one():", "    return 3")
    assert "return three" in it.prompts()[0]


def test_the_instruction_counts_while_the_tests_pass(
    rewriter: Callable[..., RewriterOverHttp],
) -> None:
    it = rewriter(WRONG, task="Write a new one().")
    assert it.rewrite(lambda _: Check("test", True)) == ("def one():", "    return 3")
    assert "return three" in it.prompts()[0]
    assert "Write a new one()." in it.prompts()[0]


def test_a_change_that_breaks_tests_is_rejected(rewriter: Callable[..., RewriterOverHttp]) -> None:
    it = rewriter(*[WRONG] * ATTEMPTS, task="Write a new one().")
    found = it.rewrite(lambda lines: Check("test", [*lines] == LINES, "FAIL: a"))
    assert found == f"none of {ATTEMPTS} attempts passes the checks"


@pytest.mark.parametrize("task", ["Write a new one().", "Fix one()."])
def test_a_text_that_does_not_parse_is_rejected(
    task: str, rewriter: Callable[..., RewriterOverHttp]
) -> None:
    it = rewriter(WRONG, *["```python\ndef one(:\n    return 1\n```"] * (ATTEMPTS - 1), task=task)
    test = Check("test", False, "FAIL: a\nFAIL: b")
    found = it.rewrite(lambda lines: passes(lines) if task == "Fix one()." else test)
    if task == "Fix one().":
        assert found == f"none of {ATTEMPTS} attempts passes the checks"
    else:
        assert found == ("def one():", "    return 3")


def test_the_same_lines_are_no_change(rewriter: Callable[..., RewriterOverHttp]) -> None:
    it = rewriter(*[OLD] * ATTEMPTS)
    assert it.rewrite(lambda _: None) == SAME
    assert len(it.prompts()) == MAX_SAME


def test_slow_tests_are_not_run_often(
    rewriter: Callable[..., RewriterOverHttp], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite, "MAX_TEST_S", 0.0)
    ran = list[Sequence[str]]()

    def slow(lines: Sequence[str]) -> Check:
        ran.append(lines)
        return passes(lines)

    it = rewriter(WRONG, OLD)
    assert it.rewrite(slow) == "none of 2 attempts passes the checks"
    assert len(ran) == 2  # the old lines once, and the new ones
