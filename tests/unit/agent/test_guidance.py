"""What a small model is offered next, and how its run begins."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from lcursor.agent.guided.choice import Choice
from lcursor.agent.guided.guidance import (
    MAX_LOOKS,
    MIN_STEPS,
    OPENING,
    UNPROVEN,
    offered,
    own_answer,
)
from lcursor.agent.loop import Loop
from lcursor.agent.records import Answer, Known, Observation, Shown, ToolCall
from lcursor.agent.run_log import AgentStep, RunLog, RunState
from lcursor.stop import Stop
from tests.fakes.agent import Watcher, parts

CART, TEST = "shop/cart.py", "tests/test_cart.py"
REGIONS = {
    f"{CART}#total": Shown(CART, 4, 9),
    f"{CART}#count": Shown(CART, 9, 12),
    f"{TEST}#test_total": Shown(TEST, 3, 6),
}
KNOWN = Known(
    ("README.md", CART, TEST, "shop/stock.py", "shop", "tests"),
    {CART: ("Cart", "total", "count"), "shop/stock.py": ("put", "take"), TEST: ("test_total",)},
    commands={"test": "pytest", "lint": "ruff check"},
)
RUN_TEST = ToolCall("bash", {"command": "pytest"})


def step(
    call: ToolCall, text: str = "", *, status: int | None = None, is_error: bool = False
) -> AgentStep:
    found = Observation(text, is_error=is_error, status=status)
    return AgentStep(0, call, before="now", observation=found)


def read(path: str, text: str = "") -> AgentStep:
    return step(ToolCall("str_replace_editor", {"command": "view", "path": path}), text)


def edit(region: str, *, is_error: bool = False) -> AgentStep:
    return step(ToolCall("rewrite", {"path": CART, "region": region}), is_error=is_error)


def spots(known: Known) -> set[str]:
    return {f"{path}#{name}" for path, names in known.symbols.items() for name in names} | {
        *known.paths
    }


def offer(task: str, *steps: AgentStep, known: Known = KNOWN, tree: str = "now") -> Known:
    return offered(known, RunState(task=task, steps=[*steps]), tree)


@pytest.mark.parametrize(
    ("task", "wanted"),
    [
        ("The test tests.test_cart.CartTest.test_total fails.",
         {f"{CART}#total", f"{TEST}#test_total"}),
        ("count() is wrong for a large total", {f"{CART}#count"}),
        ("`take` must check the count", {"shop/stock.py#take"}),
        ("the total is wrong", {f"{CART}#total"}),
        ("it counts wrongly", {f"{CART}#count"}),
        ("Give the Cart a name", {f"{CART}#Cart"}),
        ("correct the cart", {CART, *(f"{CART}#{name}" for name in ("Cart", "total", "count"))}),
        ("improve shop/stock.py", {"shop/stock.py", "shop/stock.py#put", "shop/stock.py#take"}),
        ("make it better", spots(KNOWN)),
    ],
)  # fmt: skip
def test_names_in_the_task_are_offered_first(task: str, wanted: set[str]) -> None:
    assert spots(offer(task)) == wanted


def test_a_search_is_offered_when_nothing_is_named() -> None:
    assert not offer("count() is wrong").may_search
    assert offer("make it better").may_search


def test_names_in_a_result_are_offered_next() -> None:
    shown = read("README.md", "shop/stock.py#put:\n  def put(self):\n    take(1)")
    known = dataclasses.replace(KNOWN, paths=(CART, "shop"))
    assert spots(offer("make it better", shown, known=known)) == {"shop/stock.py#take"}


def test_a_region_that_was_read_is_edited_before_another_is_read() -> None:
    known = dataclasses.replace(KNOWN, regions=REGIONS)
    found = offer("count() is wrong", read(f"{CART}#count"), known=known)
    assert [*found.regions] == [f"{CART}#count"]
    assert not found.may_look
    assert offer("count() is wrong", edit(f"{CART}#count"), known=known).may_look


def test_a_call_on_the_same_files_is_not_repeated() -> None:
    steps = [read(f"{CART}#count"), step(RUN_TEST, status=0), edit(f"{CART}#total", is_error=True)]
    task, known = "count and total are wrong", dataclasses.replace(KNOWN, regions=REGIONS)
    found = offer(task, *steps, known=known)
    assert [*found.commands] == ["lint"]
    assert [*found.regions] == [f"{CART}#count"]
    assert spots(offer(task, *steps)) == {f"{CART}#total"}
    again = offer(task, *steps, known=known, tree="other")
    assert [*again.commands] == ["test", "lint"]
    assert [*again.regions] == [f"{CART}#total", f"{CART}#count"]
    assert spots(offer(task, *steps, tree="other")) == {f"{CART}#total", f"{CART}#count"}


def test_changed_and_other_regions_may_be_changed_next() -> None:
    known = dataclasses.replace(KNOWN, regions=REGIONS)
    found = offer("count() is wrong in the cart", edit(f"{CART}#count"), known=known)
    assert [*found.regions] == [f"{CART}#total", f"{CART}#count"]


def test_while_tests_fail_they_are_read_once_and_never_changed() -> None:
    task, known = "test_total fails", dataclasses.replace(KNOWN, regions=REGIONS)
    failed = step(RUN_TEST, status=1)
    assert [*offer(task, failed, known=known).regions] == [f"{CART}#total"]
    assert spots(offer(task, failed)) == {f"{CART}#total", f"{TEST}#test_total"}
    assert spots(offer(task, failed, read(TEST))) == {f"{CART}#total"}
    assert f"{TEST}#test_total" in offer(task, step(RUN_TEST, status=0), known=known).regions


def test_after_some_looks_something_is_to_be_changed() -> None:
    task = "improve shop/cart.py"
    known = dataclasses.replace(KNOWN, regions=REGIONS)
    looks = [read(f"shop/{number}.py") for number in range(MAX_LOOKS)]
    assert offer(task, *looks[1:], known=known).may_look
    assert not offer(task, *looks, known=known).may_look
    assert offer(task, *looks, step(RUN_TEST, status=1), known=known).may_look


def test_a_run_does_not_end_early_without_a_change() -> None:
    looks = [read(f"{number}.py") for number in range(MIN_STEPS)]
    assert not offer("", *looks[1:]).may_end
    assert offer("", *looks).may_end
    assert offer("", edit(f"{CART}#total")).may_end
    assert not offer("", edit(f"{CART}#total", is_error=True)).may_end


def own(*steps: AgentStep, tree: str = "now", **fields: object) -> str:
    given = {"answers": len(steps), "steps": [*steps], **fields}
    return own_answer(KNOWN, RunState(**given), tree)  # type: ignore[arg-type]


def test_a_run_ends_once_the_tests_pass_after_a_change() -> None:
    passed, total = step(RUN_TEST, status=0), edit(f"{CART}#total")
    assert own(total, passed) == f"# the tests pass\ndone : Changed total in {CART}\n"
    both = own(total, total, edit(f"{CART}#count-2"), passed)
    assert both.endswith(f"done : Changed total in {CART}, count-2 in {CART}\n")
    assert own(step(RUN_TEST, status=1), total, passed) == own(total, passed)
    unproven = own(passed, total, passed)
    assert unproven == f"# the tests pass\ndone : Changed total in {CART}{UNPROVEN}\n"
    assert Choice().parse(Answer(both), (), KNOWN).calls[0].tool == "finish"
    assert not own(total, passed, tree="later")
    assert not own(total)
    assert not own(edit(f"{CART}#total", is_error=True), passed)
    assert not own(total, step(RUN_TEST, status=1))
    assert not own(total, passed, said=["now stock"], warned=2)
    assert not own(
        total, passed, step(ToolCall("finish", {}), is_error=True)
    )  # the linter objected


def test_a_run_without_tests_begins_with_the_model() -> None:
    assert own() == OPENING
    assert not own_answer(Known(commands={"lint": "ruff"}), RunState(), "now")


def test_a_run_with_tests_begins_with_them(tmp_path: Path) -> None:
    made, model, _, tools = parts(tmp_path, ["# it is\ndone : all"], {"a.py": ""})
    tools.known = lambda: Known(("a.py",), commands={"test": shutil.which("true") or ""})  # type: ignore[method-assign]
    log = RunLog(tmp_path)
    fields = {"root": "/p", "task": "", "context": "", "note": "", "sandbox": ""}
    log.start(key="k", model="m", dialect="choice", policy="auto", **fields)
    Loop(log, dataclasses.replace(made, dialect=Choice()), Watcher(), Stop()).run()
    assert model.rows[2] == ["assistant", OPENING]
    assert [each.call.tool for each in log.state.steps] == ["bash", "finish"]
    assert log.state.steps[0].shown_state == "done"
